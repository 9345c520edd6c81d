/* SPDX-License-Identifier: MIT
 *
 * Opens ONNX files: the mapping, and ModelProto.
 *
 * Only pages that hold structure are touched: weights are passed over by their length. The kernel
 * would read ahead of each touch, so it is told that access is random.
 *
 * Owns: see graph.h.    Threads: one thread at a time.
 */
#include "model/onnx.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/graph_inline.h"
#include "model/onnx_reader.h"

enum { IR_LEAST = 3, NAME_SHOWN_MAX = 160, RESIDENT_MAX = 2 << 20 };

/* --- ModelProto ------------------------------------------------------------------------------- */

/* How often each part is there, so that arrays are made once. */
struct model_counts {
    size_t opsets, metadata, functions;
};

struct model_walk {
    struct wg_onnx_reader reader;
    struct model_counts filled;
    struct wg_opset *opsets;
    struct wg_metadata *metadata;
    struct wg_function *functions;
    bool has_version;
    const uint8_t *graph_tag;
    struct wg_wire graph;
};

static enum wg_code count_parts(struct wg_wire wire, struct model_counts *out, struct wg_error *err)
{
    *out = (struct model_counts){0};
    for (;;) {
        bool has = false;
        struct wg_wire_field field;
        const enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            return code;
        out->opsets += field.number == 8;
        out->metadata += field.number == 14;
        out->functions += field.number == 25;
    }
}

static enum wg_code read_opset(struct wg_onnx_reader *reader, struct wg_wire wire,
                               struct wg_opset *out, struct wg_error *err)
{
    *out = (struct wg_opset){.domain = ""};
    for (;;) {
        bool has = false;
        struct wg_wire_field field;
        enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            return code;
        if (field.number == 1) {
            code = wg__onnx_text(reader, &wire, &field, "OperatorSetIdProto.domain", &out->domain,
                                 err);
            if (code == WG_OK && strcmp(out->domain, "ai.onnx") == 0)
                out->domain = "";
        } else if (field.number == 2) {
            code =
                wg__wire_expect(&wire, &field, WG_WIRE_VARINT, "OperatorSetIdProto.version", err);
            out->version = (int64_t)field.value;
        }
        if (code != WG_OK)
            return code;
    }
}

static enum wg_code read_metadata(struct wg_onnx_reader *reader, struct wg_wire wire,
                                  struct wg_metadata *out, struct wg_error *err)
{
    *out = (struct wg_metadata){.key = "", .value = ""};
    for (;;) {
        bool has = false;
        struct wg_wire_field field;
        enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            return code;
        if (field.number == 1)
            code = wg__onnx_text(reader, &wire, &field, "metadata's key", &out->key, err);
        else if (field.number == 2)
            code = wg__onnx_text(reader, &wire, &field, "metadata's value", &out->value, err);
        if (code != WG_OK)
            return code;
    }
}

static enum wg_code note_graph(struct model_walk *walk, const struct wg_wire *wire,
                               const struct wg_wire_field *field, struct wg_error *err)
{
    if (walk->graph_tag != NULL)
        return wg__wire_fail(wire, field->tag, err, "a second graph; the first is at byte %zu",
                             (size_t)(walk->graph_tag - wire->first));
    walk->graph_tag = field->tag;
    walk->graph = wg__wire_inside(wire, field);
    return wg__wire_expect(wire, field, WG_WIRE_BYTES, "ModelProto.graph", err);
}

static enum wg_code read_version(struct model_walk *walk, const struct wg_wire *wire,
                                 const struct wg_wire_field *field, struct wg_error *err)
{
    walk->has_version = true;
    walk->reader.model->ir_version = (int64_t)field->value;
    return wg__wire_expect(wire, field, WG_WIRE_VARINT, "ModelProto.ir_version", err);
}

/* A field that is a message of its own. */
static enum wg_code model_message(struct model_walk *walk, const struct wg_wire *wire,
                                  const struct wg_wire_field *field, struct wg_error *err)
{
    struct wg_onnx_reader *reader = &walk->reader;
    const enum wg_code code =
        wg__wire_expect(wire, field, WG_WIRE_BYTES, "a part of the model", err);
    if (code != WG_OK)
        return code;
    const struct wg_wire inside = wg__wire_inside(wire, field);
    if (field->number == 8)
        return read_opset(reader, inside, &walk->opsets[walk->filled.opsets++], err);
    if (field->number == 14)
        return read_metadata(reader, inside, &walk->metadata[walk->filled.metadata++], err);
    return wg__onnx_function(reader, inside, &walk->functions[walk->filled.functions++], err);
}

static enum wg_code model_field(struct model_walk *walk, const struct wg_wire *wire,
                                const struct wg_wire_field *field, struct wg_error *err)
{
    switch (field->number) {
    case 1:
        return read_version(walk, wire, field, err);
    case 2:
        return wg__onnx_text(&walk->reader, wire, field, "ModelProto.producer_name",
                             &walk->reader.model->producer, err);
    case 7:
        return note_graph(walk, wire, field, err);
    case 8:
    case 14:
    case 25:
        return model_message(walk, wire, field, err);
    default:
        return WG_OK;
    }
}

static enum wg_code make_parts(struct model_walk *walk, const struct wg_wire *wire,
                               struct wg_error *err)
{
    struct wg_arena *arena = &walk->reader.model->arena;
    struct model_counts counts;
    const enum wg_code code = count_parts(*wire, &counts, err);
    if (code != WG_OK)
        return code;
    walk->opsets = wg__arena_alloc(arena, counts.opsets, sizeof *walk->opsets);
    walk->metadata = wg__arena_alloc(arena, counts.metadata, sizeof *walk->metadata);
    walk->functions = wg__arena_alloc(arena, counts.functions, sizeof *walk->functions);
    if (walk->opsets == NULL || walk->metadata == NULL || walk->functions == NULL)
        return wg__onnx_out_of_memory(wire, err);
    return WG_OK;
}

