/* SPDX-License-Identifier: MIT
 *
 * Matrix products: MatMul, Gemm, Einsum and the quantised ones; determinants.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include <ctype.h>
#include <string.h>

#include "model/shape_matrix.h"
#include "model/shape_pass.h"

/* A matrix with what stands before it: a vector is a row on the left, a column on the right. */
struct factor {
    struct wg_shape batch;
    struct wg_dim inner, outer;
    bool is_matrix;
};

static struct factor factor_of(const struct wg_shape *shape, bool is_right, bool is_transposed)
{
    struct factor f = {.batch = *shape, .is_matrix = shape->rank > 1};
    f.inner = shape->dims[shape->rank - 1];
    f.outer = wg__dim(1);
    f.batch.rank = f.is_matrix ? shape->rank - 2 : 0;
    if (!f.is_matrix)
        return f;
    f.outer = shape->dims[shape->rank - 2];
    if (is_right != is_transposed) {
        const struct wg_dim swapped = f.inner;
        f.inner = f.outer;
        f.outer = swapped;
    }
    return f;
}

enum wg_code wg__shape_product_of(struct wg_shape_node *n, size_t left, size_t right,
                                  bool is_left_transposed, bool is_right_transposed)
{
    const struct wg_shape *of_a = wg__shape_in(n, left), *of_b = wg__shape_in(n, right);
    struct wg_shape out;
    if (of_a == NULL || of_b == NULL)
        return WG_OK;
    if (of_a->rank == 0 || of_b->rank == 0)
        return wg__shape_refuse(n, "a product with a scalar");
    const struct factor a = factor_of(of_a, false, is_left_transposed);
    const struct factor b = factor_of(of_b, true, is_right_transposed);
    if (wg__dim_known(a.inner) && wg__dim_known(b.inner) && a.inner.value != b.inner.value)
        return wg__shape_refuse(n, "'%.40s' has rows of %lld, '%.40s' columns of %lld",
                                wg__shape_name(n, left), (long long)a.inner.value,
                                wg__shape_name(n, right), (long long)b.inner.value);
    enum wg_code code = wg__shape_broadcast(n, &a.batch, &b.batch, &out);
    if (code == WG_OK && a.is_matrix)
        code = wg__shape_push(n, &out, a.outer);
    if (code == WG_OK && b.is_matrix)
        code = wg__shape_push(n, &out, b.outer);
    if (code == WG_OK)
        wg__shape_set(n, 0, &out);
    return code;
}

static enum wg_code matmul(struct wg_shape_node *n)
{
    wg__shape_pass_type(n, 0, 0);
    return wg__shape_product_of(n, 0, 1, false, false);
}

static enum wg_code matmul_integer(struct wg_shape_node *n)
{
    wg__shape_set_type(n, 0, WG_ELEM_INT32);
    return wg__shape_product_of(n, 0, 1, false, false);
}

/* a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero */
static enum wg_code qlinear_matmul(struct wg_shape_node *n)
{
    wg__shape_pass_type(n, 7, 0);
    return wg__shape_product_of(n, 0, 3, false, false);
}

static enum wg_code gemm(struct wg_shape_node *n)
{
    wg__shape_pass_type(n, 0, 0);
    enum wg_code code = wg__shape_want_rank(n, 0, 2);
    if (code == WG_OK)
        code = wg__shape_want_rank(n, 1, 2);
    return code == WG_OK ? wg__shape_product_of(n, 0, 1, wg__shape_int(n, "transA", 0) != 0,
                                                wg__shape_int(n, "transB", 0) != 0)
                         : code;
}

static enum wg_code determinant(struct wg_shape_node *n)
{
    const struct wg_shape *data = wg__shape_in(n, 0);
    struct wg_dim side;
    wg__shape_pass_type(n, 0, 0);
    if (data == NULL)
        return WG_OK;
    if (data->rank < 2)
        return wg__shape_refuse(n, "'%.60s' has %zu dimensions, expected at least 2",
                                wg__shape_name(n, 0), data->rank);
    const enum wg_code code =
        wg__dim_agree(n, data->dims[data->rank - 1], data->dims[data->rank - 2], "sides", &side);
    struct wg_shape out = *data;
    out.rank -= 2;
    if (code == WG_OK)
        wg__shape_set(n, 0, &out);
    return code;
}

/* --- Einsum ----------------------------------------------------------------------------------- */

/* What each letter stands for; the axes of "..." broadcast. */
struct einsum {
    const char *at, *end;
    struct wg_dim letters[128];
    bool is_seen[128];
    unsigned counts[128];
    struct wg_shape ellipsis;
    bool has_ellipsis;
};

static bool is_at_dots(const struct einsum *e)
{
    return e->end - e->at >= 3 && memcmp(e->at, "...", 3) == 0;
}

static void skip_blanks(struct einsum *e)
{
    while (e->at < e->end && *e->at == ' ')
        e->at++;
}

/* The letters of a term up to ',' or '-'; false: no such notation. */
static bool term_letters(const struct einsum *e, size_t *letters, bool *has_dots)
{
    struct einsum ahead = *e;
    *letters = 0;
    *has_dots = false;
    for (skip_blanks(&ahead); ahead.at < ahead.end && *ahead.at != ',' && *ahead.at != '-';
         skip_blanks(&ahead)) {
        if (is_at_dots(&ahead)) {
            if (*has_dots)
                return false;
            *has_dots = true;
            ahead.at += 3;
            continue;
        }
        if (!isalpha((unsigned char)*ahead.at))
            return false;
        (*letters)++;
        ahead.at++;
    }
    return true;
}

