/* SPDX-License-Identifier: MIT
 *
 * libFuzzer entry of an event stream: any bytes give the same events however they are cut, and each
 * event is read as a piece of a completion or refused with a reason.
 *
 * The first byte says how large the pieces are in which the rest comes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/openai.h"
#include "net/sse.h"

/* libFuzzer prescribes the name. NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void take(void *context, const char *data, size_t length)
{
    struct wg_buffer *all = context;
    require(data[length] == '\0');
    wg__buffer_append(all, data, length);
    wg__buffer_append(all, "\0", 1);
    struct wg_openai_piece piece;
    char why[40] = "";
    if (!wg__openai_read(&piece, data, length, why, sizeof why))
        require(strnlen(why, sizeof why) < sizeof why);
}

static void play(struct wg_buffer *all, const uint8_t *data, size_t size, size_t piece)
{
    struct wg_sse sse;
    wg__sse_init(&sse);
    wg__buffer_init(all);
    for (size_t at = 0; at < size; at += piece)
        require(wg__sse_push(&sse, (const char *)data + at, size - at < piece ? size - at : piece,
                             take, all));
    wg__sse_fini(&sse);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > WG_SSE_EVENT_MAX)
        return 0;
    struct wg_buffer whole, pieces;
    play(&whole, data + 1, size - 1, size);
    play(&pieces, data + 1, size - 1, (size_t)data[0] + 1);
    require(whole.length == pieces.length);
    require(whole.length == 0 || memcmp(whole.data, pieces.data, whole.length) == 0);
    wg__buffer_fini(&whole);
    wg__buffer_fini(&pieces);
    return 0;
}
