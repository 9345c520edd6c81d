/* SPDX-License-Identifier: MIT
 *
 * The list of built-in networks.
 *
 * Threads: see the header.
 */
#include "model/built_in.h"

#include <string.h>

#include "base/buffer.h"
#include "model/built_in_nets.h"

enum { OPSET = 20 }; /* the first with Gelu */

static const struct {
    const char *name;
    int32_t (*draw)(struct wg_net *net);
} nets[] = {
    {"vgg16", wg__built_in_vgg16},
    {"vgg16-cifar", wg__built_in_vgg16_cifar},
    {"resnet18", wg__built_in_resnet18},
    {"resnet50", wg__built_in_resnet50},
    {"resnet56-cifar", wg__built_in_resnet56_cifar},
    {"mobilenet-v2", wg__built_in_mobilenet_v2},
    {"bert-base", wg__built_in_bert_base},
};

size_t wg__built_in_count(void)
{
    return sizeof nets / sizeof *nets;
}

const char *wg__built_in_name(size_t index)
{
    return nets[index].name;
}

int32_t wg__built_in_image(struct wg_net *net, int64_t side)
{
    const struct wg_dim dims[] = {{WG_DIM_UNKNOWN, "batch"}, {3, NULL}, {side, NULL}, {side, NULL}};
    return wg__net_input(net, "input", WG_ELEM_FLOAT, dims, 4);
}

enum wg_code wg__built_in_open(struct wg_model **out, const char *name, struct wg_error *err)
{
    for (size_t i = 0; i < wg__built_in_count(); i++) {
        if (strcmp(name, nets[i].name) != 0)
            continue;
        struct wg_net net;
        wg__net_begin(&net, name, OPSET);
        const int32_t output = nets[i].draw(&net);
        return wg__net_finish(&net, output, out, err);
    }
    struct wg_buffer list;
    wg__buffer_init(&list);
    for (size_t i = 0; i < wg__built_in_count(); i++)
        wg__buffer_printf(&list, "%s%s", i == 0 ? "" : ", ", nets[i].name);
    const enum wg_code code =
        wg__fail(err, WG_ENOENT, "no network is called '%.60s'; there are: %s", name,
                 list.failed ? "?" : list.data);
    wg__buffer_fini(&list);
    return code;
}
