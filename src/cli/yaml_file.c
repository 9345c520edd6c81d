/* SPDX-License-Identifier: MIT
 *
 * YAML as a tree; see yaml_file.h.
 */
#include "cli/yaml_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <yaml.h>

#include "base/alloc.h"
#include "base/number.h"

struct wg_yaml {
    char *path;
    char *bytes;
    yaml_document_t document;
    bool has_document;
};

static yaml_node_t *node_of(const struct wg_yaml *yaml, wg_yaml_node node)
{
    /* libyaml's getter takes no pointer to const, and changes nothing. */
    return node > 0 ? yaml_document_get_node((yaml_document_t *)&yaml->document, node) : NULL;
}

wg_yaml_node wg__yaml_root(const struct wg_yaml *yaml)
{
    return yaml->has_document && node_of(yaml, 1) != NULL ? 1 : 0;
}

enum wg_yaml_kind wg__yaml_kind(const struct wg_yaml *yaml, wg_yaml_node node)
{
    const yaml_node_t *found = node_of(yaml, node);
    if (found == NULL)
        return WG_YAML_NONE;
    return found->type == YAML_SCALAR_NODE     ? WG_YAML_TEXT
           : found->type == YAML_SEQUENCE_NODE ? WG_YAML_LIST
                                               : WG_YAML_MAP;
}

const char *wg__yaml_text(const struct wg_yaml *yaml, wg_yaml_node node)
{
    const yaml_node_t *found = node_of(yaml, node);
    return found != NULL && found->type == YAML_SCALAR_NODE ? (const char *)found->data.scalar.value
                                                            : "";
}

size_t wg__yaml_count(const struct wg_yaml *yaml, wg_yaml_node node)
{
    const yaml_node_t *found = node_of(yaml, node);
    if (found != NULL && found->type == YAML_SEQUENCE_NODE)
        return (size_t)(found->data.sequence.items.top - found->data.sequence.items.start);
    if (found != NULL && found->type == YAML_MAPPING_NODE)
        return (size_t)(found->data.mapping.pairs.top - found->data.mapping.pairs.start);
    return 0;
}

wg_yaml_node wg__yaml_item(const struct wg_yaml *yaml, wg_yaml_node node, size_t index)
{
    const yaml_node_t *found = node_of(yaml, node);
    if (index >= wg__yaml_count(yaml, node))
        return 0;
    return found->type == YAML_SEQUENCE_NODE ? found->data.sequence.items.start[index]
                                             : found->data.mapping.pairs.start[index].value;
}

const char *wg__yaml_key(const struct wg_yaml *yaml, wg_yaml_node node, size_t index)
{
    const yaml_node_t *found = node_of(yaml, node);
    if (index >= wg__yaml_count(yaml, node) || found->type != YAML_MAPPING_NODE)
        return "";
    return wg__yaml_text(yaml, found->data.mapping.pairs.start[index].key);
}

wg_yaml_node wg__yaml_key_node(const struct wg_yaml *yaml, wg_yaml_node node, size_t index)
{
    const yaml_node_t *found = node_of(yaml, node);
    if (index >= wg__yaml_count(yaml, node) || found->type != YAML_MAPPING_NODE)
        return 0;
    return found->data.mapping.pairs.start[index].key;
}

wg_yaml_node wg__yaml_find(const struct wg_yaml *yaml, wg_yaml_node map, const char *key)
{
    for (size_t i = 0; i < wg__yaml_count(yaml, map); i++)
        if (strcmp(wg__yaml_key(yaml, map, i), key) == 0)
            return wg__yaml_item(yaml, map, i);
    return 0;
}

unsigned wg__yaml_line(const struct wg_yaml *yaml, wg_yaml_node node)
{
    const yaml_node_t *found = node_of(yaml, node);
    return found != NULL ? (unsigned)found->start_mark.line + 1 : 1;
}

enum wg_code wg__yaml_fail(const struct wg_yaml *yaml, wg_yaml_node node, struct wg_error *err,
                           const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    if (wg__format(text, sizeof text, format, args) < 0)
        text[0] = '\0';
    va_end(args);
    return wg__fail(err, WG_EDATA, "%s:%u: %s", yaml->path, wg__yaml_line(yaml, node), text);
}

/* -- Reading ---------------------------------------------------------------------------------- */

static enum wg_code read_bytes(struct wg_yaml *yaml, size_t *length, struct wg_error *err)
{
    FILE *file = fopen(yaml->path, "re");
    if (file == NULL)
        return wg__fail_errno(err, errno, "%s", yaml->path);
    errno = 0;
    *length = fread(yaml->bytes, 1, WG_YAML_FILE_MAX + 1, file);
    const int cause = ferror(file) ? errno : 0;
    (void)fclose(file);
    if (cause != 0)
        return wg__fail_errno(err, cause, "%s", yaml->path);
    if (*length > WG_YAML_FILE_MAX)
        return wg__fail(err, WG_EDATA, "%s: more than 1 MiB", yaml->path);
    return WG_OK;
}

/* Every key a text, and once. */
static enum wg_code check_map(const struct wg_yaml *yaml, wg_yaml_node map, struct wg_error *err)
{
    const yaml_node_t *found = node_of(yaml, map);
    if (wg__yaml_count(yaml, map) > WG_YAML_KEYS_MAX)
        return wg__yaml_fail(yaml, map, err, "more than %d keys", WG_YAML_KEYS_MAX);
    for (size_t i = 0; i < wg__yaml_count(yaml, map); i++) {
        const wg_yaml_node key = found->data.mapping.pairs.start[i].key;
        if (wg__yaml_kind(yaml, key) != WG_YAML_TEXT)
            return wg__yaml_fail(yaml, key, err, "expected a word before the colon");
        for (size_t k = 0; k < i; k++)
            if (strcmp(wg__yaml_key(yaml, map, k), wg__yaml_text(yaml, key)) == 0)
                return wg__yaml_fail(yaml, key, err, "'%s' is given twice",
                                     wg__yaml_text(yaml, key));
    }
    return WG_OK;
}

