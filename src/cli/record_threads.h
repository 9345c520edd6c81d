/* SPDX-License-Identifier: MIT
 *
 * Reading all that devices answer, each on a thread of its own, into one recording.
 *
 * The meter reads what energy needs; a recording wants everything, also the errors, as they come.
 * One device that hangs delays only its own answers. The same error again and again is written
 * once.
 *
 * Owns: the threads and the recorder.    Threads: started, asked and stopped by one thread.
 */
#ifndef WG_CLI_RECORD_THREADS_H
#define WG_CLI_RECORD_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct wg_machine;
struct wg_record_threads;

/* Makes the file and begins. Errors as of wg__recorder_open; WG_EIO: no thread. */
enum wg_code wg__record_threads_start(struct wg_record_threads **out, struct wg_machine *machine,
                                      const char *path, uint64_t interval_ns, struct wg_error *err);

/* Whether writing has failed: it goes on for nothing then. */
bool wg__record_threads_has_failed(struct wg_record_threads *threads);

/* Ends the recording whole and frees; waits for reads that are on their way. The first error of
 * writing. `answers_out` and `time_s_out`: what was recorded. NULL does nothing. */
enum wg_code wg__record_threads_stop(struct wg_record_threads *threads, size_t *answers_out,
                                     double *time_s_out, struct wg_error *err);

#endif
