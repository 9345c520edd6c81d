/* SPDX-License-Identifier: MIT
 *
 * Something that the progress waits for: what epoll's data points to.
 *
 * Threads: one at a time.
 */
#ifndef WG_LIVE_PROGRESS_SOURCE_H
#define WG_LIVE_PROGRESS_SOURCE_H

#include <stdint.h>

struct wg_progress_source {
    /* Its descriptor is ready. May free the source, which then has left the epoll instance. */
    void (*ready)(struct wg_progress_source *source, uint32_t events);
};

#endif
