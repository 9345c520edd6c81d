/* SPDX-License-Identifier: MIT
 *
 * A small YAML file as a tree, each node with its line.
 *
 * libcyaml fills structs by a schema; here the keys are those of an option table, known at run time
 * only, so the file is read by libyaml itself. Aliases and tags mean nothing here, and keys given
 * twice are refused, because one of them would win in silence.
 *
 *     struct wg_yaml *yaml;
 *     wg__yaml_open(&yaml, "tune.yaml", &err);
 *     for (size_t i = 0; i < wg__yaml_count(yaml, root); i++)
 *         (wg__yaml_key(yaml, root, i), wg__yaml_item(yaml, root, i))
 *
 * Owns: the tree; texts live until close.    Threads: one at a time.
 */
#ifndef WG_CLI_YAML_FILE_H
#define WG_CLI_YAML_FILE_H

#include <stddef.h>

#include "base/error.h"

enum {
    WG_YAML_FILE_MAX = 1 << 20,
    WG_YAML_KEYS_MAX = 4096 /* of a map */,
    WG_YAML_DEPTH_MAX = 64 /* lists and maps in one another */,
    WG_YAML_ANCHORS_MAX = 1024
};

enum wg_yaml_kind { WG_YAML_NONE, WG_YAML_TEXT, WG_YAML_LIST, WG_YAML_MAP };

struct wg_yaml;
typedef int wg_yaml_node; /* 0: none */

/* WG_ENOENT, WG_EPERM, WG_EIO: it cannot be read; WG_EDATA: no YAML, more than 1 MiB, several
 * documents, a key twice, too many keys or anchors, nested too deep: "FILE:LINE: ..."; WG_ENOMEM.
 */
enum wg_code wg__yaml_open(struct wg_yaml **out, const char *path, struct wg_error *err);
/* The same of bytes in memory, which are not kept; `name` stands for the file's. */
enum wg_code wg__yaml_open_memory(struct wg_yaml **out, const char *name, const char *bytes,
                                  size_t length, struct wg_error *err);
void wg__yaml_close(struct wg_yaml *yaml);

wg_yaml_node wg__yaml_root(const struct wg_yaml *yaml); /* 0: the file is empty */
enum wg_yaml_kind wg__yaml_kind(const struct wg_yaml *yaml, wg_yaml_node node);
const char *wg__yaml_text(const struct wg_yaml *yaml, wg_yaml_node node); /* of TEXT, else "" */
size_t wg__yaml_count(const struct wg_yaml *yaml, wg_yaml_node node);     /* of LIST and MAP */
wg_yaml_node wg__yaml_item(const struct wg_yaml *yaml, wg_yaml_node node, size_t index);
const char *wg__yaml_key(const struct wg_yaml *yaml, wg_yaml_node node, size_t index); /* of MAP */
wg_yaml_node wg__yaml_key_node(const struct wg_yaml *yaml, wg_yaml_node node, size_t index);
wg_yaml_node wg__yaml_find(const struct wg_yaml *yaml, wg_yaml_node map, const char *key);
unsigned wg__yaml_line(const struct wg_yaml *yaml, wg_yaml_node node); /* from 1 */

/* "FILE:LINE: " and the text; WG_EDATA. */
enum wg_code wg__yaml_fail(const struct wg_yaml *yaml, wg_yaml_node node, struct wg_error *err,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
