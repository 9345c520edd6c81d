/* SPDX-License-Identifier: MIT
 *
 * Error codes and error texts.
 *
 * A function that can fail returns `enum wg_code` and takes an optional, caller-owned
 * `struct wg_error *` as its last parameter. No errno, no thread-local state, no allocation: a
 * message can be made when memory has run out. One X-macro table gives enum, name and text.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_BASE_ERROR_H
#define WG_BASE_ERROR_H

#define WG_CODES(X)                                                                                \
    X(OK, 0, "success")                                                                            \
    X(EINVAL, -1, "invalid argument")                                                              \
    X(ENOMEM, -2, "out of memory")                                                                 \
    X(EPERM, -3, "not permitted")                                                                  \
    X(ENOENT, -4, "no such file")                                                                  \
    X(EUNSUPPORTED, -5, "not supported")                                                           \
    X(EIO, -6, "I/O failed")                                                                       \
    X(EDATA, -7, "malformed data")                                                                 \
    X(EUNREACHABLE, -8, "the target cannot be reached")

enum wg_code {
#define X(name, value, text) WG_##name = value,
    WG_CODES(X)
#undef X
};

/* What was tried, on what, and the bound or cause; one line, no newline at the end. */
struct wg_error {
    enum wg_code code;
    char text[508];
};

/* Fills `err` (may be NULL) with `code` and the formatted text, cut to fit; returns `code`. Control
 * bytes in the text, a newline too, become '?', so a message is always one line. */
enum wg_code wg__fail(struct wg_error *err, enum wg_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a failed system call: the code follows from `error_number` (EACCES gives WG_EPERM,
 * ENOENT gives WG_ENOENT, most others WG_EIO), and ": " with its description is added to the text.
 */
enum wg_code wg__fail_errno(struct wg_error *err, int error_number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The name of a code ("WG_EINVAL") and its text; never NULL, also for unknown values. */
const char *wg__code_name(enum wg_code code);
const char *wg__code_text(enum wg_code code);

#endif
