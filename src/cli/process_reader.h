/* SPDX-License-Identifier: MIT
 *
 * Reads the lists of processes beside a live view, which must not wait for a driver that hangs.
 *
 * Each GPU has a thread that reads when it is asked and then rests. Three lists make the turn: the
 * thread fills one, hands it over as the newest, and the view takes that by exchange, so nobody
 * copies and the lock is held for a few instructions.
 *
 *     thread: working <-> newest        under the lock
 *     view:   newest  <-> its own       under the lock, when there is a newer one
 *
 * A call that hangs at the end is left behind: its thread, the reader and the machine stay until
 * the process ends, which is next.
 *
 * Owns: the threads and their lists, not the machine.    Threads: one, beside its own.
 */
#ifndef WG_CLI_PROCESS_READER_H
#define WG_CLI_PROCESS_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/process_list.h"

struct wg_machine;
struct wg_process_reader;

/* Starts a thread for each GPU. `root` as in wg__process_list_read, and kept. */
enum wg_code wg__process_reader_start(struct wg_process_reader **out, struct wg_machine *machine,
                                      bool with_names, const char *root, struct wg_error *err);

/* Asks for the processes of a device, by its position in the machine. One that has not answered yet
 * is not asked again; other devices have none. */
void wg__process_reader_ask(struct wg_process_reader *reader, size_t position);

/* Waits until all that was asked since the last wait is answered, at most for `patience_ns`: then
 * the late ones are no longer waited for. */
void wg__process_reader_wait(struct wg_process_reader *reader, uint64_t patience_ns);

/* Exchanges `list` for the newest one, where there is a newer one. */
void wg__process_reader_get(struct wg_process_reader *reader, size_t position,
                            struct wg_process_list *list);

/* Ends the threads and frees. False: one of them did not return from the driver, so the machine has
 * to stay. NULL does nothing. */
bool wg__process_reader_stop(struct wg_process_reader *reader);

#endif
