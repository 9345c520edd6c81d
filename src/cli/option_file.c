/* SPDX-License-Identifier: MIT
 *
 * Options from a file; see option_file.h.
 */
#include "cli/option_file.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/yaml_file.h"

enum { NAME_SIZE = 64, KNOWN_MAX = 128 };

static const char own_option[] = "config"; /* the one that names the file itself */

struct reader {
    struct wg_option_file *file;
    const struct wg_yaml *yaml;
    const struct wg_option_set *set;
    void *values;
    struct wg_error *err;
};

void wg__option_file_fini(struct wg_option_file *file)
{
    for (size_t i = 0; i < file->count; i++)
        wg__free(file->texts[i]);
    wg__free(file->texts);
    *file = (struct wg_option_file){0};
}

/* Keeps a copy; NULL: out of memory. */
static char *keep(struct wg_option_file *file, const char *text)
{
    if (file->count == file->capacity) {
        const size_t capacity = file->capacity > 0 ? 2 * file->capacity : 32;
        char **grown = wg__realloc_array(file->texts, capacity, sizeof *grown);
        if (grown == NULL)
            return NULL;
        file->texts = grown;
        file->capacity = capacity;
    }
    char *copy = wg__strdup(text);
    if (copy != NULL)
        file->texts[file->count++] = copy;
    return copy;
}

static enum wg_code fail_memory(const struct reader *reader)
{
    return wg__fail(reader->err, WG_ENOMEM, "out of memory");
}

/* -- One value -------------------------------------------------------------------------------- */

/* Gives "--name=value" to the options' own parser. */
static enum wg_code give(struct reader *reader, wg_yaml_node node, const struct wg_option *option,
                         const char *value)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__buffer_printf(&text, "--%s%s%s", option->name, value != NULL ? "=" : "",
                      value != NULL ? value : "");
    char *word = text.failed ? NULL : keep(reader->file, text.data);
    wg__buffer_fini(&text);
    if (word == NULL)
        return fail_memory(reader);
    char program[] = "file";
    char *const words[] = {program, word, NULL};
    bool wants_help = false;
    struct wg_error cause;
    const enum wg_code code =
        wg__options_parse(reader->set, 2, words, reader->values, &wants_help, &cause);
    return code == WG_OK ? code : wg__yaml_fail(reader->yaml, node, reader->err, "%s", cause.text);
}

static enum wg_code give_flag(struct reader *reader, wg_yaml_node node,
                              const struct wg_option *option)
{
    const char *text = wg__yaml_text(reader->yaml, node);
    if (strcmp(text, "true") == 0 || strcmp(text, "yes") == 0)
        return give(reader, node, option, NULL);
    if (strcmp(text, "false") == 0 || strcmp(text, "no") == 0)
        return WG_OK;
    return wg__yaml_fail(reader->yaml, node, reader->err, "'%s' is '%s': expected true or false",
                         option->name, text);
}

/* -- Maps of a list option -------------------------------------------------------------------- */

/* "1,2,4" of a list of texts, or the text. */
static enum wg_code append_levels(struct reader *reader, wg_yaml_node node, struct wg_buffer *out)
{
    const struct wg_yaml *yaml = reader->yaml;
    if (wg__yaml_kind(yaml, node) == WG_YAML_TEXT) {
        wg__buffer_puts(out, wg__yaml_text(yaml, node));
        return WG_OK;
    }
    if (wg__yaml_kind(yaml, node) != WG_YAML_LIST)
        return wg__yaml_fail(yaml, node, reader->err, "expected a list of levels");
    for (size_t i = 0; i < wg__yaml_count(yaml, node); i++) {
        const wg_yaml_node item = wg__yaml_item(yaml, node, i);
        if (wg__yaml_kind(yaml, item) != WG_YAML_TEXT)
            return wg__yaml_fail(yaml, item, reader->err, "expected a number or a word");
        wg__buffer_printf(out, "%s%s", i > 0 ? "," : "", wg__yaml_text(yaml, item));
    }
    return WG_OK;
}

