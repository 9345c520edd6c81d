/* SPDX-License-Identifier: MIT
 *
 * A machine of fake devices with knobs, a state folder, and what a restorer has said.
 *
 * Device 0 has a power limit (100..300 W, at 300), a GPU clock and a memory clock that cannot be
 * read; device 1 has the power limit alone.
 *
 * Owns: the folder and the machine.    Threads: one thread at a time.
 */
#ifndef WG_TESTS_SUPPORT_CONTROL_STAGE_H
#define WG_TESTS_SUPPORT_CONTROL_STAGE_H

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/control.h"
#include "device/control_setup.h"
#include "device/restore_setup.h"
#include "support/fake_devices.h"
#include "support/scratch.h"

struct told {
    char text[2048]; /* "gpu0 power_limit done 175->300; " */
    size_t count;
};

struct stage {
    struct scratch scratch;
    struct fake_world world;
    struct wg_machine_setup setup;
    unsigned timeout_ms; /* a minute; for what hangs HANG_MS */
    struct wg_machine *machine;
    struct told told;
};

static inline void stage_note(const struct wg_restore_note *note, void *context)
{
    static const char *const words[] = {"done", "foreign", "failed", "unreadable"};
    struct told *told = context;
    const size_t length = strlen(told->text);
    told->count++;
    (void)snprintf(told->text + length, sizeof told->text - length, "%s %s %s %.6g->%.6g%s%s; ",
                   note->label, note->knob < WG_KNOB_COUNT ? wg_knob_key(note->knob) : "",
                   words[note->outcome], note->found, note->original, note->err != NULL ? ": " : "",
                   note->err != NULL ? note->err->text : "");
}

static inline struct wg_machine *stage_machine(struct stage *stage)
{
    struct wg_machine *machine = NULL;
    struct wg_error err = {0};
    fake_world_now = &stage->world;
    if (wg__machine_open_setup(&machine, &stage->setup,
                               &WG_MACHINE_OPTS(.call_timeout_ms = stage->timeout_ms),
                               &err) != WG_OK)
        fail_msg("%s", err.text);
    return machine;
}

static inline void stage_open(struct stage *stage)
{
    *stage = (struct stage){.world = fake_world_of(2), .timeout_ms = 60000};
    scratch_open(&stage->scratch);
    for (size_t i = 0; i < 2; i++) {
        stage->world.devices[i].uuid = i == 0 ? "GPU-0" : "GPU-1";
        stage->world.devices[i].knobs[WG_KNOB_POWER_LIMIT] = (struct fake_knob){
            .is_present = true, .value = 300, .min = 100, .max = 300, .step = 0.001, .preset = 250};
    }
    const struct fake_knob clock = {.is_present = true,
                                    .is_unreadable = true,
                                    .value = NAN,
                                    .min = 200e6,
                                    .max = 2000e6,
                                    .step = 15e6,
                                    .preset = NAN};
    stage->world.devices[0].knobs[WG_KNOB_GPU_CLOCK] = clock;
    stage->world.devices[0].knobs[WG_KNOB_MEMORY_CLOCK] = clock;
    stage->setup = (struct wg_machine_setup){.backends = fake_backends};
    stage->machine = stage_machine(stage);
}

/* From now on a call that hangs is given up soon. */
static inline void stage_expect_hang(struct stage *stage)
{
    enum { HANG_MS = 300 };
    wg_machine_close(stage->machine);
    stage->timeout_ms = HANG_MS;
    stage->machine = stage_machine(stage);
}

static inline int stage_remove(const char *path, const struct stat *status, int type,
                               struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static inline void stage_close(struct stage *stage)
{
    wg_machine_close(stage->machine);
    scratch_require(nftw(stage->scratch.folder, stage_remove, 8, FTW_DEPTH | FTW_PHYS) == 0,
                    "removing");
}

static inline struct fake_knob *stage_knob(struct stage *stage, size_t device, enum wg_knob knob)
{
    return &stage->world.devices[device].knobs[knob];
}

static inline struct wg_control *stage_control(struct stage *stage, const char *holder)
{
    struct wg_control *control = NULL;
    struct wg_error err = {0};
    const struct wg_control_opts opts = {.state_dir = stage->scratch.folder, .holder = holder};
    if (wg__control_open_setup(&control, stage->machine, &opts, &stage->setup, &err) != WG_OK)
        fail_msg("%s", err.text);
    return control;
}

/* Takes and sets; both must work. */
static inline void stage_set(struct wg_control *control, size_t device, enum wg_knob knob,
                             double value)
{
    struct wg_error err = {0};
    if (wg__control_take(control, device, knob, &err) != WG_OK ||
        wg__control_set(control, device, knob, value, NULL, &err) != WG_OK)
        fail_msg("%s", err.text);
}

/* The journal's bytes, as they are on the disk. */
static inline void stage_read(const char *path, char *out, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    scratch_require(fd >= 0, path);
    const ssize_t length = read(fd, out, size - 1);
    scratch_require(length >= 0, path);
    out[length] = '\0';
    (void)close(fd);
}

static inline void stage_write(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    scratch_require(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
    (void)close(fd);
}

/* The governor dies: a journal of the same text that nobody holds takes its journal's place. The
 * control is closed before, so its devices are set back and must be set again by the caller. */
static inline void stage_leave_stale(struct stage *stage, const char *text, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/journal", stage->scratch.folder);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof path, "%s/journal/%s", stage->scratch.folder, name);
    stage_write(path, text);
}

/* How many journals there are. */
static inline size_t stage_journals(struct stage *stage)
{
    char path[512];
    size_t count = 0;
    (void)snprintf(path, sizeof path, "%s/journal", stage->scratch.folder);
    DIR *folder = opendir(path);
    if (folder == NULL)
        return 0;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        count += strstr(entry->d_name, ".journal") != NULL;
    (void)closedir(folder);
    return count;
}

static inline struct wg_restore_summary stage_restore_stale(struct stage *stage)
{
    struct wg_restore_summary summary = {0};
    struct wg_error err = {0};
    fake_world_now = &stage->world;
    stage->told = (struct told){.count = 0};
    if (wg__restore_stale_setup(stage->scratch.folder, &stage->setup, stage_note, &stage->told,
                                &summary, &err) != WG_OK)
        fail_msg("%s", err.text);
    return summary;
}

#define check_text_has(text, part)                                                                 \
    do {                                                                                           \
        if (strstr((text), (part)) == NULL)                                                        \
            fail_msg("'%s' lacks '%s'", (text), (part));                                           \
    } while (0)

#endif
