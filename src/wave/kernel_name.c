/* SPDX-License-Identifier: MIT
 *
 * What a kernel's or tactic's name tells of its geometry.
 *
 * Names are words between '_' (and the punctuation of C++ around them); sizes are words such as
 * 128x64 or 128x256x64, alone or behind a key ("tilesize128x64x32"). Five families, found by a
 * marker, tell their tile in one place each:
 *
 *     xmma       sm80_xmma_gemm_.._tn_n_tilesize64x64x8_stage3_warpsize1x4x1_..          m x n x k
 *     cutlass3x  cutlass3x_sm90_tensorop_s64x128x16gemm_.._128x256x64_2x1x1_0_tnn_..     m x n x k,
 *                cluster (the sizes glued to "gemm" are the instruction's)
 *     cutlass    cutlass_80_simt_sgemm_256x128_8x4_tn_align1               m x n, k x stages
 *     nvjet      nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT                 n x m, k x stages,
 * cluster cuBLAS     ampere_sgemm_128x64_tn,
 * ampere_fp16_s16816gemm_fp16_256x128_ldg8_f2f_stages_64x3_tn n x m, (k x stages) cuDNN
 * ampere_h16816cudnn_128x64_sliced1x2_.._stages_64x3_..     m x n, (k x stages)
 *
 * cuBLAS and nvjet count their first size over n, since they see row-major matrices transposed.
 * Winograd and FFT kernels (gcgemm) multiply transformed tiles; their sizes are none of this GEMM,
 * and such names are told as "no tile".
 */
#include "wave/kernel.h"

#include <string.h>

enum { SIDE_MAX = 65536, WORDS_MAX = 96 };

struct sizes {
    unsigned count; /* of sides: 2 or 3; 0: none */
    unsigned side[3];
};

struct word {
    const char *text;
    size_t length;
};

static bool is_separator(char c)
{
    return c == '_' || c == '<' || c == '>' || c == '(' || c == ')' || c == ':' || c == ',' ||
           c == ' ' || c == '.' || c == '-';
}

static size_t split(const char *name, struct word words[static WORDS_MAX])
{
    size_t count = 0;
    while (*name != '\0' && count < WORDS_MAX) {
        size_t length = 0;
        while (name[length] != '\0' && !is_separator(name[length]))
            length++;
        if (length > 0)
            words[count++] = (struct word){name, length};
        name += length + (name[length] != '\0');
    }
    return count;
}

/* The whole of `length` bytes as AxB or AxBxC. */
static struct sizes read_sizes(const char *text, size_t length)
{
    const struct sizes none = {0};
    struct sizes sizes = {0};
    size_t at = 0;
    for (;;) {
        unsigned value = 0;
        const size_t first = at;
        while (at < length && text[at] >= '0' && text[at] <= '9' && value <= SIDE_MAX)
            value = value * 10 + (unsigned)(text[at++] - '0');
        if (at == first || value == 0 || value > SIDE_MAX || sizes.count == 3)
            return none;
        sizes.side[sizes.count++] = value;
        if (at == length)
            return sizes.count >= 2 ? sizes : none;
        if (text[at++] != 'x')
            return none;
    }
}

static bool starts_with(const struct word *word, const char *key)
{
    const size_t length = strlen(key);
    return word->length >= length && memcmp(word->text, key, length) == 0;
}

static bool ends_with(const struct word *word, const char *key)
{
    const size_t length = strlen(key);
    return word->length >= length && memcmp(word->text + word->length - length, key, length) == 0;
}

/* Sizes behind `key` in the first word that starts with it. */
static struct sizes sizes_of_key(const struct word *words, size_t count, const char *key)
{
    const size_t length = strlen(key);
    for (size_t i = 0; i < count; i++)
        if (starts_with(&words[i], key)) {
            const struct sizes sizes = read_sizes(words[i].text + length, words[i].length - length);
            if (sizes.count > 0)
                return sizes;
        }
    return (struct sizes){0};
}

static struct sizes sizes_at(const struct word *words, size_t count, size_t index)
{
    return index < count ? read_sizes(words[index].text, words[index].length) : (struct sizes){0};
}

/* The first word from `index` on that is sizes; `count` when none is. */
static size_t find_sizes(const struct word *words, size_t count, size_t index)
{
    while (index < count && sizes_at(words, count, index).count == 0)
        index++;
    return index;
}

static bool parse_xmma(const struct word *words, size_t count, struct wg_kernel *out)
{
    const struct sizes tile = sizes_of_key(words, count, "tilesize");
    if (tile.count == 0)
        return false;
    out->tile_m = tile.side[0];
    out->tile_n = tile.side[1];
    out->tile_k = tile.count == 3 ? tile.side[2] : 0;
    const struct sizes warps = sizes_of_key(words, count, "warpsize");
    if (warps.count == 3)
        out->threads = 32 * warps.side[0] * warps.side[1] * warps.side[2];
    return true;
}

