/* SPDX-License-Identifier: MIT
 *
 * NVIDIA GPUs as the kernel lists them, read without waking one.
 *
 * Loading NVML, and asking it anything, resumes a GPU that is suspended to save power (RTD3 of
 * laptops) and keeps it up for a minute: 5 to 25 W that the reading itself causes. Files below
 * /sys/bus/pci are answered by the kernel alone, so they come first:
 *
 *     vendor 0x10de, class 0x03....  power/runtime_status  suspended | active | resuming | ...
 *
 * The driver's own file of a GPU (/proc/driver/nvidia/gpus/ADDRESS/information) has its UUID and
 * wakes nothing either; it shows question marks for a GPU that was never used.
 *
 * Owns: nothing.    Threads: any.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "device/nvml.h"
#include "device/sysfs.h"

#define DEVICES       "/sys/bus/pci/devices"
#define VENDOR        "0x10de"
#define DISPLAY_CLASS "0x03"

__attribute__((format(printf, 3, 4))) static bool make_text(char *out, size_t size,
                                                            const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = wg__format(out, size, format, args);
    va_end(args);
    return length >= 0 && (size_t)length < size;
}

/* A file of a device: false when there is none, or it cannot be read. */
static bool read_file(const char *root, const char *address, const char *file, char *out,
                      size_t size)
{
    char path[128];
    return make_text(path, sizeof path, DEVICES "/%s/%s", address, file) &&
           wg__sysfs_text(root, path, out, size, NULL) == WG_OK;
}

/* Whether a driver other than NVIDIA's has it: NVML then does not list it. */
static bool has_other_driver(const char *root, const char *address)
{
    char path[WG_SYSFS_PATH_MAX];
    char target[256];
    if (!make_text(path, sizeof path, "%s" DEVICES "/%s/driver", root, address))
        return false;
    const ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0)
        return false;
    target[length] = '\0';
    const char *slash = strrchr(target, '/');
    return strcmp(slash != NULL ? slash + 1 : target, "nvidia") != 0;
}

static bool is_gpu(const char *root, const char *address)
{
    char text[32];
    if (strlen(address) >= NVML_PCI_SIZE ||
        !read_file(root, address, "vendor", text, sizeof text) || strcmp(text, VENDOR) != 0)
        return false;
    return read_file(root, address, "class", text, sizeof text) &&
           strncmp(text, DISPLAY_CLASS, strlen(DISPLAY_CLASS)) == 0 &&
           !has_other_driver(root, address);
}

bool wg__nvml_pci_is_suspended(const char *root, const char *address)
{
    char text[32];
    return read_file(root, address, "power/runtime_status", text, sizeof text) &&
           strcmp(text, "suspended") == 0;
}

unsigned wg__nvml_pci_numa_node(const char *root, const char *address)
{
    char text[32];
    uint64_t node = 0;
    /* -1 of a machine with one node is no number of a node. */
    if (!read_file(root, address, "numa_node", text, sizeof text) ||
        !wg__parse_uint64(text, &node) || node >= UINT_MAX)
        return UINT_MAX;
    return (unsigned)node;
}

/* The UUID in the driver's file, or NULL. */
static const char *find_uuid(const char *root, const char *address, struct wg_arena *arena)
{
    char path[128];
    char text[WG_SYSFS_TEXT_MAX];
    if (!make_text(path, sizeof path, "/proc/driver/nvidia/gpus/%s/information", address) ||
        wg__sysfs_text(root, path, text, sizeof text, NULL) != WG_OK)
        return NULL;
    char *uuid = strstr(text, "GPU-");
    if (uuid == NULL)
        return NULL;
    uuid[strcspn(uuid, " \t\r\n")] = '\0';
    return strchr(uuid, '?') == NULL ? wg__arena_strdup(arena, uuid) : NULL;
}

static int compare_addresses(const void *left, const void *right)
{
    const struct nvml_pci_gpu *a = left;
    const struct nvml_pci_gpu *b = right;
    return strcmp(a->address, b->address); /* fixed width, lower case: as text is as numbers */
}

enum wg_code wg__nvml_pci_list(const char *root, struct wg_arena *arena, struct nvml_pci_gpu **out,
                               size_t *count_out, struct wg_error *err)
{
    const char *const *names = NULL;
    size_t name_count = 0;
    const enum wg_code code = wg__sysfs_list(root, DEVICES, "", arena, &names, &name_count, err);
    if (code == WG_ENOMEM)
        return code;
    if (code != WG_OK)
        name_count = 0; /* a sandbox without /sys: NVML alone knows then */
    struct nvml_pci_gpu *gpus = wg__arena_alloc(arena, name_count, sizeof *gpus);
    if (gpus == NULL)
        return wg__fail(err, WG_ENOMEM, "listing %s: out of memory", DEVICES);
    size_t count = 0;
    for (size_t i = 0; i < name_count; i++) {
        if (!is_gpu(root, names[i]))
            continue;
        struct nvml_pci_gpu *gpu = &gpus[count++];
        memcpy(gpu->address, names[i], strlen(names[i]) + 1);
        gpu->is_suspended = wg__nvml_pci_is_suspended(root, names[i]);
        gpu->uuid = find_uuid(root, names[i], arena);
    }
    if (count > 1)
        qsort(gpus, count, sizeof *gpus, compare_addresses);
    *out = gpus;
    *count_out = count;
    return WG_OK;
}

void wg__nvml_pci_address(const struct nvml_pci_info *info, char out[static NVML_PCI_SIZE])
{
    if (!make_text(out, NVML_PCI_SIZE, "%04x:%02x:%02x.0", info->domain, info->bus, info->device))
        out[0] = '\0';
}
