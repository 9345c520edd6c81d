/* SPDX-License-Identifier: MIT
 *
 * Prints what shape inference finds in models, for tests that compare it with others.
 *
 *     onnx_shapes_dump [--declared] [--set-dim NAME=N].. < LIST-OF-FILES
 *
 * One JSON line a file: {"file": .., "error": .. or null, "tensors": {NAME: [KIND, ELEM_TYPE, DIMS
 * or null]}}; a dimension is a number, a name or null. Declared shapes of what nodes make are
 * forgotten first, unless --declared is there.
 */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "model/onnx.h"
#include "model/shapes.h"

static void print_text(const char *text)
{
    (void)putchar('"');
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at < 0x20 || *at == '"' || *at == '\\')
            (void)printf("\\u%04x", *at);
        else
            (void)putchar(*at);
    }
    (void)putchar('"');
}

static void print_shape(const struct wg_shape *shape)
{
    if (!shape->is_known) {
        (void)printf("null");
        return;
    }
    (void)putchar('[');
    for (size_t i = 0; i < shape->rank; i++) {
        if (i != 0)
            (void)putchar(',');
        if (shape->dims[i].value != WG_DIM_UNKNOWN)
            (void)printf("%lld", (long long)shape->dims[i].value);
        else if (shape->dims[i].name != NULL)
            print_text(shape->dims[i].name);
        else
            (void)printf("null");
    }
    (void)putchar(']');
}

static void print_tensor(const struct wg_tensor *tensor)
{
    static const char *const kinds[] = {"seq", "opt", "optseq"};
    const struct wg_held *held = tensor->held;
    print_text(tensor->name);
    (void)printf(":[\"%s\",%d,", held != NULL ? kinds[held->kind] : "t",
                 held != NULL ? held->elem_type : tensor->elem_type);
    print_shape(held != NULL ? &held->shape : &tensor->shape);
    (void)putchar(']');
}

static void forget_declared(struct wg_graph *graph)
{
    for (size_t i = 0; i < graph->tensor_count; i++) {
        struct wg_tensor *tensor = &graph->tensors[i];
        if (tensor->producer < 0 || tensor->constant != NULL)
            continue;
        tensor->elem_type = WG_ELEM_UNKNOWN;
        tensor->shape.is_known = false;
        tensor->held = NULL;
    }
}

static enum wg_code set_dims(struct wg_model *model, int argc, char **argv, struct wg_error *err)
{
    for (int i = 1; i + 1 < argc; i++) {
        char name[128];
        uint64_t value = 0;
        const char *equals = strchr(argv[i + 1], '=');
        if (strcmp(argv[i], "--set-dim") != 0 || equals == NULL ||
            (size_t)(equals - argv[i + 1]) >= sizeof name || !wg__parse_uint64(equals + 1, &value))
            continue;
        memcpy(name, argv[i + 1], (size_t)(equals - argv[i + 1]));
        name[equals - argv[i + 1]] = '\0';
        const enum wg_code code = wg__shapes_set_dim(model, name, (int64_t)value, err);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

static void dump(const char *path, int argc, char **argv)
{
    struct wg_model *model = NULL;
    struct wg_error err = {.text = ""};
    bool keeps_declared = false;
    for (int i = 1; i < argc; i++)
        keeps_declared = keeps_declared || strcmp(argv[i], "--declared") == 0;
    enum wg_code code = wg__onnx_open(&model, path, &err);
    if (code == WG_OK && !keeps_declared)
        forget_declared(model->graph);
    if (code == WG_OK)
        code = set_dims(model, argc, argv, &err);
    if (code == WG_OK)
        code = wg__shapes_infer(model, &err);
    (void)printf("{\"file\":");
    print_text(path);
    (void)printf(",\"error\":");
    if (code != WG_OK)
        print_text(err.text);
    else
        (void)printf("null");
    (void)printf(",\"tensors\":{");
    for (size_t i = 0, printed = 0; model != NULL && i < model->graph->tensor_count; i++) {
        if (model->graph->tensors[i].producer < 0)
            continue;
        if (printed++ != 0)
            (void)putchar(',');
        print_tensor(&model->graph->tensors[i]);
    }
    (void)printf("}}\n");
    wg__model_close(model);
}

int main(int argc, char **argv)
{
    char line[4096];
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        dump(line, argc, argv);
    }
    return 0;
}
