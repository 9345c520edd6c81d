/* SPDX-License-Identifier: MIT
 *
 * Where things lie that live no longer than the program that made them: sockets, progress, the
 * files of virtual machines.
 *
 * The first of $XDG_RUNTIME_DIR, $TMPDIR and /tmp that is an absolute path and may be written to:
 * other users and containers inherit the variable, but not the right to the folder.
 *
 * Threads: any, while nobody changes the environment.
 */
#ifndef WG_BASE_RUNTIME_DIR_H
#define WG_BASE_RUNTIME_DIR_H

/* Belongs to the environment. */
const char *wg__runtime_dir(void);

#endif
