/* SPDX-License-Identifier: MIT
 *
 * Which requests get the same key: each rule, shapes that differ by little, and random shapes
 * against a canonical text.
 */
#include "schedule/merge.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/rng.h"
#include "support/check.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

static const int64_t image[] = {2, 3, 224, 224};
static const int64_t mask[] = {2, 10};

static const struct wg_merge_tensor two_inputs[] = {
    {.name = "image", .datatype = "FP32", .dims = image, .dim_count = 4},
    {.name = "mask", .datatype = "INT64", .dims = mask, .dim_count = 2},
};
static const struct wg_merge_tensor two_outputs[] = {{.name = "logits"}, {.name = "score"}};
static const struct wg_merge_parameter two_parameters[] = {{"beam", "int64:3"},
                                                           {"greedy", "bool:true"}};

static struct wg_merge_shape base_shape(void)
{
    return (struct wg_merge_shape){
        .model = "resnet",
        .inputs = two_inputs,
        .input_count = 2,
        .outputs = two_outputs,
        .output_count = 2,
        .parameters = two_parameters,
        .parameter_count = 2,
        .has_batch_dimension = true,
    };
}

static uint64_t key_and_rows(const struct wg_merge_shape *shape, uint64_t id, unsigned *rows)
{
    struct wg_error err = {0};
    uint64_t key = 0;
    if (wg__merge_key(shape, id, &key, rows, &err) != WG_OK)
        fail_msg("%s", err.text);
    return key;
}

static uint64_t key_of(const struct wg_merge_shape *shape, uint64_t id)
{
    unsigned rows = 0;
    return key_and_rows(shape, id, &rows);
}

static void requests_of_one_shape_share_a_key(void **state)
{
    (void)state;
    struct wg_merge_shape shape = base_shape();
    unsigned rows = 0;
    const uint64_t key = key_and_rows(&shape, 1, &rows);
    assert_int_equal(rows, 2);
    assert_true(key_of(&shape, 2) == key);
    /* Rows are not part of it. */
    const int64_t more_image[] = {5, 3, 224, 224};
    const int64_t more_mask[] = {5, 10};
    const struct wg_merge_tensor inputs[] = {
        {.name = "image", .datatype = "FP32", .dims = more_image, .dim_count = 4},
        {.name = "mask", .datatype = "INT64", .dims = more_mask, .dim_count = 2},
    };
    shape.inputs = inputs;
    assert_true(key_and_rows(&shape, 3, &rows) == key);
    assert_int_equal(rows, 5);
}

static void the_order_of_a_set_says_nothing(void **state)
{
    (void)state;
    const struct wg_merge_tensor inputs[] = {two_inputs[1], two_inputs[0]};
    const struct wg_merge_tensor outputs[] = {two_outputs[1], two_outputs[0]};
    const struct wg_merge_parameter parameters[] = {two_parameters[1], two_parameters[0]};
    struct wg_merge_shape shape = base_shape();
    const uint64_t key = key_of(&shape, 1);
    shape.inputs = inputs;
    shape.outputs = outputs;
    shape.parameters = parameters;
    assert_true(key_of(&shape, 2) == key);
}

static void id_priority_and_timeout_are_each_requests_own(void **state)
{
    (void)state;
    const struct wg_merge_parameter parameters[] = {
        {"timeout", "int64:700000"}, two_parameters[0], {"id", "string:a"},
        {"priority", "uint64:1"},    two_parameters[1],
    };
    struct wg_merge_shape shape = base_shape();
    const uint64_t key = key_of(&shape, 1);
    shape.parameters = parameters;
    shape.parameter_count = COUNT(parameters);
    assert_true(key_of(&shape, 2) == key);
    shape.parameter_count = 4; /* "greedy" is missing */
    assert_true(key_of(&shape, 2) != key);
}

/* Both give each request a key of its own, and the same one again. */
static void expect_no_merge(const struct wg_merge_shape *shape)
{
    const struct wg_merge_shape plain = base_shape();
    for (uint64_t id = 0; id < 100; id++) {
        assert_true(key_of(shape, id) == key_of(shape, id));
        assert_true(key_of(shape, id) != key_of(&plain, id));
        for (uint64_t other = 0; other < id; other++)
            assert_true(key_of(shape, id) != key_of(shape, other));
    }
}

