/* SPDX-License-Identifier: MIT
 *
 * Recognises a profile by its content and has it read.
 *
 *     {"Layers": ...}          TensorRT's layers
 *     {"traceEvents": [...]}   a chrome trace; a bare array of events as well
 *     [{"count": ...}, ...]    TensorRT's times, which are no profile alone
 *     anything else            CSV behind lines of talk: ncu ("Kernel Name") or nsys ("GrdX")
 *
 * Owns: see the header.    Threads: one thread at a time.
 */
#include "model/profile.h"

#include <string.h>
#include <sys/stat.h>

#include "base/csv.h"
#include "model/json_scan.h"
#include "model/profile_json.h"
#include "model/profile_reader.h"

const char *wg__profile_kind_name(enum wg_profile_kind kind)
{
    static const char *const names[] = {
#define X(name, text) text,
        WG_PROFILE_KINDS(X)
#undef X
    };
    return names[kind];
}

enum wg_code wg__profile_file_open(const struct wg_profile_file *file, struct wg_source *out,
                                   struct wg_error *err)
{
    enum wg_code code = file->bytes != NULL ? wg__source_open_memory(out, file->name, file->bytes,
                                                                     file->length, err)
                                            : wg__source_open(out, file->name, err);
    if (code == WG_OK)
        code = wg__source_skip_mark(out, err);
    return code;
}

/* -- JSON ---------------------------------------------------------------------------------- */

typedef enum wg_code (*reader_fn)(struct wg_profile *profile, const struct wg_profile_file *file,
                                  struct wg_error *err);

static enum wg_code sniff_object(struct wg_json_scan *scan, const char *name, reader_fn *out,
                                 struct wg_error *err)
{
    bool has_member = false;
    enum wg_code code = wg__json_scan_enter(scan, '{', err);
    while (code == WG_OK) {
        code = wg__json_scan_more(scan, '}', &has_member, err);
        if (code != WG_OK || !has_member)
            break;
        const bool is_layers = strcmp(scan->key, "Layers") == 0;
        *out = is_layers ? wg__profile_tensorrt : wg__profile_torch;
        if (is_layers || strcmp(scan->key, "traceEvents") == 0)
            return WG_OK;
        code = wg__json_scan_skip(scan, err);
    }
    return code == WG_OK ? wg__fail(err, WG_EDATA,
                                    "%s: JSON without \"Layers\" (TensorRT's --exportLayerInfo) or "
                                    "\"traceEvents\" (PyTorch's profiler)",
                                    name)
                         : code;
}

/* The first element of an array: an event has a phase. */
static enum wg_code sniff_array(struct wg_json_scan *scan, const char *name, reader_fn *out,
                                struct wg_error *err)
{
    enum { EVENT_MAX = 1 << 20 };
    bool has_member = false;
    enum wg_code code = wg__json_scan_enter(scan, '[', err);
    if (code == WG_OK)
        code = wg__json_scan_more(scan, ']', &has_member, err);
    if (code == WG_OK && has_member)
        code = wg__json_scan_take(scan, EVENT_MAX, err);
    if (code != WG_OK)
        return code;
    if (has_member && strstr(scan->text.data, "\"ph\"") != NULL) {
        *out = wg__profile_torch;
        return WG_OK;
    }
    if (has_member && strstr(scan->text.data, "\"count\"") != NULL)
        return wg__fail(err, WG_EDATA,
                        "%s: TensorRT's times (--exportProfile), expected the layers that they are "
                        "of (--exportLayerInfo)",
                        name);
    return wg__fail(err, WG_EDATA, "%s: a JSON array, but not of trace events", name);
}

/* `*out` stays as it is for what is no JSON. */
static enum wg_code sniff(const struct wg_profile_file *file, reader_fn *out, struct wg_error *err)
{
    struct wg_source source = {0};
    struct wg_json_scan scan;
    enum wg_code code = wg__profile_file_open(file, &source, err);
    wg__json_scan_init(&scan, &source);
    if (code == WG_OK) {
        const int byte = wg__json_scan_peek(&scan, err);
        if (byte == '{')
            code = sniff_object(&scan, file->name, out, err);
        else if (byte == '[')
            code = sniff_array(&scan, file->name, out, err);
        else if (byte == WG_SOURCE_BROKEN)
            code = source.stopped;
    }
    wg__json_scan_fini(&scan);
    wg__source_close(&source);
    return code;
}

/* -- CSV ----------------------------------------------------------------------------------- */

