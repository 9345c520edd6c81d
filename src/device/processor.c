/* SPDX-License-Identifier: MIT
 *
 * The processor, from the beginning of /proc/cpuinfo, which tells of the first core.
 *
 * Owns: nothing.    Threads: any thread.
 */
#include "device/processor.h"

#include <string.h>

#include "device/sysfs.h"

void wg__processor_read(const char *root, struct wg_processor *out)
{
    *out = (struct wg_processor){.model = "CPU"};
    struct wg_sysfs_file file;
    if (wg__sysfs_open(&file, root, "/proc/cpuinfo", NULL) != WG_OK)
        return;
    char text[WG_SYSFS_TEXT_MAX];
    size_t length = 0;
    if (wg__sysfs_read_bytes(&file, text, sizeof text - 1, &length, NULL) != WG_OK)
        length = 0;
    wg__sysfs_close(&file);
    text[length] = '\0';
    out->is_virtual = strstr(text, " hypervisor") != NULL;
    const char *model = strstr(text, "model name");
    model = model != NULL ? strchr(model, ':') : NULL;
    if (model == NULL)
        return;
    model += 1 + strspn(model + 1, " ");
    const size_t size = strcspn(model, "\n");
    if (size > 0 && size < sizeof out->model) {
        memcpy(out->model, model, size);
        out->model[size] = '\0';
    }
}
