/* SPDX-License-Identifier: MIT
 *
 * Error codes and error texts.
 *
 * A message is one printable line by construction: parts of it often come from a file that is
 * broken, so control bytes (a newline, a terminal escape) and those that are no UTF-8 become '?',
 * and a text that is too long is cut between two UTF-8 characters, never inside one.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "base/number.h"
#include "base/utf8.h"

/* Drops a last character of which the cut left only a part. */
static void trim_partial_utf8(char *text, size_t length)
{
    size_t start = length;
    while (start > 0 && length - start < 3 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
        start--;
    if (start == 0)
        return;
    const unsigned char lead = (unsigned char)text[start - 1];
    const size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (need > length - (start - 1))
        text[start - 1] = '\0';
}

/* Formats into err->text and returns the length that the whole message would have had. */
__attribute__((format(printf, 2, 0))) static size_t fill_text(struct wg_error *err,
                                                              const char *format, va_list args)
{
    const int length = wg__format(err->text, sizeof err->text, format, args);
    if (length < 0) {
        err->text[0] = '\0'; /* the code still says something */
        return 0;
    }
    if ((size_t)length >= sizeof err->text)
        trim_partial_utf8(err->text, sizeof err->text - 1);
    wg__utf8_copy_plain(err->text, sizeof err->text, err->text);
    return (size_t)length;
}

enum wg_code wg__fail(struct wg_error *err, enum wg_code code, const char *format, ...)
{
    if (err == NULL)
        return code;
    err->code = code;
    va_list args;
    va_start(args, format);
    (void)fill_text(err, format, args);
    va_end(args);
    return code;
}

static enum wg_code code_from_errno(int error_number)
{
    switch (error_number) {
    case ENOMEM:
        return WG_ENOMEM;
    case EACCES:
    case EPERM:
    case EROFS:
        return WG_EPERM;
    case ENOENT:
    case ENOTDIR:
        return WG_ENOENT;
    default:
        return WG_EIO;
    }
}

enum wg_code wg__fail_errno(struct wg_error *err, int error_number, const char *format, ...)
{
    const enum wg_code code = code_from_errno(error_number);
    if (err == NULL)
        return code;
    err->code = code;
    va_list args;
    va_start(args, format);
    const size_t length = fill_text(err, format, args);
    va_end(args);
    if (length + 3 >= sizeof err->text)
        return code;
    char scratch[64];
    /* The GNU form of strerror_r: thread-safe, and the text may lie in static memory. */
    const char *cause = strerror_r(error_number, scratch, sizeof scratch);
    size_t end = length;
    err->text[end++] = ':';
    err->text[end++] = ' ';
    for (; *cause != '\0' && end + 1 < sizeof err->text; cause++)
        err->text[end++] = *cause;
    err->text[end] = '\0';
    return code;
}

const char *wg_code_name(enum wg_code code)
{
    switch (code) {
#define X(name, value, text)                                                                       \
    case WG_##name:                                                                                \
        return "WG_" #name;
        WG_CODES(X)
#undef X
    }
    return "unknown code";
}

const char *wg_code_text(enum wg_code code)
{
    switch (code) {
#define X(name, value, text)                                                                       \
    case WG_##name:                                                                                \
        return text;
        WG_CODES(X)
#undef X
    }
    return "unknown error";
}
