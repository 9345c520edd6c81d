/* SPDX-License-Identifier: MIT
 *
 * Predicts the time of a layer on a GPU: parameters looked up once, one formula a call.
 *
 * Threads: predict is pure, any thread.
 */
#include "wave/kernel_model.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "wave/correction.h"
#include "wave/kernel_choice.h"
#include "wave/measured_points.h"
#include "wave/relative.h"
#include "wave/wave_time.h"

/* A kernel that this class of work was never seen to run, by what is known of it elsewhere. */
struct foreign {
    struct wg_tile_params tile;
    struct wg_wave_machine machine;
    struct wg_kernel_error error;
};

/* Parameters for one dtype and class of work. */
struct slot {
    bool has_params, is_transferred;
    struct wg_point *points; /* of this very GPU, dtype and class */
    size_t point_count;
    struct wg_kernel_params params;
    struct wg_wave_machine machine;
    struct foreign *foreign;
    size_t foreign_count;
    struct wg_forest_index *correction; /* NULL: none */
};

struct wg_kernel_model {
    struct wg_gpu_spec gpu; /* its texts are copied below */
    char id[WG_GPU_ID_SIZE], arch[WG_GPU_ID_SIZE];
    struct slot slots[WG_DTYPE_COUNT][WG_OP_CLASS_COUNT];
};

static const char *const origin_names[] = {"measured", "interpolated", "model", "transferred"};
static const char *const bound_names[] = {"compute", "memory", "launch"};
static_assert(sizeof origin_names / sizeof *origin_names == WG_ORIGIN_COUNT, "a name each");
static_assert(sizeof bound_names / sizeof *bound_names == WG_BOUND_COUNT, "a name each");

const char *wg__origin_name(enum wg_origin origin)
{
    return origin_names[origin];
}

const char *wg__bound_name(enum wg_bound bound)
{
    return bound_names[bound];
}

static bool is_near(double a, double b)
{
    return fabs(log(a / b)) < 0.1;
}

/* What a library chooses is a matter of the chip, of any edition of it; and what one dtype of 16
 * bits teaches holds for the other. A forest of other features is one that was built in before they
 * changed, and waits to be fitted anew (test_calibration_built_in fails until then). */
static bool corrects(const struct wg_kernel_model *model, enum wg_dtype dtype, enum wg_op_class op,
                     const struct wg_calibrated *entry)
{
    bool both_sixteen = wg__dtype_bytes(dtype) == 2 && wg__dtype_bytes(entry->dtype) == 2;
    bool is_same_chip = strcmp(model->gpu.id, entry->gpu) == 0 ||
                        (strcmp(model->gpu.arch, entry->arch) == 0 &&
                         is_near(model->gpu.dense_flops[dtype], entry->dense_flops));
    return entry->correction != NULL &&
           entry->correction->feature_count == WG_CORRECTION_FEATURES && op == entry->op &&
           (dtype == entry->dtype || both_sixteen) && is_same_chip;
}

static const double TRANSFER_ERROR = 0.1; /* that another GPU's parameters are thought to add */

static bool is_same_tile(const struct wg_kernel *a, const struct wg_kernel *b)
{
    return a->tile_m == b->tile_m && a->tile_n == b->tile_n;
}

static const struct foreign *foreign_of(const struct slot *slot, const struct wg_kernel *kernel)
{
    for (size_t i = 0; i < slot->foreign_count; i++)
        if (is_same_tile(&slot->foreign[i].tile.kernel, kernel))
            return &slot->foreign[i];
    return NULL;
}

static bool is_known_tile(const struct slot *slot, const struct wg_kernel *kernel)
{
    for (size_t i = 0; i < slot->params.tile_count; i++)
        if (is_same_tile(&slot->params.tiles[i].kernel, kernel))
            return true;
    return foreign_of(slot, kernel) != NULL;
}

/* A profile may tell a kernel that was never measured here. Where the formula holds, the nearest
 * tile in shape serves. Where it does not, what the others reach tells nothing: on a P4, linear
 * layers of random sizes run kernels that get half the speed of those of round sizes. Then the
 * numbers are those of the nearest class of work that knows the kernel. */