/* The fields around the graph; anything may be a protobuf message, so what is no model shows by
 * what is missing. */
static enum wg_code read_model(struct wg_model *model, struct wg_wire wire, bool is_mapped,
                               struct wg_error *err)
{
    const struct wg_wire whole = wire;
    struct model_walk walk = {
        .reader = {.model = model, .resident = is_mapped ? wire.first : NULL}};
    enum wg_code code = make_parts(&walk, &wire, err);
    while (code == WG_OK) {
        bool has = false;
        struct wg_wire_field field;
        code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            break;
        code = model_field(&walk, &wire, &field, err);
    }
    if (code != WG_OK)
        return code;
    if (!walk.has_version || walk.graph_tag == NULL)
        return wg__wire_fail(&whole, whole.end, err, "the file ends without %s: no ONNX model",
                             walk.has_version ? "a graph" : "an IR version");
    if (model->ir_version < IR_LEAST)
        return wg__fail(err, WG_EUNSUPPORTED, "%s: IR version %lld, expected %d or later",
                        whole.name, (long long)model->ir_version, IR_LEAST);
    model->opsets = walk.opsets;
    model->opset_count = walk.filled.opsets;
    model->metadata = walk.metadata;
    model->metadata_count = walk.filled.metadata;
    model->functions = walk.functions;
    model->function_count = walk.filled.functions;
    code = wg__onnx_graph(&walk.reader, walk.graph, NULL, &model->graph, err);
    return code == WG_OK ? wg__graph_inline(model, whole.name, err) : code;
}

/* --- Files ------------------------------------------------------------------------------------ */

/* The end of a long path, which tells more than its beginning. */
static const char *shown(const char *path)
{
    const size_t length = strlen(path);
    if (length <= NAME_SHOWN_MAX)
        return path;
    const char *tail = path + length - NAME_SHOWN_MAX;
    while (((unsigned char)*tail & 0xC0) == 0x80)
        tail++;
    return tail;
}

static enum wg_code open_bytes(struct wg_model **out, const char *name, const uint8_t *bytes,
                               size_t length, bool is_mapped, struct wg_error *err)
{
    struct wg_model *model = wg__model_new();
    if (model == NULL)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", shown(name));
    model->producer = "";
    model->map = bytes;
    const struct wg_wire wire = {
        .name = shown(name), .first = bytes, .at = bytes, .end = bytes + length};
    const enum wg_code code = read_model(model, wire, is_mapped, err);
    if (code != WG_OK) {
        wg__model_close(model);
        return code;
    }
    *out = model;
    return WG_OK;
}

enum wg_code wg__onnx_open_memory(struct wg_model **out, const char *name, const uint8_t *bytes,
                                  size_t length, struct wg_error *err)
{
    return open_bytes(out, name, bytes, length, false, err);
}

/* Lets pages go; they are read anew when somebody asks. Bytes are those of the mapping. */
static void give_back(const uint8_t *first, const uint8_t *end)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uint8_t *from = first - (uintptr_t)first % page; /* the mapping begins at a page */
    (void)madvise((void *)from, (size_t)(end - from), MADV_DONTNEED);
}

void wg__onnx_passed(struct wg_onnx_reader *reader, const uint8_t *at)
{
    if (reader->resident == NULL)
        return;
    if (at < reader->resident) /* another walk began */
        reader->resident = at;
    if ((size_t)(at - reader->resident) < RESIDENT_MAX)
        return;
    give_back(reader->resident, at);
    reader->resident = at;
}

/* Maps the whole file; an empty one gives no bytes. */
static enum wg_code map_file(const char *path, const uint8_t **bytes_out, size_t *length_out,
                             struct wg_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return wg__fail_errno(err, errno, "%s: cannot open", shown(path));
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        (void)close(fd);
        return wg__fail(err, WG_EIO, "%s: not a regular file", shown(path));
    }
    *length_out = (size_t)status.st_size;
    void *map = *length_out != 0 ? mmap(NULL, *length_out, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    const int error_number = errno;
    (void)close(fd);
    if (map == MAP_FAILED)
        return wg__fail_errno(err, error_number, "%s: cannot map %zu bytes", shown(path),
                              *length_out);
    if (map != NULL)
        (void)madvise(map, *length_out, MADV_RANDOM);
    *bytes_out = map;
    return WG_OK;
}

static char *folder_of(struct wg_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return wg__arena_strdup(arena, ".");
    const size_t length = slash == path ? 1 : (size_t)(slash - path);
    char *folder = wg__arena_alloc(arena, length + 1, 1);
    if (folder != NULL)
        memcpy(folder, path, length);
    return folder;
}

enum wg_code wg__onnx_open(struct wg_model **out, const char *path, struct wg_error *err)
{
    const uint8_t *bytes = NULL;
    size_t length = 0;
    struct wg_model *model = NULL;
    enum wg_code code = map_file(path, &bytes, &length, err);
    if (code != WG_OK)
        return code;
    code = open_bytes(&model, path, bytes, length, true, err);
    if (code != WG_OK) {
        if (length != 0)
            (void)munmap((void *)bytes, length);
        return code;
    }
    assert(model != NULL);
    model->map_length = length;
    give_back(bytes, bytes + length);
    model->folder = folder_of(&model->arena, path);
    if (model->folder == NULL) {
        wg__model_close(model);
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", shown(path));
    }
    *out = model;
    return WG_OK;
}
