/* SPDX-License-Identifier: MIT
 *
 * Operators that work element by element: shapes pass through or broadcast.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include "model/shape_evaluate.h"
#include "model/shape_pass.h"

enum wg_code wg__shape_same(struct wg_shape_node *n)
{
    wg__shape_pass(n, 0, 0);
    return WG_OK;
}

enum wg_code wg__shape_same_bool(struct wg_shape_node *n)
{
    const struct wg_shape *shape = wg__shape_in(n, 0);
    wg__shape_set_type(n, 0, WG_ELEM_BOOL);
    if (shape != NULL)
        wg__shape_set(n, 0, shape);
    return WG_OK;
}

enum wg_code wg__shape_broadcast_all(struct wg_shape_node *n, size_t first, size_t count)
{
    const struct wg_shape *shape = wg__shape_in(n, first);
    if (shape == NULL)
        return WG_OK;
    struct wg_shape out = *shape;
    for (size_t i = first + 1; i < first + count; i++) {
        shape = wg__shape_in(n, i);
        if (shape == NULL)
            return WG_OK;
        const enum wg_code code = wg__shape_broadcast(n, &out, shape, &out);
        if (code != WG_OK)
            return code;
    }
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

/* Before opset 7 the second input was fitted to the first, whose shape it was to have. */
static enum wg_code binary_shape(struct wg_shape_node *n)
{
    if (n->opset >= 7 || n->opset == 0)
        return wg__shape_broadcast_all(n, 0, 2);
    const struct wg_shape *shape = wg__shape_in(n, 0);
    if (shape != NULL)
        wg__shape_set(n, 0, shape);
    return WG_OK;
}

static enum wg_code binary(struct wg_shape_node *n)
{
    wg__shape_pass_type(n, 0, 0);
    if (wg__shape_type_in(n, 0) == WG_ELEM_UNKNOWN)
        wg__shape_pass_type(n, 1, 0);
    return binary_shape(n);
}

static enum wg_code power(struct wg_shape_node *n)
{
    wg__shape_pass_type(n, 0, 0);
    return binary_shape(n);
}

static enum wg_code compare(struct wg_shape_node *n)
{
    wg__shape_set_type(n, 0, WG_ELEM_BOOL);
    return binary_shape(n);
}

static enum wg_code variadic(struct wg_shape_node *n)
{
    wg__shape_pass_type(n, 0, 0);
    return wg__shape_broadcast_all(n, 0, n->node->input_count);
}

static enum wg_code where(struct wg_shape_node *n)
{
    wg__shape_pass_type(n, 1, 0);
    if (wg__shape_type_in(n, 1) == WG_ELEM_UNKNOWN)
        wg__shape_pass_type(n, 2, 0);
    return wg__shape_broadcast_all(n, 0, 3);
}

static enum wg_code cast(struct wg_shape_node *n)
{
    const struct wg_attribute *to = wg__shape_attribute(n, "to");
    const struct wg_shape *shape = wg__shape_in(n, 0);
    if (to != NULL && to->type == WG_ATTRIBUTE_INT && to->i > 0 && to->i <= INT32_MAX)
        wg__shape_set_type(n, 0, (int)to->i);
    if (shape != NULL)
        wg__shape_set(n, 0, shape);
    return WG_OK;
}

/* The same bytes seen as another type: the shape stays where the elements are equally large. */
static enum wg_code bit_cast(struct wg_shape_node *n)
{
    const int64_t to = wg__shape_int(n, "to", 0);
    const struct wg_shape *shape = wg__shape_in(n, 0);
    if (to <= 0 || to > INT32_MAX)
        return WG_OK;
    wg__shape_set_type(n, 0, (int)to);
    if (shape != NULL && wg__elem_bits((int)to) == wg__elem_bits(wg__shape_type_in(n, 0)))
        wg__shape_set(n, 0, shape);
    return WG_OK;
}

static enum wg_code cast_like(struct wg_shape_node *n)
{
    const struct wg_shape *shape = wg__shape_in(n, 0);
    wg__shape_pass_type(n, 1, 0);
    if (shape != NULL)
        wg__shape_set(n, 0, shape);
    return WG_OK;
}

/* The mask was a tensor of the input's type before opset 10. */
static enum wg_code dropout(struct wg_shape_node *n)
{
    const struct wg_shape *shape = wg__shape_in(n, 0);
    wg__shape_pass(n, 0, 0);
    if (n->opset >= 10 || n->opset == 0)
        wg__shape_set_type(n, 1, WG_ELEM_BOOL);
    else
        wg__shape_pass_type(n, 0, 1);
    if (shape != NULL)
        wg__shape_set(n, 1, shape);
    return WG_OK;
}

