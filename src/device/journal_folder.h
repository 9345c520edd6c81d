/* SPDX-License-Identifier: MIT
 *
 * Where journals lie, and who holds which.
 *
 *     STATE/journal/             0700
 *         lock                   held for moments: while one is made, or all are looked at
 *         4711-123456-1.journal  0600; pid, start of the process, and a number of its own
 *
 * A journal is held by a lock (flock) on an open file: the holder's, which its guard has inherited.
 * The kernel lets it go when the last of them has died. So a journal whose lock can be taken is
 * stale, and whoever takes it may restore what it says. That needs no clock, no pid and no word of
 * the dead.
 *
 * Threads: any; processes exclude each other by the locks.
 */
#ifndef WG_DEVICE_JOURNAL_FOLDER_H
#define WG_DEVICE_JOURNAL_FOLDER_H

#include "device/journal.h"

/* Makes folder and journal, and holds it. `state_dir` NULL: wg__state_dir's. WG_EPERM, WG_EIO: it
 * cannot be written; WG_ENOMEM. */
enum wg_code wg__journal_make(struct wg_journal *journal, const char *state_dir, const char *holder,
                              const char *root, unsigned timeout_ms, struct wg_error *err);

/* Ends the journal and removes its file. */
enum wg_code wg__journal_remove(struct wg_journal *journal, struct wg_error *err);

/* The lock on the folder of a journal: waits for it, WG_EBUSY when it does not come in time. */
enum wg_code wg__journal_lock(const char *folder, int *out, struct wg_error *err);
void wg__journal_unlock(int fd);

/* A look at one journal of the folder. */
struct wg_journal_look {
    const char *path;
    bool is_live;               /* somebody holds it */
    struct wg_journal *journal; /* NULL: cannot be read, see err */
    const struct wg_error *err;
    bool is_kept; /* set by the visitor: it has moved *journal away, which holds it if stale */
};
/* False ends the walk. */
typedef bool wg_journal_visit(struct wg_journal_look *look, void *context);

/* Visits all; the caller has the folder's lock. */
enum wg_code wg__journal_each(const char *folder, wg_journal_visit *visit, void *context,
                              struct wg_error *err);

/* The same, locked for as long as it takes, for the journals below `state_dir` (NULL:
 * wg__state_dir's). Where there is no folder or no journal in it, nothing is visited and no file
 * made: one directory read. */
enum wg_code wg__journal_each_below(const char *state_dir, wg_journal_visit *visit, void *context,
                                    struct wg_error *err);

/* Whether the settings in it can still be there and be reached from this process. */
enum wg_journal_place {
    WG_JOURNAL_HERE,
    WG_JOURNAL_GONE,      /* of an earlier boot, or of a virtual machine that has ended */
    WG_JOURNAL_ELSEWHERE, /* of another virtual machine, or of the real one around ours */
};
enum wg_journal_place wg__journal_place(const struct wg_journal_header *header);

/* Whether the process that wrote it runs. */
bool wg__journal_has_writer(const struct wg_journal_header *header);

#endif
