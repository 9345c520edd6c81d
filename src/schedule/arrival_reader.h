/* SPDX-License-Identifier: MIT
 *
 * The numbers of a trace file, before anybody says what they mean.
 *
 * With them come the facts by which text without a header is told apart, each as the line where it
 * was first seen, so that a message can point there.
 *
 * Owns: the array.    Threads: one at a time.
 */
#ifndef WG_SCHEDULE_ARRIVAL_READER_H
#define WG_SCHEDULE_ARRIVAL_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "schedule/arrival_trace.h"

enum { WG_ARRIVAL_NAME_SIZE = 256 };

struct wg_arrival_input {
    const char *path;  /* a file, or the name of the bytes */
    const char *bytes; /* NULL: read the file */
    size_t length;
};

struct wg_arrival_numbers {
    enum wg_arrival_kind kind; /* as the header says; AUTO for text */
    bool has_seconds;          /* counts whose file says which second each is */
    double *values;            /* moments of a date: from the first one */
    size_t count;
    size_t capacity;
    size_t fall_line;      /* first number below the one before; 0: none */
    size_t not_count_line; /* first number that can be no count */
    size_t negative_line;  /* first number below 0 */
    double not_count;      /* that number */
    double negative;
    size_t last_line;
};

/* WG_ENOENT, WG_EPERM, WG_EIO, WG_EDATA with the line, WG_ENOMEM. */
enum wg_code wg__arrival_numbers_read(struct wg_arrival_numbers *out,
                                      const struct wg_arrival_input *input, struct wg_error *err);
void wg__arrival_numbers_fini(struct wg_arrival_numbers *numbers);

#endif
