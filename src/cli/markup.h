/* SPDX-License-Identifier: MIT
 *
 * Text from outside made safe for a terminal, for HTML and for SVG.
 *
 * One decoder of UTF-8 serves all: ill-formed bytes become U+FFFD one by one, as WHATWG's decoder
 * does it nearly, and control characters become blanks. Widths follow the idea of Markus Kuhn's
 * wcwidth, by hand-picked ranges and independent of the locale, which wattgov never sets.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_CLI_MARKUP_H
#define WG_CLI_MARKUP_H

#include <stddef.h>
#include <stdint.h>

struct wg_buffer;

/* Decodes one code point at `text` (not at its end), made safe as above; returns its bytes. */
size_t wg__utf8_next(const char *text, uint32_t *code_out);

/* Terminal columns of a code point: 0 combining, 2 wide, else 1. */
unsigned wg__code_point_width(uint32_t code);

/* Terminal columns of a text. */
size_t wg__text_width(const char *text);

/* Appends a code point; a text without control characters and ill-formed bytes; the same with the
 * characters that mean something in XML and HTML escaped, also inside quotes. */
void wg__append_code_point(struct wg_buffer *out, uint32_t code);
void wg__append_plain(struct wg_buffer *out, const char *text);
void wg__append_escaped(struct wg_buffer *out, const char *text);

/* Appends "why; what to do", plain. A remedy that is NULL, or that the text tells already, is left
 * out. */
void wg__append_reason(struct wg_buffer *out, const char *text, const char *remedy);

#endif
