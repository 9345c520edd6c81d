/* SPDX-License-Identifier: MIT
 *
 * The folder of the journals.
 *
 * A new journal is unlocked for the moment between its making and its lock, so both happen under
 * the folder's lock, and whoever looks for stale ones takes that first. It is never held while a
 * device is called.
 *
 * Owns: nothing.    Threads: see journal_folder.h.
 */
#include "device/journal_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/state_dir.h"
#include "device/sysfs.h"

enum { NAME_TRIES = 1000, BOOT_SIZE = 64 };

static const char suffix[] = ".journal";
static const uint64_t lock_wait_ns = 10000000000;
static const struct timespec lock_poll = {.tv_nsec = 2000000};

/* -- Where ------------------------------------------------------------------------------------ */

/* The folder of the journals below `state_dir` (NULL: wg__state_dir's). */
static enum wg_code find_folder(const char *state_dir, char *out, size_t size, struct wg_error *err)
{
    char state[WG_STATE_DIR_MAX];
    if (state_dir == NULL) {
        const enum wg_code code = wg__state_dir(state, sizeof state, err);
        if (code != WG_OK)
            return code;
        state_dir = state;
    }
    const int length = snprintf(out, size, "%s/journal", state_dir);
    if (length < 0 || (size_t)length >= size)
        return wg__fail(err, WG_EINVAL, "%s/journal: the path is too long", state_dir);
    return WG_OK;
}

static enum wg_code make_folder(const char *folder, struct wg_error *err)
{
    struct wg_error cause = {0};
    const enum wg_code code = wg__state_dir_make(folder, &cause);
    if (code == WG_OK || err == NULL)
        return code;
    return wg__fail(err, code,
                    "%s; nothing is set that is not noted there first: set "
                    "WATTGOV_STATE_DIR to a folder that can be written",
                    cause.text);
}

static enum wg_code sync_folder(const char *folder, struct wg_error *err)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return wg__fail_errno(err, errno, "opening %s", folder);
    const int failed = fsync(fd) != 0 && errno != EINVAL ? errno : 0;
    (void)close(fd);
    return failed == 0 ? WG_OK : wg__fail_errno(err, failed, "writing %s to the disk", folder);
}

/* -- Locks ------------------------------------------------------------------------------------ */

enum wg_code wg__journal_lock(const char *folder, int *out, struct wg_error *err)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/lock", folder);
    if (length < 0 || (size_t)length >= sizeof path)
        return wg__fail(err, WG_EINVAL, "%s/lock: the path is too long", folder);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return wg__fail_errno(err, errno, "opening %s", path);
    const uint64_t until_ns = wg__clock_ns() + lock_wait_ns;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const int error_number = errno;
        if (error_number == EINTR)
            continue;
        if (error_number != EWOULDBLOCK || wg__clock_ns() >= until_ns) {
            (void)close(fd);
            if (error_number == EWOULDBLOCK)
                return wg__fail(err, WG_EBUSY, "%s: another process has it for more than 10 s",
                                path);
            return wg__fail_errno(err, error_number, "locking %s", path);
        }
        (void)nanosleep(&lock_poll, NULL);
    }
    *out = fd;
    return WG_OK;
}

