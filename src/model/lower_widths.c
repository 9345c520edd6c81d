/* SPDX-License-Identifier: MIT
 *
 * Widths: sets of channel axes that must have the same number of channels.
 *
 * A set is a tree of widths (union-find, Tarjan 1975) whose root carries what holds for all:
 * channels, alignment, whether they may change. A set of two fixed halves is fixed; alignments meet
 * in their least common multiple. Two lists of segments are tied segment by segment where they have
 * the same cuts; where they don't, one width would have to be a sum of others, which a network
 * can't say, and all of them are fixed: nothing is lost but freedom.
 *
 * Owns: see lower_parts.h.    Threads: one at a time.
 */
#include <string.h>

#include "base/alloc.h"
#include "model/lower_parts.h"

enum { WIDTHS_FIRST = 64 };

enum wg_code wg__lower_no_memory(struct wg_lower *lower)
{
    return wg__fail(lower->err, WG_ENOMEM, "network '%.100s': out of memory",
                    lower->model->graph->name);
}

enum wg_code wg__lower_width(struct wg_lower *lower, const char *name, uint64_t channels,
                             bool is_fixed, uint32_t *out)
{
    if (lower->width_count == lower->width_room) {
        const size_t room = lower->width_room != 0 ? lower->width_room * 2 : WIDTHS_FIRST;
        struct wg_lower_width *larger = wg__realloc_array(lower->widths, room, sizeof *larger);
        if (larger == NULL)
            return wg__lower_no_memory(lower);
        lower->widths = larger;
        lower->width_room = room;
    }
    lower->widths[lower->width_count] = (struct wg_lower_width){
        .parent = (uint32_t)lower->width_count,
        .channels = channels <= UINT32_MAX ? (uint32_t)channels : UINT32_MAX,
        .alignment = 1,
        .is_fixed = is_fixed || channels > UINT32_MAX,
        .name = name,
    };
    *out = (uint32_t)lower->width_count++;
    return WG_OK;
}

uint32_t wg__lower_root(const struct wg_lower *lower, uint32_t width)
{
    struct wg_lower_width *widths = lower->widths;
    while (widths[width].parent != width) {
        widths[width].parent = widths[widths[width].parent].parent; /* halves the path */
        width = widths[width].parent;
    }
    return width;
}

static void fix_width(struct wg_lower *lower, uint32_t width)
{
    lower->widths[wg__lower_root(lower, width)].is_fixed = true;
}

void wg__lower_fix(struct wg_lower *lower, const struct wg_label *label)
{
    for (size_t i = 0; label->axis >= 0 && i < label->count; i++)
        fix_width(lower, label->segments[i].width);
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A common multiple that the present width is none of would leave no choice: it is fixed. */
static void align_width(struct wg_lower_width *root, uint64_t alignment)
{
    const uint64_t common =
        alignment / greatest_common_divisor(root->alignment, alignment) * root->alignment;
    if (common > root->channels || root->channels % common != 0)
        root->is_fixed = true;
    else
        root->alignment = (uint32_t)common;
}

void wg__lower_align(struct wg_lower *lower, const struct wg_label *label, uint32_t alignment)
{
    for (size_t i = 0; label->axis >= 0 && i < label->count; i++) {
        /* Four channels of the axis for one of the width need a fourth of the alignment. */
        const uint64_t divisor = greatest_common_divisor(alignment, label->segments[i].multiple);
        align_width(&lower->widths[wg__lower_root(lower, label->segments[i].width)],
                    alignment / divisor);
    }
}

static void unite_widths(struct wg_lower *lower, uint32_t a, uint32_t b)
{
    a = wg__lower_root(lower, a);
    b = wg__lower_root(lower, b);
    if (a == b)
        return;
    const uint32_t root = a < b ? a : b; /* the first name stays */
    const uint32_t child = a < b ? b : a;
    struct wg_lower_width *kept = &lower->widths[root];
    const struct wg_lower_width gone = lower->widths[child];
    lower->widths[child].parent = root;
    kept->is_fixed = kept->is_fixed || gone.is_fixed;
    align_width(kept, gone.alignment);
}

static bool has_same_cuts(const struct wg_lower *lower, const struct wg_label *a,
                          const struct wg_label *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const uint32_t of_a = wg__lower_root(lower, a->segments[i].width);
        const uint32_t of_b = wg__lower_root(lower, b->segments[i].width);
        if (a->segments[i].multiple != b->segments[i].multiple ||
            lower->widths[of_a].channels != lower->widths[of_b].channels)
            return false;
    }
    return true;
}

void wg__lower_unite(struct wg_lower *lower, const struct wg_label *a, const struct wg_label *b)
{
    if (!has_same_cuts(lower, a, b)) {
        wg__lower_fix(lower, a);
        wg__lower_fix(lower, b);
        return;
    }
    for (size_t i = 0; i < a->count; i++)
        unite_widths(lower, a->segments[i].width, b->segments[i].width);
}

