/* SPDX-License-Identifier: MIT
 *
 * What the commands of `wattgov job` share; see job_args.h.
 */
#include "cli/job_args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/number.h"
#include "cli/batch_file.h"

enum { NAME_MAX_BYTES = 64, NUMBER_MAX_BYTES = 32, NAMES_MAX = 4096 };

static const char first_characters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
static const char name_characters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

enum wg_code wg__job_check_name(const char *name, struct wg_error *err)
{
    const size_t length = strlen(name);
    if (length == 0 || length > NAME_MAX_BYTES || strspn(name, name_characters) != length ||
        strspn(name, first_characters) == 0)
        return wg__fail(err, WG_EINVAL,
                        "'%.*s%s' is no name for a job: letters, digits, '.', '_' and '-', "
                        "beginning with a letter or digit, at most %d",
                        NAME_MAX_BYTES, name, length > NAME_MAX_BYTES ? "..." : "", NAME_MAX_BYTES);
    return WG_OK;
}

static int compare_batches(const void *a, const void *b)
{
    const uint32_t one = *(const uint32_t *)a, two = *(const uint32_t *)b;
    return (one > two) - (one < two);
}

/* "8,16,32" */
static enum wg_code parse_list(const char *text, struct wg_store_job *job, struct wg_error *err)
{
    job->batch_count = 0;
    for (const char *at = text;;) {
        const size_t length = strcspn(at, ",");
        char number[NUMBER_MAX_BYTES];
        uint64_t value = 0;
        if (length > 0 && length < sizeof number) {
            memcpy(number, at, length);
            number[length] = '\0';
            if (!wg__parse_uint64(number, &value))
                value = 0;
        }
        if (value < 1 || value > WG_STORE_BATCH_MAX || job->batch_count == WG_STORE_BATCH_SIZES_MAX)
            return wg__option_reject(err, "batch-sizes", text,
                                     "2 to 64 whole numbers above 0 with commas between them");
        job->batch_size[job->batch_count++] = (uint32_t)value;
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    qsort(job->batch_size, job->batch_count, sizeof job->batch_size[0], compare_batches);
    for (size_t i = 1; i < job->batch_count; i++)
        if (job->batch_size[i] == job->batch_size[i - 1])
            return wg__fail(err, WG_EINVAL, "--batch-sizes: %u stands there twice",
                            job->batch_size[i]);
    return job->batch_count >= 2
               ? WG_OK
               : wg__option_reject(err, "batch-sizes", text,
                                   "a choice: at least two batch sizes are needed");
}

enum wg_code wg__job_parse_batches(const char *text, struct wg_store_job *job, struct wg_error *err)
{
    if (strncmp(text, "from:", strlen("from:")) != 0)
        return parse_list(text, job, err);
    struct wg_buffer list;
    wg__buffer_init(&list);
    enum wg_code code = wg__batch_file_list(text + strlen("from:"), &list, err);
    if (code == WG_OK)
        code = parse_list(list.data, job, err);
    wg__buffer_fini(&list);
    return code;
}

/* The part of `text` without blanks at its ends; false: empty or too long. */
static bool trim(const char *text, size_t length, char *out, size_t size)
{
    while (length > 0 && *text == ' ') {
        text++;
        length--;
    }
    while (length > 0 && text[length - 1] == ' ')
        length--;
    if (length == 0 || length >= size)
        return false;
    memcpy(out, text, length);
    out[length] = '\0';
    return true;
}

enum wg_code wg__job_parse_target(const char *text, struct wg_store_job *job, struct wg_error *err)
{
    const size_t at = strcspn(text, "<>");
    char value[NUMBER_MAX_BYTES];
    const bool has_sign = text[at] != '\0';
    const size_t skip = has_sign && text[at + 1] == '=' ? 2 : 1;
    if (!has_sign || !trim(text, at, job->metric, NAME_MAX_BYTES) ||
        strspn(job->metric, name_characters) != strlen(job->metric) ||
        !trim(text + at + skip, strlen(text + at + skip), value, sizeof value) ||
        !wg__parse_double(value, &job->target))
        return wg__option_reject(err, "target", text,
                                 "METRIC>=NUMBER or METRIC<=NUMBER, as 'acc>=0.84' ('>' and '<' "
                                 "mean the same)");
    job->higher_is_better = text[at] == '>';
    return WG_OK;
}

enum wg_code wg__job_take_name(const struct wg_option_set *set, int *argc, char ***argv,
                               const char **out, struct wg_error *err)
{
    wg__options_words_first(set, *argc, *argv);
    *out = wg__command_word(argc, argv);
    if (*out == NULL)
        return wg__fail(err, WG_EINVAL, "which job? Its name is missing");
    return wg__job_check_name(*out, err);
}

enum wg_code wg__job_open_store(struct wg_store **out, const char *path, struct wg_error *err)
{
    const struct wg_store_opts opts = {.path = path, .must_exist = true};
    return wg__store_open(out, &opts, err);
}

enum wg_code wg__job_open_store_to_read(struct wg_store **out, const char *path,
                                        struct wg_error *err)
{
    const struct wg_store_opts opts = {.path = path, .reads_only = true};
    return wg__store_open(out, &opts, err);
}

struct names {
    size_t count;
    char *names[NAMES_MAX];
};

static bool add_name(void *context, const struct wg_store_job *job)
{
    struct names *names = context;
    names->names[names->count] = wg__strdup(job->name);
    names->count += names->names[names->count] != NULL;
    return names->count < NAMES_MAX;
}

enum wg_code wg__job_find(struct wg_store *store, const char *name, struct wg_store_job *out,
                          struct wg_error *err)
{
    const enum wg_code code = store->ops->job_get(store, name, out, err);
    struct names *names = code == WG_ENOENT ? wg__alloc_zeroed(1, sizeof *names) : NULL;
    if (names == NULL || store->ops->job_each(store, add_name, names, NULL) != WG_OK) {
        wg__free(names);
        return code;
    }
    const char *nearest = wg__nearest_word(name, (const char *const *)names->names, names->count);
    if (nearest != NULL)
        (void)wg__fail(err, WG_ENOENT, "store '%s' has no job '%s'; did you mean '%s'?",
                       store->ops->location(store), name, nearest);
    for (size_t i = 0; i < names->count; i++)
        wg__free(names->names[i]);
    wg__free(names);
    return code;
}
