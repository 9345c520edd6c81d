/* SPDX-License-Identifier: MIT
 *
 * What a server had; see server_original.h.
 */
#include "live/server_original.h"

#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/json.h"

enum wg_code wg__server_original_write(const char *path, const char *server, const char *model,
                                       const char *config, struct wg_error *err)
{
    struct wg_buffer text;
    struct wg_json json;
    wg__buffer_init(&text);
    wg__json_init(&json, &text);
    wg__json_object(&json);
    wg__json_member_string(&json, "server", server);
    wg__json_member_string(&json, "model", model);
    if (config != NULL)
        wg__json_member_string(&json, "config", config);
    wg__json_close(&json);
    const enum wg_code code = text.failed ? wg__fail(err, WG_ENOMEM, "%s: out of memory", path)
                                          : wg__file_write(path, text.data, text.length, err);
    wg__buffer_fini(&text);
    return code;
}

static bool is_text(const json_t *root, const char *key, const char *expected)
{
    const char *text = json_string_value(json_object_get(root, key));
    return text != NULL && strcmp(text, expected) == 0;
}

enum wg_code wg__server_original_read(char **config_out, const char *path, const char *server,
                                      const char *model, struct wg_error *err)
{
    *config_out = NULL;
    if (access(path, F_OK) != 0)
        return WG_OK;
    json_error_t cause;
    json_t *root = json_load_file(path, 0, &cause);
    if (root == NULL)
        return wg__fail(err, WG_EDATA,
                        "%s:%d: a model's configuration is expected, as an earlier run kept it: %s",
                        path, cause.line, cause.text);
    const char *config = json_string_value(json_object_get(root, "config"));
    enum wg_code code = WG_OK;
    if (config != NULL && is_text(root, "server", server) && is_text(root, "model", model)) {
        *config_out = wg__strdup(config);
        if (*config_out == NULL)
            code = wg__fail(err, WG_ENOMEM, "%s: out of memory", path);
    }
    json_decref(root);
    return code;
}
