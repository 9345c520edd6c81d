/* SPDX-License-Identifier: MIT
 *
 * The Unix stream socket to which ranks connect and write lines of progress.
 *
 * Whoever may connect may write what he likes, so all is bounded: the clients (a new one beyond is
 * closed at once, as is one for whom we have no descriptor), the bytes kept of each (one line), and
 * what is read of one before the next has its turn.
 *
 * Owns: the socket, its file, and the clients' descriptors.    Threads: one at a time.
 */
#ifndef WG_LIVE_PROGRESS_SOCKET_H
#define WG_LIVE_PROGRESS_SOCKET_H

#include <stdint.h>

#include "live/progress_feed.h"
#include "live/progress_source.h"

enum { WG_PROGRESS_CLIENTS_MAX = 4096 };

struct wg_progress_socket;

/* `path` NULL: one of its own, in a folder of its own. One that is left over from a governor that
 * died is replaced. Clients and socket enter themselves into `epoll_fd`. WG_EBUSY: somebody
 * listens there. */
enum wg_code wg__progress_socket_open(struct wg_progress_socket **out, const char *path,
                                      int epoll_fd, struct wg_progress_feed *feed,
                                      struct wg_error *err);
const char *wg__progress_socket_path(const struct wg_progress_socket *socket);
size_t wg__progress_socket_clients(const struct wg_progress_socket *socket);

/* Reads what is left, closes all, and removes the socket's file. NULL does nothing. */
void wg__progress_socket_close(struct wg_progress_socket *socket);

#endif
