/* SPDX-License-Identifier: MIT
 *
 * What journal.c, which writes lines, and journal_read.c, which reads them, share.
 */
#ifndef WG_DEVICE_JOURNAL_LINES_H
#define WG_DEVICE_JOURNAL_LINES_H

#include "device/journal.h"

enum { WG_JOURNAL_BYTES_MAX = 64 << 20 }; /* what is longer is not read, so it is not written */

/* Kinds of lines; a line is of the kind whose word it has as a member. */
#define WG_JOURNAL_LINES(X)                                                                        \
    X(TAKE, "take")                                                                                \
    X(SET, "set")                                                                                  \
    X(APPLIED, "applied")                                                                          \
    X(REFUSED, "refused")                                                                          \
    X(GIVEN_BACK, "given_back")                                                                    \
    X(END, "end")

enum wg_journal_line {
#define X(name, word) WG_JOURNAL_LINE_##name,
    WG_JOURNAL_LINES(X)
#undef X
        WG_JOURNAL_LINE_COUNT
};

extern const char *const wg__journal_words[WG_JOURNAL_LINE_COUNT];

/* What the lines do to the model. WG_ENOMEM. */
enum wg_code wg__journal_note_take(struct wg_journal *journal, const struct wg_journal_knob *knob);
enum wg_code wg__journal_note_set(struct wg_journal_knob *knob, double value);
void wg__journal_note_applied(struct wg_journal_knob *knob, double value);
void wg__journal_note_refused(struct wg_journal_knob *knob);

#endif
