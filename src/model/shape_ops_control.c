/* SPDX-License-Identifier: MIT
 *
 * If, Loop and Scan: bodies are graphs, inferred where they stand.
 *
 * A branch that can't be taken may contradict itself: exporters guard a Squeeze by "is the
 * dimension 1?". So where the condition is known only its branch counts, and elsewhere one that
 * contradicts itself leaves the other one's outputs. What a loop carries may change its shape from
 * one iteration to the next, so a body sees its type alone.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include <string.h>

#include "model/shape_pass.h"

/* --- Types of any kind ------------------------------------------------------------------------ */

static void give(struct wg_tensor *to, const struct wg_tensor *from)
{
    to->elem_type = from->elem_type;
    to->shape = from->shape;
    to->held = from->held;
    to->values = from->values;
    to->value_count = from->value_count;
}

/* Two held kinds as one; NULL in `io` where they differ. */
static enum wg_code unite_held(struct wg_shape_node *n, size_t output,
                               const struct wg_tensor *other)
{
    struct wg_tensor *to = wg__shape_output(n, output);
    const struct wg_held *a = to->held, *b = other->held;
    to->held = NULL;
    if (a == NULL || b == NULL || a->kind != b->kind || a->elem_type != b->elem_type)
        return WG_OK;
    struct wg_shape shape = a->shape;
    wg__shape_union(&shape, &b->shape);
    return wg__shape_set_held(n, output, a->kind, a->elem_type, &shape);
}

static enum wg_code unite(struct wg_shape_node *n, size_t output, const struct wg_tensor *other)
{
    struct wg_tensor *to = wg__shape_output(n, output);
    to->values = NULL;
    to->value_count = 0;
    if (to->held != NULL || other->held != NULL) {
        to->elem_type = WG_ELEM_UNKNOWN;
        to->shape = (struct wg_shape){.is_known = false};
        return unite_held(n, output, other);
    }
    if (to->elem_type != other->elem_type)
        to->elem_type = WG_ELEM_UNKNOWN;
    wg__shape_union(&to->shape, &other->shape);
    return WG_OK;
}

/* A body's input gets what is known; its declared shape stands where that's nothing. */
static void feed(struct wg_shape_node *n, struct wg_graph *body, size_t input, int elem_type,
                 const struct wg_shape *shape, struct wg_held *held)
{
    if (input >= body->input_count)
        return;
    struct wg_tensor *to = &body->tensors[body->inputs[input]];
    const bool keeps_declared = n->caller == NULL;
    to->values = NULL;
    to->value_count = 0;
    if (elem_type != WG_ELEM_UNKNOWN || !keeps_declared)
        to->elem_type = elem_type;
    if (shape != NULL)
        to->shape = *shape;
    else if (!keeps_declared)
        to->shape = (struct wg_shape){.is_known = false};
    if (held != NULL || !keeps_declared)
        to->held = held;
}

static const struct wg_tensor *body_output(const struct wg_graph *body, size_t output)
{
    return output < body->output_count ? &body->tensors[body->outputs[output]] : NULL;
}

/* --- If --------------------------------------------------------------------------------------- */

/* `is_sound` false: the branch contradicts itself. */
static enum wg_code infer_branch(struct wg_shape_node *n, const char *name, struct wg_graph **out,
                                 bool *is_sound)
{
    struct wg_shape_run *run = n->run;
    struct wg_error *err = run->err;
    struct wg_error branch_error;
    *out = wg__shape_body(n, name);
    *is_sound = true;
    if (*out == NULL)
        return WG_OK;
    run->err = &branch_error;
    enum wg_code code = wg__shape_graph(run, *out, n->caller);
    run->err = err;
    if (code == WG_EDATA) {
        *is_sound = false;
        return WG_OK;
    }
    return code == WG_ENOMEM ? wg__shape_no_memory(n) : code;
}

static void give_all(const struct wg_shape_node *n, const struct wg_graph *body)
{
    for (size_t i = 0; i < n->node->output_count; i++) {
        struct wg_tensor *to = wg__shape_output(n, i);
        if (to != NULL && body_output(body, i) != NULL)
            give(to, body_output(body, i));
    }
}

static enum wg_code take(struct wg_shape_node *n, const char *name)
{
    struct wg_graph *body = wg__shape_body(n, name);
    if (body == NULL)
        return WG_OK;
    const enum wg_code code = wg__shape_graph(n->run, body, n->caller);
    if (code == WG_OK)
        give_all(n, body);
    return code;
}

