/* SPDX-License-Identifier: MIT
 *
 * Opening the SQLite store: to write, or only to read.
 *
 * Who only reads gets on where nothing can be written: another user's store, a file system that is
 * mounted read-only, a full disk. SQLite needs the log and its index even to read, and makes them
 * when they are missing. Where it cannot, an empty log says that the file alone is the whole store;
 * we then read it as one that nobody changes (`immutable`). Somebody who could write it at that
 * very moment would have made the index first, so only who begins while we read could surprise us.
 *
 * When SQLite cannot open a file it has tried more than one call, and the error of the last one is
 * rarely the cause: it says "no such file" of a log that it could not create. So we look for
 * ourselves.
 *
 * Threads: one at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "store/sqlite.h"

enum { SQLITE_PATH_MAX = 512, LOG_SUFFIX = 4 }; /* "-wal" */

/* -- Why not ----------------------------------------------------------------------------------- */

/* 0, or why this process may not use `path` so (R_OK, W_OK, ...). */
static int refusal(const char *path, int mode)
{
    return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0 ? 0 : errno;
}

static int folder_refusal(const char *path, int mode)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX] = ".";
    const size_t length = slash == NULL ? 1 : (size_t)(slash - path) + 1;
    if (length >= sizeof folder)
        return ENAMETOOLONG;
    if (slash != NULL) {
        memcpy(folder, path, length);
        folder[length] = '\0';
    }
    return refusal(folder, mode);
}

/* The bytes of the path that SQLite makes of it. */
static size_t whole_length(const char *path)
{
    char folder[PATH_MAX];
    if (path[0] == '/' || getcwd(folder, sizeof folder) == NULL)
        return strlen(path);
    return strlen(folder) + 1 + strlen(path);
}

enum wg_code wg__sqlite_blame(const struct wg_sqlite *store, const char *did, struct wg_error *err)
{
    const char *path = store->path;
    int cause = refusal(path, store->reads_only ? R_OK : R_OK | W_OK);
    if (cause != 0 && cause != ENOENT)
        return wg__fail_errno(err, cause, "store '%s': %s", path, did);
    cause = folder_refusal(path, store->reads_only ? X_OK : W_OK | X_OK);
    if (cause != 0)
        return wg__fail_errno(err, cause, "store '%s': %s: its folder cannot be written", path,
                              did);
    return WG_OK;
}

/* -- To write ---------------------------------------------------------------------------------- */

/* Turning to WAL needs the file alone, and SQLite does not wait for that by itself. */
static int set_mode(struct wg_sqlite *store)
{
    static const char pragmas[] = "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
                                  "PRAGMA journal_size_limit = 0; PRAGMA journal_mode = WAL";
    const uint64_t from_ns = wg__clock_ns();
    for (;;) {
        const int status = sqlite3_exec(store->db, pragmas, NULL, NULL, NULL);
        if ((status & 0xff) != SQLITE_BUSY ||
            (double)(wg__clock_ns() - from_ns) * 1e-9 > store->patience_s)
            return status;
        const struct timespec pause = {.tv_nsec = 1000000};
        (void)nanosleep(&pause, NULL);
    }
}

static int set_up_to_write(struct wg_sqlite *store, const struct wg_store_opts *opts)
{
    int keeps_log = 1; /* SQLite writes here */
    if (sqlite3_db_readonly(store->db, "main") == 1)
        return SQLITE_READONLY;
    (void)sqlite3_file_control(store->db, "main", SQLITE_FCNTL_PERSIST_WAL, &keeps_log);
    int status = set_mode(store);
    if (status == SQLITE_OK && opts->max_pages > 0) {
        char *text = sqlite3_mprintf("PRAGMA max_page_count = %u", opts->max_pages);
        status = text != NULL ? sqlite3_exec(store->db, text, NULL, NULL, NULL) : SQLITE_NOMEM;
        sqlite3_free(text);
    }
    return status;
}

/* -- To read ----------------------------------------------------------------------------------- */

/* A file name as a URI, every byte escaped that could mean something in one. NULL: no memory. */
static char *make_uri(const char *path, const char *parameters)
{
    static const char digits[] = "0123456789ABCDEF";
    const size_t size = 3 * strlen(path) + strlen(parameters) + sizeof "file:?";
    char *uri = wg__alloc(size);
    if (uri == NULL)
        return NULL;
    char *at = uri + snprintf(uri, size, "file:");
    for (const unsigned char *from = (const unsigned char *)path; *from != '\0'; from++) {
        *at++ = '%';
        *at++ = digits[*from >> 4];
        *at++ = digits[*from & 15];
    }
    (void)snprintf(at, size - (size_t)(at - uri), "?%s", parameters);
    return uri;
}

static bool is_log_empty(const char *path)
{
    struct stat log;
    const size_t length = strlen(path);
    char *name = wg__alloc(length + LOG_SUFFIX + 1);
    if (name == NULL)
        return false;
    memcpy(name, path, length);
    memcpy(name + length, "-wal", LOG_SUFFIX + 1);
    const bool is_there = stat(name, &log) == 0;
    const bool is_missing = !is_there && errno == ENOENT;
    wg__free(name);
    return is_missing || (is_there && log.st_size == 0);
}