void wg__journal_unlock(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

/* -- Processes and boots ---------------------------------------------------------------------- */

static void read_boot(char out[static BOOT_SIZE])
{
    if (wg__sysfs_text("", "/proc/sys/kernel/random/boot_id", out, BOOT_SIZE, NULL) != WG_OK)
        out[0] = '\0';
}

/* When a process was started, in ticks since boot; 0: unknown. The name of its program is in
 * parentheses and may hold any byte, so fields count from the last one. */
static uint64_t read_start(int64_t pid)
{
    enum { FIELD = 20 }; /* behind the name */
    char path[64];
    char text[WG_SYSFS_TEXT_MAX];
    (void)snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    if (wg__sysfs_text("", path, text, sizeof text, NULL) != WG_OK)
        return 0;
    char *field = strrchr(text, ')');
    for (size_t i = 0; field != NULL && i < FIELD; i++)
        field = strchr(field + 1, ' ');
    uint64_t ticks = 0;
    if (field == NULL)
        return 0;
    field[1 + strcspn(field + 1, " ")] = '\0';
    return wg__parse_uint64(field + 1, &ticks) ? ticks : 0;
}

bool wg__journal_has_writer(const struct wg_journal_header *header)
{
    const uint64_t start = read_start(header->pid);
    return start != 0 && (header->start == 0 || start == header->start);
}

static const char *virtual_gpu(void)
{
    const char *path = getenv("WATTGOV_VGPU");
    return path != NULL ? path : "";
}

enum wg_journal_place wg__journal_place(const struct wg_journal_header *header)
{
    char boot[BOOT_SIZE];
    read_boot(boot);
    if (boot[0] != '\0' && header->boot[0] != '\0' && strcmp(boot, header->boot) != 0)
        return WG_JOURNAL_GONE;
    if (strcmp(header->virtual_gpu, virtual_gpu()) == 0)
        return WG_JOURNAL_HERE;
    if (header->virtual_gpu[0] != '\0' && access(header->virtual_gpu, F_OK) != 0 && errno == ENOENT)
        return WG_JOURNAL_GONE;
    return WG_JOURNAL_ELSEWHERE;
}

/* -- Making and removing ---------------------------------------------------------------------- */

/* A new file; the caller has the folder's lock. */
static enum wg_code make_file(const char *folder, const struct wg_journal_header *header,
                              char path[static PATH_MAX], int *out, struct wg_error *err)
{
    for (unsigned i = 1; i <= NAME_TRIES; i++) {
        const int length =
            snprintf(path, PATH_MAX, "%s/%lld-%llu-%u%s", folder, (long long)header->pid,
                     (unsigned long long)header->start, i, suffix);
        if (length < 0 || length >= PATH_MAX)
            return wg__fail(err, WG_EINVAL, "%s: the path is too long", folder);
        const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno == EEXIST)
            continue;
        if (fd < 0)
            return wg__fail_errno(err, errno, "making %s", path);
        if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            const int error_number = errno;
            (void)unlink(path);
            (void)close(fd);
            return wg__fail_errno(err, error_number, "locking %s", path);
        }
        *out = fd;
        return WG_OK;
    }
    return wg__fail(err, WG_EIO, "%s: %d journals of this process are there", folder, NAME_TRIES);
}

static enum wg_code make_locked(struct wg_journal *journal, const char *folder,
                                const struct wg_journal_header *header, struct wg_error *err)
{
    char path[PATH_MAX];
    int fd = -1;
    enum wg_code code = make_file(folder, header, path, &fd, err);
    if (code != WG_OK)
        return code;
    code = wg__journal_begin(journal, fd, path, header, err);
    if (code == WG_OK)
        code = sync_folder(folder, err);
    if (code != WG_OK) {
        (void)unlink(path);
        wg__journal_fini(journal);
    }
    return code;
}

enum wg_code wg__journal_make(struct wg_journal *journal, const char *state_dir, const char *holder,
                              const char *root, unsigned timeout_ms, struct wg_error *err)
{
    char folder[PATH_MAX];
    char whole[PATH_MAX];
    char boot[BOOT_SIZE];
    *journal = (struct wg_journal){.fd = -1};
    enum wg_code code = find_folder(state_dir, folder, sizeof folder, err);
    if (code == WG_OK)
        code = make_folder(folder, err);
    if (code != WG_OK)
        return code;
    /* The guard and a later restorer may stand in another folder. */
    if (realpath(folder, whole) == NULL)
        return wg__fail_errno(err, errno, "looking for %s", folder);
    read_boot(boot);
    const struct wg_journal_header header = {.pid = getpid(),
                                             .start = read_start(getpid()),
                                             .boot = boot,
                                             .holder = holder,
                                             .root = root,
                                             .virtual_gpu = virtual_gpu(),
                                             .timeout_ms = timeout_ms};
    int lock = -1;
    code = wg__journal_lock(whole, &lock, err);
    if (code != WG_OK)
        return code;
    code = make_locked(journal, whole, &header, err);
    wg__journal_unlock(lock);
    return code;
}

