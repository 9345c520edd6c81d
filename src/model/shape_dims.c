/* SPDX-License-Identifier: MIT
 *
 * Arithmetic on dimensions that are numbers, names or unknown.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include <string.h>

#include "model/shape_node.h"

const struct wg_dim wg__dim_unknown = {.value = WG_DIM_UNKNOWN};

struct wg_dim wg__dim(int64_t value)
{
    return (struct wg_dim){.value = value};
}

bool wg__dim_same(struct wg_dim a, struct wg_dim b)
{
    if (wg__dim_known(a) || wg__dim_known(b))
        return a.value == b.value;
    return a.name != NULL && b.name != NULL && strcmp(a.name, b.name) == 0;
}

static enum wg_code too_large(const struct wg_shape_node *n, struct wg_dim a, struct wg_dim b,
                              const char *operation)
{
    return wg__shape_refuse(n, "a dimension of %lld %s %lld is too large", (long long)a.value,
                            operation, (long long)b.value);
}

enum wg_code wg__dim_times(const struct wg_shape_node *n, struct wg_dim a, struct wg_dim b,
                           struct wg_dim *out)
{
    *out = wg__dim_unknown;
    if (a.value == 1) {
        *out = b;
    } else if (b.value == 1) {
        *out = a;
    } else if (a.value == 0 || b.value == 0) {
        *out = wg__dim(0);
    } else if (wg__dim_known(a) && wg__dim_known(b)) {
        if (__builtin_mul_overflow(a.value, b.value, &out->value)) {
            *out = wg__dim_unknown;
            return too_large(n, a, b, "times");
        }
    }
    return WG_OK;
}

enum wg_code wg__dim_plus(const struct wg_shape_node *n, struct wg_dim a, struct wg_dim b,
                          struct wg_dim *out)
{
    *out = wg__dim_unknown;
    if (a.value == 0) {
        *out = b;
    } else if (b.value == 0) {
        *out = a;
    } else if (wg__dim_known(a) && wg__dim_known(b)) {
        if (__builtin_add_overflow(a.value, b.value, &out->value)) {
            *out = wg__dim_unknown;
            return too_large(n, a, b, "plus");
        }
    }
    return WG_OK;
}

enum wg_code wg__dim_agree(const struct wg_shape_node *n, struct wg_dim a, struct wg_dim b,
                           const char *what, struct wg_dim *out)
{
    if (wg__dim_known(a) && wg__dim_known(b) && a.value != b.value)
        return wg__shape_refuse(n, "%s: %lld and %lld are not equal", what, (long long)a.value,
                                (long long)b.value);
    if (wg__dim_known(a) || (!wg__dim_known(b) && a.name != NULL))
        *out = a;
    else
        *out = b;
    return WG_OK;
}

struct wg_shape wg__shape_of_rank(size_t rank)
{
    struct wg_shape shape = {.is_known = true, .rank = rank <= WG_DIMS_MAX ? rank : WG_DIMS_MAX};
    for (size_t i = 0; i < shape.rank; i++)
        shape.dims[i] = wg__dim_unknown;
    return shape;
}

enum wg_code wg__shape_product(const struct wg_shape_node *n, const struct wg_shape *shape,
                               size_t first, size_t last, struct wg_dim *out)
{
    struct wg_dim product = wg__dim(1);
    for (size_t i = first; i < last; i++) {
        const enum wg_code code = wg__dim_times(n, product, shape->dims[i], &product);
        if (code != WG_OK)
            return code;
    }
    *out = product;
    return WG_OK;
}

enum wg_code wg__shape_push(const struct wg_shape_node *n, struct wg_shape *shape,
                            struct wg_dim dim)
{
    if (shape->rank == WG_DIMS_MAX)
        return wg__shape_refuse(n, "its output would have more than %d dimensions", WG_DIMS_MAX);
    shape->is_known = true;
    shape->dims[shape->rank++] = dim;
    return WG_OK;
}

enum wg_code wg__shape_axis(const struct wg_shape_node *n, int64_t axis, size_t rank, size_t *out)
{
    const int64_t signed_rank = (int64_t)rank;
    if (axis < -signed_rank || axis >= signed_rank)
        return wg__shape_refuse(n, "axis %lld is outside a tensor of %zu dimensions",
                                (long long)axis, rank);
    *out = (size_t)(axis < 0 ? axis + signed_rank : axis);
    return WG_OK;
}

/* A number other than 1 wins over a name, which may stand for 1; a name wins over 1. */
static enum wg_code broadcast_dim(const struct wg_shape_node *n, struct wg_dim a, struct wg_dim b,
                                  struct wg_dim *out)
{
    if (wg__dim_known(a) && wg__dim_known(b)) {
        if (a.value != b.value && a.value != 1 && b.value != 1)
            return wg__shape_refuse(n, "dimensions %lld of '%.40s' and %lld of '%.40s' don't match",
                                    (long long)a.value, wg__shape_name(n, 0), (long long)b.value,
                                    wg__shape_name(n, 1));
        *out = a.value == 1 ? b : a;
    } else if (wg__dim_known(a)) {
        *out = a.value == 1 ? b : a;
    } else if (wg__dim_known(b)) {
        *out = b.value == 1 ? a : b;
    } else {
        *out = wg__dim_same(a, b) ? a : wg__dim_unknown;
    }
    return WG_OK;
}

enum wg_code wg__shape_broadcast(const struct wg_shape_node *n, const struct wg_shape *a,
                                 const struct wg_shape *b, struct wg_shape *out)
{
    const size_t rank = a->rank > b->rank ? a->rank : b->rank;
    struct wg_shape shape = wg__shape_of_rank(rank);
    for (size_t i = 0; i < rank; i++) {
        const struct wg_dim one = wg__dim(1);
        const struct wg_dim of_a = i + a->rank < rank ? one : a->dims[i + a->rank - rank];
        const struct wg_dim of_b = i + b->rank < rank ? one : b->dims[i + b->rank - rank];
        const enum wg_code code = broadcast_dim(n, of_a, of_b, &shape.dims[i]);
        if (code != WG_OK)
            return code;
    }
    *out = shape;
    return WG_OK;
}

enum wg_code wg__shape_want_rank(const struct wg_shape_node *n, size_t input, size_t rank)
{
    const struct wg_shape *shape = wg__shape_in(n, input);
    if (shape == NULL || shape->rank == rank)
        return WG_OK;
    return wg__shape_refuse(n, "input '%.60s' has %zu dimensions, expected %zu",
                            wg__shape_name(n, input), shape->rank, rank);
}

void wg__shape_union(struct wg_shape *io, const struct wg_shape *other)
{
    if (!io->is_known || !other->is_known || io->rank != other->rank) {
        *io = (struct wg_shape){.is_known = false};
        return;
    }
    for (size_t i = 0; i < io->rank; i++) {
        if (!wg__dim_same(io->dims[i], other->dims[i]))
            io->dims[i] = wg__dim_unknown;
    }
}

bool wg__shape_count(const struct wg_shape *shape, size_t max, size_t *out)
{
    size_t count = 1;
    if (!shape->is_known)
        return false;
    for (size_t i = 0; i < shape->rank; i++) {
        if (!wg__dim_known(shape->dims[i]))
            return false;
        if (__builtin_mul_overflow(count, (size_t)shape->dims[i].value, &count) || count > max)
            return false;
    }
    *out = count;
    return true;
}