/* {levels: [1, 2], role: batch, default: 2, switch_s: 60} */
static enum wg_code append_map(struct reader *reader, wg_yaml_node map, struct wg_buffer *out)
{
    static const char *const keys[] = {"levels", "role", "default", "switch_s"};
    const struct wg_yaml *yaml = reader->yaml;
    const size_t key_count = sizeof keys / sizeof *keys;
    for (size_t i = 0; i < wg__yaml_count(yaml, map); i++) {
        struct wg_error cause;
        const char *key = wg__yaml_key(yaml, map, i);
        if (wg__option_check_name("knob", key, "a key of a knob", keys, key_count, &cause) != WG_OK)
            return wg__yaml_fail(yaml, wg__yaml_item(yaml, map, i), reader->err, "%s", cause.text);
    }
    const wg_yaml_node levels = wg__yaml_find(yaml, map, "levels");
    enum wg_code code = WG_OK;
    wg__buffer_puts(out, "=");
    if (levels != 0)
        code = append_levels(reader, levels, out);
    for (size_t i = 1; i < key_count && code == WG_OK; i++) {
        const wg_yaml_node value = wg__yaml_find(yaml, map, keys[i]);
        if (value == 0)
            continue;
        if (wg__yaml_kind(yaml, value) != WG_YAML_TEXT)
            return wg__yaml_fail(yaml, value, reader->err, "%s: expected a word or a number",
                                 keys[i]);
        wg__buffer_printf(out, ":%s%s%s", i > 1 ? keys[i] : "", i > 1 ? "=" : "",
                          wg__yaml_text(yaml, value));
    }
    return code;
}

static enum wg_code give_pair(struct reader *reader, const struct wg_option *option,
                              wg_yaml_node map, size_t index)
{
    const struct wg_yaml *yaml = reader->yaml;
    const wg_yaml_node value = wg__yaml_item(yaml, map, index);
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__buffer_puts(&text, wg__yaml_key(yaml, map, index));
    enum wg_code code = WG_OK;
    const bool is_text = wg__yaml_kind(yaml, value) == WG_YAML_TEXT;
    if (wg__yaml_kind(yaml, value) == WG_YAML_MAP) {
        code = append_map(reader, value, &text);
    } else if (!is_text || wg__yaml_text(yaml, value)[0] != '\0') {
        wg__buffer_puts(&text, "=");
        code = append_levels(reader, value, &text);
    }
    if (code == WG_OK)
        code = text.failed ? fail_memory(reader) : give(reader, value, option, text.data);
    wg__buffer_fini(&text);
    return code;
}

static enum wg_code give_list(struct reader *reader, wg_yaml_node node,
                              const struct wg_option *option)
{
    const struct wg_yaml *yaml = reader->yaml;
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < wg__yaml_count(yaml, node) && code == WG_OK; i++) {
        const wg_yaml_node item = wg__yaml_item(yaml, node, i);
        if (wg__yaml_kind(yaml, node) == WG_YAML_MAP)
            code = give_pair(reader, option, node, i);
        else if (wg__yaml_kind(yaml, item) == WG_YAML_TEXT)
            code = give(reader, item, option, wg__yaml_text(yaml, item));
        else
            code = wg__yaml_fail(yaml, item, reader->err, "%s: expected a text", option->name);
    }
    return code;
}

static enum wg_code give_node(struct reader *reader, wg_yaml_node node,
                              const struct wg_option *option)
{
    const bool is_text = wg__yaml_kind(reader->yaml, node) == WG_YAML_TEXT;
    if (is_text && option->kind == WG_OPTION_KIND_FLAG)
        return give_flag(reader, node, option);
    if (is_text)
        return give(reader, node, option, wg__yaml_text(reader->yaml, node));
    if (option->kind != WG_OPTION_KIND_LIST)
        return wg__yaml_fail(reader->yaml, node, reader->err, "%s: expected one value",
                             option->name);
    return give_list(reader, node, option);
}

/* -- The file --------------------------------------------------------------------------------- */

