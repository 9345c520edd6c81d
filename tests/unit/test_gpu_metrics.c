/* SPDX-License-Identifier: MIT
 *
 * gpu_metrics: where each revision has its counter.
 *
 * The oracle are the structs as the kernel declares them up to the counter; the compiler places it.
 */
#include "device/gpu_metrics.h"

#include <stddef.h>
#include <string.h>

#include "support/check.h"

enum { VCN = 4, JPEG = 32 };

struct header {
    uint16_t structure_size;
    uint8_t format_revision, content_revision;
};
struct v1_1 { /* 1.2 and 1.3 begin alike */
    struct header header;
    uint16_t temperatures[6], activities[3], average_socket_power;
    uint64_t energy_accumulator, system_clock_counter;
};
struct v1_4 {
    struct header header;
    uint16_t temperatures[3], socket_power, activities[2], vcn_activity[VCN];
    uint64_t energy_accumulator, system_clock_counter;
};
struct v1_5 {
    struct header header;
    uint16_t temperatures[3], socket_power, activities[2], vcn_activity[VCN], jpeg_activity[JPEG];
    uint64_t energy_accumulator, system_clock_counter;
};
struct v1_6 {
    struct header header;
    uint16_t temperatures[3], socket_power, activities[2];
    uint64_t energy_accumulator, system_clock_counter;
};
struct v1_7 { /* 1.8 begins alike */
    struct header header;
    uint16_t temperatures[3], socket_power, activities[2];
    uint64_t mem_max_bandwidth, energy_accumulator, system_clock_counter;
};

static const struct {
    unsigned content;
    size_t offset;
    bool may_wrap;
} revisions[] = {
    {1, offsetof(struct v1_1, energy_accumulator), true},
    {2, offsetof(struct v1_1, energy_accumulator), true},
    {3, offsetof(struct v1_1, energy_accumulator), true},
    {4, offsetof(struct v1_4, energy_accumulator), false},
    {5, offsetof(struct v1_5, energy_accumulator), false},
    {6, offsetof(struct v1_6, energy_accumulator), false},
    {7, offsetof(struct v1_7, energy_accumulator), false},
    {8, offsetof(struct v1_7, energy_accumulator), false},
};

static void write_header(unsigned char *bytes, uint16_t size, unsigned format, unsigned content)
{
    const struct header header = {size, (uint8_t)format, (uint8_t)content};
    memcpy(bytes, &header, sizeof header);
}

static void each_revision_has_its_counter_where_the_kernel_puts_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof revisions / sizeof revisions[0]; i++) {
        unsigned char bytes[WG_GPU_METRICS_BYTES];
        memset(bytes, 0xff, sizeof bytes);
        write_header(bytes, 200, 1, revisions[i].content);
        const uint64_t energy = UINT64_C(0x0123456789abcdef);
        memcpy(bytes + revisions[i].offset, &energy, sizeof energy);
        struct wg_gpu_metrics metrics;
        assert_int_equal(wg__gpu_metrics_parse(bytes, sizeof bytes, &metrics, NULL), WG_OK);
        assert_true(metrics.energy == energy);
        assert_int_equal(metrics.may_wrap, revisions[i].may_wrap);
        assert_true(metrics.is_known);
        assert_true(metrics.format == 1 && metrics.content == revisions[i].content);
        /* Nobody wrote it: field report 75. */
        memset(bytes + revisions[i].offset, 0xff, sizeof energy);
        struct wg_error err;
        assert_int_equal(wg__gpu_metrics_parse(bytes, sizeof bytes, &metrics, &err),
                         WG_EUNSUPPORTED);
        assert_non_null(strstr(err.text, "all ones"));
        assert_true(metrics.is_known);
        /* Cut anywhere before its end. */
        for (size_t length = 0; length < revisions[i].offset + sizeof energy; length++)
            assert_int_equal(wg__gpu_metrics_parse(bytes, length, &metrics, NULL), WG_EDATA);
        write_header(bytes, (uint16_t)(revisions[i].offset + 7), 1, revisions[i].content);
        assert_int_equal(wg__gpu_metrics_parse(bytes, sizeof bytes, &metrics, NULL), WG_EDATA);
    }
}

static void other_revisions_are_named_and_not_guessed(void **state)
{
    (void)state;
    static const unsigned unknown[][2] = {{1, 0}, {1, 9}, {1, 255}, {0, 1}, {255, 255}};
    unsigned char bytes[WG_GPU_METRICS_BYTES] = {0};
    struct wg_gpu_metrics metrics;
    struct wg_error err;
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        write_header(bytes, 200, unknown[i][0], unknown[i][1]);
        assert_int_equal(wg__gpu_metrics_parse(bytes, sizeof bytes, &metrics, &err),
                         WG_EUNSUPPORTED);
        assert_false(metrics.is_known);
        assert_int_equal(metrics.content, unknown[i][1]);
        assert_non_null(strstr(err.text, "not known"));
    }
    for (unsigned format = 2; format <= 3; format++) {
        write_header(bytes, 200, format, 1);
        assert_int_equal(wg__gpu_metrics_parse(bytes, sizeof bytes, &metrics, &err),
                         WG_EUNSUPPORTED);
        assert_non_null(strstr(err.text, "processors with graphics"));
    }
}

static void a_unit_is_15_microjoules_and_a_quarter(void **state)
{
    (void)state; /* field report 23 */
    check_close(wg__gpu_metrics_unit_j(), 15.2587890625e-6, 1e-15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_revision_has_its_counter_where_the_kernel_puts_it),
        cmocka_unit_test(other_revisions_are_named_and_not_guessed),
        cmocka_unit_test(a_unit_is_15_microjoules_and_a_quarter),
    };
    return run_tests(tests);
}
