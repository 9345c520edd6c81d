/* SPDX-License-Identifier: MIT
 *
 * Files of the programs, and the machines that run; see program.h.
 *
 * A machine is made under a name that nobody looks for, locked, and renamed: so whoever finds the
 * name finds it locked.
 */
#include "vgpu/program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/runtime_dir.h"

#ifndef WG_VGPU_MACHINES
#define WG_VGPU_MACHINES "vgpu/machines"
#endif

enum wg_code vgpu_find_part(char out[static VGPU_PATH_MAX], const char *beside,
                            const char *fallback, struct wg_error *err)
{
    char program[VGPU_PATH_MAX / 2];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) {
        program[length] = '\0';
        char *slash = strrchr(program, '/');
        if (slash != NULL)
            *slash = '\0';
        const int written = snprintf(out, VGPU_PATH_MAX, "%s/%s", program, beside);
        if (written > 0 && written < VGPU_PATH_MAX && access(out, R_OK) == 0)
            return WG_OK;
    }
    const size_t size = strlen(fallback) + 1;
    if (size <= VGPU_PATH_MAX)
        memcpy(out, fallback, size);
    if (size <= VGPU_PATH_MAX && access(fallback, R_OK) == 0)
        return WG_OK;
    return wg__fail_errno(err, errno, "neither %s beside the program nor %s can be read", beside,
                          fallback);
}

enum wg_code vgpu_find_machines(char out[static VGPU_PATH_MAX], struct wg_error *err)
{
    return vgpu_find_part(out, "../share/wattgov/machines", WG_VGPU_MACHINES, err);
}

static const char making_suffix[] = ".new";

static int name_prefix(char out[static 64])
{
    return snprintf(out, 64, "wattgov-vgpu-%u-", (unsigned)geteuid());
}

/* What is not ours is none of our business: in /tmp anybody may make a file of such a name. */
enum file_state { FILE_FOREIGN, FILE_LEFT_BEHIND, FILE_HELD };

/* Being made takes milliseconds, the first of them without the lock. */
enum { MAKING_MAX_S = 60 };

static bool may_be_in_the_making(const char *path, const struct stat *status)
{
    const size_t length = strlen(path), end = sizeof making_suffix - 1;
    return length >= end && strcmp(path + length - end, making_suffix) == 0 &&
           time(NULL) - status->st_mtime < MAKING_MAX_S;
}

static enum file_state look_at(const char *path)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return FILE_FOREIGN;
    struct stat status;
    enum file_state state = FILE_FOREIGN;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        !may_be_in_the_making(path, &status))
        state = flock(file, LOCK_SH | LOCK_NB) == 0 ? FILE_LEFT_BEHIND : FILE_HELD;
    (void)close(file);
    return state;
}

/* Calls `visit` with the path of each machine file of this user, and of those in the making. */
static void each_machine(void (*visit)(const char *path, void *context), void *context)
{
    char prefix[64];
    const size_t length = (size_t)name_prefix(prefix);
    const char *folder = wg__runtime_dir();
    DIR *entries = opendir(folder);
    if (entries == NULL)
        return;
    for (const struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        const char *number = entry->d_name + length;
        if (strncmp(entry->d_name, prefix, length) != 0)
            continue;
        const size_t digits = strspn(number, "0123456789");
        if (digits == 0 || (number[digits] != '\0' && strcmp(number + digits, making_suffix) != 0))
            continue;
        char path[VGPU_PATH_MAX];
        const int written = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (written > 0 && (size_t)written < sizeof path)
            visit(path, context);
    }
    (void)closedir(entries);
}

static void remove_left_behind(const char *path, void *context)
{
    (void)context;
    if (look_at(path) == FILE_LEFT_BEHIND)
        (void)unlink(path);
}

void vgpu_sweep(void)
{
    each_machine(remove_left_behind, NULL);
}

/* Gives the machine its name, and never takes that of another: in containers that share the folder,
 * two may have the same process number. */
