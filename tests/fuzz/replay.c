/* SPDX-License-Identifier: MIT
 *
 * Runs a fuzzer's entry over files, for builds without libFuzzer: what a fuzzer once found, and the
 * seeds it starts from, are tried in every test run, with any compiler and any sanitizer.
 *
 *     replay FOLDER    every file in it; fails when there is none
 *
 * Owns: one file's bytes.    Threads: one.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* libFuzzer prescribes the name. NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 16 };

static bool replay_file(const char *path)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        (void)fprintf(stderr, "%s: cannot open\n", path);
        return false;
    }
    uint8_t *data = malloc(INPUT_MAX);
    if (data == NULL) {
        (void)fclose(file);
        return false;
    }
    const size_t size = fread(data, 1, INPUT_MAX, file);
    (void)fclose(file);
    /* A copy of the exact size, so that a sanitizer sees a read beyond its end. */
    uint8_t *exact = realloc(data, size != 0 ? size : 1);
    (void)LLVMFuzzerTestOneInput(exact != NULL ? exact : data, size);
    free(exact != NULL ? exact : data);
    return true;
}

int main(int argc, char **argv)
{
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    if (folder == NULL) {
        (void)fprintf(stderr, "usage: replay FOLDER\n");
        return 2;
    }
    size_t count = 0;
    bool good = true;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        const int length = snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        good = length > 0 && (size_t)length < sizeof path && replay_file(path) && good;
        count++;
    }
    (void)closedir(folder);
    (void)printf("%zu inputs\n", count);
    return good && count != 0 ? 0 : 1;
}