static enum wg_code bind_letter(struct wg_shape_node *n, struct einsum *e, struct wg_dim dim)
{
    const unsigned char letter = (unsigned char)*e->at;
    if (!e->is_seen[letter]) {
        e->is_seen[letter] = true;
        e->letters[letter] = dim;
        return WG_OK;
    }
    if (e->letters[letter].value == 1) { /* 1 broadcasts */
        e->letters[letter] = dim;
        return WG_OK;
    }
    return dim.value == 1 ? WG_OK
                          : wg__dim_agree(n, e->letters[letter], dim, "axes with one letter",
                                          &e->letters[letter]);
}

static enum wg_code bind_term(struct wg_shape_node *n, struct einsum *e, size_t input, bool *fits)
{
    const struct wg_shape *shape = wg__shape_in(n, input);
    size_t letters = 0, axis = 0;
    bool has_dots = false;
    *fits = term_letters(e, &letters, &has_dots) && shape != NULL &&
            (has_dots ? letters <= shape->rank : letters == shape->rank);
    if (!*fits)
        return shape == NULL ? WG_OK
                             : wg__shape_refuse(n,
                                                "its equation doesn't fit '%.60s', which has "
                                                "%zu dimensions",
                                                wg__shape_name(n, input), shape->rank);
    for (skip_blanks(e); e->at < e->end && *e->at != ',' && *e->at != '-'; skip_blanks(e)) {
        enum wg_code code = WG_OK;
        if (is_at_dots(e)) {
            struct wg_shape dots = {.is_known = true};
            for (size_t i = 0; i < shape->rank - letters; i++)
                dots.dims[dots.rank++] = shape->dims[axis++];
            if (e->has_ellipsis)
                code = wg__shape_broadcast(n, &e->ellipsis, &dots, &e->ellipsis);
            else
                e->ellipsis = dots;
            e->has_ellipsis = true;
            e->at += 3;
        } else {
            e->counts[(unsigned char)*e->at]++;
            code = bind_letter(n, e, shape->dims[axis++]);
            e->at++;
        }
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

/* Without "->": the axes of "...", then the letters that are there once, by alphabet. */
static enum wg_code implicit_output(struct wg_shape_node *n, const struct einsum *e,
                                    struct wg_shape *out)
{
    enum wg_code code = WG_OK;
    *out = e->has_ellipsis ? e->ellipsis : wg__shape_of_rank(0);
    for (size_t letter = 0; code == WG_OK && letter < 128; letter++) {
        if (e->counts[letter] == 1)
            code = wg__shape_push(n, out, e->letters[letter]);
    }
    return code;
}

static enum wg_code told_output(struct wg_shape_node *n, struct einsum *e, struct wg_shape *out)
{
    enum wg_code code = WG_OK;
    *out = wg__shape_of_rank(0);
    for (skip_blanks(e); code == WG_OK && e->at < e->end; skip_blanks(e)) {
        const unsigned char letter = (unsigned char)*e->at;
        if (is_at_dots(e)) {
            for (size_t i = 0; code == WG_OK && i < e->ellipsis.rank; i++)
                code = wg__shape_push(n, out, e->ellipsis.dims[i]);
            e->at += 3;
            continue;
        }
        if (letter >= 128 || !e->is_seen[letter])
            return wg__shape_refuse(n, "its equation makes an axis that no input has");
        code = wg__shape_push(n, out, e->letters[letter]);
        e->at++;
    }
    return code;
}

static enum wg_code einsum(struct wg_shape_node *n)
{
    struct einsum e = {.at = NULL};
    struct wg_shape out;
    const struct wg_attribute *equation = wg__shape_attribute(n, "equation");
    wg__shape_pass_type(n, 0, 0);
    if (equation == NULL || equation->type != WG_ATTRIBUTE_STRING || equation->s == NULL)
        return WG_OK;
    e.at = equation->s;
    e.end = equation->s + equation->s_length;
    for (size_t i = 0; i < n->node->input_count; i++) {
        bool fits = false;
        enum wg_code code = bind_term(n, &e, i, &fits);
        if (code != WG_OK || !fits)
            return code;
        if (i + 1 == n->node->input_count)
            break;
        if (e.at == e.end || *e.at != ',')
            return wg__shape_refuse(n, "its equation has fewer terms than inputs");
        e.at++;
    }
    enum wg_code code = WG_OK;
    if (e.at == e.end) {
        code = implicit_output(n, &e, &out);
    } else {
        if (e.end - e.at < 2 || memcmp(e.at, "->", 2) != 0)
            return wg__shape_refuse(n, "its equation has more terms than inputs");
        e.at += 2;
        code = told_output(n, &e, &out);
    }
    if (code == WG_OK)
        wg__shape_set(n, 0, &out);
    return code;
}

static const struct wg_shape_op ops[] = {
    {"Det", determinant, NULL},
    {"Einsum", einsum, NULL},
    {"Gemm", gemm, NULL},
    {"MatMul", matmul, NULL},
    {"MatMulInteger", matmul_integer, NULL},
    {"QLinearMatMul", qlinear_matmul, NULL},
};

const struct wg_shape_family wg__shape_ops_matrix = {"", ops, sizeof ops / sizeof ops[0]};
