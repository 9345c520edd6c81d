/* SPDX-License-Identifier: MIT
 *
 * Error codes and error texts of libwattgov.
 *
 *     struct wg_machine *machine;
 *     struct wg_error err;
 *     if (wg_machine_open(&machine, NULL, &err) != WG_OK)
 *         return fprintf(stderr, "%s: %s\n", wg_code_name(err.code), err.text), 1;
 *     wg_machine_close(machine);
 *
 * A function that can fail returns `enum wg_code` and takes an optional, caller-owned
 * `struct wg_error *` as its last parameter. No errno, no thread-local state, no allocation: a
 * message can be made when memory has run out. One X-macro table gives enum, name and text.
 *
 * Threads: pure, any thread.
 */
#ifndef WATTGOV_ERROR_H
#define WATTGOV_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* What the shared library exports; everything else stays hidden. */
#define WG_API __attribute__((visibility("default")))

#define WG_CODES(X)                                                                                \
    X(OK, 0, "success")                                                                            \
    X(EINVAL, -1, "invalid argument")                                                              \
    X(ENOMEM, -2, "out of memory")                                                                 \
    X(EPERM, -3, "not permitted")                                                                  \
    X(ENOENT, -4, "no such file")                                                                  \
    X(EUNSUPPORTED, -5, "not supported")                                                           \
    X(EIO, -6, "I/O failed")                                                                       \
    X(EDATA, -7, "malformed data")                                                                 \
    X(EUNREACHABLE, -8, "the target cannot be reached")                                            \
    X(ENODEV, -9, "no such device")                                                                \
    X(ELOST, -10, "the device is lost")                                                            \
    X(ETIMEOUT, -11, "no answer in time")                                                          \
    X(ESTATE, -12, "not possible in the present state")                                            \
    X(EBUSY, -13, "in use by somebody else")

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

/* The name of a code ("WG_EINVAL") and its text; never NULL, also for unknown values. */
WG_API const char *wg_code_name(enum wg_code code);
WG_API const char *wg_code_text(enum wg_code code);

#ifdef __cplusplus
}
#endif

#endif