struct extent {
    int depth;   /* of lists and maps that are open */
    int anchors; /* so far */
};

static void extend(struct extent *extent, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SEQUENCE_START_EVENT:
        extent->depth++;
        extent->anchors += event->data.sequence_start.anchor != NULL;
        break;
    case YAML_MAPPING_START_EVENT:
        extent->depth++;
        extent->anchors += event->data.mapping_start.anchor != NULL;
        break;
    case YAML_SCALAR_EVENT:
        extent->anchors += event->data.scalar.anchor != NULL;
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        extent->depth--;
        break;
    default:
        break;
    }
}

static enum wg_code fail_parser(const struct wg_yaml *yaml, const yaml_parser_t *parser,
                                struct wg_error *err)
{
    return wg__fail(err, WG_EDATA, "%s:%zu: %s", yaml->path, parser->problem_mark.line + 1,
                    parser->problem != NULL ? parser->problem : "no YAML");
}

/* libyaml looks at every open bracket for each token, and at every anchor for each anchor: 100 kB
 * take it a minute. Only its events can be left half way, so they are walked before a tree is
 * made. */
static enum wg_code check_extent(const struct wg_yaml *yaml, const char *bytes, size_t length,
                                 struct wg_error *err)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return wg__fail(err, WG_ENOMEM, "out of memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, length);
    enum wg_code code = WG_OK;
    struct extent extent = {0};
    for (bool ended = false; code == WG_OK && !ended;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            code = fail_parser(yaml, &parser, err);
            break;
        }
        ended = event.type == YAML_STREAM_END_EVENT;
        extend(&extent, &event);
        const size_t line = event.start_mark.line + 1;
        if (extent.depth > WG_YAML_DEPTH_MAX)
            code = wg__fail(err, WG_EDATA, "%s:%zu: more than %d lists and maps in one another",
                            yaml->path, line, WG_YAML_DEPTH_MAX);
        else if (extent.anchors > WG_YAML_ANCHORS_MAX)
            code = wg__fail(err, WG_EDATA, "%s:%zu: more than %d anchors", yaml->path, line,
                            WG_YAML_ANCHORS_MAX);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return code;
}

static enum wg_code parse(struct wg_yaml *yaml, const char *bytes, size_t length,
                          struct wg_error *err)
{
    enum wg_code code = check_extent(yaml, bytes, length, err);
    if (code != WG_OK)
        return code;
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return wg__fail(err, WG_ENOMEM, "out of memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, length);
    yaml->has_document = yaml_parser_load(&parser, &yaml->document) != 0;
    if (!yaml->has_document)
        code = fail_parser(yaml, &parser, err);
    yaml_document_t rest;
    if (code == WG_OK && wg__yaml_root(yaml) != 0 && yaml_parser_load(&parser, &rest)) {
        if (yaml_document_get_root_node(&rest) != NULL)
            code = wg__fail(err, WG_EDATA, "%s: more than one document", yaml->path);
        yaml_document_delete(&rest);
    }
    yaml_parser_delete(&parser);
    for (wg_yaml_node node = 1; code == WG_OK && node_of(yaml, node) != NULL; node++)
        if (wg__yaml_kind(yaml, node) == WG_YAML_MAP)
            code = check_map(yaml, node, err);
    return code;
}

/* NULL: no memory. */
static struct wg_yaml *begin(const char *path)
{
    struct wg_yaml *yaml = wg__alloc_zeroed(1, sizeof *yaml);
    if (yaml == NULL)
        return NULL;
    yaml->path = wg__strdup(path);
    if (yaml->path != NULL)
        return yaml;
    wg__yaml_close(yaml);
    return NULL;
}

static enum wg_code finish(struct wg_yaml *yaml, enum wg_code code, struct wg_yaml **out)
{
    if (code == WG_OK)
        *out = yaml;
    else
        wg__yaml_close(yaml);
    return code;
}

enum wg_code wg__yaml_open(struct wg_yaml **out, const char *path, struct wg_error *err)
{
    struct wg_yaml *yaml = begin(path);
    if (yaml == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    yaml->bytes = wg__alloc(WG_YAML_FILE_MAX + 2);
    size_t length = 0;
    enum wg_code code = yaml->bytes != NULL ? read_bytes(yaml, &length, err)
                                            : wg__fail(err, WG_ENOMEM, "out of memory");
    if (code == WG_OK)
        code = parse(yaml, yaml->bytes, length, err);
    return finish(yaml, code, out);
}

enum wg_code wg__yaml_open_memory(struct wg_yaml **out, const char *name, const char *bytes,
                                  size_t length, struct wg_error *err)
{
    struct wg_yaml *yaml = begin(name);
    if (yaml == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    const enum wg_code code = length <= WG_YAML_FILE_MAX
                                  ? parse(yaml, bytes, length, err)
                                  : wg__fail(err, WG_EDATA, "%s: more than 1 MiB", name);
    return finish(yaml, code, out);
}

void wg__yaml_close(struct wg_yaml *yaml)
{
    if (yaml == NULL)
        return;
    if (yaml->has_document)
        yaml_document_delete(&yaml->document);
    wg__free(yaml->path);
    wg__free(yaml->bytes);
    wg__free(yaml);
}
