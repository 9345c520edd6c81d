/* SPDX-License-Identifier: MIT
 *
 * Calibrations: an array of what is known, one element a GPU, dtype and class of work.
 *
 * Reading is in calibration_read.c, writing in calibration_write.c, fitting in calibrate.c.
 *
 * Owns: the elements and their points.    Threads: one thread at a time.
 */
#include "wave/calibration.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "wave/calibration_set.h"

static const char *const op_names[] = {
#define X(name, text) text,
    WG_OP_CLASSES(X)
#undef X
};

const char *wg__op_class_name(enum wg_op_class op)
{
    return op_names[op];
}

enum wg_code wg__calibration_new(struct wg_calibration **out, struct wg_error *err)
{
    struct wg_calibration *calibration = wg__alloc_zeroed(1, sizeof *calibration);
    if (calibration == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for a calibration");
    *out = calibration;
    return WG_OK;
}

void wg__calibrated_fini(struct wg_calibrated *entry)
{
    wg__free(entry->points);
    wg__free(entry->own_correction);
}

void wg__calibration_free(struct wg_calibration *calibration)
{
    if (calibration == NULL)
        return;
    for (size_t i = 0; calibration->own != NULL && i < calibration->count; i++)
        wg__calibrated_fini(&calibration->own[i]);
    wg__free(calibration->own);
    wg__free(calibration);
}

void wg__calibration_drop_points(struct wg_calibration *calibration)
{
    for (size_t i = 0; calibration->own != NULL && i < calibration->count; i++) {
        wg__free(calibration->own[i].points);
        calibration->own[i].points = NULL;
        calibration->own[i].point_count = 0;
    }
}

static bool is_same(const struct wg_calibrated *a, const struct wg_calibrated *b)
{
    return a->dtype == b->dtype && a->op == b->op && strcmp(a->gpu, b->gpu) == 0;
}

/* Makes room for `count` entries of our own, and copies what is built in there at first: that owns
 * nothing. */
static enum wg_code reserve(struct wg_calibration *calibration, size_t count, struct wg_error *err)
{
    struct wg_calibrated *own =
        wg__realloc_array(calibration->own, count, sizeof *calibration->own);
    if (own == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for %zu calibrations", count);
    if (calibration->own == NULL && calibration->count > 0)
        memcpy(own, calibration->entries, calibration->count * sizeof *own);
    calibration->entries = calibration->own = own;
    return WG_OK;
}

enum wg_code wg__calibration_put(struct wg_calibration *calibration, struct wg_calibrated *entry,
                                 struct wg_error *err)
{
    size_t at = 0;
    while (at < calibration->count && !is_same(&calibration->entries[at], entry))
        at++;
    const bool is_new = at == calibration->count;
    if (is_new || calibration->own == NULL) {
        enum wg_code code = reserve(calibration, calibration->count + (is_new ? 1 : 0), err);
        if (code != WG_OK)
            return code;
    }
    assert(calibration->own != NULL);
    if (is_new)
        calibration->count++;
    else
        wg__calibrated_fini(&calibration->own[at]);
    calibration->own[at] = *entry;
    return WG_OK;
}

static enum wg_code copy_entry(const struct wg_calibrated *entry, struct wg_calibrated *out,
                               struct wg_error *err)
{
    *out = *entry;
    out->points = NULL;
    out->own_correction = NULL;
    if (entry->point_count > 0) {
        out->points = wg__realloc_array(NULL, entry->point_count, sizeof *out->points);
        if (out->points == NULL)
            return wg__fail(err, WG_ENOMEM, "out of memory for %zu measured points",
                            entry->point_count);
        memcpy(out->points, entry->points, entry->point_count * sizeof *out->points);
    }
    if (entry->own_correction != NULL) {
        out->own_correction = wg__alloc(sizeof *out->own_correction);
        if (out->own_correction == NULL) {
            wg__calibrated_fini(out);
            return wg__fail(err, WG_ENOMEM, "out of memory for the correction of %s", entry->gpu);
        }
        *out->own_correction = *entry->own_correction;
        out->correction = out->own_correction;
    }
    return WG_OK;
}

enum wg_code wg__calibration_merge(struct wg_calibration *calibration,
                                   const struct wg_calibration *other, struct wg_error *err)
{
    for (size_t i = 0; i < other->count; i++) {
        struct wg_calibrated copy;
        enum wg_code code = copy_entry(&other->entries[i], &copy, err);
        if (code != WG_OK)
            return code;
        code = wg__calibration_put(calibration, &copy, err);
        if (code != WG_OK) {
            wg__calibrated_fini(&copy);
            return code;
        }
    }
    return WG_OK;
}

static int compare(double a, double b)
{
    return (a > b) - (a < b);
}

int wg__point_compare(const void *a, const void *b)
{
    const struct wg_point *first = a, *second = b;
    if (first->batch != second->batch)
        return first->batch < second->batch ? -1 : 1;
    if (first->n != second->n)
        return first->n < second->n ? -1 : 1;
    if (first->k != second->k)
        return first->k < second->k ? -1 : 1;
    if (first->bytes < second->bytes || first->bytes > second->bytes)
        return compare(first->bytes, second->bytes);
    return (first->m > second->m) - (first->m < second->m);
}

size_t wg__calibration_count(const struct wg_calibration *calibration)
{
    return calibration->count;
}

const struct wg_calibrated *wg__calibration_at(const struct wg_calibration *calibration,
                                               size_t index)
{
    return &calibration->entries[index];
}
