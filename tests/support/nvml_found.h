/* SPDX-License-Identifier: MIT
 *
 * The NVIDIA backend opened on the made-up NVML of nvml_fake.h and a fake /sys and /proc.
 *
 * Owns: what it opened.    Threads: one thread at a time.
 */
#ifndef WG_TESTS_SUPPORT_NVML_FOUND_H
#define WG_TESTS_SUPPORT_NVML_FOUND_H

#include <limits.h>

#include "support/nvml_fake.h"

#define BIT(metric) (1u << WG_METRIC_##metric)

/* A machine that the backend found; texts of the config live here. */
struct found {
    struct tree tree;
    struct wg_backend_config config;
    struct wg_selection *selection;
    struct wg_device_list list;
    _Atomic(const char *) call;
    const char *remedy;
    struct wg_error err;
    enum wg_code code;
};

static inline void found_begin(struct found *found)
{
    *found = (struct found){0};
    assert_int_equal(unsetenv("WATTGOV_VGPU"), 0); /* the kernel's list counts here */
    tree_open(&found->tree);
    static const struct tree_entry root[] = {
        {.path = "/proc/self/status", .text = "Name:\ttest\nCapEff:\t000001ffffffffff\n"}};
    TREE_ADD(&found->tree, root);
    found->config = (struct wg_backend_config){
        .root = found->tree.root, .nvml_library = "libnvidia-ml.so.1", .call = &found->call};
}

/* One GPU of the kernel's list. */
static inline void add_kernel_gpu(struct found *found, const char *address, const char *status)
{
    char paths[4][128];
    static const char *const files[] = {"vendor", "class", "power/runtime_status", "numa_node"};
    const char *const texts[] = {"0x10de\n", "0x030200\n", status, "1\n"};
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(paths[i], sizeof paths[i], "/sys/bus/pci/devices/%s/%s", address, files[i]);
        const struct tree_entry entry = {.path = paths[i], .text = texts[i]};
        tree_add(&found->tree, &entry, 1);
    }
}

static inline void found_open(struct found *found, const char *selector)
{
    if (selector != NULL) {
        const char *const selectors[] = {selector};
        assert_int_equal(wg__selection_new(&found->selection, selectors, 1, NULL, NULL, NULL),
                         WG_OK);
        found->config.selection = found->selection;
    }
    found->code =
        wg__nvml_open(&found->config, &fake_loader, &found->list, &found->remedy, &found->err);
}

static inline void found_end(struct found *found)
{
    wg__device_list_fini(&found->list);
    wg__selection_free(found->selection);
    tree_close(&found->tree);
    assert_false(fake.is_open);
}

/* Opens and probes all; both must work. */
static inline void found_probe(struct found *found, const char *selector)
{
    found_begin(found);
    found_open(found, selector);
    if (found->code != WG_OK)
        fail_msg("does not open: %s", found->err.text);
    for (size_t i = 0; i < found->list.count; i++) {
        struct wg_device *device = found->list.items[i];
        if (device->ops->probe(device, &found->err) != WG_OK)
            fail_msg("does not probe: %s", found->err.text);
    }
}

static inline struct wg_device *device_of(struct found *found, size_t i)
{
    assert_true(i < found->list.count);
    return found->list.items[i];
}

static inline unsigned calls_of(const struct fake_gpu *gpu)
{
    unsigned sum = 0;
    for (size_t i = 0; i < FAKE_CALLS; i++)
        sum += gpu->calls[i];
    return sum;
}

static inline void expect_text(const char *text, const char *part)
{
    if (text == NULL || strstr(text, part) == NULL)
        fail_msg("'%s' lacks '%s'", text != NULL ? text : "(null)", part);
}

#endif
