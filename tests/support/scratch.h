/* SPDX-License-Identifier: MIT
 *
 * A scratch folder for tests that need files: made in TMPDIR (or /tmp), removed with what is in it.
 *
 * Owns: the folder.    Threads: one thread at a time.
 */
#ifndef WG_TESTS_SUPPORT_SCRATCH_H
#define WG_TESTS_SUPPORT_SCRATCH_H

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"

struct scratch {
    char folder[256];
    char path[512]; /* the last one that scratch_path made */
};

static inline void scratch_open(struct scratch *scratch)
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(scratch->folder, sizeof scratch->folder, "%s/wattgov-test-XXXXXX",
                   base != NULL && *base != '\0' ? base : "/tmp");
    assert_non_null(mkdtemp(scratch->folder));
}

/* The path of `name` in the folder; valid until the next call. */
static inline const char *scratch_path(struct scratch *scratch, const char *name)
{
    (void)snprintf(scratch->path, sizeof scratch->path, "%s/%s", scratch->folder, name);
    return scratch->path;
}

/* How many entries the folder has, "." and ".." aside: tells whether a temporary file was left. */
static inline size_t scratch_count(const struct scratch *scratch)
{
    DIR *folder = opendir(scratch->folder);
    assert_non_null(folder);
    size_t count = 0;
    while (readdir(folder) != NULL)
        count++;
    (void)closedir(folder);
    return count - 2;
}

/* Removes the files and empty folders in it, and itself. */
static inline void scratch_close(struct scratch *scratch)
{
    DIR *folder = opendir(scratch->folder);
    assert_non_null(folder);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)remove(scratch_path(scratch, entry->d_name));
    }
    (void)closedir(folder);
    assert_int_equal(rmdir(scratch->folder), 0);
}

/* Writes and reads a whole file; what was read belongs to the caller (free) and ends with a zero.
 */
static inline void scratch_write(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static inline char *scratch_read(const char *path, size_t *length_out)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const long length = ftell(file);
    assert_true(length >= 0);
    rewind(file);
    char *bytes = malloc((size_t)length + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)length, file), (size_t)length);
    bytes[length] = '\0';
    (void)fclose(file);
    if (length_out != NULL)
        *length_out = (size_t)length;
    return bytes;
}

#endif
