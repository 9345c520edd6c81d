/* SPDX-License-Identifier: MIT
 *
 * What a backend found, on its way to the machine.
 *
 * Owns: the devices in it, until machine.c takes them.    Threads: one thread at a time.
 */
#include "base/alloc.h"
#include "device/backend.h"

/* The files of a kernel and the lists of a driver are the world's: a number that no machine has is
 * a fault of theirs, and would cost a thread a device. */
enum { FIRST_CAPACITY = 8, DEVICES_MOST = 4096 };

enum wg_code wg__device_list_add(struct wg_device_list *list, struct wg_device *device,
                                 struct wg_error *err)
{
    if (list->count == DEVICES_MOST)
        return wg__fail(err, WG_EDATA, "more than %d devices: no machine has so many",
                        DEVICES_MOST);
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity != 0 ? list->capacity * 2 : FIRST_CAPACITY;
        struct wg_device **items = wg__realloc_array(list->items, capacity, sizeof(*items));
        if (items == NULL)
            return wg__fail(err, WG_ENOMEM, "cannot list device %zu: out of memory", list->count);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = device;
    return WG_OK;
}

void wg__device_list_fini(struct wg_device_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct wg_device *device = list->items[i];
        if (device != NULL && device->ops->release != NULL)
            device->ops->release(device);
        wg__device_destroy(device);
    }
    wg__free(list->items);
    *list = (struct wg_device_list){0};
}

void wg__device_destroy(struct wg_device *device)
{
    if (device == NULL)
        return;
    wg__arena_fini(&device->arena);
    device->ops->destroy(device);
}
