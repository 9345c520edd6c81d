/* SPDX-License-Identifier: MIT
 *
 * Arithmetic on values, element by element.
 *
 * Owns: see the header.    Threads: one thread at a time.
 */
#include "model/shape_evaluate.h"

#include <math.h>
#include <string.h>

enum operation {
    OP_ABS,
    OP_CAST,
    OP_CEIL,
    OP_FLOOR,
    OP_NEG,
    OP_NOT,
    OP_RELU,
    OP_ROUND,
    OP_SQRT,
    OP_ADD,
    OP_AND,
    OP_DIV,
    OP_EQUAL,
    OP_GREATER,
    OP_GREATER_OR_EQUAL,
    OP_LESS,
    OP_LESS_OR_EQUAL,
    OP_MAX,
    OP_MIN,
    OP_MOD,
    OP_MUL,
    OP_OR,
    OP_SUB,
    OP_XOR,
    OP_NONE
};

static const struct {
    const char *name;
    enum operation operation;
} operations[] = {
    {"Abs", OP_ABS},
    {"Cast", OP_CAST},
    {"CastLike", OP_CAST},
    {"Ceil", OP_CEIL},
    {"Floor", OP_FLOOR},
    {"Neg", OP_NEG},
    {"Not", OP_NOT},
    {"Relu", OP_RELU},
    {"Round", OP_ROUND},
    {"Sqrt", OP_SQRT},
    {"Add", OP_ADD},
    {"Sum", OP_ADD},
    {"And", OP_AND},
    {"Div", OP_DIV},
    {"Equal", OP_EQUAL},
    {"Greater", OP_GREATER},
    {"GreaterOrEqual", OP_GREATER_OR_EQUAL},
    {"Less", OP_LESS},
    {"LessOrEqual", OP_LESS_OR_EQUAL},
    {"Max", OP_MAX},
    {"Min", OP_MIN},
    {"Mod", OP_MOD},
    {"Mul", OP_MUL},
    {"Or", OP_OR},
    {"Sub", OP_SUB},
    {"Xor", OP_XOR},
};

static enum operation operation_of(const struct wg_shape_node *n)
{
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        if (strcmp(operations[i].name, n->node->op) == 0)
            return operations[i].operation;
    }
    return OP_NONE;
}

static const struct wg_value unknown = {.kind = WG_VALUE_UNKNOWN};

static struct wg_value of_int(int64_t value)
{
    return (struct wg_value){.kind = WG_VALUE_INT, .i = value};
}

