/* SPDX-License-Identifier: MIT
 *
 * The table of GPUs: see gpu.h for the names it answers to.
 *
 * Names are compared by key: letters and digits in lower case, without "nvidia", so that "NVIDIA
 * A100-SXM4-80GB", "a100 sxm4 80gb" and "a100-sxm4-80gb" are one. A key stands for one GPU only;
 * the table is refused otherwise.
 */
#include "wave/gpu.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/csv.h"
#include "base/hash.h"
#include "wave/built_in_capabilities.h"
#include "wave/built_in_gpus.h"
#include "wave/gpu_row.h"

enum { ROWS_MAX = 1024, CAPABILITIES_MAX = 64, KEY_SIZE = 64, NEAREST_SHOWN = 3 };

/* One of the names that a row goes by. */
struct name {
    uint64_t hash; /* most names differ in it: every new one is compared with all */
    const char *key;
    size_t row;
};

struct wg_gpu_table {
    struct wg_arena arena; /* texts */
    struct wg_gpu_spec *rows;
    size_t count;
    struct name *names;
    size_t name_count, name_capacity;
    struct wg_capability capabilities[CAPABILITIES_MAX];
    size_t capability_count;
};

static void make_key(char key[static KEY_SIZE], const char *text, size_t text_length)
{
    size_t length = 0;
    for (size_t i = 0; i < text_length && length + 1 < KEY_SIZE; i++) {
        char c = text[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '(' || c == ')')
            key[length++] = c;
    }
    key[length] = '\0';
    static const char maker[] = "nvidia";
    if (strncmp(key, maker, sizeof maker - 1) == 0)
        memmove(key, key + sizeof maker - 1, length - (sizeof maker - 1) + 1);
}

static uint64_t hash_of(const char *key)
{
    return wg__hash_text(WG_HASH_START, key);
}

static const struct name *find_key(const struct wg_gpu_table *table, const char *key)
{
    const uint64_t hash = hash_of(key);
    for (size_t i = 0; i < table->name_count; i++)
        if (table->names[i].hash == hash && strcmp(table->names[i].key, key) == 0)
            return &table->names[i];
    return NULL;
}

