/* SPDX-License-Identifier: MIT
 *
 * The processes on a GPU, with their names.
 *
 * The driver tells the number of a process and its memory; the name comes from /proc, where the
 * process is one of this machine and visible to us. Numbers are those of the host: within a
 * container they may mean nothing.
 *
 * Owns: the items.    Threads: one thread at a time.
 */
#ifndef WG_CLI_PROCESS_LIST_H
#define WG_CLI_PROCESS_LIST_H

#include "cli/devices_report.h"

struct wg_process_list {
    struct wg_process_line *items;
    size_t count;
    size_t capacity;
};

/* Reads it anew; `root` holds proc/ (NULL: "/"). On an error the list is empty. */
enum wg_code wg__process_list_read(struct wg_process_list *list, struct wg_device *device,
                                   bool with_names, const char *root, struct wg_error *err);
void wg__process_list_fini(struct wg_process_list *list);

#endif
