/* SPDX-License-Identifier: MIT
 *
 * What a job prints, read by regular expressions (PCRE2, the syntax of Perl).
 *
 * The first group of an expression is the number; one for steps or epochs that has no group counts
 * its matches. Escape sequences of terminals (colours, cursor moves, titles) are taken out before.
 * Output need not be valid UTF-8. An expression that takes too long on a line (nested repeats) is
 * given up on that line, and for good after a hundred lines in a row: reading must keep pace with
 * the job.
 *
 * Owns: the compiled expressions.    Threads: one at a time.
 */
#ifndef WG_LIVE_PROGRESS_MATCH_H
#define WG_LIVE_PROGRESS_MATCH_H

#include "live/progress_feed.h"

enum { WG_PROGRESS_TEXT_MAX = 4096 }; /* bytes of a printed line that are looked at */

struct wg_progress_matcher;

/* The three may be NULL. WG_EINVAL: an expression is malformed, or one for metrics has no group. */
enum wg_code wg__progress_matcher_new(struct wg_progress_matcher **out, const char *step_regex,
                                      const char *epoch_regex, const char *metric_regex,
                                      struct wg_error *err);
void wg__progress_matcher_free(struct wg_progress_matcher *matcher);

/* Looks at one line; what it finds goes to the feed. */
void wg__progress_matcher_line(struct wg_progress_matcher *matcher, struct wg_progress_feed *feed,
                               const char *line, size_t length);

/* Takes escape sequences and control bytes out of `length` bytes, in place; what is left. */
size_t wg__terminal_strip(char *text, size_t length);

#endif
