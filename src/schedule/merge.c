/* SPDX-License-Identifier: MIT
 *
 * The key of what may share a batch.
 *
 * The canonical form is a sequence of numbers and texts, each text behind its length and each list
 * behind its count, sorted by name; it is hashed as it is written and never stored:
 *
 *     model, version, inputs {name, datatype, dimensions behind the first}, outputs {name},
 *     parameters {name, value}
 *
 * With lengths and counts in front, two shapes have the same form only if they are the same: ("ab",
 * "c") is not ("a", "bc"), and an output is no input. FNV-1a does not resist a client who looks for
 * two shapes with one key; whoever merges checks that inputs match before it joins bytes.
 *
 * The key of a request that must not merge is a one-to-one scramble of its id, so two of them never
 * share one.
 *
 * Threads: pure, any thread.
 */
#include "schedule/merge.h"

#include <limits.h>
#include <string.h>

#include "base/hash.h"

enum { NAMES_MAX = WG_MERGE_TENSORS_MAX, TEXT_SHOWN_MAX = 40 };

/* A list in the order of its names. */
struct sorted {
    const char *names[NAMES_MAX];
    size_t index[NAMES_MAX];
    size_t count;
};

/* Lists are short, and mostly in order already. Fails on a name that is there. */
static enum wg_code insert(struct sorted *sorted, const char *name, const char *what,
                           struct wg_error *err)
{
    size_t at = sorted->count;
    int order = -1;
    while (at > 0 && (order = strcmp(sorted->names[at - 1], name)) > 0) {
        sorted->names[at] = sorted->names[at - 1];
        sorted->index[at] = sorted->index[at - 1];
        at--;
    }
    if (at > 0 && order == 0)
        return wg__fail(err, WG_EINVAL, "%s '%.*s' is given twice", what, TEXT_SHOWN_MAX, name);
    sorted->names[at] = name;
    sorted->index[at] = sorted->count++;
    return WG_OK;
}

static enum wg_code check_count(size_t count, size_t most, const char *what, struct wg_error *err)
{
    if (count > most)
        return wg__fail(err, WG_EINVAL, "a request has %zu %s, at most %zu are accepted", count,
                        what, most);
    return WG_OK;
}

