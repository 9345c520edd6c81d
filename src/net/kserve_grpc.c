/* SPDX-License-Identifier: MIT
 *
 * KServe v2 in protobuf.
 *
 * protobuf-c's structs point into what we give it; packing streams into our buffer. What it unpacks
 * it takes from wg__alloc.
 *
 * Threads: pure, any thread.
 */
#include "net/kserve_grpc.h"

#include <string.h>

#include "base/alloc.h"
#include "net/grpc.h"
#include "net/kserve.pb-c.h"

/* Larger answers are checked by their frame only: unpacking copies them. */
enum { UNPACKED_MAX = 64 * 1024 };

/* -- Requests --------------------------------------------------------------------------------- */

/* protobuf-c's way to write; ours beside it. */
struct writer {
    ProtobufCBuffer base;
    struct wg_buffer *out;
};

static void append(ProtobufCBuffer *base, size_t length, const uint8_t *bytes)
{
    struct writer *writer = (struct writer *)base;
    wg__buffer_append(writer->out, (const char *)bytes, length);
}

static void pack(struct wg_buffer *out, const ProtobufCMessage *message)
{
    out->length = 0;
    uint8_t prefix[WG_GRPC_PREFIX_SIZE];
    wg__grpc_prefix(prefix, (uint32_t)protobuf_c_message_get_packed_size(message));
    wg__buffer_append(out, (const char *)prefix, sizeof prefix);
    struct writer writer = {.base.append = append, .out = out};
    (void)protobuf_c_message_pack_to_buffer(message, &writer.base);
}

/* protobuf-c's texts are not const, but it does not write to those it packs. */
static char *lend(const char *text)
{
    union {
        const char *in;
        char *out;
    } lent;
    lent.in = text;
    return lent.out;
}

void wg__kserve_pack_model(struct wg_buffer *out, const char *model, const char *version)
{
    Kserve__ModelRequest request = KSERVE__MODEL_REQUEST__INIT;
    request.name = lend(model);
    request.version = lend(version);
    pack(out, (const ProtobufCMessage *)&request);
}

void wg__kserve_pack_empty(struct wg_buffer *out)
{
    const Kserve__Empty request = KSERVE__EMPTY__INIT;
    pack(out, (const ProtobufCMessage *)&request);
}

void wg__kserve_pack_repository(struct wg_buffer *out, const char *model, const char *config)
{
    Kserve__RepositoryModelRequest request = KSERVE__REPOSITORY_MODEL_REQUEST__INIT;
    Kserve__RepositoryModelRequest__Parameter parameter =
        KSERVE__REPOSITORY_MODEL_REQUEST__PARAMETER__INIT;
    Kserve__RepositoryParameter value = KSERVE__REPOSITORY_PARAMETER__INIT;
    Kserve__RepositoryModelRequest__Parameter *parameters[] = {&parameter};
    request.model_name = lend(model);
    if (config != NULL) {
        value.value_case = KSERVE__REPOSITORY_PARAMETER__VALUE_STRING_PARAM;
        value.string_param = lend(config);
        parameter.key = lend("config");
        parameter.value = &value;
        request.n_parameters = 1;
        request.parameters = parameters;
    }
    pack(out, (const ProtobufCMessage *)&request);
}

/* The structs of a request, one an input. */
struct infer {
    Kserve__InferTensor tensors[WG_KSERVE_TENSORS_MAX];
    Kserve__InferTensor *pointers[WG_KSERVE_TENSORS_MAX];
    ProtobufCBinaryData contents[WG_KSERVE_TENSORS_MAX];
    int64_t dims[WG_KSERVE_TENSORS_MAX][WG_KSERVE_DIMS_MAX];
};

/* All inputs' bytes, one behind the other, with `sizes` of each. */
static void fill(struct wg_buffer *data, size_t *sizes, const struct wg_kserve_tensor *inputs,
                 size_t count, struct wg_rng *rng)
{
    for (size_t i = 0; i < count; i++) {
        const size_t before = data->length;
        wg__kserve_fill(data, &inputs[i], rng);
        sizes[i] = data->length - before;
    }
}

