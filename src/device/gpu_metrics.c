/* SPDX-License-Identifier: MIT
 *
 * gpu_metrics, by revision.
 *
 * The driver fills the whole table with ones before it writes what it knows, so a field of all ones
 * is one that nobody wrote.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#include "device/gpu_metrics.h"

#include <string.h>

enum { HEADER_SIZE = 4, COUNTER_SIZE = 8, FORMAT_CARDS = 1, FORMAT_PROCESSORS = 2 };

/* By content revision of format 1; 0: not known. */
static const unsigned char offsets[] = {0, 24, 24, 24, 24, 88, 16, 24, 24};

/* Up to this revision cards of several generations share a layout, some with counters of 32 bits.
 */
enum { LAST_MIXED = 3 };

double wg__gpu_metrics_unit_j(void)
{
    return 1.0 / 65536.0;
}

enum wg_code wg__gpu_metrics_parse(const unsigned char *bytes, size_t length,
                                   struct wg_gpu_metrics *out, struct wg_error *err)
{
    *out = (struct wg_gpu_metrics){0};
    if (length < HEADER_SIZE)
        return wg__fail(err, WG_EDATA, "gpu_metrics: %zu bytes are no header", length);
    uint16_t size = 0; /* the kernel's own byte order */
    memcpy(&size, bytes, sizeof size);
    out->format = bytes[2];
    out->content = bytes[3];
    if (out->format >= FORMAT_PROCESSORS && out->format != UINT8_MAX)
        return wg__fail(err, WG_EUNSUPPORTED,
                        "gpu_metrics: revision %u.%u, of processors with graphics, has no energy "
                        "counter",
                        out->format, out->content);
    const bool is_known =
        out->format == FORMAT_CARDS && out->content < sizeof offsets && offsets[out->content] != 0;
    if (!is_known)
        return wg__fail(err, WG_EUNSUPPORTED,
                        "gpu_metrics: where revision %u.%u has its energy counter is not known",
                        out->format, out->content);
    out->is_known = true;
    out->may_wrap = out->content <= LAST_MIXED;
    const size_t end = (size_t)offsets[out->content] + COUNTER_SIZE;
    if (size < end || length < end)
        return wg__fail(err, WG_EDATA, "gpu_metrics: revision %u.%u in %u bytes, of which %zu came",
                        out->format, out->content, size, length);
    memcpy(&out->energy, bytes + offsets[out->content], COUNTER_SIZE);
    if (out->energy == UINT64_MAX)
        return wg__fail(err, WG_EUNSUPPORTED,
                        "gpu_metrics: the energy counter is all ones: nobody fills it");
    return WG_OK;
}