static enum wg_code sort_tensors(struct sorted *sorted, const struct wg_merge_tensor *tensors,
                                 size_t count, const char *what, struct wg_error *err)
{
    sorted->count = 0;
    for (size_t i = 0; i < count; i++) {
        const enum wg_code code = insert(sorted, tensors[i].name, what, err);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

static enum wg_code sort_parameters(struct sorted *sorted, const struct wg_merge_shape *shape,
                                    struct wg_error *err)
{
    sorted->count = 0;
    for (size_t i = 0; i < shape->parameter_count; i++) {
        const enum wg_code code = insert(sorted, shape->parameters[i].name, "parameter", err);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

/* -- Rows ----------------------------------------------------------------------------------- */

static enum wg_code check_dims(const struct wg_merge_tensor *input, struct wg_error *err)
{
    if (input->dim_count > WG_MERGE_DIMS_MAX)
        return wg__fail(err, WG_EINVAL, "input '%.*s' has %zu dimensions, at most %d are accepted",
                        TEXT_SHOWN_MAX, input->name, input->dim_count, WG_MERGE_DIMS_MAX);
    for (size_t i = 0; i < input->dim_count; i++)
        if (input->dims[i] < 0)
            return wg__fail(err, WG_EINVAL,
                            "input '%.*s' has %lld as dimension %zu, expected 0 or "
                            "more",
                            TEXT_SHOWN_MAX, input->name, (long long)input->dims[i], i + 1);
    return WG_OK;
}

static enum wg_code check_rows(const struct wg_merge_tensor *input,
                               const struct wg_merge_tensor *first, struct wg_error *err)
{
    if (input->dim_count == 0)
        return wg__fail(err, WG_EINVAL, "input '%.*s' has no dimension, the first counts rows",
                        TEXT_SHOWN_MAX, input->name);
    const int64_t rows = input->dims[0];
    if (rows < 1 || rows > (int64_t)UINT_MAX)
        return wg__fail(err, WG_EINVAL, "input '%.*s' has %lld rows, expected 1 to %u",
                        TEXT_SHOWN_MAX, input->name, (long long)rows, UINT_MAX);
    if (rows != first->dims[0])
        return wg__fail(err, WG_EINVAL, "input '%.*s' has %lld rows, but input '%.*s' has %lld",
                        TEXT_SHOWN_MAX, input->name, (long long)rows, TEXT_SHOWN_MAX, first->name,
                        (long long)first->dims[0]);
    return WG_OK;
}

static enum wg_code count_rows(const struct wg_merge_shape *shape, unsigned *rows,
                               struct wg_error *err)
{
    for (size_t i = 0; i < shape->input_count; i++) {
        enum wg_code code = check_dims(&shape->inputs[i], err);
        if (code == WG_OK && shape->has_batch_dimension)
            code = check_rows(&shape->inputs[i], &shape->inputs[0], err);
        if (code != WG_OK)
            return code;
    }
    if (shape->input_count == 0)
        return wg__fail(err, WG_EINVAL, "a request has no input, expected at least one");
    *rows = shape->has_batch_dimension ? (unsigned)shape->inputs[0].dims[0] : 1;
    return WG_OK;
}

/* -- The key -------------------------------------------------------------------------------- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
    if (text == NULL)
        text = "";
    return wg__hash_text(wg__hash_number(hash, strlen(text)), text);
}

static uint64_t hash_inputs(uint64_t hash, const struct wg_merge_shape *shape,
                            const struct sorted *sorted)
{
    hash = wg__hash_number(hash, sorted->count);
    for (size_t i = 0; i < sorted->count; i++) {
        const struct wg_merge_tensor *input = &shape->inputs[sorted->index[i]];
        hash = hash_text(hash, input->name);
        hash = hash_text(hash, input->datatype);
        hash = wg__hash_number(hash, input->dim_count);
        for (size_t d = 1; d < input->dim_count; d++)
            hash = wg__hash_number(hash, (uint64_t)input->dims[d]);
    }
    return hash;
}

static uint64_t hash_outputs(uint64_t hash, const struct sorted *sorted)
{
    hash = wg__hash_number(hash, sorted->count);
    for (size_t i = 0; i < sorted->count; i++)
        hash = hash_text(hash, sorted->names[i]);
    return hash;
}

/* Each request's own. */
static bool is_own(const char *name)
{
    return strcmp(name, "id") == 0 || strcmp(name, "priority") == 0 || strcmp(name, "timeout") == 0;
}

static bool is_sequence(const char *name)
{
    return strcmp(name, "sequence_id") == 0 || strcmp(name, "sequence_start") == 0 ||
           strcmp(name, "sequence_end") == 0;
}

static uint64_t hash_parameters(uint64_t hash, const struct wg_merge_shape *shape,
                                const struct sorted *sorted)
{
    size_t count = 0;
    for (size_t i = 0; i < sorted->count; i++)
        count += !is_own(sorted->names[i]);
    hash = wg__hash_number(hash, count);
    for (size_t i = 0; i < sorted->count; i++) {
        if (is_own(sorted->names[i]))
            continue;
        hash = hash_text(hash, sorted->names[i]);
        hash = hash_text(hash, shape->parameters[sorted->index[i]].value);
    }
    return hash;
}

static bool may_merge(const struct wg_merge_shape *shape)
{
    for (size_t i = 0; i < shape->parameter_count; i++)
        if (is_sequence(shape->parameters[i].name))
            return false;
    return shape->has_batch_dimension;
}

static enum wg_code check_counts(const struct wg_merge_shape *shape, struct wg_error *err)
{
    enum wg_code code = check_count(shape->input_count, WG_MERGE_TENSORS_MAX, "inputs", err);
    if (code == WG_OK)
        code = check_count(shape->output_count, WG_MERGE_TENSORS_MAX, "requested outputs", err);
    if (code == WG_OK)
        code = check_count(shape->parameter_count, WG_MERGE_PARAMETERS_MAX, "parameters", err);
    return code;
}

enum wg_code wg__merge_key(const struct wg_merge_shape *shape, uint64_t request_id,
                           uint64_t *key_out, unsigned *rows_out, struct wg_error *err)
{
    struct sorted inputs;
    struct sorted outputs;
    struct sorted parameters;
    unsigned rows = 0;
    enum wg_code code = check_counts(shape, err);
    if (code == WG_OK)
        code = sort_tensors(&inputs, shape->inputs, shape->input_count, "input", err);
    if (code == WG_OK)
        code = sort_tensors(&outputs, shape->outputs, shape->output_count, "requested output", err);
    if (code == WG_OK)
        code = sort_parameters(&parameters, shape, err);
    if (code == WG_OK)
        code = count_rows(shape, &rows, err);
    if (code != WG_OK)
        return code;
    *rows_out = rows;
    *key_out = wg__hash_mix(request_id);
    if (!may_merge(shape))
        return WG_OK;
    uint64_t hash = hash_text(hash_text(WG_HASH_START, shape->model), shape->version);
    hash = hash_inputs(hash, shape, &inputs);
    hash = hash_outputs(hash, &outputs);
    *key_out = hash_parameters(hash, shape, &parameters);
    return WG_OK;
}
