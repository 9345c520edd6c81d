/* SPDX-License-Identifier: MIT
 *
 * Kernel names against profiled grids: how many names tell a tile, and for how many launches the
 * tile explains the grid.
 *
 *     ninja -C build/release bench/wave_kernels
 *     build/release/bench/wave_kernels DIR
 *
 * DIR holds NeuSight's profiles: kernels.csv (kernel_id, kernel), gemm_fp32.csv.gz and
 * conv_fp32.csv (dimensions, gx, gy, gz, threads). "exact": the grid is what wg__kernel_blocks says
 * without split-K; "with_split_k": it is a whole multiple of that. "swapped": what the other order
 * of the tile would explain, counted where the two differ ("telling"). Prints JSON.
 *
 * Threads: one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/csv.h"
#include "base/json.h"
#include "wave/kernel.h"

enum { KERNELS_MAX = 1024 };

struct kernel {
    bool is_parsed;
    struct wg_kernel kernel;
};

struct tally {
    const char *name;
    size_t launches, without_tile, exact, with_split_k, telling, swapped, threads_told,
        threads_right;
};

static struct kernel kernels[KERNELS_MAX];

static void require(enum wg_code code, const struct wg_error *err)
{
    if (code == WG_OK)
        return;
    (void)fprintf(stderr, "wave_kernels: %s\n", err->text);
    exit(EXIT_FAILURE);
}

static struct wg_csv *open_file(const char *folder, const char *name)
{
    char path[512];
    struct wg_csv *csv = NULL;
    struct wg_error err;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    require(wg__csv_open(&csv, path, &err), &err);
    return csv;
}

static unsigned number(const struct wg_csv *csv, const char *name)
{
    size_t column;
    unsigned value;
    struct wg_error err;
    require(wg__csv_column(csv, name, &column, &err), &err);
    require(wg__csv_uint(csv, column, 0, 1U << 31, &value, &err), &err);
    return value;
}

static bool next(struct wg_csv *csv)
{
    bool has_record;
    struct wg_error err;
    require(wg__csv_next(csv, &has_record, &err), &err);
    return has_record;
}

static void read_names(const char *folder, struct wg_json *json)
{
    struct wg_csv *csv = open_file(folder, "kernels.csv");
    size_t names = 0, tiles = 0, column;
    struct wg_error err;
    require(wg__csv_column(csv, "kernel", &column, &err), &err);
    while (next(csv)) {
        const unsigned id = number(csv, "kernel_id");
        const char *name = wg__csv_text(csv, column);
        if (strncmp(name, "cijk", 4) == 0 || id >= KERNELS_MAX) /* AMD's */
            continue;
        kernels[id].is_parsed = wg__kernel_parse(name, &kernels[id].kernel);
        names++;
        tiles += kernels[id].is_parsed;
    }
    wg__csv_close(csv);
    wg__json_member_uint(json, "names", names);
    wg__json_member_uint(json, "names_with_tile", tiles);
}

static void count(struct tally *tally, const struct wg_csv *csv, const struct wg_gemm *gemm)
{
    const unsigned id = number(csv, "kernel_id");
    tally->launches++;
    if (id >= KERNELS_MAX || !kernels[id].is_parsed) {
        tally->without_tile++;
        return;
    }
    const struct wg_kernel *kernel = &kernels[id].kernel;
    struct wg_kernel swapped = *kernel;
    swapped.tile_m = kernel->tile_n;
    swapped.tile_n = kernel->tile_m;
    const uint64_t grid = (uint64_t)number(csv, "gx") * number(csv, "gy") * number(csv, "gz");
    const uint64_t blocks = wg__kernel_blocks(kernel, gemm);
    const uint64_t others = wg__kernel_blocks(&swapped, gemm);
    tally->exact += grid == blocks;
    tally->with_split_k += grid % blocks == 0;
    tally->telling += blocks != others;
    tally->swapped += blocks != others && grid == others;
    tally->threads_told += kernel->threads > 0;
    tally->threads_right += kernel->threads > 0 && kernel->threads == number(csv, "threads");
}

