/* SPDX-License-Identifier: MIT
 *
 * The main function of our programs: what must hold before and after any of them.
 *
 * Before it runs, the three standard descriptors are open (or else a file that we open would become
 * "stdout" and receive the results), and SIGPIPE and SIGXFSZ are ignored, so that a reader who
 * leaves and a limit on the size of files are an error message and exit 1, like a full disk. After
 * it, stdout is flushed and checked: a result that didn't reach its reader is no success.
 *
 * Threads: the main thread.
 */
#ifndef WG_CLI_PROGRAM_H
#define WG_CLI_PROGRAM_H

/* Answers `--version` with the program's name, else calls `run`; returns the exit status. */
int wg__program(const char *name, int (*run)(int argc, char *argv[]), int argc, char *argv[]);

#endif
