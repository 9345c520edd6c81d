/* SPDX-License-Identifier: MIT
 *
 * Sums of a tile of the product, some rows by some columns, stay in vector registers while the
 * inner index runs. How large a tile is depends on how many registers there are and how wide.
 *
 * Vectors are those of GNU C. A vector that is wider than the processor's would be kept in memory,
 * so there is one function a width, all from the same text.
 *
 * Threads: pure.
 */
#include "math/panel.h"

/* Vectors of a row of a tile, and the most of its rows. */
enum { TILE = 4, ROWS_MOST = 4 };

/* NAME: wg__panel_add_product with vectors of LANES numbers and AT_ONCE rows a tile; the last rows
 * go one by one. */
#define DEFINE_ADD_PRODUCT(NAME, LANES, AT_ONCE, TARGET)                                           \
    /* Numbers of an array, wherever they begin. */                                                \
    typedef float NAME##_lanes                                                                     \
        __attribute__((vector_size((LANES) * sizeof(float)), aligned(4), may_alias));              \
                                                                                                   \
    /* `rows` is a constant where this is inlined, so that `sum` becomes registers. */             \
    TARGET static inline __attribute__((always_inline)) void NAME##_tile(                          \
        size_t rows, const float *matrix, size_t inner, const float *panel, float *out)            \
    {                                                                                              \
        NAME##_lanes sum[ROWS_MOST][TILE];                                                         \
        for (size_t r = 0; r < rows; r++)                                                          \
            for (size_t t = 0; t < TILE; t++)                                                      \
                sum[r][t] = *(const NAME##_lanes *)(out + r * WG_PANEL + t * (LANES));             \
        for (size_t k = 0; k < inner; k++)                                                         \
            for (size_t r = 0; r < rows; r++)                                                      \
                for (size_t t = 0; t < TILE; t++)                                                  \
                    sum[r][t] += matrix[r * inner + k] *                                           \
                                 *(const NAME##_lanes *)(panel + k * WG_PANEL + t * (LANES));      \
        for (size_t r = 0; r < rows; r++)                                                          \
            for (size_t t = 0; t < TILE; t++)                                                      \
                *(NAME##_lanes *)(out + r * WG_PANEL + t * (LANES)) = sum[r][t];                   \
    }                                                                                              \
                                                                                                   \
    TARGET static void NAME(const float *matrix, size_t rows, size_t inner, const float *panel,    \
                            float *out)                                                            \
    {                                                                                              \
        for (size_t column = 0; column < WG_PANEL; column += (size_t)TILE * (LANES)) {             \
            size_t r = 0;                                                                          \
            for (; r + (AT_ONCE) <= rows; r += (AT_ONCE))                                          \
                NAME##_tile(AT_ONCE, matrix + r * inner, inner, panel + column,                    \
                            out + r * WG_PANEL + column);                                          \
            for (; r < rows; r++)                                                                  \
                NAME##_tile(1, matrix + r * inner, inner, panel + column,                          \
                            out + r * WG_PANEL + column);                                          \
        }                                                                                          \
    }

DEFINE_ADD_PRODUCT(add_product_128, 4, 2, )
#ifdef __x86_64__
DEFINE_ADD_PRODUCT(add_product_256, 8, 2, __attribute__((target("avx2"))))
DEFINE_ADD_PRODUCT(add_product_512, 16, 4, __attribute__((target("avx512f"))))
#endif
_Static_assert(WG_PANEL % (TILE * 16) == 0, "a panel is some whole tiles of the widest vectors");

void wg__panel_add_product(const float *matrix, size_t rows, size_t inner, const float *panel,
                           float *out)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) {
        add_product_512(matrix, rows, inner, panel, out);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        add_product_256(matrix, rows, inner, panel, out);
        return;
    }
#endif
    add_product_128(matrix, rows, inner, panel, out);
}
