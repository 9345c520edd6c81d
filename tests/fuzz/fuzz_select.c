/* SPDX-License-Identifier: MIT
 *
 * libFuzzer entry of the selectors of GPUs: the first line of the input is CUDA_VISIBLE_DEVICES
 * ("-" alone: unset), the second CUDA_DEVICE_ORDER, each further one a selector.
 *
 * Whatever they are, matching ends with a choice or a one-line error, "all" and "none" mean what
 * they say, and a second backend never unsettles the first.
 *
 *     CC=clang-19 meson setup build/fuzz -Dfuzz=true && ninja -C build/fuzz tests/fuzz/fuzz_select
 *     build/fuzz/tests/fuzz/fuzz_select -max_total_time=60 NEW_FOLDER tests/fuzz/corpus/select
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/select.h"

/* libFuzzer prescribes the name. NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES_MAX = 16, GPUS = 4 };

static const char *const migs[] = {"MIG-11111111-aaaa-5555-8888-000000000001"};

static const struct wg_candidate gpus[GPUS] = {
    {.uuid = "GPU-af7b61d8-0000-1111-2222-333333333333", .pci = "0000:1a:00.0", .speed = 1.0},
    {.uuid = "GPU-af7b99ff-0000-1111-2222-333333333333", .pci = "0000:1B:00.0", .speed = 3.0},
    {.uuid = "GPU-c0ffee00-0000-1111-2222-333333333333",
     .speed = 3.0,
     .mig_uuids = migs,
     .mig_count = 1},
    {.pci = "00000001:1a:00.0", .speed = 2.0},
};

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void check_error(enum wg_code code, const struct wg_error *err)
{
    require(code == WG_EINVAL && err->code == code && err->text[0] != '\0');
    require(strpbrk(err->text, "\n\r\x1B") == NULL);
}

static void match_twice(const struct wg_selection *selection)
{
    bool first[GPUS];
    bool second[GPUS];
    struct wg_error err = {0};
    enum wg_code code = wg__selection_match(selection, gpus, GPUS, first, &err);
    if (code != WG_OK) {
        check_error(code, &err);
        return;
    }
    size_t count = 0;
    for (size_t i = 0; i < GPUS; i++)
        count += first[i];
    require(!wg__selection_is_all(selection) || count == GPUS);
    require(!wg__selection_is_none(selection) || count == 0);
    const enum wg_code met = wg__selection_check(selection, &err);
    if (met != WG_OK)
        check_error(met, &err);
    code = wg__selection_match(selection, gpus, GPUS, second, &err);
    require(code == WG_OK || met != WG_OK); /* all selectors were met: none can be ambiguous */
    require(met != WG_OK || wg__selection_check(selection, &err) == WG_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    require(text != NULL);
    if (size != 0)
        memcpy(text, data, size);
    text[size] = '\0';
    const char *lines[LINES_MAX];
    size_t count = 0;
    for (char *line = text; line != NULL && count < LINES_MAX;) {
        char *end = strchr(line, '\n');
        lines[count++] = line;
        if (end != NULL)
            *end++ = '\0';
        line = end;
    }
    const char *visible = strcmp(lines[0], "-") != 0 ? lines[0] : NULL;
    struct wg_selection *selection = NULL;
    struct wg_error err = {0};
    const enum wg_code code = wg__selection_new(&selection, lines + 2, count > 2 ? count - 2 : 0,
                                                visible, count > 1 ? lines[1] : NULL, &err);
    if (code == WG_OK)
        match_twice(selection);
    else
        check_error(code, &err);
    wg__selection_free(selection);
    free(text);
    return 0;
}
