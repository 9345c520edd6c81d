/* SPDX-License-Identifier: MIT
 *
 * A model's graph: looking things up, and giving all of it back.
 *
 * Owns: see the header.    Threads: one thread at a time.
 */
#include "model/graph.h"

#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"

struct wg_model *wg__model_new(void)
{
    struct wg_model *model = wg__alloc_zeroed(1, sizeof *model);
    if (model != NULL)
        wg__arena_init(&model->arena);
    return model;
}

void wg__model_close(struct wg_model *model)
{
    if (model == NULL)
        return;
    if (model->map_length != 0)
        munmap((void *)model->map, model->map_length);
    wg__arena_fini(&model->arena);
    wg__free(model);
}

const char *wg__elem_name(int elem_type)
{
    switch (elem_type) {
#define X(name, number, bits)                                                                      \
    case number:                                                                                   \
        return #name;
        WG_ELEMS(X)
#undef X
    default:
        return "unknown";
    }
}

unsigned wg__elem_bits(int elem_type)
{
    static const struct {
        int number;
        unsigned bits;
    } elems[] = {
#define X(name, number, bits) {number, bits},
        WG_ELEMS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof elems / sizeof elems[0]; i++) {
        if (elems[i].number == elem_type)
            return elems[i].bits;
    }
    return 0;
}

const struct wg_attribute *wg__node_attribute(const struct wg_node *node, const char *name)
{
    for (size_t i = 0; i < node->attribute_count; i++) {
        if (strcmp(node->attributes[i].name, name) == 0)
            return &node->attributes[i];
    }
    return NULL;
}

int64_t wg__node_int(const struct wg_node *node, const char *name, int64_t fallback)
{
    const struct wg_attribute *attribute = wg__node_attribute(node, name);
    return attribute != NULL && attribute->type == WG_ATTRIBUTE_INT ? attribute->i : fallback;
}

const int64_t *wg__node_ints(const struct wg_node *node, const char *name, size_t *count)
{
    const struct wg_attribute *attribute = wg__node_attribute(node, name);
    const bool is_list = attribute != NULL && attribute->type == WG_ATTRIBUTE_INTS;
    *count = is_list ? attribute->count : 0;
    return *count != 0 ? attribute->ints : NULL;
}

int64_t wg__model_opset(const struct wg_model *model, const char *domain)
{
    for (size_t i = 0; i < model->opset_count; i++) {
        if (strcmp(model->opsets[i].domain, domain) == 0)
            return model->opsets[i].version;
    }
    return 0;
}
