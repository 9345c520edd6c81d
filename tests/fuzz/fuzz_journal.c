/* SPDX-License-Identifier: MIT
 *
 * libFuzzer entry of the reader of journals: any bytes give a journal or a one-line error.
 *
 * A journal says what root will write to devices, so beyond what the sanitizers see it checks that
 * every knob has a device and a known kind, that the whole lines end within the bytes, and that
 * what was read once says the same when its whole lines are read alone.
 *
 *     CC=clang-19 meson setup build/fuzz -Dfuzz=true && ninja -C build/fuzz
 *     build/fuzz/tests/fuzz/fuzz_journal -max_total_time=60 NEW_FOLDER tests/fuzz/corpus/journal
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/journal.h"

/* libFuzzer prescribes the name. NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static enum wg_code read_bytes(struct wg_journal *journal, const uint8_t *data, size_t size,
                               struct wg_error *err)
{
    const int fd = memfd_create("journal", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    return wg__journal_read(journal, fd, false, "fuzz.journal", err);
}

static void check_text(const char *text)
{
    require(text != NULL);
    for (const char *p = text; *p != '\0'; p++)
        require((unsigned char)*p >= 0x20 && *p != 0x7F);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wg_journal journal;
    struct wg_journal again;
    struct wg_error err = {0};
    const enum wg_code code = read_bytes(&journal, data, size, &err);
    if (code != WG_OK) {
        require((code == WG_EDATA || code == WG_EUNSUPPORTED) && err.code == code);
        require(strncmp(err.text, "fuzz.journal", 12) == 0);
        check_text(err.text);
        wg__journal_fini(&journal);
        return 0;
    }
    require(journal.length <= size && journal.is_torn == (journal.length < size));
    require(journal.length == 0 || data[journal.length - 1] == '\n');
    for (size_t i = 0; i < journal.knob_count; i++) {
        const struct wg_journal_knob *knob = &journal.knobs[i];
        require(knob->device != NULL && knob->label != NULL && knob->knob < WG_KNOB_COUNT);
        require(knob->value_count <= knob->value_capacity);
        (void)wg__journal_judge(knob, 100.0);
    }
    require(read_bytes(&again, data, (size_t)journal.length, NULL) == WG_OK);
    require(again.knob_count == journal.knob_count && again.is_ended == journal.is_ended);
    wg__journal_fini(&again);
    wg__journal_fini(&journal);
    return 0;
}
