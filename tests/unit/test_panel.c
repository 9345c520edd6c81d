/* SPDX-License-Identifier: MIT
 *
 * Products with a panel against the same sums, one number at a time in the order of the inner
 * index: equal to the last bit, whatever vectors this processor has.
 */
#include "math/panel.h"

#include <stdlib.h>
#include <string.h>

#include "math/normal.h"
#include "support/check.h"

enum { ROWS_MOST = 19, INNER_MOST = 130 };

static void fill(struct wg_rng *rng, float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)wg__rng_normal(rng);
}

static void check_product(struct wg_rng *rng, size_t rows, size_t inner)
{
    float *matrix = malloc((rows * inner + 1) * sizeof *matrix);
    float *panel = malloc((inner * WG_PANEL + 1) * sizeof *panel);
    float *out = malloc((rows + 1) * WG_PANEL * sizeof *out);
    float expected[ROWS_MOST + 1][WG_PANEL];

    assert_non_null(matrix);
    assert_non_null(panel);
    assert_non_null(out);
    fill(rng, matrix, rows * inner);
    fill(rng, panel, inner * WG_PANEL);
    fill(rng, out, (rows + 1) * WG_PANEL);
    memcpy(expected, out, (rows + 1) * sizeof *expected);
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < WG_PANEL; i++)
            for (size_t k = 0; k < inner; k++)
                expected[r][i] += matrix[r * inner + k] * panel[k * WG_PANEL + i];
    wg__panel_add_product(matrix, rows, inner, panel, out);
    /* One row more than asked for: it stays as it was. */
    assert_memory_equal(out, expected, (rows + 1) * sizeof *expected);
    free(matrix);
    free(panel);
    free(out);
}

static void each_sum_runs_in_order_to_the_last_bit(void **state)
{
    (void)state;
    static const size_t inners[] = {0, 1, 2, 7, 64, INNER_MOST};
    struct wg_rng rng;

    wg__rng_init(&rng, 3);
    for (size_t rows = 0; rows <= ROWS_MOST; rows++)
        for (size_t i = 0; i < sizeof inners / sizeof *inners; i++)
            check_product(&rng, rows, inners[i]);
}

static void a_column_sees_no_other(void **state)
{
    (void)state;
    const float matrix[2] = {2, 3};
    float panel[2 * WG_PANEL] = {0}, out[WG_PANEL] = {0};

    panel[5] = (float)INFINITY;
    panel[WG_PANEL + 6] = 4;
    wg__panel_add_product(matrix, 1, 2, panel, out);
    for (size_t i = 0; i < WG_PANEL; i++)
        assert_true(out[i] == (i == 5 ? (float)INFINITY : i == 6 ? 12.0F : 0.0F));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sum_runs_in_order_to_the_last_bit),
        cmocka_unit_test(a_column_sees_no_other),
    };
    return run_tests(tests);
}