/* A whole number as an element of a type; unknown where the type can't hold it. */
static struct wg_value fit_int(int64_t value, int elem_type)
{
    static const struct {
        int elem_type;
        int64_t least, most;
    } ranges[] = {
        {WG_ELEM_UINT8, 0, UINT8_MAX},
        {WG_ELEM_INT8, INT8_MIN, INT8_MAX},
        {WG_ELEM_UINT16, 0, UINT16_MAX},
        {WG_ELEM_INT16, INT16_MIN, INT16_MAX},
        {WG_ELEM_INT32, INT32_MIN, INT32_MAX},
        {WG_ELEM_INT64, INT64_MIN, INT64_MAX},
        {WG_ELEM_BOOL, 0, 1},
        {WG_ELEM_UINT32, 0, UINT32_MAX},
        {WG_ELEM_UINT64, 0, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (ranges[i].elem_type == elem_type)
            return value >= ranges[i].least && value <= ranges[i].most ? of_int(value) : unknown;
    }
    return unknown;
}

static struct wg_value fit_real(double value, int elem_type)
{
    if (elem_type == WG_ELEM_FLOAT)
        value = (double)(float)value;
    else if (elem_type != WG_ELEM_DOUBLE)
        return unknown;
    return (struct wg_value){.kind = WG_VALUE_REAL, .real = value};
}

static struct wg_value cast(struct wg_value value, int elem_type)
{
    const bool to_int = wg__type_is_int(elem_type);
    switch (value.kind) {
    case WG_VALUE_NAMED: /* a dimension fits into 64 bits, and into 32 where memory holds it */
        return elem_type == WG_ELEM_INT64 || elem_type == WG_ELEM_INT32 ? value : unknown;
    case WG_VALUE_INT:
        if (elem_type == WG_ELEM_BOOL)
            return of_int(value.i != 0);
        return to_int ? fit_int(value.i, elem_type) : fit_real((double)value.i, elem_type);
    case WG_VALUE_REAL:
        if (elem_type == WG_ELEM_BOOL)
            return of_int(value.real != 0);
        if (!to_int)
            return fit_real(value.real, elem_type);
        return fabs(value.real) < 0x1p62 ? fit_int((int64_t)value.real, elem_type) : unknown;
    default:
        return unknown;
    }
}

static struct wg_value unary_int(enum operation op, int64_t value, int elem_type)
{
    switch (op) {
    case OP_ABS:
        return value != INT64_MIN ? fit_int(value < 0 ? -value : value, elem_type) : unknown;
    case OP_NEG:
        return value != INT64_MIN ? fit_int(-value, elem_type) : unknown;
    case OP_NOT:
        return of_int(value == 0);
    case OP_RELU:
        return of_int(value > 0 ? value : 0);
    default:
        return unknown;
    }
}

static struct wg_value unary_real(enum operation op, double value, int elem_type)
{
    switch (op) {
    case OP_ABS:
        return fit_real(fabs(value), elem_type);
    case OP_CEIL:
        return fit_real(ceil(value), elem_type);
    case OP_FLOOR:
        return fit_real(floor(value), elem_type);
    case OP_NEG:
        return fit_real(-value, elem_type);
    case OP_RELU:
        return fit_real(value > 0 ? value : 0, elem_type);
    case OP_ROUND:
        return fit_real(rint(value), elem_type);
    case OP_SQRT:
        return fit_real(sqrt(value), elem_type);
    default:
        return unknown;
    }
}

static struct wg_value unary(enum operation op, struct wg_value value, int elem_type)
{
    if (op == OP_CAST)
        return cast(value, elem_type);
    if (value.kind == WG_VALUE_INT)
        return unary_int(op, value.i, elem_type);
    if (value.kind == WG_VALUE_REAL)
        return unary_real(op, value.real, elem_type);
    return unknown;
}

/* Quotients are rounded towards zero by some runtimes, down by others: known where both agree. */
static struct wg_value divide(int64_t a, int64_t b, int elem_type)
{
    if (b == 0 || (a == INT64_MIN && b == -1))
        return unknown;
    if ((a < 0) != (b < 0) && a % b != 0)
        return unknown;
    return fit_int(a / b, elem_type);
}

static struct wg_value modulo(int64_t a, int64_t b, int elem_type)
{
    return a >= 0 && b > 0 ? fit_int(a % b, elem_type) : unknown;
}

static struct wg_value arithmetic_int(enum operation op, int64_t a, int64_t b, int elem_type)
{
    int64_t result = 0;
    switch (op) {
    case OP_ADD:
        return __builtin_add_overflow(a, b, &result) ? unknown : fit_int(result, elem_type);
    case OP_SUB:
        return __builtin_sub_overflow(a, b, &result) ? unknown : fit_int(result, elem_type);
    case OP_MUL:
        return __builtin_mul_overflow(a, b, &result) ? unknown : fit_int(result, elem_type);
    case OP_DIV:
        return divide(a, b, elem_type);
    case OP_MOD:
        return modulo(a, b, elem_type);
    case OP_MAX:
        return of_int(a > b ? a : b);
    case OP_MIN:
        return of_int(a < b ? a : b);
    default:
        return unknown;
    }
}

static struct wg_value arithmetic_real(enum operation op, double a, double b, int elem_type)
{
    switch (op) {
    case OP_ADD:
        return fit_real(a + b, elem_type);
    case OP_SUB:
        return fit_real(a - b, elem_type);
    case OP_MUL:
        return fit_real(a * b, elem_type);
    case OP_DIV:
        return fit_real(a / b, elem_type);
    case OP_MAX:
        return fit_real(a > b ? a : b, elem_type);
    case OP_MIN:
        return fit_real(a < b ? a : b, elem_type);
    default:
        return unknown;
    }
}

/* True where the operation is a comparison or logic; `order` is the sign of a - b. */
static bool decide(enum operation op, int order, bool a, bool b, struct wg_value *out)
{
    switch (op) {
    case OP_EQUAL:
        *out = of_int(order == 0);
        return true;
    case OP_GREATER:
        *out = of_int(order > 0);
        return true;
    case OP_GREATER_OR_EQUAL:
        *out = of_int(order >= 0);
        return true;
    case OP_LESS:
        *out = of_int(order < 0);
        return true;
    case OP_LESS_OR_EQUAL:
        *out = of_int(order <= 0);
        return true;
    case OP_AND:
        *out = of_int(a && b);
        return true;
    case OP_OR:
        *out = of_int(a || b);
        return true;
    case OP_XOR:
        *out = of_int(a != b);
        return true;
    default:
        return false;
    }
}

static bool is_int(struct wg_value value, int64_t wanted)
{
    return value.kind == WG_VALUE_INT && value.i == wanted;
}

/* What is known of a result when an operand is a name: it stays what it is by 1 and 0. */
/* By a neutral element on the right: x * 1, x / 1, x + 0, x - 0. */
static bool is_neutral(enum operation op, struct wg_value value)
{
    return is_int(value, 1) ? op == OP_MUL || op == OP_DIV
                            : is_int(value, 0) && (op == OP_ADD || op == OP_SUB);
}

static bool is_negative(struct wg_value value)
{
    return value.kind == WG_VALUE_INT && value.i < 0;
}

/* Two names: equal for sure where they're the same, else not known. */
static struct wg_value between_names(enum operation op, struct wg_value a, struct wg_value b)
{
    if (strcmp(a.name, b.name) != 0)
        return unknown;
    if (op == OP_EQUAL)
        return of_int(1);
    return op == OP_MAX || op == OP_MIN ? a : unknown;
}

static struct wg_value with_name(enum operation op, struct wg_value a, struct wg_value b)
{
    if (op == OP_MUL && (is_int(a, 0) || is_int(b, 0)))
        return of_int(0);
    if (is_neutral(op, b))
        return a;
    if ((op == OP_MUL || op == OP_ADD) && is_neutral(op, a))
        return b;
    if (a.kind == WG_VALUE_NAMED && b.kind == WG_VALUE_NAMED)
        return between_names(op, a, b);
    /* a dimension's size is no negative number */
    if (op == OP_EQUAL && ((a.kind == WG_VALUE_NAMED && is_negative(b)) ||
                           (b.kind == WG_VALUE_NAMED && is_negative(a))))
        return of_int(0);
    return unknown;
}

static struct wg_value binary(enum operation op, struct wg_value a, struct wg_value b,
                              int elem_type)
{
    struct wg_value out = unknown;
    if (a.kind == WG_VALUE_INT && b.kind == WG_VALUE_INT) {
        if (!decide(op, (a.i > b.i) - (a.i < b.i), a.i != 0, b.i != 0, &out))
            out = arithmetic_int(op, a.i, b.i, elem_type);
        return out;
    }
    if (a.kind == WG_VALUE_REAL && b.kind == WG_VALUE_REAL) {
        if (isnan(a.real) || isnan(b.real))
            return unknown;
        if (!decide(op, (a.real > b.real) - (a.real < b.real), false, false, &out))
            out = arithmetic_real(op, a.real, b.real, elem_type);
        return out;
    }
    return with_name(op, a, b);
}

/* --- Over tensors ----------------------------------------------------------------------------- */

enum wg_code wg__evaluate_unary(struct wg_shape_node *n)
{
    const struct wg_value *values = NULL;
    struct wg_value *made = NULL;
    size_t count = 0;
    const struct wg_tensor *out = wg__shape_output(n, 0);
    const enum operation op = operation_of(n);
    enum wg_code code = wg__shape_values(n, 0, &values, &count);
    if (code != WG_OK || values == NULL || out == NULL)
        return code;
    code = wg__shape_new_values(n, count, &made);
    if (code != WG_OK || made == NULL)
        return code;
    for (size_t i = 0; i < count; i++)
        made[i] = unary(op, values[i], out->elem_type);
    wg__shape_set_values(n, 0, made, count);
    return WG_OK;
}

/* An operand's place in a walk over a broadcast shape. */
struct operand {
    const struct wg_value *values;
    size_t strides[WG_DIMS_MAX]; /* 0 along axes that are repeated */
};

/* False where an operand's value or shape isn't known. */
static bool set_operand(const struct wg_shape_node *n, size_t input, const struct wg_shape *out,
                        struct operand *operand, enum wg_code *code)
{
    size_t count = 0, expected = 0;
    const struct wg_shape *shape = wg__shape_in(n, input);
    *code = wg__shape_values(n, input, &operand->values, &count);
    if (*code != WG_OK || operand->values == NULL || shape == NULL || shape->rank > out->rank ||
        !wg__shape_count(shape, WG_SHAPE_VALUES_MAX, &expected) || expected != count)
        return false;
    size_t stride = 1;
    memset(operand->strides, 0, sizeof operand->strides);
    for (size_t i = 0; i < shape->rank; i++) {
        const size_t dim = (size_t)shape->dims[shape->rank - 1 - i].value;
        operand->strides[out->rank - 1 - i] = dim != 1 ? stride : 0;
        stride *= dim;
    }
    return true;
}

static size_t place(const struct operand *operand, const struct wg_shape *shape, size_t index)
{
    size_t at = 0;
    for (size_t i = shape->rank; i-- > 0;) {
        const size_t dim = (size_t)shape->dims[i].value;
        at += index % dim * operand->strides[i];
        index /= dim;
    }
    return at;
}

static enum wg_code start(struct wg_shape_node *n, const struct wg_tensor **out,
                          struct wg_value **made, size_t *count)
{
    *out = wg__shape_output(n, 0);
    *made = NULL;
    if (*out == NULL || !wg__shape_count(&(*out)->shape, WG_SHAPE_VALUES_MAX, count))
        return WG_OK;
    return wg__shape_new_values(n, *count, made);
}

static enum wg_code fold(struct wg_shape_node *n, enum operation op)
{
    const struct wg_tensor *out = NULL;
    struct wg_value *made = NULL;
    size_t count = 0;
    struct operand operand;
    enum wg_code code = WG_OK;
    const struct wg_value *first = NULL;
    /* asked for first: most nodes end here, before anything is allocated */
    code = wg__shape_values(n, 0, &first, &count);
    if (code != WG_OK || first == NULL)
        return code;
    for (size_t i = 1; i < n->node->input_count; i++) {
        code = wg__shape_values(n, i, &first, &count);
        if (code != WG_OK || first == NULL)
            return code;
    }
    code = start(n, &out, &made, &count);
    if (code != WG_OK || made == NULL)
        return code;
    for (size_t i = 0; i < n->node->input_count; i++) {
        if (!set_operand(n, i, &out->shape, &operand, &code))
            return code;
        for (size_t j = 0; j < count; j++) {
            const struct wg_value value = operand.values[place(&operand, &out->shape, j)];
            made[j] = i == 0 ? value : binary(op, made[j], value, out->elem_type);
        }
    }
    wg__shape_set_values(n, 0, made, count);
    return WG_OK;
}

enum wg_code wg__evaluate_binary(struct wg_shape_node *n)
{
    const enum operation op = operation_of(n);
    if (n->node->input_count != 2 || n->opset < 7 ||
        (op == OP_MOD && wg__shape_int(n, "fmod", 0) != 0))
        return WG_OK;
    return fold(n, op);
}

enum wg_code wg__evaluate_variadic(struct wg_shape_node *n)
{
    return fold(n, operation_of(n));
}

enum wg_code wg__evaluate_where(struct wg_shape_node *n)
{
    const struct wg_tensor *out = NULL;
    struct wg_value *made = NULL;
    size_t count = 0;
    struct operand operands[3];
    enum wg_code code = WG_OK;
    const struct wg_value *condition = NULL;
    code = wg__shape_values(n, 0, &condition, &count);
    if (code != WG_OK || condition == NULL)
        return code;
    out = wg__shape_output(n, 0);
    if (out == NULL || !wg__shape_count(&out->shape, WG_SHAPE_VALUES_MAX, &count))
        return WG_OK;
    for (size_t i = 0; i < 3; i++) {
        if (!set_operand(n, i, &out->shape, &operands[i], &code))
            return code;
    }
    code = start(n, &out, &made, &count);
    if (code != WG_OK || made == NULL)
        return code;
    for (size_t j = 0; j < count; j++) {
        const struct wg_value chosen = operands[0].values[place(&operands[0], &out->shape, j)];
        const size_t from = chosen.kind == WG_VALUE_INT && chosen.i != 0 ? 1 : 2;
        if (chosen.kind == WG_VALUE_INT)
            made[j] = operands[from].values[place(&operands[from], &out->shape, j)];
    }
    wg__shape_set_values(n, 0, made, count);
    return WG_OK;
}
