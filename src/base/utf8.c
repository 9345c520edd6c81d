/* SPDX-License-Identifier: MIT
 *
 * Well-formed UTF-8: the second byte's range, which depends on the first, keeps out what is not.
 *
 * Threads: pure, any thread.
 */
#include "base/utf8.h"

#include <string.h>

size_t wg__utf8_length(const unsigned char *text)
{
    const unsigned char lead = text[0];
    if (lead < 0x80)
        return 1;
    if (lead < 0xC2 || lead > 0xF4)
        return 0;
    const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    unsigned char low = 0x80; /* bounds of the second byte, tighter behind four of the leads */
    unsigned char high = 0xBF;
    if (lead == 0xE0)
        low = 0xA0;
    else if (lead == 0xED)
        high = 0x9F;
    else if (lead == 0xF0)
        low = 0x90;
    else if (lead == 0xF4)
        high = 0x8F;
    if (text[1] < low || text[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    }
    return length;
}

/* The bytes of the character at `text`; 0: it is ill-formed or a control character. */
static size_t plain_length(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    if (*at < 0x20 || *at == 0x7F || (*at == 0xC2 && at[1] < 0xA0))
        return 0;
    return wg__utf8_length(at);
}

bool wg__utf8_is_plain(const char *text)
{
    for (size_t length; *text != '\0'; text += length) {
        length = plain_length(text);
        if (length == 0)
            return false;
    }
    return true;
}

int wg__utf8_cut(const char *text, size_t length, size_t max)
{
    if (length > max) {
        length = max;
        while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
            length--;
    }
    return (int)length;
}

void wg__utf8_copy_plain(char *out, size_t size, const char *text)
{
    const char *end = out + size - 1;
    while (*text != '\0') {
        const size_t length = plain_length(text);
        const size_t copied = length > 0 ? length : 1;
        if (copied > (size_t)(end - out))
            break;
        memmove(out, length > 0 ? text : "?", copied);
        out += copied;
        text += copied;
    }
    *out = '\0';
}
