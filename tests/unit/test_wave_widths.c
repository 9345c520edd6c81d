/* SPDX-License-Identifier: MIT
 *
 * Widths that a file gives, by every kind of name, and what is refused.
 */
#include "cli/wave_widths.h"

#include <string.h>

#include "base/alloc.h"
#include "support/check.h"
#include "support/scratch.h"

static const struct wg_channel_part parts[] = {{0, 1}, {1, 1}, {2, 1}, {1, 49}};

#define SIDE(first, count) {.parts = parts + (first), .part_count = (count)}

static struct wg_layer layers[] = {
    {.name = "/stem/Conv", .kind = WG_LAYER_CONV, .in = SIDE(0, 1), .out = SIDE(1, 1)},
    {.name = "/stem/Relu", .kind = WG_LAYER_BYTES, .out = SIDE(1, 1)},
    {.name = "/layer1/layer1.0/conv1/Conv", .kind = WG_LAYER_CONV, .out = SIDE(2, 1)},
    {.name = "/layer1/layer1.0/down/down.0/Conv", .kind = WG_LAYER_CONV, .out = SIDE(1, 1)},
    {.name = "flat", .kind = WG_LAYER_GEMM, .out = SIDE(3, 1)},
};
static struct wg_width widths[] = {
    {"x", 3, 1, true}, {"stem_out", 64, 1, false}, {"conv1_out", 32, 1, false}};
static const struct wg_network network = {
    .layers = layers, .layer_count = 5, .widths = widths, .width_count = 3};

static enum wg_code read_text(const char *text, uint32_t *channels, struct wg_error *err)
{
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "widths");
    scratch_write(path, text, strlen(text));
    const enum wg_code code = wg__wave_widths_read(&network, path, channels, err);
    scratch_close(&scratch);
    return code;
}

static void check_read(const char *text, uint32_t stem, uint32_t conv1)
{
    uint32_t channels[3];
    struct wg_error err = {.text = ""};
    if (read_text(text, channels, &err) != WG_OK)
        fail_msg("%s: %s", text, err.text);
    assert_int_equal(channels[0], 3);
    assert_int_equal(channels[1], stem);
    assert_int_equal(channels[2], conv1);
}

static void reads_names_of_widths_layers_and_modules(void **state)
{
    (void)state;
    check_read("name,channels\n", 64, 32);
    check_read("channels,name,note\n60,stem_out,a\n", 60, 32);
    check_read("name,channels\n/stem/Conv,59\nlayer1.0.conv1,7\n", 59, 7);
    check_read("name,channels\nlayer1.0.down.0,58\nstem,58\n", 58, 32);
    check_read("{\"stem\": 57, \"conv1_out\": 31}", 57, 31);
    check_read("\xef\xbb\xbf {\"schema\": \"wattgov.wave.plan/1\", \"widths\": "
               "[{\"name\": \"stem_out\", \"after\": 40}]}",
               40, 32);
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "empty"},
        {"name\nstem\n", "channels"},
        {"name,channels\nnothing,3\n", ":2: 'nothing' is neither"},
        {"name,channels\nflat,3\n", "'flat' is neither"},
        {"name,channels\n/stem/Relu,3\n", "neither"},
        {"name,channels\nstem,0\n", "expected a whole number from 1 to 16777216"},
        {"name,channels\nstem,16777217\n", "expected a whole number from 1 to 16777216"},
        {"name,channels\nstem,-1\n", "'stem' has -1 channels, expected a whole number from 1"},
        {"name,channels\nstem,1.5\n", ":2: 'stem' has 1.5 channels, expected a whole number"},
        {"name,channels\nx,2\n", "fixed at 3"},
        {"name,channels\nstem,60\nlayer1.0.down.0,61\n", ":3: 'layer1.0.down.0' has 61"},
        {"{\"stem\": 1.5}", "whole number"},
        {"{\"stem\": [60]}", "whole number"},
        {"{\"schema\": \"wattgov.wave.analyze/1\", \"widths\": []}", "expected a plan"},
        {"{\"schema\": \"wattgov.wave.plan/1\"}", "expected a plan"},
        {"{\"stem\": -1}", "whole number"},
        {"{\"stem\": \"60\"}", "whole number"},
        {"{\"stem\": 60, \"stem\": 60}", "duplicate"},
        {"{\"stem\": 60", "near end of file"},
        {"{\"schema\": \"wattgov.wave.plan/1\", \"widths\": [{\"after\": 40}]}", "whole number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t channels[3];
        struct wg_error err = {.text = ""};
        const enum wg_code code = read_text(cases[i].text, channels, &err);
        if (code != WG_EDATA || strstr(err.text, cases[i].part) == NULL)
            fail_msg("'%s' gives %d '%s', which lacks '%s'", cases[i].text, (int)code, err.text,
                     cases[i].part);
    }
    uint32_t channels[3];
    struct wg_error err;
    assert_int_equal(wg__wave_widths_read(&network, "/nonexistent/file", channels, &err),
                     WG_ENOENT);
}