static enum wg_code both_branches(struct wg_shape_node *n)
{
    struct wg_graph *bodies[2] = {NULL, NULL};
    bool is_sound[2] = {true, true};
    enum wg_code code = infer_branch(n, "then_branch", &bodies[0], &is_sound[0]);
    if (code == WG_OK)
        code = infer_branch(n, "else_branch", &bodies[1], &is_sound[1]);
    if (code != WG_OK || bodies[0] == NULL || bodies[1] == NULL || (!is_sound[0] && !is_sound[1]))
        return code;
    if (!is_sound[0] || !is_sound[1]) { /* whoever gets a result gets the sound one's */
        give_all(n, bodies[is_sound[0] ? 0 : 1]);
        return WG_OK;
    }
    for (size_t i = 0; code == WG_OK && i < n->node->output_count; i++) {
        struct wg_tensor *to = wg__shape_output(n, i);
        const struct wg_tensor *one = body_output(bodies[0], i), *other = body_output(bodies[1], i);
        if (to == NULL || one == NULL || other == NULL)
            continue;
        give(to, one);
        code = unite(n, i, other);
    }
    return code;
}

static enum wg_code branch(struct wg_shape_node *n)
{
    int64_t condition = 0;
    size_t count = 0;
    bool has = false;
    const enum wg_code code = wg__shape_int_values(n, 0, &condition, 1, &count, &has);
    if (code != WG_OK)
        return code;
    if (has && count == 1)
        return take(n, condition != 0 ? "then_branch" : "else_branch");
    return both_branches(n);
}

/* --- Loop ------------------------------------------------------------------------------------- */

/* A scan output: one element an iteration. */
static enum wg_code stack(struct wg_shape_node *n, size_t output, const struct wg_tensor *element,
                          struct wg_dim length, size_t axis)
{
    struct wg_shape out = {.is_known = true};
    wg__shape_set_type(n, output, element->elem_type);
    if (!element->shape.is_known)
        return WG_OK;
    for (size_t i = 0; i <= element->shape.rank; i++) {
        enum wg_code code = WG_OK;
        if (i == axis)
            code = wg__shape_push(n, &out, length);
        if (code == WG_OK && i < element->shape.rank)
            code = wg__shape_push(n, &out, element->shape.dims[i]);
        if (code != WG_OK)
            return code;
    }
    wg__shape_set(n, output, &out);
    return WG_OK;
}

/* True where a loop surely runs as often as it may: its condition is true, or handed through. */
static bool runs_through(const struct wg_shape_node *n, const struct wg_graph *body)
{
    const struct wg_tensor *condition = body_output(body, 0);
    if (condition == NULL || wg__shape_has(n, 1)) {
        const struct wg_tensor *first = wg__shape_input(n, 1);
        if (condition == NULL || first->value_count != 1 || first->values[0].i != 1)
            return false;
    }
    if (condition->value_count == 1)
        return condition->values[0].kind == WG_VALUE_INT && condition->values[0].i == 1;
    int32_t index = body->outputs[0];
    while (index >= 0 && body->tensors[index].producer >= 0) {
        const struct wg_node *node = &body->nodes[body->tensors[index].producer];
        if (strcmp(node->op, "Identity") != 0 || node->input_count != 1)
            return false;
        index = node->inputs[0];
    }
    return body->input_count > 1 && index == body->inputs[1];
}

static enum wg_code trip_count(const struct wg_shape_node *n, const struct wg_graph *body,
                               struct wg_dim *out)
{
    int64_t trips = 0;
    size_t count = 0;
    bool has = false;
    const struct wg_value *unused = NULL;
    size_t unused_count = 0;
    *out = wg__dim_unknown;
    enum wg_code code = wg__shape_int_values(n, 0, &trips, 1, &count, &has);
    if (code == WG_OK)
        code = wg__shape_values(n, 1, &unused, &unused_count); /* so that a constant is read */
    if (code == WG_OK && has && count == 1 && trips > 0 && runs_through(n, body))
        *out = wg__dim(trips);
    return code;
}

static enum wg_code loop(struct wg_shape_node *n)
{
    const struct wg_shape scalar = wg__shape_of_rank(0);
    struct wg_graph *body = wg__shape_body(n, "body");
    const size_t states = n->node->input_count > 2 ? n->node->input_count - 2 : 0;
    struct wg_dim trips;
    if (body == NULL)
        return WG_OK;
    feed(n, body, 0, WG_ELEM_INT64, &scalar, NULL);
    feed(n, body, 1, WG_ELEM_BOOL, &scalar, NULL);
    for (size_t i = 0; i < states; i++) {
        const struct wg_tensor *initial = wg__shape_input(n, 2 + i);
        feed(n, body, 2 + i, wg__shape_type_in(n, 2 + i), NULL,
             initial != NULL ? initial->held : NULL);
    }
    enum wg_code code = wg__shape_graph(n->run, body, n->caller);
    if (code == WG_OK)
        code = trip_count(n, body, &trips);
    for (size_t i = 0; code == WG_OK && i < n->node->output_count; i++) {
        const struct wg_tensor *made = body_output(body, i + 1);
        struct wg_tensor *to = wg__shape_output(n, i);
        if (to == NULL || made == NULL)
            continue;
        if (i >= states) {
            code = stack(n, i, made, trips, 0);
            continue;
        }
        give(to, made);
        to->values = NULL;
        to->value_count = 0;
        if (to->elem_type == WG_ELEM_UNKNOWN)
            wg__shape_pass_type(n, 2 + i, i);
    }
    return code;
}