static void sequences_never_merge(void **state)
{
    (void)state;
    const char *const names[] = {"sequence_id", "sequence_start", "sequence_end"};
    for (size_t i = 0; i < COUNT(names); i++) {
        const struct wg_merge_parameter parameters[] = {two_parameters[0], {names[i], "uint64:7"}};
        struct wg_merge_shape shape = base_shape();
        shape.parameters = parameters;
        expect_no_merge(&shape);
    }
}

static void a_model_without_a_batch_dimension_never_merges(void **state)
{
    (void)state;
    const struct wg_merge_tensor scalar = {.name = "x", .datatype = "FP32"};
    struct wg_merge_shape shape = base_shape();
    shape.has_batch_dimension = false;
    expect_no_merge(&shape);
    unsigned rows = 0;
    (void)key_and_rows(&shape, 1, &rows);
    assert_int_equal(rows, 1); /* whatever its first dimension is */
    shape.inputs = &scalar;
    shape.input_count = 1;
    (void)key_and_rows(&shape, 1, &rows);
    assert_int_equal(rows, 1);
}

/* -- Shapes that differ by little ----------------------------------------------------------- */

struct near {
    const char *model, *version;
    struct wg_merge_tensor inputs[2];
    struct wg_merge_tensor outputs[2];
    struct wg_merge_parameter parameters[2];
};

#define INPUT(n, t, ...)                                                                           \
    {.name = (n),                                                                                  \
     .datatype = (t),                                                                              \
     .dims = (const int64_t[]){1, __VA_ARGS__},                                                    \
     .dim_count = COUNT(((const int64_t[]){1, __VA_ARGS__}))}

static const struct near nears[] = {
    {"ab", "c", {INPUT("x", "FP32", 3)}, {{0}}, {{0}}},
    {"a", "bc", {INPUT("x", "FP32", 3)}, {{0}}, {{0}}},
    {"abc", NULL, {INPUT("x", "FP32", 3)}, {{0}}, {{0}}},
    {"abc", "1", {INPUT("x", "FP32", 3)}, {{0}}, {{0}}},
    {"", "abc", {INPUT("x", "FP32", 3)}, {{0}}, {{0}}},
    {"a", NULL, {INPUT("x", "FP32", 3)}, {{0}}, {{0}}},
    {"a", NULL, {INPUT("xF", "P32", 3)}, {{0}}, {{0}}},
    {"a", NULL, {INPUT("x", "FP16", 3)}, {{0}}, {{0}}},
    {"a", NULL, {INPUT("x", "fp32", 3)}, {{0}}, {{0}}},
    {"a", NULL, {INPUT("x", "FP32", 3, 1)}, {{0}}, {{0}}},
    {"a", NULL, {INPUT("x", "FP32", 1, 3)}, {{0}}, {{0}}},
    {"a", NULL, {INPUT("x", "FP32", 4)}, {{0}}, {{0}}},
    {"a", NULL, {INPUT("x", "FP32", 768)}, {{0}}, {{0}}}, /* 3 in the next byte */
    {"a", NULL, {INPUT("x", "FP32", 3), INPUT("y", "FP32", 3)}, {{0}}, {{0}}},
    {"a", NULL, {INPUT("x", "FP32", 3), INPUT("y", "FP32", 4)}, {{0}}, {{0}}},
    {"a", NULL, {INPUT("x", "FP32", 4), INPUT("y", "FP32", 3)}, {{0}}, {{0}}},
    {"a", NULL, {INPUT("x", "FP32", 3)}, {{.name = "y"}}, {{0}}},
    {"a", NULL, {INPUT("x", "FP32", 3)}, {{.name = "y"}, {.name = "z"}}, {{0}}},
    {"a", NULL, {INPUT("x", "FP32", 3)}, {{.name = "yz"}}, {{0}}},
    {"a", NULL, {INPUT("x", "FP32", 3)}, {{0}}, {{"y", ""}}},
    {"a", NULL, {INPUT("x", "FP32", 3)}, {{0}}, {{"y", "z"}}},
    {"a", NULL, {INPUT("x", "FP32", 3)}, {{0}}, {{"yz", ""}}},
    {"a", NULL, {INPUT("x", "FP32", 3)}, {{0}}, {{"y", "z"}, {"z", "y"}}},
    {"a", NULL, {INPUT("x", "FP32", 3)}, {{0}}, {{"y", "y"}, {"z", "z"}}},
    {"a", NULL, {INPUT("x", "FP32", 3)}, {{0}}, {{"Id", "1"}}}, /* not `id` */
    {"a", NULL, {INPUT("x", "FP32", 3)}, {{0}}, {{"y", "int64:1"}}},
    {"a", NULL, {INPUT("x", "FP32", 3)}, {{0}}, {{"y", "string:1"}}},
};