static enum wg_code take_command(struct reader *reader, wg_yaml_node node)
{
    const struct wg_yaml *yaml = reader->yaml;
    const bool is_text = wg__yaml_kind(yaml, node) == WG_YAML_TEXT;
    const size_t count = is_text ? 3 : wg__yaml_count(yaml, node);
    if (wg__yaml_kind(yaml, node) == WG_YAML_MAP || count == 0)
        return wg__yaml_fail(yaml, node, reader->err,
                             "command: expected a text or a list of words");
    /* The array lies among the texts: as one block of bytes that is freed with them. */
    char **words = wg__alloc_zeroed(count + 1, sizeof *words);
    if (words == NULL)
        return fail_memory(reader);
    for (size_t i = 0; i < count; i++) {
        const char *const shell[] = {"/bin/sh", "-c", is_text ? wg__yaml_text(yaml, node) : ""};
        words[i] = keep(reader->file,
                        is_text ? shell[i] : wg__yaml_text(yaml, wg__yaml_item(yaml, node, i)));
        if (words[i] == NULL) {
            wg__free(words);
            return fail_memory(reader);
        }
    }
    char *place = keep(reader->file, "");
    if (place == NULL) {
        wg__free(words);
        return fail_memory(reader);
    }
    wg__free(place);
    reader->file->texts[reader->file->count - 1] = (char *)words;
    struct wg_option_command *command =
        (struct wg_option_command *)((char *)reader->values + reader->set->command_offset);
    *command = (struct wg_option_command){.count = count, .words = words};
    return WG_OK;
}

/* Whether a key of the file means this option: "max_trials", "limits". */
static bool is_key_of(const char *key, const struct wg_option *option)
{
    char name[NAME_SIZE];
    if (strlen(key) >= sizeof name)
        return false;
    memcpy(name, key, strlen(key) + 1);
    for (char *at = name; *at != '\0'; at++)
        if (*at == '_')
            *at = '-';
    const size_t length = strlen(option->name);
    if (strncmp(name, option->name, length) != 0)
        return false;
    return name[length] == '\0' ||
           (option->kind == WG_OPTION_KIND_LIST && name[length] == 's' && name[length + 1] == '\0');
}

static enum wg_code fail_unknown(const struct reader *reader, wg_yaml_node node, const char *key)
{
    char names[KNOWN_MAX][NAME_SIZE];
    const char *known[KNOWN_MAX];
    size_t count = 0;
    for (size_t i = 0; i < reader->set->count && count < KNOWN_MAX - 1; i++) {
        if (strcmp(reader->set->options[i].name, own_option) == 0)
            continue;
        (void)snprintf(names[count], NAME_SIZE, "%s", reader->set->options[i].name);
        for (char *at = names[count]; *at != '\0'; at++)
            if (*at == '-')
                *at = '_';
        known[count] = names[count];
        count++;
    }
    known[count++] = "command";
    const char *nearest = wg__nearest_word(key, known, count);
    return wg__yaml_fail(reader->yaml, node, reader->err, "unknown key '%s'%s%s%s", key,
                         nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
                         nearest != NULL ? "'?" : "");
}

static enum wg_code take_pair(struct reader *reader, wg_yaml_node root, size_t index)
{
    const char *key = wg__yaml_key(reader->yaml, root, index);
    const wg_yaml_node node = wg__yaml_item(reader->yaml, root, index);
    if (strcmp(key, "command") == 0 && reader->set->takes_command)
        return take_command(reader, node);
    if (strcmp(key, own_option) == 0)
        return wg__yaml_fail(reader->yaml, node, reader->err, "'%s': one file names no other", key);
    for (size_t i = 0; i < reader->set->count; i++) {
        const struct wg_option *option = &reader->set->options[i];
        if (is_key_of(key, option))
            return give_node(reader, node, option);
    }
    return fail_unknown(reader, node, key);
}

enum wg_code wg__option_file_read(struct wg_option_file *file, const char *path,
                                  const struct wg_option_set *set, void *values,
                                  struct wg_error *err)
{
    struct wg_yaml *yaml = NULL;
    enum wg_code code = wg__yaml_open(&yaml, path, err);
    if (code != WG_OK)
        return code;
    struct reader reader = {.file = file, .yaml = yaml, .set = set, .values = values, .err = err};
    const wg_yaml_node root = wg__yaml_root(yaml);
    if (root != 0 && wg__yaml_kind(yaml, root) != WG_YAML_MAP)
        code = wg__yaml_fail(yaml, root, err, "expected KEY: VALUE lines");
    for (size_t i = 0; i < wg__yaml_count(yaml, root) && code == WG_OK; i++)
        code = take_pair(&reader, root, i);
    wg__yaml_close(yaml);
    return code;
}