static bool parse_cutlass3x(const char *name, const struct word *words, size_t count,
                            struct wg_kernel *out)
{
    const size_t at = find_sizes(words, count, 0);
    const struct sizes tile = sizes_at(words, count, at);
    const struct sizes cluster = sizes_at(words, count, at + 1);
    if (tile.count != 3 || cluster.count != 3)
        return false;
    out->tile_m = tile.side[0];
    out->tile_n = tile.side[1];
    out->tile_k = tile.side[2];
    out->cluster_m = cluster.side[0];
    out->cluster_n = cluster.side[1];
    /* Two blocks of a Blackwell pair share the instruction's tile; each does half of its rows. */
    if (strstr(name, "_2sm") && out->tile_m % 2 == 0)
        out->tile_m /= 2;
    const bool pairs_of_warpgroups = strstr(name, "cooperative") || strstr(name, "pingpong");
    if (strstr(name, "sm90") && pairs_of_warpgroups) {
        out->threads = 384; /* a warp group that loads, two that multiply */
        out->is_persistent = true;
    }
    return true;
}

/* Two sizes: tile, then k x stages; `swap` where the first counts over n. */
static bool parse_pair(const struct word *words, size_t count, size_t at, bool swap,
                       struct wg_kernel *out)
{
    const struct sizes tile = sizes_at(words, count, at);
    if (tile.count == 0)
        return false;
    out->tile_m = tile.side[swap ? 1 : 0];
    out->tile_n = tile.side[swap ? 0 : 1];
    if (tile.count == 3)
        out->tile_k = tile.side[2];
    return true;
}

static bool parse_cutlass(const struct word *words, size_t count, struct wg_kernel *out)
{
    const size_t at = find_sizes(words, count, 0);
    if (!parse_pair(words, count, at, false, out))
        return false;
    const struct sizes depth = sizes_at(words, count, at + 1);
    if (out->tile_k == 0 && depth.count == 2)
        out->tile_k = depth.side[0];
    return true;
}

static bool parse_nvjet(const char *name, const struct word *words, size_t count,
                        struct wg_kernel *out)
{
    const size_t at = find_sizes(words, count, 0);
    if (!parse_pair(words, count, at, true, out))
        return false;
    const struct sizes depth = sizes_at(words, count, at + 1);
    const struct sizes cluster = sizes_at(words, count, at + 2);
    if (depth.count == 2)
        out->tile_k = depth.side[0];
    if (cluster.count == 2) {
        out->cluster_n = cluster.side[0];
        out->cluster_m = cluster.side[1];
    }
    out->is_persistent = strstr(name, "coop") != NULL;
    return true;
}

/* cuBLAS' own and cuDNN's: the tile follows the word that ends in "gemm" or "cudnn", perhaps with a
 * type between; "stages_64x3" tells k. */
static bool parse_library(const struct word *words, size_t count, struct wg_kernel *out)
{
    for (size_t i = 0; i < count; i++) {
        const bool is_gemm = ends_with(&words[i], "gemm");
        const bool is_cudnn = ends_with(&words[i], "cudnn");
        if (!is_gemm && !is_cudnn)
            continue;
        for (size_t at = i + 1; at <= i + 2; at++) {
            if (!parse_pair(words, count, at, is_gemm, out))
                continue;
            for (size_t s = at + 1; s + 1 < count; s++)
                if (starts_with(&words[s], "stages") && sizes_at(words, count, s + 1).count == 2)
                    out->tile_k = sizes_at(words, count, s + 1).side[0];
            const struct sizes slices = sizes_of_key(words, count, "sliced");
            out->slices = slices.count == 2 ? slices.side[1] : 0;
            return true;
        }
    }
    return false;
}

bool wg__kernel_parse(const char *name, struct wg_kernel *out)
{
    static const char *const transformed[] = {"winograd", "gcgemm", "cgemm", "fft"};
    for (size_t i = 0; i < sizeof transformed / sizeof transformed[0]; i++)
        if (strstr(name, transformed[i]))
            return false;
    struct word words[WORDS_MAX];
    const size_t count = split(name, words);
    struct wg_kernel kernel = {.split_k = 1, .cluster_m = 1, .cluster_n = 1};
    bool is_found;
    if (strstr(name, "tilesize"))
        is_found = parse_xmma(words, count, &kernel);
    else if (strstr(name, "cutlass3x"))
        is_found = parse_cutlass3x(name, words, count, &kernel);
    else if (strstr(name, "cutlass"))
        is_found = parse_cutlass(words, count, &kernel);
    else if (strstr(name, "nvjet"))
        is_found = parse_nvjet(name, words, count, &kernel);
    else
        is_found = parse_library(words, count, &kernel);
    if (is_found)
        *out = kernel;
    return is_found;
}