/* --- Scan ------------------------------------------------------------------------------------- */

struct scan {
    struct wg_graph *body;
    size_t first; /* input: opset 8 had the sequences' lengths before the states */
    size_t states, inputs;
    size_t batches; /* leading axes that the body does not see: opset 8 had one */
    struct wg_dim batch, length;
};

static struct wg_shape without_axis(const struct wg_shape *shape, size_t axis)
{
    struct wg_shape out = *shape;
    for (size_t i = axis; i + 1 < out.rank; i++)
        out.dims[i] = out.dims[i + 1];
    out.rank--;
    return out;
}

static enum wg_code feed_state(struct wg_shape_node *n, struct scan *scan, size_t i)
{
    const struct wg_shape *given = wg__shape_in(n, scan->first + i);
    if (given == NULL || scan->batches == 0) {
        feed(n, scan->body, i, wg__shape_type_in(n, scan->first + i), given, NULL);
        return WG_OK;
    }
    if (given->rank == 0)
        return wg__shape_refuse(n, "'%.40s' has no batch axis", wg__shape_name(n, i + 1));
    const struct wg_shape shape = without_axis(given, 0);
    scan->batch = given->dims[0];
    feed(n, scan->body, i, wg__shape_type_in(n, scan->first + i), &shape, NULL);
    return WG_OK;
}

static enum wg_code feed_sequence(struct wg_shape_node *n, struct scan *scan, size_t i)
{
    size_t count = 0, axis = scan->batches;
    const size_t input = scan->first + scan->states + i;
    const struct wg_shape *given = wg__shape_in(n, input);
    const int64_t *axes = wg__shape_ints(n, "scan_input_axes", &count);
    if (given == NULL) {
        feed(n, scan->body, scan->states + i, wg__shape_type_in(n, input), NULL, NULL);
        return WG_OK;
    }
    enum wg_code code = wg__shape_axis(n, scan->batches == 0 && i < count ? axes[i] : (int64_t)axis,
                                       given->rank, &axis);
    if (code == WG_OK)
        code = wg__dim_agree(n, scan->length, given->dims[axis], "lengths of its sequences",
                             &scan->length);
    if (code != WG_OK)
        return code;
    struct wg_shape shape = without_axis(given, axis);
    if (scan->batches != 0) {
        scan->batch = given->dims[0];
        shape = without_axis(&shape, 0);
    }
    feed(n, scan->body, scan->states + i, wg__shape_type_in(n, input), &shape, NULL);
    return WG_OK;
}

static enum wg_code set_scan_output(struct wg_shape_node *n, const struct scan *scan, size_t i)
{
    size_t count = 0, axis = 0;
    enum wg_code code = WG_OK;
    const struct wg_tensor *made = body_output(scan->body, i);
    struct wg_tensor *to = wg__shape_output(n, i);
    const int64_t *axes = wg__shape_ints(n, "scan_output_axes", &count);
    if (made == NULL || to == NULL)
        return WG_OK;
    if (i < scan->states) {
        give(to, made);
        to->values = NULL;
        to->value_count = 0;
    } else {
        const size_t k = i - scan->states;
        if (made->shape.is_known && scan->batches == 0 && k < count)
            code = wg__shape_axis(n, axes[k], made->shape.rank + 1, &axis);
        if (code == WG_OK)
            code = stack(n, i, made, scan->length, axis);
    }
    if (code != WG_OK || scan->batches == 0 || !to->shape.is_known)
        return code;
    struct wg_tensor inner = *to;
    return stack(n, i, &inner, scan->batch, 0);
}

static enum wg_code scan(struct wg_shape_node *n)
{
    struct scan scan = {
        .body = wg__shape_body(n, "body"), .batch = wg__dim_unknown, .length = wg__dim_unknown};
    const int64_t inputs = wg__shape_int(n, "num_scan_inputs", 0);
    if (n->opset == 8)
        scan.first = scan.batches = 1;
    if (scan.body == NULL || inputs < 1 || (uint64_t)inputs + scan.first > n->node->input_count)
        return WG_OK;
    scan.inputs = (size_t)inputs;
    scan.states = n->node->input_count - scan.first - scan.inputs;
    enum wg_code code = WG_OK;
    for (size_t i = 0; code == WG_OK && i < scan.states; i++)
        code = feed_state(n, &scan, i);
    for (size_t i = 0; code == WG_OK && i < scan.inputs; i++)
        code = feed_sequence(n, &scan, i);
    if (code == WG_OK)
        code = wg__shape_graph(n->run, scan.body, n->caller);
    for (size_t i = 0; code == WG_OK && i < n->node->output_count; i++)
        code = set_scan_output(n, &scan, i);
    return code;
}

static const struct wg_shape_op ops[] = {
    {"If", branch, NULL},
    {"Loop", loop, NULL},
    {"Scan", scan, NULL},
};

const struct wg_shape_family wg__shape_ops_control = {"", ops, sizeof ops / sizeof ops[0]};
