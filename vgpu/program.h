/* SPDX-License-Identifier: MIT
 *
 * What the programs of the virtual GPU share: where their files lie, and which machine runs.
 *
 * A machine that `wattgov-vgpu run` holds is a file wattgov-vgpu-<user>-<pid> in XDG_RUNTIME_DIR,
 * else TMPDIR, else /tmp (the first that may be written to), with a lock (flock) as long as `run`
 * lives. So another terminal finds it, and what a killed `run` left behind is told from what is in
 * use, whatever became of its process number.
 *
 * Threads: the main thread.
 */
#ifndef WG_VGPU_PROGRAM_H
#define WG_VGPU_PROGRAM_H

#include "cli/command.h"
#include "cli/options.h"
#include "vgpu/state.h"

enum { VGPU_PATH_MAX = 4096 };

/* The option --machine-file, of all that looks for a running machine. */
#define VGPU_OPTION_MACHINE_FILE(type, field)                                                      \
    {.name = "machine-file",                                                                       \
     WG_OPTION_STRING(type, field),                                                                \
     .value = "PATH",                                                                              \
     .fallback = "WATTGOV_VGPU, or the one that this user runs",                                   \
     .help = "The running virtual machine's file."}

extern const struct wg_command vgpu_command_run;
extern const struct wg_command vgpu_command_list;
extern const struct wg_command vgpu_command_show;
extern const struct wg_command vgpu_command_fault;
extern const struct wg_command vgpu_command_load;

/* A file or folder that comes with the program: beside it in a build folder or an installation
 * (`beside` is relative to the program), else at `fallback`. WG_ENOENT names both. */
enum wg_code vgpu_find_part(char out[static VGPU_PATH_MAX], const char *beside,
                            const char *fallback, struct wg_error *err);
enum wg_code vgpu_find_machines(char out[static VGPU_PATH_MAX], struct wg_error *err);

/* A machine that is held by `run`, from its making to its end. */
struct vgpu_session {
    char path[VGPU_PATH_MAX];
    int lock;    /* the descriptor; -1: none */
    size_t size; /* of the file */
};

/* Removes the files that killed ones of this user left behind. */
void vgpu_sweep(void);

/* Makes the file under its final name, locked, and sweeps. The machine stays mapped. */
enum wg_code vgpu_session_begin(struct vgpu_session *session, struct vgpu_machine **out,
                                const char *id, const struct vgpu_model *models, size_t count,
                                struct wg_error *err);
/* Ends the faults too, since nobody can do it afterwards: a process that outlives the machine and
 * hangs in a call goes on. */
void vgpu_session_end(struct vgpu_session *session, struct vgpu_machine *machine);

/* The machine in `path`; when that is NULL, the one of WATTGOV_VGPU; else the one that this user
 * runs. WG_ENOENT: none runs; WG_EINVAL: several do, which are listed. `path_out` gets its path. */
enum wg_code vgpu_find_running(struct vgpu_machine **out, char path_out[static VGPU_PATH_MAX],
                               const char *path, struct wg_error *err);

#endif
