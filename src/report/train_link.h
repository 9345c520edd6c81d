/* SPDX-License-Identifier: MIT
 *
 * The way from a training process to its governor: a file that is appended to, or a socket.
 *
 * Training comes first: a write never waits, never raises a signal, and what cannot be written is
 * dropped. Lines go out whole or not at all; where the kernel took a part of one, its rest goes out
 * before anything else.
 *
 *     file      appended to while somebody holds a lock on it (live/progress_file.h); nobody: not
 *               written, so that the file of a dead governor does not grow
 *     socket    connected; broken: tried anew, once a second
 *
 * Owns: the descriptor.    Threads: one at a time.
 */
#ifndef WG_REPORT_TRAIN_LINK_H
#define WG_REPORT_TRAIN_LINK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { WG_TRAIN_LINK_REST = 256 };

struct wg_train_link {
    int fd; /* -1: closed */
    bool is_socket;
    bool is_listened; /* by a governor, when last looked for */
    uint64_t looked_ns;
    size_t rest_length; /* of a line that went out in part */
    char rest[WG_TRAIN_LINK_REST];
    char path[PATH_MAX];
};

/* WG_EIO, WG_EPERM, WG_ENOENT: there is no such file or socket, or it may not be written. */
enum wg_code wg__train_link_open(struct wg_train_link *link, const char *path, uint64_t now_ns,
                                 struct wg_error *err);

/* Writes whole lines, at most WG_TRAIN_LINK_REST bytes. False: dropped. */
bool wg__train_link_write(struct wg_train_link *link, const char *lines, size_t length,
                          uint64_t now_ns);

/* Whether somebody listens, at this moment. */
bool wg__train_link_has_listener(const struct wg_train_link *link);

void wg__train_link_close(struct wg_train_link *link);

#endif