enum wg_code wg__kserve_pack_infer(struct wg_buffer *out, const char *model, const char *version,
                                   const struct wg_kserve_tensor *inputs, size_t count,
                                   struct wg_rng *rng, struct wg_error *err)
{
    struct infer infer;
    size_t sizes[WG_KSERVE_TENSORS_MAX] = {0};
    struct wg_buffer data;
    wg__buffer_init(&data);
    fill(&data, sizes, inputs, count, rng);
    uint8_t *at = (uint8_t *)data.data;
    for (size_t i = 0; i < count; i++) {
        infer.tensors[i] = (Kserve__InferTensor)KSERVE__INFER_TENSOR__INIT;
        infer.tensors[i].name = lend(inputs[i].name);
        infer.tensors[i].datatype = lend(wg__kserve_type_word(inputs[i].type));
        memcpy(infer.dims[i], inputs[i].dims, sizeof infer.dims[i]);
        infer.tensors[i].n_shape = inputs[i].dim_count;
        infer.tensors[i].shape = infer.dims[i];
        infer.pointers[i] = &infer.tensors[i];
        infer.contents[i] = (ProtobufCBinaryData){.len = sizes[i], .data = at};
        if (at != NULL)
            at += sizes[i];
    }
    Kserve__ModelInferRequest request = KSERVE__MODEL_INFER_REQUEST__INIT;
    request.model_name = lend(model);
    request.model_version = lend(version);
    request.n_inputs = request.n_raw_input_contents = count;
    request.inputs = infer.pointers;
    request.raw_input_contents = infer.contents;
    enum wg_code code = WG_OK;
    if (data.failed)
        out->failed = true;
    else if (protobuf_c_message_get_packed_size((const ProtobufCMessage *)&request) > UINT32_MAX)
        code = wg__fail(err, WG_EINVAL, "a request of %zu bytes is too long for gRPC", data.length);
    else
        pack(out, (const ProtobufCMessage *)&request);
    wg__buffer_fini(&data);
    return code;
}

/* -- Answers ---------------------------------------------------------------------------------- */

static void *take(void *context, size_t size)
{
    (void)context;
    return wg__alloc(size);
}

static void give(void *context, void *memory)
{
    (void)context;
    wg__free(memory);
}

static ProtobufCAllocator allocator(void)
{
    return (ProtobufCAllocator){.alloc = take, .free = give};
}

/* The message of an answer, or NULL with `err`. */
static ProtobufCMessage *unpack(const ProtobufCMessageDescriptor *type, const char *body,
                                size_t length, const char *what, struct wg_error *err)
{
    const uint8_t *bytes = NULL;
    size_t bytes_length = 0;
    const char *wrong = wg__grpc_message(body, length, &bytes, &bytes_length);
    if (wrong != NULL) {
        (void)wg__fail(err, WG_EDATA, "%s: %s", what, wrong);
        return NULL;
    }
    ProtobufCAllocator memory = allocator();
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &memory, bytes_length, bytes);
    if (message == NULL)
        (void)wg__fail(err, WG_EDATA, "%s: the message is damaged (or memory has run out)", what);
    return message;
}

static void release(ProtobufCMessage *message)
{
    ProtobufCAllocator memory = allocator();
    protobuf_c_message_free_unpacked(message, &memory);
}

enum wg_code wg__kserve_unpack_ready(bool *out, const char *body, size_t length,
                                     struct wg_error *err)
{
    ProtobufCMessage *message =
        unpack(&kserve__ready_response__descriptor, body, length, "whether it is ready", err);
    if (message == NULL)
        return WG_EDATA;
    *out = ((Kserve__ReadyResponse *)message)->ready != 0;
    release(message);
    return WG_OK;
}

