/* SPDX-License-Identifier: MIT
 *
 * TensorRT's engine layers (trtexec --exportLayerInfo --profilingVerbosity=detailed) as a network.
 *
 * A convolution says its filters ("OutMaps", "Kernel", "Stride", ..), its input's dimensions and,
 * in "TacticName", the kernel; the thread blocks follow from the tile in it. Matrix products say
 * their operands' dimensions. Layers that only move data (pooling, reformat, element-wise) cost
 * their tensors' bytes; NoOp layers cost nothing and are left out. What a fused region multiplies
 * is not told: it stays unknown (a GEMM with m = 0) beside its time.
 *
 *     m.graph.json              the layers
 *     m.profile.json            [{"count": n}, {"name": .., "averageMs": .., "medianMs": ..}, ..]
 *     m.profile.metadata.json   {"device_information": {"Selected Device": .., "SMs": 108.0}}  trex
 *     m.metadata.json           [{"Name": .., "MULTIPROCESSOR_COUNT": 108}]                    trex
 *
 * Times join by name, in order where a name comes twice.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "model/profile_json.h"
#include "model/profile_reader.h"

enum { LAYERS_MAX = 1000000, RANK_MAX = 8, PATH_SIZE = 4096 };

struct tensor {
    uint64_t dims[RANK_MAX];
    size_t rank; /* 0: not told */
    enum wg_dtype dtype;
    bool has_dtype;
};

/* -- Tensors ------------------------------------------------------------------------------- */

/* "Channel major FP16 format where channel % 8 == 0". */
static bool read_format(const char *format, enum wg_dtype *out)
{
    static const struct {
        const char *word;
        enum wg_dtype dtype;
    } words[] = {{"BF16", WG_DTYPE_BF16}, {"BFloat16", WG_DTYPE_BF16}, {"FP16", WG_DTYPE_FP16},
                 {"Half", WG_DTYPE_FP16}, {"FP32", WG_DTYPE_FP32},     {"Float", WG_DTYPE_FP32},
                 {"Int8", WG_DTYPE_INT8}, {"FP8", WG_DTYPE_FP8}};
    for (size_t i = 0; format != NULL && i < sizeof words / sizeof *words; i++) {
        if (strstr(format, words[i].word) != NULL) {
            *out = words[i].dtype;
            return true;
        }
    }
    return false;
}

/* Tensor `index` of "Inputs" or "Outputs"; rank 0 where it isn't there, or not all is known. */
static struct tensor read_tensor(const json_t *layer, const char *key, size_t index)
{
    static const char *const formats[] = {"Format/Datatype", "Datatype", "Format"};
    struct tensor out = {0};
    const json_t *tensor = json_array_get(json_object_get(layer, key), index);
    const json_t *dims = json_object_get(tensor, "Dimensions");
    const size_t rank = json_array_size(dims);
    for (size_t i = 0; i < sizeof formats / sizeof *formats && !out.has_dtype; i++)
        out.has_dtype =
            read_format(json_string_value(json_object_get(tensor, formats[i])), &out.dtype);
    if (rank > RANK_MAX)
        return out;
    for (size_t i = 0; i < rank; i++)
        if (!wg__json_whole(json_array_get(dims, i), &out.dims[i]))
            return out;
    out.rank = rank;
    return out;
}

static double bytes_of(const struct tensor *tensor)
{
    double bytes = tensor->has_dtype && tensor->rank != 0 ? (double)wg__dtype_bytes(tensor->dtype)
                                                          : (double)NAN;
    for (size_t i = 0; i < tensor->rank; i++)
        bytes *= (double)tensor->dims[i];
    return bytes;
}

/* All that a layer reads and writes; NAN where a tensor's size is not told. */
static double moved_bytes(const json_t *layer)
{
    static const char *const keys[] = {"Inputs", "Outputs"};
    double bytes = 0.0;
    for (size_t key = 0; key < 2; key++) {
        for (size_t i = 0; i < json_array_size(json_object_get(layer, keys[key])); i++) {
            const struct tensor tensor = read_tensor(layer, keys[key], i);
            bytes += bytes_of(&tensor);
        }
    }
    return bytes;
}

/* -- Layers -------------------------------------------------------------------------------- */

static enum wg_dtype dtype_of(const struct tensor *input, const char *tactic)
{
    return input->dtype == WG_DTYPE_FP32 ? wg__kernel_fp32(tactic) : input->dtype;
}

/* A pair like [3, 3]; `fallback` where it is not there. */
static bool read_pair(const json_t *layer, const char *key, uint64_t fallback, uint64_t out[2])
{
    const json_t *pair = json_object_get(layer, key);
    out[0] = out[1] = fallback;
    if (pair == NULL)
        return true;
    return json_array_size(pair) == 2 && wg__json_whole(json_array_get(pair, 0), &out[0]) &&
           wg__json_whole(json_array_get(pair, 1), &out[1]);
}