/* The least Levenshtein distance of `typed` to any part of `name`. */
static unsigned distance(const char *typed, const char *name)
{
    unsigned row[KEY_SIZE];
    const size_t length = strlen(name);
    for (size_t j = 0; j <= length; j++)
        row[j] = 0;
    for (size_t i = 0; typed[i] != '\0'; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i + 1;
        for (size_t j = 1; j <= length; j++) {
            unsigned best = diagonal + (typed[i] != name[j - 1]);
            diagonal = row[j];
            if (diagonal + 1 < best)
                best = diagonal + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    unsigned least = row[0];
    for (size_t j = 1; j <= length; j++)
        if (row[j] < least)
            least = row[j];
    return least;
}

static enum wg_code say_nearest(const struct wg_gpu_table *table, const char *name, const char *key,
                                struct wg_error *err)
{
    const char *nearest[NEAREST_SHOWN];
    unsigned distances[NEAREST_SHOWN];
    size_t count = 0;
    for (size_t i = 0; i < table->count; i++) {
        char own[KEY_SIZE];
        const char *id = table->rows[i].id;
        make_key(own, id, strlen(id));
        const unsigned d = distance(key, own);
        size_t at = count;
        while (at > 0 && distances[at - 1] > d)
            at--;
        if (at == NEAREST_SHOWN)
            continue;
        if (count < NEAREST_SHOWN)
            count++;
        for (size_t j = count - 1; j > at; j--) {
            nearest[j] = nearest[j - 1];
            distances[j] = distances[j - 1];
        }
        nearest[at] = id;
        distances[at] = d;
    }
    return wg__fail(err, WG_ENODEV, "no GPU '%s' in the table of %zu (nearest: %s, %s, %s)", name,
                    table->count, count > 0 ? nearest[0] : "-", count > 1 ? nearest[1] : "-",
                    count > 2 ? nearest[2] : "-");
}

enum wg_code wg__gpu_table_find(const struct wg_gpu_table *table, const char *name,
                                const struct wg_gpu_spec **out, struct wg_error *err)
{
    char key[KEY_SIZE];
    make_key(key, name, strlen(name));
    const struct name *known = key[0] == '\0' ? NULL : find_key(table, key);
    if (!known)
        return say_nearest(table, name, key, err);
    *out = &table->rows[known->row];
    return WG_OK;
}

static enum wg_code read_capabilities(struct wg_gpu_table *table, struct wg_error *err)
{
    struct wg_csv *csv = NULL;
    enum wg_code code = wg__csv_open_memory(&csv, "compute_capabilities.csv", built_in_capabilities,
                                            sizeof built_in_capabilities, err);
    bool has_record = code == WG_OK;
    while (code == WG_OK && has_record) {
        code = wg__csv_next(csv, &has_record, err);
        if (code != WG_OK || !has_record)
            break;
        if (table->capability_count == CAPABILITIES_MAX)
            code = wg__fail(err, WG_EDATA, "more than %d compute capabilities", CAPABILITIES_MAX);
        else
            code =
                wg__capability_row_read(csv, &table->capabilities[table->capability_count++], err);
    }
    wg__csv_close(csv);
    return code;
}

static const struct wg_capability *find_capability(const struct wg_gpu_table *table,
                                                   const struct wg_gpu_spec *spec)
{
    for (size_t i = 0; i < table->capability_count; i++)
        if (table->capabilities[i].cc_major == spec->cc_major &&
            table->capabilities[i].cc_minor == spec->cc_minor)
            return &table->capabilities[i];
    return NULL;
}

void wg__gpu_table_limits(const struct wg_gpu_table *table, struct wg_gpu_spec *spec)
{
    const struct wg_capability *known = find_capability(table, spec);
    if (known == NULL)
        return;
    spec->max_threads_per_sm = known->max_threads_per_sm;
    spec->max_blocks_per_sm = known->max_blocks_per_sm;
    spec->registers_per_sm = known->registers_per_sm;
    spec->shared_memory_per_sm_bytes = known->shared_memory_per_sm_bytes;
    spec->max_shared_memory_per_block_bytes = known->max_shared_memory_per_block_bytes;
    for (size_t i = 0; i < table->count; i++)
        if (table->rows[i].cc_major == spec->cc_major &&
            table->rows[i].cc_minor == spec->cc_minor) {
            spec->arch = table->rows[i].arch;
            break;
        }
}

/* What SMs of the GPU's compute capability hold. */
static enum wg_code add_limits(const struct wg_gpu_table *table, const struct wg_csv *csv,
                               struct wg_gpu_spec *spec, struct wg_error *err)
{
    if (find_capability(table, spec) == NULL) {
        size_t column;
        enum wg_code code = wg__csv_column(csv, "cc", &column, err);
        return code != WG_OK ? code
                             : wg__csv_fail(csv, column, err,
                                            "compute capability %u.%u is not in "
                                            "compute_capabilities.csv",
                                            spec->cc_major, spec->cc_minor);
    }
    const char *arch = spec->arch;
    wg__gpu_table_limits(table, spec);
    spec->arch = arch;
    return WG_OK;
}

static enum wg_code fail_key(const struct wg_csv *csv, const char *column, const char *text,
                             size_t length, const struct wg_gpu_spec *other, struct wg_error *err)
{
    size_t index;
    enum wg_code code = wg__csv_column(csv, column, &index, err);
    if (code != WG_OK)
        return code;
    return other ? wg__csv_fail(csv, index, err, "'%.*s' is a name of %s already", (int)length,
                                text, other->id)
                 : wg__csv_fail(csv, index, err, "'%.*s' is no name", (int)length, text);
}

static enum wg_code put_name(struct wg_gpu_table *table, const char *key, struct wg_error *err)
{
    if (table->name_count == table->name_capacity) {
        const size_t more = table->name_capacity ? 2 * table->name_capacity : 512;
        struct name *grown = wg__realloc_array(table->names, more, sizeof *grown);
        if (!grown)
            return wg__fail(err, WG_ENOMEM, "out of memory");
        table->names = grown;
        table->name_capacity = more;
    }
    const char *kept = wg__arena_strdup(&table->arena, key);
    if (!kept)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    table->names[table->name_count++] = (struct name){hash_of(key), kept, table->count};
    return WG_OK;
}

/* A name of the row that comes next: it must be something, and no name of a row above. */
static enum wg_code add_name(struct wg_gpu_table *table, const struct wg_csv *csv,
                             const char *column, const char *text, size_t length,
                             struct wg_error *err)
{
    char key[KEY_SIZE];
    make_key(key, text, length);
    if (key[0] == '\0')
        return fail_key(csv, column, text, length, NULL, err);
    const struct name *known = find_key(table, key);
    if (!known)
        return put_name(table, key, err);
    return known->row == table->count
               ? WG_OK
               : fail_key(csv, column, text, length, &table->rows[known->row], err);
}

static enum wg_code add_names(struct wg_gpu_table *table, const struct wg_csv *csv,
                              const struct wg_gpu_spec *spec, const char *aliases,
                              struct wg_error *err)
{
    enum wg_code code = add_name(table, csv, "id", spec->id, strlen(spec->id), err);
    if (code == WG_OK)
        code = add_name(table, csv, "name", spec->name, strlen(spec->name), err);
    for (const char *alias = aliases; code == WG_OK && *alias != '\0';) {
        const size_t length = strcspn(alias, ";");
        code = add_name(table, csv, "aliases", alias, length, err);
        alias += length + (alias[length] == ';');
    }
    return code;
}

static enum wg_code read_row(struct wg_gpu_table *table, const struct wg_csv *csv, size_t *capacity,
                             struct wg_error *err)
{
    if (table->count == *capacity) {
        const size_t more = *capacity ? 2 * *capacity : 128;
        if (more > ROWS_MAX)
            return wg__fail(err, WG_EDATA, "the table has more than %d GPUs", ROWS_MAX);
        struct wg_gpu_spec *grown = wg__realloc_array(table->rows, more, sizeof *grown);
        if (!grown)
            return wg__fail(err, WG_ENOMEM, "out of memory");
        table->rows = grown;
        *capacity = more;
    }
    struct wg_gpu_spec spec;
    const char *aliases = NULL;
    enum wg_code code = wg__gpu_row_read(csv, &table->arena, &spec, &aliases, err);
    if (code == WG_OK)
        code = add_limits(table, csv, &spec, err);
    if (code == WG_OK)
        code = add_names(table, csv, &spec, aliases, err);
    if (code == WG_OK)
        table->rows[table->count++] = spec;
    return code;
}

enum wg_code wg__gpu_table_open(struct wg_gpu_table **out, const char *name, const char *bytes,
                                size_t length, struct wg_error *err)
{
    struct wg_gpu_table *table = wg__alloc_zeroed(1, sizeof *table);
    if (!table)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    wg__arena_init(&table->arena);
    struct wg_csv *csv = NULL;
    size_t capacity = 0;
    enum wg_code code = read_capabilities(table, err);
    if (code == WG_OK)
        code = wg__csv_open_memory(&csv, name, bytes, length, err);
    bool has_record = code == WG_OK;
    while (code == WG_OK && has_record) {
        code = wg__csv_next(csv, &has_record, err);
        if (code == WG_OK && has_record)
            code = read_row(table, csv, &capacity, err);
    }
    if (code == WG_OK && table->count == 0)
        code = wg__fail(err, WG_EDATA, "%s: no GPUs below the header", name);
    wg__csv_close(csv);
    if (code != WG_OK) {
        wg__gpu_table_close(table);
        return code;
    }
    *out = table;
    return WG_OK;
}

enum wg_code wg__gpu_table_open_built_in(struct wg_gpu_table **out, struct wg_error *err)
{
    return wg__gpu_table_open(out, "gpus.csv", built_in_gpus, sizeof built_in_gpus, err);
}

void wg__gpu_table_close(struct wg_gpu_table *table)
{
    if (!table)
        return;
    wg__free(table->rows);
    wg__free(table->names);
    wg__arena_fini(&table->arena);
    wg__free(table);
}

size_t wg__gpu_table_count(const struct wg_gpu_table *table)
{
    return table->count;
}

const struct wg_gpu_spec *wg__gpu_table_at(const struct wg_gpu_table *table, size_t index)
{
    return &table->rows[index];
}
