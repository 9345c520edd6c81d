/* SPDX-License-Identifier: MIT
 *
 * Well-formed UTF-8: the second byte's range, which depends on the first, keeps out what is not.
 *
 * Threads: pure, any thread.
 */
#include "base/utf8.h"

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