static enum wg_code add_foreign(struct wg_kernel_model *model,
                                const struct wg_calibration *calibration, enum wg_dtype dtype,
                                enum wg_op_class op, const struct wg_kernel *kernel,
                                struct wg_error *err)
{
    struct slot *slot = &model->slots[dtype][op];
    struct wg_kernel_params *params = wg__alloc(sizeof *params);
    struct foreign *grown =
        wg__realloc_array(slot->foreign, slot->foreign_count + 1, sizeof *slot->foreign);
    if (grown != NULL)
        slot->foreign = grown;
    if (params == NULL || grown == NULL) {
        wg__free(params);
        return wg__fail(err, WG_ENOMEM, "out of memory for the kernel model of %s", model->id);
    }
    const struct wg_calibrated *entry = NULL;
    bool is_transferred = false;
    if (wg__relative_find(calibration, &model->gpu, dtype, op, kernel, params, &is_transferred,
                          &entry) &&
        slot->params.known.mape > entry->params.known.mape + TRANSFER_ERROR) {
        struct foreign *added = &slot->foreign[slot->foreign_count++];
        wg__wave_machine_init(&added->machine, &model->gpu, dtype, params);
        wg__tile_of(params, kernel, &added->tile);
        added->error = params->known;
    }
    wg__free(params);
    return WG_OK;
}

/* Where kernels were told, tiles are those of real kernels. */
static enum wg_code fill_foreign(struct wg_kernel_model *model,
                                 const struct wg_calibration *calibration, enum wg_dtype dtype,
                                 enum wg_op_class op, struct wg_error *err)
{
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < wg__calibration_count(calibration); i++) {
        const struct wg_calibrated *entry = wg__calibration_at(calibration, i);
        if (entry->dtype != dtype || entry->op > WG_OP_BMM || entry->params.node_count == 0)
            continue;
        for (size_t t = 0; t < entry->params.tile_count && code == WG_OK; t++)
            if (!is_known_tile(&model->slots[dtype][op], &entry->params.tiles[t].kernel))
                code =
                    add_foreign(model, calibration, dtype, op, &entry->params.tiles[t].kernel, err);
    }
    return code;
}

static enum wg_code fill_slot(struct wg_kernel_model *model,
                              const struct wg_calibration *calibration, enum wg_dtype dtype,
                              enum wg_op_class op, struct wg_error *err)
{
    struct slot *slot = &model->slots[dtype][op];
    const struct wg_calibrated *entry = NULL;
    if (op != WG_OP_BYTES && !(model->gpu.dense_flops[dtype] > 0.0))
        return WG_OK;
    slot->has_params = wg__relative_find(calibration, &model->gpu, dtype, op, NULL, &slot->params,
                                         &slot->is_transferred, &entry);
    if (!slot->has_params)
        return WG_OK;
    wg__wave_machine_init(&slot->machine, &model->gpu, dtype, &slot->params);
    if (corrects(model, dtype, op, entry)) {
        enum wg_code code = wg__forest_index_new(&slot->correction, entry->correction, err);
        if (code != WG_OK)
            return code;
    }
    if (slot->is_transferred || entry->op != op || entry->dtype != dtype || entry->point_count == 0)
        return WG_OK;
    slot->points = wg__realloc_array(NULL, entry->point_count, sizeof *slot->points);
    if (slot->points == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for %zu measured points",
                        entry->point_count);
    memcpy(slot->points, entry->points, entry->point_count * sizeof *slot->points);
    slot->point_count = entry->point_count;
    return WG_OK;
}

static void copy_text(char out[static WG_GPU_ID_SIZE], const char *text)
{
    size_t length = strnlen(text, WG_GPU_ID_SIZE - 1);
    memcpy(out, text, length);
    out[length] = '\0';
}