enum wg_code wg__kserve_unpack_metadata(struct wg_kserve_metadata *out, const char *body,
                                        size_t length, struct wg_error *err)
{
    ProtobufCMessage *message = unpack(&kserve__model_metadata_response__descriptor, body, length,
                                       "the model's metadata", err);
    if (message == NULL)
        return WG_EDATA;
    const Kserve__ModelMetadataResponse *answer = (const void *)message;
    *out = (struct wg_kserve_metadata){.input_count = 0};
    enum wg_code code = WG_OK;
    for (size_t i = 0; code == WG_OK && i < answer->n_inputs; i++) {
        const Kserve__TensorMetadata *input = answer->inputs[i];
        code = wg__kserve_add_tensor(out->inputs, &out->input_count, input->name, input->datatype,
                                     input->shape, input->n_shape, err);
    }
    release(message);
    return code;
}

enum wg_code wg__kserve_unpack_max_batch(size_t *out, const char *body, size_t length,
                                         struct wg_error *err)
{
    ProtobufCMessage *message = unpack(&kserve__model_config_response__descriptor, body, length,
                                       "the model's configuration", err);
    if (message == NULL)
        return WG_EDATA;
    const Kserve__ModelConfig *config = ((Kserve__ModelConfigResponse *)message)->config;
    *out = config != NULL && config->max_batch_size > 0 ? (size_t)config->max_batch_size : 0;
    release(message);
    return WG_OK;
}

static void add_duration(struct wg_kserve_duration *sum, const Kserve__StatisticDuration *duration,
                         bool is_part)
{
    if (duration == NULL)
        return;
    sum->time_ns += duration->ns;
    if (!is_part)
        sum->count += duration->count;
}

static void add_model(struct wg_kserve_statistics *out, const Kserve__ModelStatistics *model)
{
    out->inferences += model->inference_count;
    out->executions += model->execution_count;
    const Kserve__InferStatistics *stats = model->inference_stats;
    if (stats != NULL) {
        add_duration(&out->success, stats->success, false);
        add_duration(&out->fail, stats->fail, false);
        add_duration(&out->queue, stats->queue, false);
        add_duration(&out->compute, stats->compute_infer, false);
        add_duration(&out->compute, stats->compute_input, true);
        add_duration(&out->compute, stats->compute_output, true);
    }
    for (size_t i = 0; i < model->n_batch_stats; i++) {
        const Kserve__InferBatchStatistics *item = model->batch_stats[i];
        struct wg_kserve_duration time = {0};
        add_duration(&time, item->compute_infer, false);
        add_duration(&time, item->compute_input, true);
        add_duration(&time, item->compute_output, true);
        const struct wg_kserve_batch batch = {
            .size = item->batch_size, .executions = time.count, .time_ns = time.time_ns};
        if (batch.size != 0)
            wg__kserve_add_batch(out, &batch);
    }
}

enum wg_code wg__kserve_unpack_statistics(struct wg_kserve_statistics *out, const char *body,
                                          size_t length, struct wg_error *err)
{
    ProtobufCMessage *message = unpack(&kserve__model_statistics_response__descriptor, body, length,
                                       "the model's statistics", err);
    if (message == NULL)
        return WG_EDATA;
    const Kserve__ModelStatisticsResponse *answer = (const void *)message;
    *out = (struct wg_kserve_statistics){.inferences = 0};
    for (size_t i = 0; i < answer->n_model_stats; i++)
        add_model(out, answer->model_stats[i]);
    release(message);
    return WG_OK;
}

const char *wg__kserve_check_grpc(const char *body, size_t length)
{
    const uint8_t *bytes = NULL;
    size_t bytes_length = 0;
    const char *wrong = wg__grpc_message(body, length, &bytes, &bytes_length);
    if (wrong != NULL || bytes_length > UNPACKED_MAX)
        return wrong;
    ProtobufCAllocator memory = allocator();
    ProtobufCMessage *message = protobuf_c_message_unpack(&kserve__model_infer_response__descriptor,
                                                          &memory, bytes_length, bytes);
    if (message == NULL)
        return "the answer is no ModelInferResponse";
    release(message);
    return NULL;
}
