/* SPDX-License-Identifier: MIT
 *
 * Decoding, measuring and escaping of text; see markup.h.
 *
 * The decoder accepts what Unicode's table 3-7 calls well-formed: shortest forms only, no
 * surrogates, nothing above U+10FFFF.
 */
#include "cli/markup.h"

#include <stdbool.h>
#include <string.h>

#include "base/buffer.h"
#include "base/utf8.h"

enum { REPLACEMENT = 0xFFFD };

struct range {
    uint32_t first;
    uint32_t last;
};

/* Combining marks and other characters that take no column, in the scripts that names of GPUs, jobs
 * and files are likely to hold. Sorted. */
static const struct range zero_width[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489},   {0x0591, 0x05BD},   {0x0610, 0x061A}, {0x064B, 0x065F},
    {0x0900, 0x0902}, {0x093C, 0x093C},   {0x0941, 0x0948},   {0x0E31, 0x0E31}, {0x0E34, 0x0E3A},
    {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF},   {0x1DC0, 0x1DFF},   {0x200B, 0x200F}, {0x202A, 0x202E},
    {0x2060, 0x2064}, {0x20D0, 0x20FF},   {0x3099, 0x309A},   {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F},
    {0xFEFF, 0xFEFF}, {0x1F3FB, 0x1F3FF}, {0xE0100, 0xE01EF},
};

/* East Asian wide and fullwidth characters and emoji. Sorted. */
static const struct range double_width[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23EC},   {0x25FD, 0x25FE},
    {0x2614, 0x2615},   {0x26A1, 0x26A1},   {0x2705, 0x2705},   {0x274C, 0x274C},
    {0x2753, 0x2755},   {0x2B50, 0x2B50},   {0x2E80, 0x303E},   {0x3041, 0x33FF},
    {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xA960, 0xA97F},
    {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
    {0xFFE0, 0xFFE6},   {0x1F300, 0x1F3FA}, {0x1F400, 0x1F64F}, {0x1F680, 0x1F6FF},
    {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
};

static bool is_in(uint32_t code, const struct range *ranges, size_t count)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (code > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && code >= ranges[low].first;
}

size_t wg__utf8_next(const char *text, uint32_t *code_out)
{
    const unsigned char *bytes = (const unsigned char *)text;
    if (bytes[0] < 0x80) {
        *code_out = bytes[0] < 0x20 || bytes[0] == 0x7F ? ' ' : bytes[0];
        return 1;
    }
    const size_t length = wg__utf8_length(bytes);
    if (length == 0) {
        *code_out = REPLACEMENT;
        return 1;
    }
    uint32_t code = bytes[0] & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++)
        code = code << 6 | (bytes[i] & 0x3Fu);
    /* C1 controls steer terminals as ESC does; noncharacters are not allowed in XML. */
    if (code < 0xA0)
        code = ' ';
    else if ((code & 0xFFFE) == 0xFFFE)
        code = REPLACEMENT;
    *code_out = code;
    return length;
}

unsigned wg__code_point_width(uint32_t code)
{
    if (code < 0x300)
        return 1;
    if (is_in(code, zero_width, sizeof zero_width / sizeof zero_width[0]))
        return 0;
    return is_in(code, double_width, sizeof double_width / sizeof double_width[0]) ? 2 : 1;
}

size_t wg__text_width(const char *text)
{
    size_t width = 0;
    while (*text != '\0') {
        uint32_t code;
        text += wg__utf8_next(text, &code);
        width += wg__code_point_width(code);
    }
    return width;
}

void wg__append_code_point(struct wg_buffer *out, uint32_t code)
{
    char bytes[4];
    size_t length = 0;
    if (code < 0x80) {
        bytes[length++] = (char)code;
    } else if (code < 0x800) {
        bytes[length++] = (char)(0xC0 | code >> 6);
        bytes[length++] = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        bytes[length++] = (char)(0xE0 | code >> 12);
        bytes[length++] = (char)(0x80 | (code >> 6 & 0x3F));
        bytes[length++] = (char)(0x80 | (code & 0x3F));
    } else {
        bytes[length++] = (char)(0xF0 | code >> 18);
        bytes[length++] = (char)(0x80 | (code >> 12 & 0x3F));
        bytes[length++] = (char)(0x80 | (code >> 6 & 0x3F));
        bytes[length++] = (char)(0x80 | (code & 0x3F));
    }
    wg__buffer_append(out, bytes, length);
}

void wg__append_plain(struct wg_buffer *out, const char *text)
{
    while (*text != '\0') {
        uint32_t code;
        text += wg__utf8_next(text, &code);
        wg__append_code_point(out, code);
    }
}

void wg__append_escaped(struct wg_buffer *out, const char *text)
{
    while (*text != '\0') {
        uint32_t code;
        text += wg__utf8_next(text, &code);
        if (code == '&')
            wg__buffer_puts(out, "&amp;");
        else if (code == '<')
            wg__buffer_puts(out, "&lt;");
        else if (code == '>')
            wg__buffer_puts(out, "&gt;");
        else if (code == '"')
            wg__buffer_puts(out, "&quot;");
        else if (code == '\'')
            wg__buffer_puts(out, "&#39;");
        else
            wg__append_code_point(out, code);
    }
}

void wg__append_reason(struct wg_buffer *out, const char *text, const char *remedy)
{
    wg__append_plain(out, text);
    if (remedy != NULL && strstr(text, remedy) == NULL) {
        wg__buffer_puts(out, "; ");
        wg__append_plain(out, remedy);
    }
}