static uint64_t near_key(const struct near *near)
{
    const struct wg_merge_shape shape = {
        .model = near->model,
        .version = near->version,
        .inputs = near->inputs,
        .input_count = (size_t)(near->inputs[0].name != NULL) + (near->inputs[1].name != NULL),
        .outputs = near->outputs,
        .output_count = (size_t)(near->outputs[0].name != NULL) + (near->outputs[1].name != NULL),
        .parameters = near->parameters,
        .parameter_count =
            (size_t)(near->parameters[0].name != NULL) + (near->parameters[1].name != NULL),
        .has_batch_dimension = true,
    };
    return key_of(&shape, 1);
}

static void shapes_that_differ_by_little_have_keys_that_differ(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(nears); i++)
        for (size_t j = 0; j < i; j++)
            if (near_key(&nears[i]) == near_key(&nears[j]))
                fail_msg("shapes %zu and %zu share a key", j, i);
    struct near named = nears[5];
    named.version = ""; /* is none */
    assert_true(near_key(&named) == near_key(&nears[5]));
}

/* -- Random shapes -------------------------------------------------------------------------- */

enum { RANDOM = 3000, LIST_MAX = 3, MODEL_TEXT = 2 * LIST_MAX };

struct random_shape {
    char texts[MODEL_TEXT + 2][4];
    int64_t dims[LIST_MAX][3];
    struct wg_merge_tensor inputs[LIST_MAX];
    struct wg_merge_parameter parameters[LIST_MAX];
    struct wg_merge_shape shape;
    uint64_t key;
    struct wg_buffer canonical;
};

/* Of an alphabet so small that shapes meet. */
static const char *random_text(struct wg_rng *rng, char *text, size_t least)
{
    const size_t length = least + wg__rng_below(rng, 2);
    for (size_t i = 0; i < length; i++)
        text[i] = (char)('a' + (int)wg__rng_below(rng, 2));
    text[length] = '\0';
    return text;
}

static void random_shape(struct wg_rng *rng, struct random_shape *random)
{
    *random = (struct random_shape){0};
    const size_t inputs = 1 + wg__rng_below(rng, 2);
    const size_t parameters = wg__rng_below(rng, 3);
    const unsigned reversed = wg__rng_below(rng, 2); /* names rise or fall */
    for (size_t i = 0; i < inputs; i++) {
        random->inputs[i] = (struct wg_merge_tensor){
            .name = (i ^ reversed) == 0 ? "a" : "b",
            .datatype = random_text(rng, random->texts[i], 1),
            .dims = random->dims[i],
            .dim_count = 1 + wg__rng_below(rng, 3),
        };
        random->dims[i][0] = 4;
        random->dims[i][1] = wg__rng_below(rng, 2);
        random->dims[i][2] = wg__rng_below(rng, 2);
    }
    for (size_t i = 0; i < parameters; i++)
        random->parameters[i] = (struct wg_merge_parameter){
            .name = (i ^ reversed) == 0 ? "p" : "q",
            .value = random_text(rng, random->texts[LIST_MAX + i], 0),
        };
    random->shape = (struct wg_merge_shape){
        .model = random_text(rng, random->texts[MODEL_TEXT], 1),
        .version = random_text(rng, random->texts[MODEL_TEXT + 1], 0),
        .inputs = random->inputs,
        .input_count = inputs,
        .parameters = random->parameters,
        .parameter_count = parameters,
        .has_batch_dimension = true,
    };
}