static int give_name(char path[static VGPU_PATH_MAX], const char *new_path)
{
    const size_t length = strlen(path);
    for (int n = 0;; n++) {
        if (renameat2(AT_FDCWD, new_path, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
            return 0;
        if (errno == EINVAL) /* the file system does not know the flag */
            return rename(new_path, path);
        if (errno != EEXIST || n == 100)
            return -1;
        (void)snprintf(path + length, VGPU_PATH_MAX - length, "%03d", n);
    }
}

enum wg_code vgpu_session_begin(struct vgpu_session *session, struct vgpu_machine **out,
                                const char *id, const struct vgpu_model *models, size_t count,
                                struct wg_error *err)
{
    *session = (struct vgpu_session){.lock = -1};
    vgpu_sweep();
    const char *folder = wg__runtime_dir();
    char prefix[64], new_path[VGPU_PATH_MAX];
    (void)name_prefix(prefix);
    (void)snprintf(new_path, sizeof new_path, "%.2000s/%s%ld%s", folder, prefix, (long)getpid(),
                   making_suffix);
    (void)snprintf(session->path, sizeof session->path, "%.2000s/%s%ld", folder, prefix,
                   (long)getpid());
    const enum wg_code code = vgpu_create(out, new_path, id, models, count, err);
    if (code != WG_OK)
        return code;
    session->size = (*out)->size;
    session->lock = open(new_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (session->lock >= 0 && flock(session->lock, LOCK_EX | LOCK_NB) == 0 &&
        give_name(session->path, new_path) == 0)
        return WG_OK;
    const int cause = errno;
    (void)unlink(new_path);
    vgpu_unmap(*out);
    *out = NULL;
    session->path[0] = '\0';
    vgpu_session_end(session, NULL);
    return wg__fail_errno(err, cause, "cannot hold the virtual machine %s", new_path);
}

void vgpu_session_end(struct vgpu_session *session, struct vgpu_machine *machine)
{
    struct stat status;
    /* Of a file that somebody cut meanwhile, the mapping cannot be touched any more. */
    const bool is_whole = session->lock >= 0 && fstat(session->lock, &status) == 0 &&
                          status.st_size == (off_t)session->size;
    if (machine != NULL && is_whole) {
        vgpu_fault_clear(machine);
        vgpu_unmap(machine);
    }
    if (session->path[0] != '\0')
        (void)unlink(session->path);
    if (session->lock >= 0)
        (void)close(session->lock);
    *session = (struct vgpu_session){.lock = -1};
}

struct search {
    struct wg_buffer all;
    size_t count;
    char path[VGPU_PATH_MAX]; /* the last one */
};

static void note_running(const char *path, void *context)
{
    struct search *search = context;
    if (look_at(path) != FILE_HELD)
        return;
    wg__buffer_printf(&search->all, "%s%s", search->count > 0 ? ", " : "", path);
    search->count++;
    (void)snprintf(search->path, sizeof search->path, "%s", path);
}

enum wg_code vgpu_find_running(struct vgpu_machine **out, char path_out[static VGPU_PATH_MAX],
                               const char *path, struct wg_error *err)
{
    const char *own = getenv("WATTGOV_VGPU");
    if (path == NULL && own != NULL && *own != '\0')
        path = own;
    if (path != NULL) {
        (void)snprintf(path_out, VGPU_PATH_MAX, "%s", path);
        return vgpu_map(out, path, err);
    }
    vgpu_sweep();
    struct search search = {0};
    wg__buffer_init(&search.all);
    each_machine(note_running, &search);
    enum wg_code code = WG_OK;
    if (search.count == 0)
        code = wg__fail(err, WG_ENOENT,
                        "no virtual machine runs here; 'wattgov-vgpu run --machine ID -- CMD' "
                        "starts one");
    else if (search.count > 1)
        code = wg__fail(err, WG_EINVAL,
                        "several virtual machines run (%s): choose by "
                        "--machine-file",
                        search.all.failed ? "out of memory" : search.all.data);
    wg__buffer_fini(&search.all);
    if (code != WG_OK)
        return code;
    (void)snprintf(path_out, VGPU_PATH_MAX, "%s", search.path);
    return vgpu_map(out, search.path, err);
}