static const struct wg_shape_op ops[] = {
    {"Abs", wg__shape_same, wg__evaluate_unary},
    {"Acos", wg__shape_same, NULL},
    {"Acosh", wg__shape_same, NULL},
    {"Add", binary, wg__evaluate_binary},
    {"And", compare, wg__evaluate_binary},
    {"Asin", wg__shape_same, NULL},
    {"Asinh", wg__shape_same, NULL},
    {"Atan", wg__shape_same, NULL},
    {"Atanh", wg__shape_same, NULL},
    {"BitCast", bit_cast, NULL},
    {"BitShift", binary, NULL},
    {"BitwiseAnd", binary, NULL},
    {"BitwiseNot", wg__shape_same, NULL},
    {"BitwiseOr", binary, NULL},
    {"BitwiseXor", binary, NULL},
    {"Cast", cast, wg__evaluate_unary},
    {"CastLike", cast_like, wg__evaluate_unary},
    {"Ceil", wg__shape_same, wg__evaluate_unary},
    {"Celu", wg__shape_same, NULL},
    {"Clip", wg__shape_same, NULL},
    {"Cos", wg__shape_same, NULL},
    {"Cosh", wg__shape_same, NULL},
    {"CumProd", wg__shape_same, NULL},
    {"CumSum", wg__shape_same, NULL},
    {"Div", binary, wg__evaluate_binary},
    {"Dropout", dropout, wg__evaluate_pass},
    {"Elu", wg__shape_same, NULL},
    {"Equal", compare, wg__evaluate_binary},
    {"Erf", wg__shape_same, NULL},
    {"Exp", wg__shape_same, NULL},
    {"Floor", wg__shape_same, wg__evaluate_unary},
    {"Gelu", wg__shape_same, NULL},
    {"Greater", compare, wg__evaluate_binary},
    {"GreaterOrEqual", compare, wg__evaluate_binary},
    {"HardSigmoid", wg__shape_same, NULL},
    {"HardSwish", wg__shape_same, NULL},
    {"Hardmax", wg__shape_same, NULL},
    {"Identity", wg__shape_same, wg__evaluate_pass},
    {"IsInf", wg__shape_same_bool, NULL},
    {"IsNaN", wg__shape_same_bool, NULL},
    {"LeakyRelu", wg__shape_same, NULL},
    {"Less", compare, wg__evaluate_binary},
    {"LessOrEqual", compare, wg__evaluate_binary},
    {"Log", wg__shape_same, NULL},
    {"LogSoftmax", wg__shape_same, NULL},
    {"Max", variadic, wg__evaluate_variadic},
    {"Mean", variadic, NULL},
    {"Min", variadic, wg__evaluate_variadic},
    {"Mish", wg__shape_same, NULL},
    {"Mod", binary, wg__evaluate_binary},
    {"Mul", binary, wg__evaluate_binary},
    {"Neg", wg__shape_same, wg__evaluate_unary},
    {"Not", wg__shape_same_bool, wg__evaluate_unary},
    {"Or", compare, wg__evaluate_binary},
    {"PRelu", wg__shape_same, NULL},
    {"Pow", power, NULL},
    {"Reciprocal", wg__shape_same, NULL},
    {"Relu", wg__shape_same, wg__evaluate_unary},
    {"Round", wg__shape_same, wg__evaluate_unary},
    {"Selu", wg__shape_same, NULL},
    {"Shrink", wg__shape_same, NULL},
    {"Sigmoid", wg__shape_same, NULL},
    {"Sign", wg__shape_same, NULL},
    {"Sin", wg__shape_same, NULL},
    {"Sinh", wg__shape_same, NULL},
    {"Softmax", wg__shape_same, NULL},
    {"Softplus", wg__shape_same, NULL},
    {"Softsign", wg__shape_same, NULL},
    {"Sqrt", wg__shape_same, wg__evaluate_unary},
    {"Sub", binary, wg__evaluate_binary},
    {"Sum", variadic, wg__evaluate_variadic},
    {"Swish", wg__shape_same, NULL},
    {"Tan", wg__shape_same, NULL},
    {"Tanh", wg__shape_same, NULL},
    {"ThresholdedRelu", wg__shape_same, NULL},
    {"Where", where, wg__evaluate_where},
    {"Xor", compare, wg__evaluate_binary},
};

const struct wg_shape_family wg__shape_ops_elementwise = {"", ops, sizeof ops / sizeof ops[0]};