enum wg_code wg__lower_new_label(struct wg_lower *lower, const char *name, int axis,
                                 uint64_t channels, bool is_fixed, struct wg_label *out)
{
    struct wg_segment *segment = wg__arena_alloc(&lower->scratch, 1, sizeof *segment);
    if (segment == NULL)
        return wg__lower_no_memory(lower);
    segment->multiple = 1;
    const enum wg_code code = wg__lower_width(lower, name, channels, is_fixed, &segment->width);
    *out = (struct wg_label){.axis = axis, .segments = segment, .count = 1};
    return code;
}

enum wg_code wg__lower_scaled(struct wg_lower *lower, const struct wg_label *label, int axis,
                              uint64_t factor, struct wg_label *out)
{
    struct wg_segment *segments = wg__arena_alloc(&lower->scratch, label->count, sizeof *segments);
    if (segments == NULL)
        return wg__lower_no_memory(lower);
    for (size_t i = 0; i < label->count; i++) {
        uint64_t multiple = 0;
        segments[i] = label->segments[i];
        if (__builtin_mul_overflow(segments[i].multiple, factor, &multiple) ||
            multiple > UINT32_MAX) { /* no network has such an axis; it stays without a label */
            wg__lower_fix(lower, label);
            *out = (struct wg_label){.axis = -1};
            return WG_OK;
        }
        segments[i].multiple = (uint32_t)multiple;
    }
    *out = (struct wg_label){.axis = axis, .segments = segments, .count = label->count};
    return WG_OK;
}

enum wg_code wg__lower_channels(struct wg_lower *lower, const struct wg_label *label,
                                struct wg_channels *out)
{
    *out = (struct wg_channels){0};
    if (label->axis < 0)
        return WG_OK;
    struct wg_channel_part *parts =
        wg__arena_alloc(&lower->out->arena, label->count, sizeof *parts);
    if (parts == NULL)
        return wg__lower_no_memory(lower);
    for (size_t i = 0; i < label->count; i++)
        parts[i] = (struct wg_channel_part){.width = label->segments[i].width,
                                            .multiple = label->segments[i].multiple};
    out->parts = parts;
    out->part_count = label->count;
    return WG_OK;
}

/* --- The network's widths --------------------------------------------------------------------- */

/* Parts get their width's final number; those of one width become one part. `numbers` holds a
 * root's number plus 1, 0 where it has none yet. */
static void renumber(struct wg_lower *lower, struct wg_channels *channels, uint32_t *numbers)
{
    /* The arena's array, which wg__lower_channels made for this layer alone. */
    struct wg_channel_part *parts = (struct wg_channel_part *)channels->parts;
    size_t kept = 0;
    for (size_t i = 0; i < channels->part_count; i++) {
        const uint32_t root = wg__lower_root(lower, parts[i].width);
        if (numbers[root] == 0)
            numbers[root] = (uint32_t)++lower->out->width_count;
        const uint32_t number = numbers[root] - 1;
        size_t at = 0;
        while (at < kept && parts[at].width != number)
            at++;
        const uint32_t multiple = parts[i].multiple;
        if (at == kept)
            parts[kept++] = (struct wg_channel_part){.width = number, .multiple = multiple};
        else
            parts[at].multiple += multiple;
    }
    channels->part_count = kept;
}

/* A width that no layer makes by itself stays, as what a transposed convolution adds up from its
 * taps: there is no layer by whose name a plan could be applied. */
static enum wg_code fix_what_none_makes(struct wg_lower *lower)
{
    struct wg_network *out = lower->out;
    bool *is_made = wg__arena_alloc(&lower->scratch, out->width_count, sizeof *is_made);
    if (is_made == NULL)
        return wg__lower_no_memory(lower);
    for (size_t i = 0; i < lower->layer_count; i++) {
        const struct wg_channels *side = &lower->layers[i].out;
        if (lower->layers[i].kind != WG_LAYER_BYTES && side->part_count == 1 &&
            side->constant == 0 && side->parts[0].multiple == 1)
            is_made[side->parts[0].width] = true;
    }
    for (size_t w = 0; w < out->width_count; w++)
        out->widths[w].is_fixed = out->widths[w].is_fixed || !is_made[w];
    return WG_OK;
}

enum wg_code wg__lower_settle_widths(struct wg_lower *lower)
{
    struct wg_network *out = lower->out;
    uint32_t *numbers = wg__arena_alloc(&lower->scratch, lower->width_count, sizeof *numbers);
    if (numbers == NULL)
        return wg__lower_no_memory(lower);
    for (size_t i = 0; i < lower->layer_count; i++) {
        renumber(lower, &lower->layers[i].in, numbers);
        renumber(lower, &lower->layers[i].out, numbers);
    }
    out->widths = wg__arena_alloc(&out->arena, out->width_count, sizeof *out->widths);
    if (out->widths == NULL)
        return wg__lower_no_memory(lower);
    for (size_t i = 0; i < lower->width_count; i++) {
        if (numbers[i] == 0)
            continue;
        const struct wg_lower_width *root = &lower->widths[i];
        char *name = wg__arena_strdup(&out->arena, root->name);
        if (name == NULL)
            return wg__lower_no_memory(lower);
        out->widths[numbers[i] - 1] = (struct wg_width){.name = name,
                                                        .channels = root->channels,
                                                        .alignment = root->alignment,
                                                        .is_fixed = root->is_fixed};
    }
    return fix_what_none_makes(lower);
}