/* Whether the output is the convolution's: that of a transposed one, or of one with a pooling in
 * the same layer, is not. */
static bool makes(const struct wg_conv *conv, const struct tensor *output)
{
    uint64_t p = 0, q = 0;
    return wg__conv_output(conv, &p, &q, NULL) == WG_OK && output->rank == 4 &&
           output->dims[0] == conv->n && output->dims[1] == conv->filters && output->dims[2] == p &&
           output->dims[3] == q;
}

/* false: not a convolution of two dimensions whose sizes are all told. */
static bool read_conv(const json_t *json, struct wg_layer *layer)
{
    struct wg_conv conv = {.groups = 1};
    const struct tensor input = read_tensor(json, "Inputs", 0);
    uint64_t kernel[2], stride[2], before[2], after[2], dilation[2];
    const json_t *groups = json_object_get(json, "Groups");
    if (input.rank != 4 || !input.has_dtype || json_object_get(json, "Kernel") == NULL ||
        !wg__json_whole(json_object_get(json, "OutMaps"), &conv.filters) ||
        !read_pair(json, "Kernel", 1, kernel) || !read_pair(json, "Stride", 1, stride) ||
        !read_pair(json, "PrePadding", 0, before) || !read_pair(json, "PostPadding", 0, after) ||
        !read_pair(json, "Dilation", 1, dilation) ||
        (groups != NULL && !wg__json_whole(groups, &conv.groups)))
        return false;
    conv.dtype = dtype_of(&input, layer->kernel_name);
    conv.n = input.dims[0];
    conv.c = input.dims[1];
    conv.h = input.dims[2];
    conv.w = input.dims[3];
    conv.r = kernel[0];
    conv.s = kernel[1];
    conv.stride_h = stride[0];
    conv.stride_w = stride[1];
    conv.pad_top = before[0];
    conv.pad_left = before[1];
    conv.pad_bottom = after[0];
    conv.pad_right = after[1];
    conv.dilation_h = dilation[0];
    conv.dilation_w = dilation[1];
    conv.has_bias = json_object_get(json, "Bias") != NULL;
    const struct tensor output = read_tensor(json, "Outputs", 0);
    struct wg_gemm gemm;
    if (wg__conv_gemm(&conv, WG_CONV_FORWARD, &gemm, NULL) != WG_OK || !makes(&conv, &output))
        return false;
    layer->kind = WG_LAYER_CONV;
    layer->conv = conv;
    layer->in.constant = conv.c;
    layer->out.constant = conv.filters;
    layer->parameters = conv.filters * (conv.c / conv.groups) * conv.r * conv.s +
                        (conv.has_bias ? conv.filters : 0);
    return true;
}

/* Which of the last two dimensions is not `known`; 0 where neither is it. */
static uint64_t other_side(const struct tensor *tensor, size_t axis, uint64_t known)
{
    const uint64_t *last = &tensor->dims[tensor->rank - 2];
    if (last[axis] == known)
        return last[1 - axis];
    return last[1 - axis] == known ? last[axis] : 0; /* transposed */
}

/* A product of matrices: [.., m, k] by [.., k, n], either transposed, or by weights. */
static bool read_product(const json_t *json, struct wg_layer *layer)
{
    const struct tensor a = read_tensor(json, "Inputs", 0), b = read_tensor(json, "Inputs", 1);
    const struct tensor c = read_tensor(json, "Outputs", 0);
    if (a.rank < 2 || c.rank < 2 || !a.has_dtype ||
        json_array_size(json_object_get(json, "Outputs")) != 1) /* several products in one */
        return false;
    struct wg_gemm gemm = {.dtype = dtype_of(&a, layer->kernel_name),
                           .batch = 1,
                           .m = c.dims[c.rank - 2],
                           .n = c.dims[c.rank - 1]};
    double elements = (double)gemm.m * (double)gemm.n;
    for (size_t i = 0; i + 2 < c.rank; i++) {
        elements *= (double)c.dims[i];
        if (elements > 4611686018427387904.0) /* 2^62: as wg__kernel_blocks can count */
            return false;
        gemm.batch *= c.dims[i];
    }
    if (b.rank >= 2) {
        gemm.k = other_side(&a, 0, gemm.m);
        if (gemm.k == 0 || other_side(&b, 1, gemm.n) != gemm.k)
            return false;
    } else { /* by weights: all rows are one matrix */
        gemm.k = a.dims[a.rank - 1];
        gemm.m *= gemm.batch;
        gemm.batch = 1;
    }
    layer->kind = WG_LAYER_GEMM;
    layer->gemm = gemm;
    layer->in.constant = gemm.k;
    layer->out.constant = gemm.n;
    return true;
}

