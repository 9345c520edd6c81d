/* SPDX-License-Identifier: MIT
 *
 * A scratch folder for tests that need files: made in TMPDIR (or /tmp), removed with what is in it.
 *
 * Owns: the folder.    Threads: one thread at a time.
 */
#ifndef WG_TESTS_SUPPORT_SCRATCH_H
#define WG_TESTS_SUPPORT_SCRATCH_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"

/* Ends the program, not only the test: neither the rest of a helper nor a static analyzer should
 * have to think of a missing file, and cmocka's assertions return as far as the compiler knows. */
static inline void scratch_require(bool fact, const char *what)
{
    if (fact)
        return;
    (void)fprintf(stderr, "scratch file: %s\n", what);
    abort();
}

struct scratch {
    char folder[256];
    char path[512]; /* the last one that scratch_path made */
};

static inline void scratch_open(struct scratch *scratch)
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(scratch->folder, sizeof scratch->folder, "%s/wattgov-test-XXXXXX",
                   base != NULL && *base != '\0' ? base : "/tmp");
    scratch_require(mkdtemp(scratch->folder) != NULL, scratch->folder);
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
    scratch_require(folder != NULL, scratch->folder);
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
    scratch_require(folder != NULL, scratch->folder);
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
    FILE *file = fopen(path, "wbe");
    scratch_require(file != NULL, path);
    const size_t written = fwrite(bytes, 1, length, file);
    scratch_require(fclose(file) == 0 && written == length, path);
}

static inline char *scratch_read(const char *path, size_t *length_out)
{
    FILE *file = fopen(path, "rbe");
    scratch_require(file != NULL, path);
    size_t length = 0;
    size_t capacity = 4096;
    char *bytes = malloc(capacity);
    scratch_require(bytes != NULL, path);
    for (;;) {
        length += fread(bytes + length, 1, capacity - 1 - length, file);
        if (length < capacity - 1)
            break;
        capacity *= 2;
        char *longer = realloc(bytes, capacity);
        scratch_require(longer != NULL, path);
        bytes = longer;
    }
    scratch_require(ferror(file) == 0 && fclose(file) == 0, path);
    bytes[length] = '\0';
    if (length_out != NULL)
        *length_out = length;
    return bytes;
}

#endif