static void write_canonical(struct random_shape *random)
{
    struct wg_buffer *out = &random->canonical;
    wg__buffer_init(out);
    wg__buffer_printf(out, "%s/%s", random->shape.model, random->shape.version);
    for (const char *name = "a"; name != NULL; name = *name == 'a' ? "b" : NULL)
        for (size_t i = 0; i < random->shape.input_count; i++) {
            const struct wg_merge_tensor *input = &random->inputs[i];
            if (strcmp(input->name, name) != 0)
                continue;
            wg__buffer_printf(out, " %s:%s", input->name, input->datatype);
            for (size_t d = 1; d < input->dim_count; d++)
                wg__buffer_printf(out, ",%d", (int)input->dims[d]);
        }
    for (const char *name = "p"; name != NULL; name = *name == 'p' ? "q" : NULL)
        for (size_t i = 0; i < random->shape.parameter_count; i++)
            if (strcmp(random->parameters[i].name, name) == 0)
                wg__buffer_printf(out, " %s=%s", name, random->parameters[i].value);
    assert_true(out->length > 0);
}

static int by_canonical(const void *a, const void *b)
{
    const struct random_shape *const *left = a;
    const struct random_shape *const *right = b;
    return strcmp((*left)->canonical.data, (*right)->canonical.data);
}

static int by_key(const void *a, const void *b)
{
    const struct random_shape *const *left = a;
    const struct random_shape *const *right = b;
    return ((*left)->key > (*right)->key) - ((*left)->key < (*right)->key);
}

/* Equal texts have equal keys, and there are as many keys as texts. */
static void keys_are_equal_exactly_where_shapes_are(void **state)
{
    (void)state;
    struct random_shape *shapes = calloc(RANDOM, sizeof *shapes);
    struct random_shape **order = calloc(RANDOM, sizeof *order);
    assert_non_null(shapes);
    assert_non_null(order);
    struct wg_rng rng;
    wg__rng_init(&rng, 80);
    for (size_t i = 0; i < RANDOM; i++) {
        random_shape(&rng, &shapes[i]);
        write_canonical(&shapes[i]);
        shapes[i].key = key_of(&shapes[i].shape, i);
        order[i] = &shapes[i];
    }
    size_t texts = 1;
    size_t keys = 1;
    qsort(order, RANDOM, sizeof(struct random_shape *), by_canonical);
    for (size_t i = 1; i < RANDOM; i++) {
        const bool is_same = by_canonical(&order[i - 1], &order[i]) == 0;
        assert_true((order[i - 1]->key == order[i]->key) == is_same);
        texts += !is_same;
    }
    qsort(order, RANDOM, sizeof(struct random_shape *), by_key);
    for (size_t i = 1; i < RANDOM; i++)
        keys += order[i - 1]->key != order[i]->key;
    assert_int_equal(keys, texts);
    assert_in_range(texts, RANDOM / 10, RANDOM - 100); /* many differ, and many meet */
    for (size_t i = 0; i < RANDOM; i++)
        wg__buffer_fini(&shapes[i].canonical);
    free((void *)order);
    free(shapes);
}

/* -- What cannot be ------------------------------------------------------------------------- */

static void expect_error(const struct wg_merge_shape *shape, const char *text)
{
    struct wg_error err = {0};
    uint64_t key = 42;
    unsigned rows = 42;
    assert_int_equal(wg__merge_key(shape, 1, &key, &rows, &err), WG_EINVAL);
    assert_string_equal(err.text, text);
    assert_true(key == 42 && rows == 42);
}

static void expect_input_error(size_t dim_count, int64_t rows, int64_t dim, const char *text)
{
    int64_t dims[WG_MERGE_DIMS_MAX + 1] = {rows, dim};
    const struct wg_merge_tensor input = {
        .name = "x", .datatype = "FP32", .dims = dims, .dim_count = dim_count};
    struct wg_merge_shape shape = base_shape();
    shape.inputs = &input;
    shape.input_count = 1;
    expect_error(&shape, text);
}