static bool contains(const char *text, const char *word)
{
    return text != NULL && strstr(text, word) != NULL;
}

/* What moves data only, so that its tensors' bytes tell its least time. */
static bool is_mover(const char *type)
{
    static const char *const words[] = {"Pooling", "Reformat",    "Shuffle", "PointWise", "Concat",
                                        "Copy",    "ElementWise", "Slice",   "Resize",    "Reduce",
                                        "Softmax", "SoftMax",     "Gather",  "Scale",     "Cast"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (contains(type, words[i]))
            return true;
    return false;
}

/* Fills in what `json` tells beyond the name. */
static void read_layer(const json_t *json, struct wg_layer *layer)
{
    const char *parameters = json_string_value(json_object_get(json, "ParameterType"));
    const char *tactic = layer->kernel_name;
    struct wg_kernel named;
    layer->kernel = (struct wg_kernel){.split_k = 1, .cluster_m = 1, .cluster_n = 1};
    if (tactic != NULL && wg__kernel_parse(tactic, &named))
        layer->kernel = named;
    layer->kind = WG_LAYER_GEMM; /* with m = 0: not known */
    if (parameters != NULL && strcmp(parameters, "Convolution") == 0 && read_conv(json, layer))
        return;
    const bool is_product = contains(layer->op, "MatrixMultiply") || contains(layer->op, "Gemm") ||
                            contains(layer->op, "gemm") || contains(parameters, "MatrixMultiply");
    if (is_product && read_product(json, layer))
        return;
    const double bytes = moved_bytes(json);
    if (is_mover(layer->op) && bytes > 0.0) { /* NAN is not */
        const struct tensor written = read_tensor(json, "Outputs", 0);
        layer->kind = WG_LAYER_BYTES;
        layer->gemm.dtype = written.dtype; /* bandwidth differs by it */
        layer->bytes = bytes;
    }
}

static enum wg_code add_layer(struct wg_profile_collector *collector, const json_t *json,
                              size_t index, struct wg_error *err)
{
    struct wg_network *network = &collector->profile->network;
    const char *name = json_string_value(json_object_get(json, "Name"));
    const char *type = json_string_value(json_object_get(json, "LayerType"));
    const char *tactic = json_string_value(json_object_get(json, "TacticName"));
    if (json_is_string(json))
        return wg__fail(err, WG_EDATA,
                        "%s: layer %zu: only its name is there; export with "
                        "--profilingVerbosity=detailed",
                        collector->file_name, index + 1);
    if (name == NULL || type == NULL)
        return wg__fail(err, WG_EDATA, "%s: layer %zu: no text \"%s\"", collector->file_name,
                        index + 1, name == NULL ? "Name" : "LayerType");
    if (strcmp(type, "NoOp") == 0 || strcmp(type, "Constant") == 0)
        return WG_OK;
    struct wg_layer layer = {0};
    enum wg_code code = wg__collector_name(collector, name, &layer.name, err);
    if (code == WG_OK)
        code = wg__collector_name(collector, type, &layer.op, err);
    if (code == WG_OK && tactic != NULL)
        code = wg__collector_name(collector, tactic, &layer.kernel_name, err);
    if (code != WG_OK)
        return code;
    read_layer(json, &layer);
    network->layers[network->layer_count++] = layer;
    return WG_OK;
}

static enum wg_code read_layers(struct wg_profile_collector *collector, const json_t *root,
                                struct wg_error *err)
{
    const json_t *layers = json_object_get(root, "Layers");
    const size_t count = json_array_size(layers);
    if (!json_is_array(layers) || count == 0 || count > LAYERS_MAX)
        return wg__fail(err, WG_EDATA, "%s: \"Layers\" is no array of 1 to %d layers",
                        collector->file_name, LAYERS_MAX);
    enum wg_code code = wg__collector_layers(collector, count, err);
    for (size_t i = 0; i < count && code == WG_OK; i++)
        code = add_layer(collector, json_array_get(layers, i), i, err);
    if (code == WG_OK && collector->profile->network.layer_count == 0)
        code = wg__fail(err, WG_EDATA, "%s: no layer in it costs time", collector->file_name);
    return code;
}

/* -- Files beside it ----------------------------------------------------------------------- */

/* The first layer from `from` on, around the end, of this name: names come in the layers' order. */
static struct wg_layer *find_layer(struct wg_network *network, size_t *from, const char *name)
{
    for (size_t i = 0; i < network->layer_count; i++) {
        const size_t at = (*from + i) % network->layer_count;
        if (strcmp(network->layers[at].name, name) == 0) {
            *from = at + 1;
            return &network->layers[at];
        }
    }
    return NULL;
}

static enum wg_code join_times(struct wg_network *network, const json_t *root, const char *path,
                               struct wg_error *err)
{
    size_t from = 0, joined = 0;
    if (!json_is_array(root))
        return wg__fail(err, WG_EDATA, "%s: no array of times (--exportProfile)", path);
    for (size_t i = 0; i < json_array_size(root); i++) {
        const json_t *entry = json_array_get(root, i);
        const char *name = json_string_value(json_object_get(entry, "name"));
        const json_t *time = json_object_get(entry, "medianMs");
        if (time == NULL)
            time = json_object_get(entry, "averageMs");
        if (name == NULL) /* {"count": n} */
            continue;
        if (!json_is_number(time) || json_number_value(time) < 0.0)
            return wg__fail(err, WG_EDATA, "%s: entry %zu: no time medianMs or averageMs", path,
                            i + 1);
        struct wg_layer *layer = find_layer(network, &from, name);
        if (layer == NULL)
            continue; /* a NoOp */
        layer->measured_s = json_number_value(time) * 1e-3;
        joined++;
    }
    return joined != 0 ? WG_OK
                       : wg__fail(err, WG_EDATA, "%s: none of its names is that of a layer", path);
}

/* trex' notes about the device, in either file. */
static enum wg_code read_device(struct wg_profile_collector *collector, const json_t *root,
                                struct wg_error *err)
{
    struct wg_profile *profile = collector->profile;
    const json_t *device =
        json_is_array(root) ? json_array_get(root, 0) : json_object_get(root, "device_information");
    const json_t *name = json_object_get(device, json_is_array(root) ? "Name" : "Selected Device");
    const json_t *sms =
        json_object_get(device, json_is_array(root) ? "MULTIPROCESSOR_COUNT" : "SMs");
    if (json_number_value(sms) >= 1.0 && json_number_value(sms) <= 65536.0)
        profile->sms = (unsigned)json_number_value(sms);
    if (!json_is_string(name))
        return WG_OK;
    return wg__collector_name(collector, json_string_value(name), &profile->device, err);
}

/* `path` with "graph.json" as another ending; false: it ends otherwise. */
static bool beside(const char *path, const char *ending, char out[static PATH_SIZE])
{
    static const char own[] = "graph.json";
    const size_t length = strlen(path), tail = sizeof own - 1;
    const bool is_gzipped = length > 3 && strcmp(path + length - 3, ".gz") == 0;
    const size_t stem = length - tail - (is_gzipped ? 3 : 0);
    if (length < tail + (is_gzipped ? 3 : 0) || strncmp(path + stem, own, tail) != 0)
        return false;
    const int written =
        snprintf(out, PATH_SIZE, "%.*s%s%s", (int)stem, path, ending, is_gzipped ? ".gz" : "");
    return written > 0 && written < PATH_SIZE;
}

static enum wg_code read_times(struct wg_profile_collector *collector,
                               const struct wg_profile_file *file, struct wg_error *err)
{
    char path[PATH_SIZE];
    const char *given = file->times;
    json_t *root = NULL;
    if (given == NULL && (file->bytes != NULL || !beside(file->name, "profile.json", path)))
        return WG_OK;
    const struct wg_profile_file times = {.name = given != NULL ? given : path};
    enum wg_code code = wg__json_load(&times, &root, err);
    if (code == WG_ENOENT && given == NULL)
        return WG_OK;
    if (code == WG_OK)
        code = join_times(&collector->profile->network, root, times.name, err);
    json_decref(root);
    return code;
}

static enum wg_code read_notes(struct wg_profile_collector *collector,
                               const struct wg_profile_file *file, struct wg_error *err)
{
    static const char *const endings[] = {"profile.metadata.json", "metadata.json"};
    for (size_t i = 0; i < 2 && file->bytes == NULL; i++) {
        char path[PATH_SIZE];
        json_t *root = NULL;
        if (!beside(file->name, endings[i], path))
            continue;
        const struct wg_profile_file notes = {.name = path};
        enum wg_code code = wg__json_load(&notes, &root, err);
        if (code == WG_OK)
            code = read_device(collector, root, err);
        json_decref(root);
        if (code != WG_OK && code != WG_ENOENT)
            return code;
    }
    return WG_OK;
}

enum wg_code wg__profile_tensorrt(struct wg_profile *profile, const struct wg_profile_file *file,
                                  struct wg_error *err)
{
    json_t *root = NULL;
    struct wg_profile_collector collector;
    profile->kind = WG_PROFILE_TENSORRT;
    enum wg_code code = wg__json_load(file, &root, err);
    if (code != WG_OK)
        return code;
    wg__collector_init(&collector, profile, file->name);
    code = read_layers(&collector, root, err);
    json_decref(root);
    if (code == WG_OK)
        code = read_times(&collector, file, err);
    if (code == WG_OK)
        code = read_notes(&collector, file, err);
    wg__collector_fini(&collector);
    return code;
}
