/* SPDX-License-Identifier: MIT
 *
 * Well-formed UTF-8, as the Unicode standard defines it (table 3-7): no overlong forms, no
 * surrogates, nothing above U+10FFFF.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_BASE_UTF8_H
#define WG_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The bytes of the well-formed character at `text`, 1..4; 0 when there is none. Never looks beyond
 * a final zero, which is no continuation byte. */
size_t wg__utf8_length(const unsigned char *text);

/* Whether `text` is all well-formed and without control characters (C0, DEL, C1): it can be shown
 * on a terminal as it is, and stand in JSON. */
bool wg__utf8_is_plain(const char *text);

/* How many of `length` bytes to show where there is room for `max`: cut between two characters. An
 * int, as "%.*s" takes it; `max` fits into one. */
int wg__utf8_cut(const char *text, size_t length, size_t max);

/* Copies `text` with '?' for each byte that keeps it from being plain, cut between two characters
 * to fit into `size` bytes, at least one; `out` may be `text` itself. */
void wg__utf8_copy_plain(char *out, size_t size, const char *text);

#endif