static void count_gemms(const char *folder, struct tally *linear, struct tally *bmm)
{
    struct wg_csv *csv = open_file(folder, "gemm_fp32.csv.gz");
    size_t op;
    struct wg_error err;
    require(wg__csv_column(csv, "op", &op, &err), &err);
    while (next(csv)) {
        const struct wg_gemm gemm = {.batch = number(csv, "B"),
                                     .m = number(csv, "m"),
                                     .n = number(csv, "n"),
                                     .k = number(csv, "k")};
        count(strcmp(wg__csv_text(csv, op), "bmm") == 0 ? bmm : linear, csv, &gemm);
    }
    wg__csv_close(csv);
}

static void count_convs(const char *folder, struct tally *direct, struct tally *transformed)
{
    struct wg_csv *csv = open_file(folder, "conv_fp32.csv");
    struct wg_error err;
    while (next(csv)) {
        const unsigned side = number(csv, "H"), filter = number(csv, "R"), pad = number(csv, "pad");
        const struct wg_conv conv = {.n = number(csv, "N"),
                                     .c = number(csv, "C"),
                                     .h = side,
                                     .w = side,
                                     .filters = number(csv, "K"),
                                     .r = filter,
                                     .s = filter,
                                     .stride_h = number(csv, "stride"),
                                     .stride_w = number(csv, "stride"),
                                     .pad_top = pad,
                                     .pad_left = pad,
                                     .pad_bottom = pad,
                                     .pad_right = pad,
                                     .dilation_h = 1,
                                     .dilation_w = 1,
                                     .groups = 1};
        struct wg_gemm gemm;
        require(wg__conv_gemm(&conv, WG_CONV_FORWARD, &gemm, &err), &err);
        /* Four kernels or more are a pipeline of transforms around a GEMM of another shape. */
        count(number(csv, "nkern") == 4 ? transformed : direct, csv, &gemm);
    }
    wg__csv_close(csv);
}

static void write_tally(struct wg_json *json, const struct tally *tally)
{
    wg__json_key(json, tally->name);
    wg__json_object(json);
    wg__json_member_uint(json, "launches", tally->launches);
    wg__json_member_uint(json, "without_tile", tally->without_tile);
    wg__json_member_uint(json, "exact", tally->exact);
    wg__json_member_uint(json, "with_split_k", tally->with_split_k);
    wg__json_member_uint(json, "telling", tally->telling);
    wg__json_member_uint(json, "swapped", tally->swapped);
    wg__json_member_uint(json, "threads_told", tally->threads_told);
    wg__json_member_uint(json, "threads_right", tally->threads_right);
    const size_t with_tile = tally->launches - tally->without_tile;
    wg__json_member_double(json, "explained", (double)tally->with_split_k / (double)with_tile);
    wg__json_close(json);
}

int main(int argc, char **argv)
{
    struct tally tallies[] = {
        {.name = "linear"}, {.name = "bmm"}, {.name = "conv"}, {.name = "conv_in_four_kernels"}};
    struct wg_buffer out;
    struct wg_json json;
    if (argc != 2) {
        (void)fprintf(stderr, "usage: wave_kernels DIR\n");
        return 2;
    }
    wg__buffer_init(&out);
    wg__json_init(&json, &out);
    wg__json_object(&json);
    read_names(argv[1], &json);
    count_gemms(argv[1], &tallies[0], &tallies[1]);
    count_convs(argv[1], &tallies[2], &tallies[3]);
    for (size_t i = 0; i < sizeof tallies / sizeof tallies[0]; i++)
        write_tally(&json, &tallies[i]);
    wg__json_close(&json);
    (void)printf("%.*s\n", (int)out.length, out.data);
    wg__buffer_fini(&out);
    return EXIT_SUCCESS;
}