static void rejects_inputs_that_have_no_rows(void **state)
{
    (void)state;
    expect_input_error(0, 1, 1, "input 'x' has no dimension, the first counts rows");
    expect_input_error(2, 0, 1, "input 'x' has 0 rows, expected 1 to 4294967295");
    expect_input_error(2, 4294967296, 1, "input 'x' has 4294967296 rows, expected 1 to 4294967295");
    expect_input_error(2, -1, 1, "input 'x' has -1 as dimension 1, expected 0 or more");
    expect_input_error(2, 1, -7, "input 'x' has -7 as dimension 2, expected 0 or more");
    expect_input_error(17, 1, 1, "input 'x' has 17 dimensions, at most 16 are accepted");
    const int64_t three[] = {3, 10};
    const struct wg_merge_tensor inputs[] = {
        two_inputs[0], {.name = "mask", .datatype = "INT64", .dims = three, .dim_count = 2}};
    struct wg_merge_shape shape = base_shape();
    shape.inputs = inputs;
    expect_error(&shape, "input 'mask' has 3 rows, but input 'image' has 2");
    shape.input_count = 0;
    expect_error(&shape, "a request has no input, expected at least one");
}

static void rejects_names_given_twice(void **state)
{
    (void)state;
    const struct wg_merge_tensor inputs[] = {two_inputs[1], two_inputs[0], two_inputs[1]};
    const struct wg_merge_tensor outputs[] = {two_outputs[0], two_outputs[0]};
    const struct wg_merge_parameter parameters[] = {{"id", "a"}, {"beam", "1"}, {"id", "b"}};
    struct wg_merge_shape shape = base_shape();
    shape.inputs = inputs;
    shape.input_count = 3;
    expect_error(&shape, "input 'mask' is given twice");
    shape = base_shape();
    shape.outputs = outputs;
    expect_error(&shape, "requested output 'logits' is given twice");
    shape = base_shape();
    shape.parameters = parameters;
    shape.parameter_count = 3;
    expect_error(&shape, "parameter 'id' is given twice");
}

static void accepts_as_many_as_it_says_and_no_more(void **state)
{
    (void)state;
    char names[65][8];
    struct wg_merge_tensor inputs[65];
    struct wg_merge_parameter parameters[65];
    for (size_t i = 0; i < 65; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%02u", 64 - (unsigned)i);
        inputs[i] = two_inputs[0];
        inputs[i].name = names[i];
        parameters[i] = (struct wg_merge_parameter){names[i], "1"};
    }
    struct wg_merge_shape shape = base_shape();
    shape.inputs = shape.outputs = inputs;
    shape.parameters = parameters;
    shape.input_count = shape.output_count = shape.parameter_count = 64;
    wg__alloc_fail_from(0);
    (void)key_of(&shape, 1);
    assert_int_equal(wg__alloc_count(), 0);
    shape.parameter_count = 65;
    expect_error(&shape, "a request has 65 parameters, at most 64 are accepted");
    shape.output_count = 65;
    expect_error(&shape, "a request has 65 requested outputs, at most 64 are accepted");
    shape.input_count = 65;
    expect_error(&shape, "a request has 65 inputs, at most 64 are accepted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_of_one_shape_share_a_key),
        cmocka_unit_test(the_order_of_a_set_says_nothing),
        cmocka_unit_test(id_priority_and_timeout_are_each_requests_own),
        cmocka_unit_test(sequences_never_merge),
        cmocka_unit_test(a_model_without_a_batch_dimension_never_merges),
        cmocka_unit_test(shapes_that_differ_by_little_have_keys_that_differ),
        cmocka_unit_test(keys_are_equal_exactly_where_shapes_are),
        cmocka_unit_test(rejects_inputs_that_have_no_rows),
        cmocka_unit_test(rejects_names_given_twice),
        cmocka_unit_test(accepts_as_many_as_it_says_and_no_more),
    };
    return run_tests(tests);
}
