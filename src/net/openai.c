/* SPDX-License-Identifier: MIT
 *
 * OpenAI's completions.
 *
 * Threads: pure, any thread.
 */
#include "net/openai.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"
#include "net/kserve_json.h"

void wg__openai_write(struct wg_buffer *out, const struct wg_openai_request *request)
{
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "model", request->model);
    if (request->is_chat) {
        wg__json_key(&json, "messages");
        wg__json_array(&json);
        wg__json_object(&json);
        wg__json_member_string(&json, "role", "user");
        wg__json_member_string(&json, "content", request->prompt);
        wg__json_close(&json);
        wg__json_close(&json);
    } else {
        wg__json_member_string(&json, "prompt", request->prompt);
    }
    wg__json_member_uint(&json, "max_tokens", request->max_tokens);
    wg__json_member_uint(&json, "temperature", 0);
    if (request->is_streaming) {
        wg__json_member_bool(&json, "stream", true);
        wg__json_key(&json, "stream_options");
        wg__json_object(&json);
        wg__json_member_bool(&json, "include_usage", true);
        wg__json_close(&json);
    }
    wg__json_close(&json);
}

static bool has_text(const json_t *choice)
{
    const json_t *text = json_object_get(choice, "text");
    static const char *const folders[] = {"delta", "message"};
    for (size_t i = 0; text == NULL && i < 2; i++) {
        const json_t *folder = json_object_get(choice, folders[i]);
        text = json_object_get(folder, "content");
        if (json_string_length(text) == 0) /* models that think first say so elsewhere */
            text = json_object_get(folder, "reasoning_content");
    }
    return json_string_length(text) > 0;
}

bool wg__openai_read(struct wg_openai_piece *out, const char *text, size_t length, char *why,
                     size_t why_size)
{
    *out = (struct wg_openai_piece){.is_done = false};
    if (length == 6 && memcmp(text, "[DONE]", 6) == 0) {
        out->is_done = true;
        return true;
    }
    json_t *root = json_loadb(text, length, 0, NULL);
    const json_t *choices = json_object_get(root, "choices");
    if (!json_is_array(choices)) {
        if (json_object_get(root, "error") != NULL)
            wg__http_error_text(why, why_size, text, length);
        else
            (void)snprintf(why, why_size, "%s",
                           root == NULL ? "the answer is no JSON"
                                        : "the answer has no list 'choices'");
        json_decref(root);
        return false;
    }
    out->has_choices = json_array_size(choices) > 0;
    for (size_t i = 0; i < json_array_size(choices); i++)
        out->has_text = out->has_text || has_text(json_array_get(choices, i));
    const json_t *tokens = json_object_get(json_object_get(root, "usage"), "completion_tokens");
    if (json_is_integer(tokens) && json_integer_value(tokens) > 0)
        out->tokens = (uint64_t)json_integer_value(tokens);
    json_decref(root);
    return true;
}
