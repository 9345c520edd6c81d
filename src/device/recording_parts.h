/* SPDX-License-Identifier: MIT
 *
 * Members of JSON objects, checked; for recording.c and recording_device.c.
 *
 * One `struct wg_members` reads one line's object. The first thing that is wrong makes the error,
 * with file and line; what is read after it is zero, so a caller reads all members and looks once.
 *
 * Threads: one thread at a time.
 */
#ifndef WG_DEVICE_RECORDING_PARTS_H
#define WG_DEVICE_RECORDING_PARTS_H

#include <jansson.h>

#include "device/recording.h"

struct wg_members {
    struct wg_recording *recording; /* texts go into its arena */
    const char *file;
    size_t line;
    const json_t *object;
    const char *where; /* "" or what the object is: "meter 'power_w': " */
    enum wg_code code; /* WG_OK until something is wrong */
    struct wg_error *err;
};

enum wg_code wg__members_fail(struct wg_members *members, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A text; control bytes become '?', so that a recording can do nothing to a terminal. NULL: not
 * there or null, which is an error when `is_needed`. */
const char *wg__member_text(struct wg_members *members, const char *key, bool is_needed);

/* A number in min .. max; not there or null: `absent`, or an error when that is infinite. */
double wg__member_number(struct wg_members *members, const char *key, double min, double max,
                         double absent);

/* A whole number up to `max`; not there or null: an error. */
uint64_t wg__member_uint(struct wg_members *members, const char *key, uint64_t max);

/* true or false; not there: false. */
bool wg__member_bool(struct wg_members *members, const char *key);

/* The code of a name ("WG_ELOST"). */
enum wg_code wg__member_code(struct wg_members *members, const char *key);

/* An object or array; NULL: not there, null, or (an error) something else. */
const json_t *wg__member_object(struct wg_members *members, const char *key);
const json_t *wg__member_array(struct wg_members *members, const char *key, size_t count_max);

/* One text of an array. */
const char *wg__members_element(struct wg_members *members, const char *key, const json_t *element);

/* A device line, without its "device". */
enum wg_code wg__recording_read_info(struct wg_members *members, struct wg_device_info *out);

#endif
