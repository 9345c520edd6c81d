/* SPDX-License-Identifier: MIT
 *
 * Calibrations: an array of what is known, one element a GPU, dtype and class of work.
 *
 * Reading is in calibration_read.c, writing in calibration_write.c, fitting in calibrate.c.
 *
 * Owns: the elements and their points.    Threads: one thread at a time.
 */
#include "wave/calibration.h"

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

void wg__calibration_free(struct wg_calibration *calibration)
{
    if (calibration == NULL)
        return;
    for (size_t i = 0; i < calibration->count; i++)
        wg__free(calibration->entries[i].points);
    wg__free(calibration->entries);
    wg__free(calibration);
}

static bool is_same(const struct wg_calibrated *a, const struct wg_calibrated *b)
{
    return a->dtype == b->dtype && a->op == b->op && strcmp(a->gpu, b->gpu) == 0;
}

enum wg_code wg__calibration_put(struct wg_calibration *calibration, struct wg_calibrated *entry,
                                 struct wg_error *err)
{
    for (size_t i = 0; i < calibration->count; i++) {
        if (!is_same(&calibration->entries[i], entry))
            continue;
        wg__free(calibration->entries[i].points);
        calibration->entries[i] = *entry;
        return WG_OK;
    }
    struct wg_calibrated *grown = wg__realloc_array(calibration->entries, calibration->count + 1,
                                                    sizeof *calibration->entries);
    if (grown == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for %zu calibrations",
                        calibration->count + 1);
    calibration->entries = grown;
    calibration->entries[calibration->count++] = *entry;
    return WG_OK;
}

enum wg_code wg__calibration_merge(struct wg_calibration *calibration,
                                   const struct wg_calibration *other, struct wg_error *err)
{
    for (size_t i = 0; i < other->count; i++) {
        struct wg_calibrated copy = other->entries[i];
        copy.points = NULL;
        if (copy.point_count > 0) {
            copy.points = wg__realloc_array(NULL, copy.point_count, sizeof *copy.points);
            if (copy.points == NULL)
                return wg__fail(err, WG_ENOMEM, "out of memory for %zu measured points",
                                copy.point_count);
            memcpy(copy.points, other->entries[i].points, copy.point_count * sizeof *copy.points);
        }
        enum wg_code code = wg__calibration_put(calibration, &copy, err);
        if (code != WG_OK) {
            wg__free(copy.points);
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
