/* SPDX-License-Identifier: MIT
 *
 * The processes on a GPU; see process_list.h.
 */
#include "cli/process_list.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "device/sysfs.h"

enum { FIRST_CAPACITY = 32 };

static enum wg_code reserve(struct wg_process_list *list, size_t capacity, struct wg_error *err)
{
    if (capacity <= list->capacity)
        return WG_OK;
    struct wg_process_line *items = wg__realloc_array(list->items, capacity, sizeof *items);
    if (items == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    list->items = items;
    list->capacity = capacity;
    return WG_OK;
}

/* Fills the list from the driver; more may have come since their number was asked for, then those
 * are left for the next time. */
static enum wg_code fill(struct wg_process_list *list, struct wg_device *device,
                         struct wg_error *err)
{
    struct wg_process *found = NULL;
    size_t count = 0, room = 0;
    enum wg_code code = reserve(list, FIRST_CAPACITY, err);
    for (int tries = 0; tries < 2 && code == WG_OK; tries++) {
        wg__free(found);
        room = list->capacity;
        found = wg__alloc_zeroed(room, sizeof *found);
        if (found == NULL)
            return wg__fail(err, WG_ENOMEM, "out of memory");
        code = wg_device_read_processes(device, found, room, &count, err);
        if (code != WG_OK || count <= room)
            break;
        code = reserve(list, count, err);
    }
    if (code == WG_OK) {
        list->count = count < room ? count : room;
        for (size_t i = 0; i < list->count; i++)
            list->items[i] = (struct wg_process_line){.process = found[i]};
    }
    wg__free(found);
    return code;
}

enum wg_code wg__process_list_read(struct wg_process_list *list, struct wg_device *device,
                                   bool with_names, const char *root, struct wg_error *err)
{
    list->count = 0;
    const enum wg_code code = fill(list, device, err);
    if (code != WG_OK || !with_names)
        return code;
    for (size_t i = 0; i < list->count; i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "/proc/%u/comm", list->items[i].process.pid);
        if (wg__sysfs_text(root != NULL ? root : "", path, list->items[i].name,
                           sizeof list->items[i].name, NULL) != WG_OK)
            list->items[i].name[0] = '\0';
    }
    return WG_OK;
}

void wg__process_list_fini(struct wg_process_list *list)
{
    if (list == NULL)
        return;
    wg__free(list->items);
    *list = (struct wg_process_list){0};
}