static int try_to_read(struct wg_sqlite *store, const char *parameters)
{
    char *uri = make_uri(store->path, parameters);
    if (uri == NULL)
        return SQLITE_NOMEM;
    int status = sqlite3_open_v2(
        uri, &store->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    wg__free(uri);
    if (status == SQLITE_OK)
        status = sqlite3_busy_timeout(store->db, (int)fmin(store->patience_s * 1e3, 1e9));
    if (status == SQLITE_OK)
        status = sqlite3_extended_result_codes(store->db, 1);
    if (status == SQLITE_OK) /* only the first look shows what is missing */
        status = sqlite3_exec(store->db, "SELECT 1 FROM sqlite_schema LIMIT 1", NULL, NULL, NULL);
    return status;
}

static int open_to_read(struct wg_sqlite *store)
{
    const int status = try_to_read(store, "mode=ro");
    const int kind = status & 0xff;
    if ((kind != SQLITE_CANTOPEN && kind != SQLITE_READONLY && kind != SQLITE_IOERR) ||
        !is_log_empty(store->path))
        return status;
    sqlite3 *refused = store->db;
    store->db = NULL;
    if (try_to_read(store, "mode=ro&immutable=1") == SQLITE_OK) {
        (void)sqlite3_close(refused);
        return SQLITE_OK;
    }
    (void)sqlite3_close(store->db);
    store->db = refused; /* what it says is the cause */
    return status;
}

/* -- Both -------------------------------------------------------------------------------------- */

static enum wg_code check_path(const struct wg_store_opts *opts, struct wg_error *err)
{
    struct stat found;
    const size_t length = whole_length(opts->path);
    if (length > SQLITE_PATH_MAX) /* first, for so long a path leaves no room in the message */
        return wg__fail(err, WG_EIO,
                        "the whole path of a store has %zu bytes, and SQLite takes %d at most: "
                        "'%s'",
                        length, SQLITE_PATH_MAX, opts->path);
    if (stat(opts->path, &found) == 0)
        return S_ISREG(found.st_mode)
                   ? WG_OK
                   : wg__fail(err, WG_EIO, "store '%s': cannot be opened: it is no regular file",
                              opts->path);
    if (errno != ENOENT)
        return wg__fail_errno(err, errno, "store '%s': cannot be opened", opts->path);
    return opts->must_exist || opts->reads_only
               ? wg__fail(err, WG_ENOENT, "no store '%s': no job was created there yet", opts->path)
               : WG_OK;
}

enum wg_code wg__sqlite_connect(struct wg_sqlite **out, const struct wg_store_opts *opts,
                                struct wg_error *err)
{
    const size_t length = strlen(opts->path) + 1;
    enum wg_code code = check_path(opts, err);
    if (code != WG_OK)
        return code;
    struct wg_sqlite *store = wg__alloc_zeroed(1, sizeof *store + length);
    if (store == NULL)
        return wg__fail(err, WG_ENOMEM, "store '%s': out of memory", opts->path);
    memcpy(store->path, opts->path, length);
    store->base.ops = &wg__sqlite_ops;
    store->patience_s = store->present_patience_s = opts->patience_s;
    store->reads_only = opts->reads_only;
    int status;
    if (opts->reads_only) {
        status = open_to_read(store);
    } else {
        const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
                          (opts->must_exist ? 0 : SQLITE_OPEN_CREATE);
        status = sqlite3_open_v2(opts->path, &store->db, flags, NULL);
        if (status == SQLITE_OK)
            status = sqlite3_extended_result_codes(store->db, 1);
        if (status == SQLITE_OK)
            status = sqlite3_busy_timeout(store->db, (int)fmin(store->patience_s * 1e3, 1e9));
        if (status == SQLITE_OK)
            status = set_up_to_write(store, opts);
    }
    if (status != SQLITE_OK) {
        code = wg__sqlite_fail(store, status,
                               opts->reads_only ? "cannot be read" : "cannot be written", err);
        wg__store_close(&store->base);
        return code;
    }
    *out = store;
    return WG_OK;
}

/* A store that is older than this program must be written even to be read. */
static enum wg_code open_older(struct wg_store **out, const struct wg_store_opts *opts,
                               struct wg_error *err)
{
    struct wg_store_opts writer = *opts;
    struct wg_error why;
    writer.reads_only = false;
    const enum wg_code code = wg__store_open_sqlite(out, &writer, &why);
    if (code == WG_EPERM)
        return wg__fail(err, code,
                        "%s; it is of an older wattgov, and whoever may write it must "
                        "use it first",
                        why.text);
    return code != WG_OK ? wg__fail(err, code, "%s", why.text) : code;
}

enum wg_code wg__store_open_sqlite(struct wg_store **out, const struct wg_store_opts *opts,
                                   struct wg_error *err)
{
    struct wg_sqlite *store = NULL;
    bool is_older = false;
    enum wg_code code = wg__sqlite_connect(&store, opts, err);
    if (code != WG_OK)
        return code;
    code = opts->reads_only ? wg__sqlite_check_schema(store, &is_older, err)
                            : wg__sqlite_migrate(store, err);
    if (code != WG_OK || is_older)
        wg__store_close(&store->base);
    else
        *out = &store->base;
    return code == WG_OK && is_older ? open_older(out, opts, err) : code;
}
