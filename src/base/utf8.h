/* SPDX-License-Identifier: MIT
 *
 * Well-formed UTF-8, as the Unicode standard defines it (table 3-7): no overlong forms, no
 * surrogates, nothing above U+10FFFF.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_BASE_UTF8_H
#define WG_BASE_UTF8_H

#include <stddef.h>

/* The bytes of the well-formed character at `text`, 1..4; 0 when there is none. Never looks beyond
 * a final zero, which is no continuation byte. */
size_t wg__utf8_length(const unsigned char *text);

#endif