/* The file has our name only while it is ours: another may have removed it and made it anew. */
static bool is_named(const struct wg_journal *journal)
{
    struct stat ours;
    struct stat named;
    return fstat(journal->fd, &ours) == 0 && lstat(journal->path, &named) == 0 &&
           ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

enum wg_code wg__journal_remove(struct wg_journal *journal, struct wg_error *err)
{
    /* On a full disk the line fails and the removal does not, and one of the two is enough. */
    const enum wg_code ended = wg__journal_end(journal, err);
    if (!is_named(journal) || unlink(journal->path) == 0)
        return WG_OK;
    return ended == WG_OK ? WG_OK : wg__fail_errno(err, errno, "removing %s", journal->path);
}

/* -- Looking at all --------------------------------------------------------------------------- */

static bool is_journal(const char *name)
{
    const size_t length = strlen(name);
    return length >= sizeof suffix && strcmp(name + length - (sizeof suffix - 1), suffix) == 0;
}

/* WG_ENOENT: no such folder. */
static enum wg_code has_any(const char *folder, bool *out, struct wg_error *err)
{
    DIR *stream = opendir(folder);
    if (stream == NULL)
        return wg__fail_errno(err, errno, "listing %s", folder);
    *out = false;
    for (const struct dirent *entry = readdir(stream); entry != NULL && !*out;
         entry = readdir(stream))
        *out = is_journal(entry->d_name);
    (void)closedir(stream);
    return WG_OK;
}

/* What a journal says is written to devices, so it must be from who restores it, or from root. */
static enum wg_code check_owner(const char *path, const struct stat *status, struct wg_error *err)
{
    if (!S_ISREG(status->st_mode))
        return wg__fail(err, WG_EPERM, "%s is no file", path);
    if (status->st_uid != geteuid() && status->st_uid != 0)
        return wg__fail(err, WG_EPERM, "%s belongs to another user (%u)", path,
                        (unsigned)status->st_uid);
    if ((status->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return wg__fail(err, WG_EPERM, "%s can be written by other users", path);
    return WG_OK;
}

/* Opens a journal and finds out whether somebody holds it. Symbolic links are not ours. */
static bool look_at(const char *path, wg_journal_visit *visit, void *context)
{
    struct wg_error err = {0};
    struct wg_journal_look look = {.path = path};
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return true;
    if (fd < 0) {
        (void)wg__fail_errno(&err, errno, "opening %s", path);
        look.err = &err;
        return visit(&look, context);
    }
    const int lock_error = flock(fd, LOCK_EX | LOCK_NB) != 0 ? errno : 0;
    look.is_live = lock_error == EWOULDBLOCK;
    struct stat status;
    if (fstat(fd, &status) != 0 || status.st_nlink == 0) { /* removed since */
        (void)close(fd);
        return true;
    }
    struct wg_journal journal = {.fd = fd};
    if (lock_error != 0 && !look.is_live) /* whether somebody holds it is not known */
        (void)wg__fail_errno(&err, lock_error, "locking %s", path);
    else if (check_owner(path, &status, &err) == WG_OK &&
             wg__journal_read(&journal, fd, false, path, &err) == WG_OK)
        look.journal = &journal;
    if (look.journal == NULL)
        look.err = &err;
    const bool goes_on = visit(&look, context);
    if (!look.is_kept)
        wg__journal_fini(&journal);
    return goes_on;
}

enum wg_code wg__journal_each(const char *folder, wg_journal_visit *visit, void *context,
                              struct wg_error *err)
{
    struct wg_arena arena;
    const char *const *names = NULL;
    size_t count = 0;
    wg__arena_init(&arena);
    const enum wg_code code = wg__sysfs_list("", folder, "", &arena, &names, &count, err);
    bool goes_on = true;
    for (size_t i = 0; code == WG_OK && i < count && goes_on; i++) {
        char path[PATH_MAX];
        const int length = snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (is_journal(names[i]) && length > 0 && length < PATH_MAX)
            goes_on = look_at(path, visit, context);
    }
    wg__arena_fini(&arena);
    return code;
}

enum wg_code wg__journal_each_below(const char *state_dir, wg_journal_visit *visit, void *context,
                                    struct wg_error *err)
{
    char folder[PATH_MAX];
    bool is_any = false;
    int lock = -1;
    enum wg_code code = find_folder(state_dir, folder, sizeof folder, err);
    if (code == WG_OK)
        code = has_any(folder, &is_any, err);
    if (code == WG_ENOENT) /* no home, or nothing was ever set */
        return WG_OK;
    if (code != WG_OK || !is_any)
        return code;
    code = wg__journal_lock(folder, &lock, err);
    if (code == WG_OK)
        code = wg__journal_each(folder, visit, context, err);
    wg__journal_unlock(lock);
    return code;
}
