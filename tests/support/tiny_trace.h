/* SPDX-License-Identifier: MIT
 *
 * The hand-worked trace of tests/golden/tiny_trace, opened, and copies of it with one thing spoilt.
 *
 * Owns: trace and table.    Threads: one thread at a time.
 */
#ifndef WG_TESTS_SUPPORT_TINY_TRACE_H
#define WG_TESTS_SUPPORT_TINY_TRACE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulate/trace.h"
#include "support/check.h"
#include "support/scratch.h"

enum { TINY_PATH_BYTES = 1024 };

/* A path within the source tree. */
static inline void tiny_source_path(char out[static TINY_PATH_BYTES], const char *name)
{
    const char *root = getenv("WATTGOV_SOURCE_ROOT");
    scratch_require(root != NULL, "WATTGOV_SOURCE_ROOT is not set; run this with meson test");
    (void)snprintf(out, TINY_PATH_BYTES, "%s/%s", root, name);
}

struct tiny {
    struct wg_training_trace *trace;
    struct wg_job_table *jobs;
};

static inline void tiny_open(struct tiny *tiny)
{
    char path[TINY_PATH_BYTES];
    struct wg_error err = {0};
    tiny_source_path(path, "tests/golden/tiny_trace");
    scratch_require(wg__trace_open(&tiny->trace, path, &err) == WG_OK, err.text);
    tiny_source_path(path, "tests/golden/tiny_trace/jobs.csv");
    scratch_require(wg__job_table_open(&tiny->jobs, path, &err) == WG_OK, err.text);
}

static inline void tiny_close(struct tiny *tiny)
{
    wg__trace_close(tiny->trace);
    wg__job_table_close(tiny->jobs);
}

static inline const struct wg_training_job *tiny_job(const struct tiny *tiny, const char *name)
{
    const struct wg_training_job *job = wg__job_table_find(tiny->jobs, name);
    scratch_require(job != NULL, name);
    return job;
}

static inline struct wg_training_case *tiny_case(const struct tiny *tiny, const char *gpu,
                                                 const char *job)
{
    struct wg_training_case *made = NULL;
    struct wg_error err = {0};
    scratch_require(wg__trace_case(tiny->trace, gpu, tiny_job(tiny, job), &made, &err) == WG_OK,
                    err.text);
    return made;
}

/* Writes a text file into the scratch folder. */
static inline void tiny_write(struct scratch *scratch, const char *name, const char *text)
{
    scratch_write(scratch_path(scratch, name), text, strlen(text));
}

/* Copies the tiny trace's runs and GPU `toy` into the scratch folder. */
static inline void tiny_copy(struct scratch *scratch)
{
    static const char *const names[] = {"summary_train.csv", "summary_power_toy.csv"};
    for (size_t i = 0; i < 2; i++) {
        char path[TINY_PATH_BYTES], name[128];
        (void)snprintf(name, sizeof name, "tests/golden/tiny_trace/%s", names[i]);
        tiny_source_path(path, name);
        char *text = scratch_read(path, NULL);
        tiny_write(scratch, names[i], text);
        free(text);
    }
}

/* Appends a line to a file of the scratch folder. */
static inline void tiny_append(struct scratch *scratch, const char *name, const char *line)
{
    char *text = scratch_read(scratch_path(scratch, name), NULL);
    const size_t size = strlen(text) + strlen(line) + 2;
    char *longer = malloc(size);
    scratch_require(longer != NULL, name);
    (void)snprintf(longer, size, "%s%s\n", text, line);
    tiny_write(scratch, name, longer);
    free(longer);
    free(text);
}

#define check_says(err, part)                                                                      \
    do {                                                                                           \
        if (strstr((err).text, part) == NULL)                                                      \
            fail_msg("the message '%s' lacks '%s'", (err).text, part);                             \
    } while (0)

#endif