int wg__profile_column(const struct wg_csv *csv, const char *name)
{
    size_t column = 0;
    return wg__csv_column(csv, name, &column, NULL) == WG_OK ? (int)column : -1;
}

/* NCU or NSYS. */
static enum wg_code read_kernels(struct wg_profile *profile, const struct wg_profile_file *file,
                                 struct wg_error *err)
{
    static const char *const marks[] = {"Kernel Name", "GrdX", NULL};
    struct wg_source source = {0};
    struct wg_csv *csv = NULL;
    struct wg_error cause;
    enum wg_code code = wg__profile_file_open(file, &source, err);
    if (code != WG_OK) {
        wg__source_close(&source);
        return code;
    }
    code = wg__csv_open_loose(&csv, &source, marks, &cause);
    if (code == WG_EDATA)
        return wg__fail(err, code,
                        "%s: neither JSON (TensorRT, PyTorch) nor CSV of ncu (\"Kernel Name\") or "
                        "nsys (\"GrdX\"): %s",
                        file->name, cause.text);
    if (code != WG_OK)
        return wg__fail(err, code, "%s", cause.text);
    struct wg_profile_collector collector;
    wg__collector_init(&collector, profile, file->name);
    code = wg__csv_has_column(csv, "GrdX") ? wg__profile_nsys(&collector, csv, err)
                                           : wg__profile_ncu(&collector, csv, err);
    if (code == WG_OK)
        code = wg__collector_layers_of_launches(&collector, err);
    wg__collector_fini(&collector);
    wg__csv_close(csv);
    return code;
}

/* -- Reading ------------------------------------------------------------------------------- */

/* The samples of all convolutions; a matrix product doesn't tell which of its rows are samples. */
static uint64_t batch_of(const struct wg_network *network)
{
    uint64_t batch = 0;
    for (size_t i = 0; i < network->layer_count; i++) {
        const struct wg_layer *layer = &network->layers[i];
        if (layer->kind != WG_LAYER_CONV)
            continue;
        if (batch != 0 && layer->conv.n != batch)
            return 0;
        batch = layer->conv.n;
    }
    return batch;
}

static enum wg_code read_file(struct wg_profile *out, const struct wg_profile_file *file,
                              struct wg_error *err)
{
    reader_fn reader = read_kernels;
    struct wg_profile profile = {.device = ""};
    enum wg_code code = sniff(file, &reader, err);
    if (code != WG_OK)
        return code;
    wg__arena_init(&profile.network.arena);
    const char *slash = strrchr(file->name, '/');
    profile.network.name =
        wg__arena_strdup(&profile.network.arena, slash != NULL ? slash + 1 : file->name);
    code = profile.network.name != NULL ? reader(&profile, file, err)
                                        : wg__fail(err, WG_ENOMEM, "%s: out of memory", file->name);
    if (code == WG_OK) {
        profile.batch = batch_of(&profile.network);
        *out = profile;
    } else {
        wg__profile_fini(&profile);
    }
    return code;
}

/* A pipe can be read once only, and readers go over a file again: it is kept in memory. */
static enum wg_code read_pipe(struct wg_profile *out, struct wg_profile_file file,
                              struct wg_error *err)
{
    struct wg_source source = {0};
    struct wg_buffer text;
    wg__buffer_init(&text);
    enum wg_code code = wg__profile_file_open(&file, &source, err);
    if (code == WG_OK)
        code = wg__profile_take_all(&source, &text, err);
    wg__source_close(&source);
    file.bytes = text.length != 0 ? text.data : "";
    file.length = text.length;
    if (code == WG_OK)
        code = read_file(out, &file, err);
    wg__buffer_fini(&text);
    return code;
}

enum wg_code wg__profile_read(struct wg_profile *out, const char *path, const char *times,
                              struct wg_error *err)
{
    struct stat status;
    const struct wg_profile_file file = {.name = path, .times = times};
    const bool is_pipe = stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
    return is_pipe ? read_pipe(out, file, err) : read_file(out, &file, err);
}

enum wg_code wg__profile_read_memory(struct wg_profile *out, const char *name, const char *bytes,
                                     size_t length, struct wg_error *err)
{
    const struct wg_profile_file file = {
        .name = name, .bytes = length != 0 ? bytes : "", .length = length};
    return read_file(out, &file, err);
}

void wg__profile_fini(struct wg_profile *profile)
{
    if (profile == NULL)
        return;
    wg__arena_fini(&profile->network.arena);
    *profile = (struct wg_profile){0};
}