static enum wg_code read_importance(const char *text, double *importance, struct wg_error *err)
{
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "importance");
    scratch_write(path, text, strlen(text));
    const enum wg_code code = wg__wave_importance_read(&network, path, importance, err);
    scratch_close(&scratch);
    return code;
}

static void reads_how_much_widths_count(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double x, stem, conv1;
    } cases[] = {
        {"name,importance\n", 1, 1, 1},
        {"importance,name\n2.5,stem\n0,x\n", 0, 2.5, 1},
        {"name,importance\nstem,2\nlayer1.0.down.0,6\nstem_out,7\n", 1, 5, 1}, /* the mean */
        {"{\"stem\": 2, \"layer1.0.conv1\": [1, 2.5, 4]}", 1, 2, 2.5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double importance[3];
        struct wg_error err = {.text = ""};
        if (read_importance(cases[i].text, importance, &err) != WG_OK)
            fail_msg("%s: %s", cases[i].text, err.text);
        check_close(importance[0], cases[i].x, 1e-12);
        check_close(importance[1], cases[i].stem, 1e-12);
        check_close(importance[2], cases[i].conv1, 1e-12);
    }
}

static void refuses_what_is_no_importance(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"name,channels\nstem,3\n", "importance"},
        {"name,importance\nnothing,3\n", ":2: 'nothing' is neither"},
        {"name,importance\nstem,-1\n", ":2: 'stem' has the importance -1, expected 0 to 1e+09"},
        {"name,importance\nstem,nan\n", ":2: column 'importance': 'nan' is not a number"},
        {"name,importance\nstem,2e9\n", "expected 0 to 1e+09"},
        {"name,importance\nx,0\nstem,0\nconv1_out,0\n", "every width has the importance 0"},
        {"{\"stem\": []}", "'stem': expected a number from 0 on, or a list of such"},
        {"{\"stem\": [1, \"a\"]}", "or a list of such"},
        {"{\"stem\": [1, -1]}", "or a list of such"},
        {"{\"stem\": null}", "or a list of such"},
        {"{\"schema\": \"wattgov.wave.plan/1\", \"widths\": []}", "a number for each name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double importance[3];
        struct wg_error err = {.text = ""};
        const enum wg_code code = read_importance(cases[i].text, importance, &err);
        if (code != WG_EDATA || strstr(err.text, cases[i].part) == NULL)
            fail_msg("'%s' gives %d '%s', which lacks '%s'", cases[i].text, (int)code, err.text,
                     cases[i].part);
    }
}

static void survives_each_failing_allocation(void **state)
{
    (void)state;
    static const char text[] = "name,channels\nstem,60\n";
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "widths");
    scratch_write(path, text, strlen(text));
    enum wg_code code = WG_ENOMEM;
    for (size_t nth = 1; code != WG_OK; nth++) {
        uint32_t channels[3];
        struct wg_error err;
        wg__alloc_fail_from(nth);
        code = wg__wave_widths_read(&network, path, channels, &err);
        wg__alloc_fail_from(0);
        assert_true(code == WG_OK || code == WG_ENOMEM);
        assert_true(nth < 1000);
    }
    scratch_close(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_names_of_widths_layers_and_modules),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(reads_how_much_widths_count),
        cmocka_unit_test(refuses_what_is_no_importance),
        cmocka_unit_test(survives_each_failing_allocation),
    };
    return run_tests(tests);
}
