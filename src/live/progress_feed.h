/* SPDX-License-Identifier: MIT
 *
 * From lines and numbers to events: where all ways to tell progress come together.
 *
 * Moments that a job gives are believed when they lie between the opening and now; others are now.
 * The moments of one kind never go back.
 *
 * A job may both tell its steps and print them, from 0 to the end or anew with each epoch. The two
 * are counted apart, for one count would take their numbers in turn for restarts without end. What
 * is told is more exact: once there is some, what is printed of its kind no longer counts.
 *
 * Owns: the counts of the ranks.    Threads: pure, one thread at a time.
 */
#ifndef WG_LIVE_PROGRESS_FEED_H
#define WG_LIVE_PROGRESS_FEED_H

#include "live/progress.h"
#include "live/progress_count.h"

enum { WG_PROGRESS_COUNTED = WG_PROGRESS_EPOCH + 1 }; /* the kinds that are: step and epoch */

struct wg_progress_feed {
    wg_progress_sink *sink;
    void *context;
    uint64_t opened_ns;
    uint64_t now_ns; /* the moment of reading, of what is being read */
    struct wg_progress_count told[WG_PROGRESS_COUNTED], printed[WG_PROGRESS_COUNTED];
    uint64_t last_ns[WG_PROGRESS_KIND_COUNT];
    size_t event_count;
    size_t rejected_count;
    char rejected[128]; /* the last one, cut, printable */
};

void wg__progress_feed_init(struct wg_progress_feed *feed, wg_progress_sink *sink, void *context,
                            uint64_t opened_ns);
void wg__progress_feed_fini(struct wg_progress_feed *feed);

/* A line of the file or of a client of the socket. */
void wg__progress_feed_line(struct wg_progress_feed *feed, const char *line, size_t length,
                            bool is_cut);

/* A number that a regular expression found: of rank 0, now. False: it is not believed. */
bool wg__progress_feed_value(struct wg_progress_feed *feed, enum wg_progress_kind kind,
                             double value);

/* A line that is no progress. */
void wg__progress_feed_reject(struct wg_progress_feed *feed, const char *line, size_t length);

#endif
