/* SPDX-License-Identifier: MIT
 *
 * OpenAI's completions, as vLLM, llama.cpp and others serve them: the body of a request, and what a
 * piece of the answer holds.
 *
 *     POST /v1/completions        {"choices": [{"text": ...}], "usage": {"completion_tokens": n}}
 *     POST /v1/chat/completions   {"choices": [{"message": {"content": ...}}], ...}
 *     streaming: events with     {"choices": [{"text": ...}]} or [{"delta": {"content": ...}}],
 *                                 the last one is [DONE]
 *
 * Threads: pure, any thread.
 */
#ifndef WG_NET_OPENAI_H
#define WG_NET_OPENAI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

struct wg_openai_request {
    const char *model;
    const char *prompt;
    uint64_t max_tokens;
    bool is_chat;
    bool is_streaming;
};

/* Appends the body. Sampling is greedy, and the usage is asked for, so that tokens are counted by
 * the server. */
void wg__openai_write(struct wg_buffer *out, const struct wg_openai_request *request);

struct wg_openai_piece {
    bool is_done;    /* [DONE] */
    bool has_text;   /* at least one token */
    uint64_t tokens; /* of the whole answer, as the usage tells; 0: it does not */
    bool has_choices;
};

/* One event's data, or the whole answer of a request that does not stream. False: it is none of
 * them; `*why` says what is wrong, the server's own words if there are any. */
bool wg__openai_read(struct wg_openai_piece *out, const char *text, size_t length, char *why,
                     size_t why_size);

#endif
