/* SPDX-License-Identifier: MIT
 *
 * A journal: what one holder has set, in lines of JSON that are only ever added.
 *
 *     {"wattgov_journal":1,"pid":4711,"start":123,"boot":"6f..","holder":"wattgov train: ...",...}
 *     {"take":"power_limit","device":"GPU-1a2b","label":"gpu0","original":300,"step":0.001}
 *     {"set":"power_limit","device":"GPU-1a2b","value":175}        before the driver is called
 *     {"applied":"power_limit","device":"GPU-1a2b","value":175}    what the device then says
 *     {"refused":"power_limit","device":"GPU-1a2b"}                the driver did not take it
 *     {"given_back":"power_limit","device":"GPU-1a2b","outcome":"restored"}
 *     {"end":true}
 *
 * null for a number: what the driver chooses by itself. A line is whole when its end of line is
 * there; a last one without it was cut off by a death, and what it was about was not begun, since
 * lines come before deeds. From the lines follows, for each knob, what it may stand at now: the
 * value that was applied last, and each one that was set after it and of which nothing is known.
 *
 * The model in memory is changed by the same functions when a line is written and when it is read.
 *
 * Owns: see struct wg_journal.    Threads: one at a time.
 */
#ifndef WG_DEVICE_JOURNAL_H
#define WG_DEVICE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "wattgov/device.h"

enum { WG_JOURNAL_VERSION = 1 };

struct wg_journal_knob {
    const char *device; /* its id */
    const char *label;
    enum wg_knob knob;
    double original; /* NAN: what the driver chooses by itself */
    double step;     /* of the knob; NAN: unknown */
    double *values;  /* what it may stand at, oldest first; none: nothing was set */
    size_t value_count;
    size_t value_capacity;
    bool is_confirmed; /* values[0] is what the device said, or accepted */
    bool is_done;      /* given back, or left to somebody else */
};

/* Who writes it, and how the machine is opened again; texts are never NULL. */
struct wg_journal_header {
    int64_t pid;
    uint64_t start;   /* of the process, in the kernel's ticks since boot; 0: unknown */
    const char *boot; /* the kernel's id of this boot; "": unknown */
    const char *holder;
    const char *root;        /* of the machine; "/" */
    const char *virtual_gpu; /* the file of a virtual machine (WATTGOV_VGPU); "": a real one */
    unsigned timeout_ms;
};

struct wg_journal {
    int fd;
    bool is_borrowed; /* the caller's: not closed by fini */
    const char *path;
    struct wg_journal_header header;
    struct wg_journal_knob *knobs;
    size_t knob_count;
    size_t knob_capacity;
    bool is_ended;
    bool is_torn;    /* there is half a line behind the whole ones */
    uint64_t length; /* of the whole lines */
    struct wg_arena arena;
    struct wg_buffer line;
};

/* Begins a journal in a file that is open, empty and held; copies the texts. The file is the
 * journal's from then on, also when this fails. */
enum wg_code wg__journal_begin(struct wg_journal *journal, int fd, const char *path,
                               const struct wg_journal_header *header, struct wg_error *err);

/* Reads a journal. WG_EDATA: malformed (line and cause); WG_EUNSUPPORTED: of a newer version.
 * `is_borrowed`: the file stays the caller's. A file without one whole line is an ended journal:
 * its holder died before it could set anything. */
enum wg_code wg__journal_read(struct wg_journal *journal, int fd, bool is_borrowed,
                              const char *path, struct wg_error *err);

/* Frees and closes; the file stays. */
void wg__journal_fini(struct wg_journal *journal);

/* The knob that is taken and not done; NULL: none. */
struct wg_journal_knob *wg__journal_find(const struct wg_journal *journal, const char *device,
                                         enum wg_knob knob);
bool wg__journal_is_done(const struct wg_journal *journal); /* all knobs are */

/* Each adds a line, which is on the disk when WG_OK is returned (`applied`, `refused`: handed to
 * the kernel). Otherwise nothing has changed: WG_EIO, WG_ENOMEM, ... with the path and the cause.
 */
enum wg_code wg__journal_take(struct wg_journal *journal, const struct wg_journal_knob *knob,
                              struct wg_error *err);
enum wg_code wg__journal_set(struct wg_journal *journal, struct wg_journal_knob *knob, double value,
                             struct wg_error *err);
enum wg_code wg__journal_applied(struct wg_journal *journal, struct wg_journal_knob *knob,
                                 double value, struct wg_error *err);
enum wg_code wg__journal_refused(struct wg_journal *journal, struct wg_journal_knob *knob,
                                 struct wg_error *err);
enum wg_code wg__journal_given_back(struct wg_journal *journal, struct wg_journal_knob *knob,
                                    bool is_foreign, struct wg_error *err);
enum wg_code wg__journal_end(struct wg_journal *journal, struct wg_error *err);

/* What is to be done with a knob that stands at `found` (NAN: cannot be read). */
enum wg_journal_verdict {
    WG_JOURNAL_LEAVE,   /* nothing of ours is set */
    WG_JOURNAL_RESTORE, /* it stands at what we set, or may */
    WG_JOURNAL_FOREIGN, /* somebody else has set it */
};
enum wg_journal_verdict wg__journal_judge(const struct wg_journal_knob *knob, double found);

/* Whether two values of the knob are one, up to what devices round. NAN is itself. */
bool wg__journal_is_same(const struct wg_journal_knob *knob, double value, double other);

#endif
