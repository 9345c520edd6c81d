/* SPDX-License-Identifier: MIT
 *
 * Making errors: the inner side of include/wattgov/error.h.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_BASE_ERROR_H
#define WG_BASE_ERROR_H

#include "wattgov/error.h"

/* Fills `err` (may be NULL) with `code` and the formatted text, cut to fit; returns `code`. Control
 * bytes in the text, a newline too, and what is no UTF-8 become '?': a message is always one line
 * that can be printed. */
enum wg_code wg__fail(struct wg_error *err, enum wg_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a failed system call: the code follows from `error_number` (EACCES gives WG_EPERM,
 * ENOENT gives WG_ENOENT, most others WG_EIO), and ": " with its description is added to the text.
 */
enum wg_code wg__fail_errno(struct wg_error *err, int error_number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