enum wg_code wg__kernel_model_new(struct wg_kernel_model **out, const struct wg_gpu_spec *gpu,
                                  const struct wg_calibration *calibration, struct wg_error *err)
{
    struct wg_kernel_model *model = wg__alloc_zeroed(1, sizeof *model);
    if (model == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for the kernel model of %s", gpu->id);
    copy_text(model->id, gpu->id);
    copy_text(model->arch, gpu->arch);
    model->gpu = *gpu;
    model->gpu.id = model->id;
    model->gpu.name = model->id;
    model->gpu.arch = model->arch;
    enum wg_code code = WG_OK;
    for (int dtype = 0; dtype < WG_DTYPE_COUNT; dtype++)
        for (int op = 0; op < WG_OP_CLASS_COUNT && code == WG_OK; op++)
            code = fill_slot(model, calibration, (enum wg_dtype)dtype, (enum wg_op_class)op, err);
    for (int dtype = 0; dtype < WG_DTYPE_COUNT; dtype++)
        for (int op = 0; op <= WG_OP_BMM && code == WG_OK; op++)
            if (model->slots[dtype][op].has_params && !model->slots[dtype][op].is_transferred)
                code = fill_foreign(model, calibration, (enum wg_dtype)dtype, (enum wg_op_class)op,
                                    err);
    if (code == WG_OK)
        *out = model;
    else
        wg__kernel_model_free(model);
    return code;
}

void wg__kernel_model_free(struct wg_kernel_model *model)
{
    if (model == NULL)
        return;
    for (int dtype = 0; dtype < WG_DTYPE_COUNT; dtype++)
        for (int op = 0; op < WG_OP_CLASS_COUNT; op++) {
            wg__free(model->slots[dtype][op].correction);
            wg__free(model->slots[dtype][op].points);
            wg__free(model->slots[dtype][op].foreign);
        }
    wg__free(model);
}

static enum wg_code slot_of(const struct wg_kernel_model *model, enum wg_dtype dtype,
                            enum wg_op_class op, const struct slot **out, struct wg_error *err)
{
    const struct slot *slot = &model->slots[dtype][op];
    if (!slot->has_params)
        return wg__fail(err, WG_EUNSUPPORTED, "%s: no kernel parameters for %s %s", model->id,
                        wg__dtype_name(dtype), wg__op_class_name(op));
    *out = slot;
    return WG_OK;
}

static enum wg_bound bound_of(const struct wg_wave_time *time, double floor_s)
{
    if (floor_s > fmax(time->compute_s, time->memory_s))
        return WG_BOUND_LAUNCH;
    return time->compute_s >= time->memory_s ? WG_BOUND_COMPUTE : WG_BOUND_MEMORY;
}

/* What any prediction has, from its time's parts. */
static void fill(const struct slot *slot, const struct wg_wave_time *time,
                 const struct wg_kernel_error *error, struct wg_prediction *out)
{
    *out = (struct wg_prediction){
        .time_s = time->time_s,
        .low_s = time->time_s * error->low,
        .high_s = time->time_s * error->high,
        .origin = slot->is_transferred ? WG_ORIGIN_TRANSFERRED : WG_ORIGIN_MODEL,
        .bound = bound_of(time, slot->machine.floor_s),
        .blocks = time->blocks,
        .waves = time->waves,
        .tile_efficiency = 1.0,
        .wave_efficiency = time->waves > 0.0 ? time->waves / ceil(time->waves) : 1.0,
        .tail_s = time->time_s - time->full_s,
        .compute_s = time->compute_s,
        .memory_s = time->memory_s,
        .launch_s = slot->machine.floor_s,
    };
}

/* Repeated measurements of one size agree about so far. */
static const double REPEAT_LOW = 0.97, REPEAT_HIGH = 1.03;

static void scale(struct wg_prediction *out, double factor)
{
    out->time_s *= factor;
    out->low_s *= factor;
    out->high_s *= factor;
    out->tail_s *= factor;
}

/* How far off the formula is at a measured point; `*waves`: whole ones there. */
static double correction(const struct slot *slot, const struct wg_wave_work *work, bool winograd,
                         const struct wg_point *point, double *waves)
{
    struct wg_wave_work there = *work;
    struct wg_kernel_choice choice;
    there.gemm.m = point->m;
    if (!(point->bytes > 0.0)) /* a convolution's bytes are part of the key, a GEMM's follow m */
        there.bytes = wg__gemm_bytes(&there.gemm);
    wg__kernel_choose(&slot->params, &slot->machine, &there, winograd, &choice);
    wg__correct(slot->correction, &slot->machine, &there, &choice);
    *waves = ceil(choice.time.waves);
    return log(point->time_s / choice.time.time_s);
}

/* Where the size was measured, what was measured; between two sizes, the formula as they correct
 * it, so that its steps stay. */
static void use_points(const struct slot *slot, const struct wg_wave_work *work, bool winograd,
                       double key_bytes, struct wg_prediction *out)
{
    const struct wg_gemm *gemm = &work->gemm;
    const struct wg_point wanted = {gemm->batch, gemm->m, gemm->n, gemm->k, key_bytes, 0.0};
    struct wg_points_near near;
    if (!wg__points_find(slot->points, slot->point_count, &wanted, &near))
        return;
    if (near.is_exact) {
        scale(out, near.below->time_s / out->time_s);
        out->low_s = out->time_s * REPEAT_LOW;
        out->high_s = out->time_s * REPEAT_HIGH;
        out->origin = WG_ORIGIN_MEASURED;
        return;
    }
    double first = 0.0, last = 0.0;
    double below = correction(slot, work, winograd, near.below, &first);
    double above = correction(slot, work, winograd, near.above, &last);
    double share = (double)(gemm->m - near.below->m) / (double)(near.above->m - near.below->m);
    scale(out, exp(below + share * (above - below)));
    if (!(first < last) && !(first > last))
        out->origin = WG_ORIGIN_INTERPOLATED;
}

static void predict_known(const struct slot *slot, const struct wg_wave_work *work,
                          const struct wg_kernel *known, struct wg_prediction *out)
{
    const struct foreign *foreign = foreign_of(slot, known);
    const struct wg_wave_machine *machine = foreign != NULL ? &foreign->machine : &slot->machine;
    struct wg_tile_params tile;
    struct wg_wave_time time;
    unsigned split_k = known->split_k > 0 ? known->split_k : 1;
    if (foreign != NULL)
        tile = foreign->tile;
    else
        wg__tile_of(&slot->params, known, &tile);
    tile.kernel = *known;
    struct wg_wave_work here;
    wg__wave_work_init(&here, machine, &work->gemm, work->bytes);
    wg__wave_parts(machine, &tile, split_k, &here, &time);
    wg__wave_finish(machine, &time);
    fill(slot, &time, foreign != NULL ? &foreign->error : &slot->params.known, out);
    if (foreign != NULL)
        out->origin = WG_ORIGIN_TRANSFERRED;
    out->kernel = *known;
    out->kernel.split_k = split_k;
}

static void predict(const struct slot *slot, const struct wg_gemm *gemm, double bytes,
                    const struct wg_kernel *known, bool is_conv, bool winograd,
                    struct wg_prediction *out)
{
    struct wg_wave_work work;
    wg__wave_work_init(&work, &slot->machine, gemm, bytes);
    if (known != NULL && known->tile_m > 0 && known->tile_n > 0) {
        predict_known(slot, &work, known, out);
    } else {
        struct wg_kernel_choice choice;
        wg__kernel_choose(&slot->params, &slot->machine, &work, winograd, &choice);
        wg__correct(slot->correction, &slot->machine, &work, &choice);
        fill(slot, &choice.time, &slot->params.chosen, out);
        out->kernel = slot->params.tiles[choice.tile].kernel;
        out->is_winograd = slot->params.tiles[choice.tile].is_winograd;
        out->kernel.split_k = choice.split_k;
        if (slot->point_count > 0)
            use_points(slot, &work, winograd, is_conv ? bytes : 0.0, out);
    }
    out->tile_efficiency = wg__kernel_tile_efficiency(&out->kernel, gemm);
}

enum wg_code wg__kernel_model_gemm(const struct wg_kernel_model *model, const struct wg_gemm *gemm,
                                   const struct wg_kernel *known, struct wg_prediction *out,
                                   struct wg_error *err)
{
    if (gemm->batch == 0 || gemm->m == 0 || gemm->n == 0 || gemm->k == 0)
        return wg__fail(err, WG_EINVAL,
                        "GEMM of batch %llu, m %llu, n %llu, k %llu: expected sizes of at least 1",
                        (unsigned long long)gemm->batch, (unsigned long long)gemm->m,
                        (unsigned long long)gemm->n, (unsigned long long)gemm->k);
    const struct slot *slot = NULL;
    enum wg_code code =
        slot_of(model, gemm->dtype, gemm->batch > 1 ? WG_OP_BMM : WG_OP_LINEAR, &slot, err);
    if (code == WG_OK && slot != NULL)
        predict(slot, gemm, wg__gemm_bytes(gemm), known, false, false, out);
    return code;
}

static void predict_bytes(const struct slot *slot, double bytes, struct wg_prediction *out)
{
    struct wg_wave_time time = {.memory_s = bytes / slot->machine.bandwidth_bytes_per_s};
    wg__wave_finish(&slot->machine, &time);
    time.full_s = time.time_s;
    fill(slot, &time, &slot->params.chosen, out);
}

enum wg_code wg__kernel_model_conv(const struct wg_kernel_model *model, const struct wg_conv *conv,
                                   enum wg_conv_pass pass, const struct wg_kernel *known,
                                   struct wg_prediction *out, struct wg_error *err)
{
    struct wg_gemm gemm;
    const struct slot *slot = NULL;
    enum wg_code code = wg__conv_gemm(conv, pass, &gemm, err);
    if (code == WG_OK)
        code = slot_of(model, conv->dtype, wg__conv_class(conv, pass), &slot, err);
    if (code != WG_OK || slot == NULL)
        return code;
    if (wg__conv_is_depthwise(conv)) /* no reuse of the input to speak of: memory decides */
        predict_bytes(slot, wg__conv_bytes(conv), out);
    else
        predict(slot, &gemm, wg__conv_bytes(conv), known, true, wg__conv_may_winograd(conv), out);
    return WG_OK;
}

enum wg_code wg__kernel_model_bytes(const struct wg_kernel_model *model, enum wg_dtype dtype,
                                    double bytes, struct wg_prediction *out, struct wg_error *err)
{
    if (!(bytes >= 0.0 && bytes <= 1e18))
        return wg__fail(err, WG_EINVAL, "a layer of %g bytes: expected 0 .. 1e18", bytes);
    const struct slot *slot = NULL;
    enum wg_code code = slot_of(model, dtype, WG_OP_BYTES, &slot, err);
    if (code == WG_OK && slot != NULL)
        predict_bytes(slot, bytes, out);
    return code;
}
