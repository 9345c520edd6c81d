/* SPDX-License-Identifier: MIT
 *
 * libFuzzer entry of what a KServe server answers: any bytes, as gRPC and as HTTP, are read or
 * refused with a reason; what was read holds together.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/grpc.h"
#include "net/kserve_grpc.h"
#include "net/kserve_json.h"

/* libFuzzer prescribes the name. NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void check_metadata(const struct wg_kserve_metadata *metadata)
{
    require(metadata->input_count <= WG_KSERVE_TENSORS_MAX);
    for (size_t i = 0; i < metadata->input_count; i++) {
        const struct wg_kserve_tensor *input = &metadata->inputs[i];
        require(input->dim_count <= WG_KSERVE_DIMS_MAX && input->type < WG_KSERVE_TYPE_COUNT);
        require(memchr(input->name, '\0', sizeof input->name) != NULL && input->name[0] != '\0');
        for (size_t d = 0; d < input->dim_count; d++)
            require(input->dims[d] >= -1);
    }
}

static void check_statistics(const struct wg_kserve_statistics *statistics)
{
    require(statistics->batch_count <= WG_KSERVE_BATCHES_MAX);
    struct wg_kserve_statistics none = {.inferences = 0}, since;
    wg__kserve_statistics_since(&since, &none, statistics);
    require(since.inferences == statistics->inferences);
    wg__kserve_statistics_since(&since, statistics, statistics);
    require(since.inferences == 0 && since.success.count == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *body = (const char *)data;
    struct wg_kserve_metadata metadata;
    static struct wg_kserve_statistics statistics;
    struct wg_error err;
    size_t batch = 0, instances = 0;
    bool is_ready = false;
    if (wg__kserve_unpack_metadata(&metadata, body, size, &err) == WG_OK)
        check_metadata(&metadata);
    if (wg__kserve_read_metadata(&metadata, body, size, &err) == WG_OK)
        check_metadata(&metadata);
    if (wg__kserve_unpack_statistics(&statistics, body, size, &err) == WG_OK)
        check_statistics(&statistics);
    if (wg__kserve_read_statistics(&statistics, body, size, &err) == WG_OK)
        check_statistics(&statistics);
    (void)wg__kserve_unpack_max_batch(&batch, body, size, &err);
    (void)wg__kserve_read_shape(&batch, &instances, body, size, &err);
    (void)wg__kserve_unpack_ready(&is_ready, body, size, &err);
    (void)wg__kserve_check_grpc(body, size);
    (void)wg__kserve_check_infer(body, size, size / 2);
    (void)wg__kserve_check_infer(body, size, 0);
    char text[64];
    wg__http_error_text(text, sizeof text, body, size);
    wg__grpc_decode(text, sizeof text, body, size);
    require(memchr(text, '\0', sizeof text) != NULL);
    return 0;
}
