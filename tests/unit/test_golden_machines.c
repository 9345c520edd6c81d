/* SPDX-License-Identifier: MIT
 *
 * Golden machines: each folder of tests/golden/machines holds a recording, `source.trace` (plain or
 * gzipped), and `expected.json`: what wattgov makes of it. This replays every recording, asks each
 * device for what it is and, at each recorded moment, for what it measures, and compares.
 *
 * To add one (docs/internals/devices.md): put the recording there and run
 *
 *     WATTGOV_GOLDEN_WRITE=1 meson test -C build/sanitize golden_machines
 *
 * which writes every expected.json anew, to be read before it is committed.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/source.h"
#include "device/machine.h"
#include "device/recording.h"
#include "support/check.h"

enum { SKIPPED = 77, PATH_SIZE = 1024, FOLDERS_MAX = 64 };

static uint64_t now_of(void *context)
{
    return *(const uint64_t *)context;
}

static void write_answer(struct wg_json *json, struct wg_device *device)
{
    struct wg_sample sample;
    struct wg_error err = {0};
    wg__json_object(json);
    if (wg_device_read(device, UINT32_MAX, &sample, &err) == WG_OK) {
        wg__json_member_double(json, "t_s", (double)sample.t_ns * 1e-9);
        wg__sample_write(json, &sample);
    } else {
        wg__json_member_string(json, "error", wg_code_name(err.code));
        wg__json_member_string(json, "text", err.text);
    }
    wg__json_close(json);
}

/* Everything that the machine answers, one device or answer a line. */
static void dump(struct wg_machine *machine, const struct wg_recording *recording, uint64_t *now_ns,
                 struct wg_buffer *out)
{
    struct wg_json json;
    wg__buffer_puts(out, "{\"schema\":\"wattgov.golden/1\",\"devices\":[");
    for (size_t i = 0; i < wg_machine_device_count(machine); i++) {
        struct wg_device *device = wg_machine_device(machine, i);
        wg__buffer_puts(out, i == 0 ? "\n{\"info\":" : ",\n{\"info\":");
        wg__json_init(&json, out);
        wg__json_object(&json);
        wg__device_info_write(&json, wg_device_get_info(device));
        wg__json_close(&json);
        wg__buffer_puts(out, ",\"answers\":[");
        for (size_t k = 0; k < recording->devices[i].answer_count; k++) {
            *now_ns = recording->devices[i].answers[k].sample.t_ns;
            wg__buffer_puts(out, k == 0 ? "\n" : ",\n");
            wg__json_init(&json, out);
            write_answer(&json, device);
        }
        wg__buffer_puts(out, "]}");
    }
    wg__buffer_puts(out, "]}\n");
    assert_false(out->failed);
}

static void replay(const char *folder, struct wg_buffer *out)
{
    char device[PATH_SIZE];
    const int length = snprintf(device, sizeof device, "replay:%s/source.trace", folder);
    assert_in_range(length, 1, sizeof device - 1);
    struct wg_error err = {0};
    struct wg_recording *recording = NULL;
    if (wg__recording_open(&recording, device + strlen("replay:"), &err) != WG_OK)
        fail_msg("%s", err.text);
    uint64_t now_ns = 0;
    struct wg_machine *machine = NULL;
    const struct wg_machine_setup setup = {.replay_now_ns = now_of, .replay_context = &now_ns};
    const struct wg_machine_opts opts = WG_MACHINE_OPTS(.device = device);
    if (wg__machine_open_setup(&machine, &setup, &opts, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_int_equal(wg_machine_device_count(machine), recording->device_count);
    dump(machine, recording, &now_ns, out);
    wg_machine_close(machine);
    wg__recording_close(recording);
}

static void read_whole(const char *path, struct wg_buffer *out)
{
    struct wg_source source;
    struct wg_error err = {0};
    if (wg__source_open(&source, path, &err) != WG_OK)
        fail_msg("%s", err.text);
    while (wg__source_peek(&source, &err) >= 0) {
        wg__buffer_append(out, source.cursor, (size_t)(source.end - source.cursor));
        source.cursor = source.end;
    }
    assert_int_equal(source.stopped, WG_OK);
    wg__source_close(&source);
}

/* Where two texts part, for the message. */
static size_t line_of_difference(const char *a, const char *b)
{
    size_t line = 1;
    for (; *a == *b && *a != '\0'; a++, b++)
        line += *a == '\n';
    return line;
}

static void compare(const char *folder)
{
    char path[PATH_SIZE];
    assert_in_range(snprintf(path, sizeof path, "%s/expected.json", folder), 1, sizeof path - 1);
    struct wg_buffer actual;
    struct wg_buffer expected;
    wg__buffer_init(&actual);
    wg__buffer_init(&expected);
    replay(folder, &actual);
    const char *write = getenv("WATTGOV_GOLDEN_WRITE");
    if (write != NULL && strcmp(write, "1") == 0) {
        struct wg_error err = {0};
        if (wg__file_write(path, actual.data, actual.length, &err) != WG_OK)
            fail_msg("%s", err.text);
    }
    read_whole(path, &expected);
    if (strcmp(actual.data, expected.data) != 0)
        fail_msg("%s:%zu: the replay differs", path,
                 line_of_difference(expected.data, actual.data));
    wg__buffer_fini(&actual);
    wg__buffer_fini(&expected);
}

static void every_golden_machine_is_replayed_as_it_was(void **state)
{
    const char *root = *state;
    DIR *folder = opendir(root);
    if (folder == NULL) {
        fail_msg("%s: cannot open", root);
        return;
    }
    size_t count = 0;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char path[PATH_SIZE];
        if (entry->d_name[0] == '.')
            continue;
        assert_in_range(snprintf(path, sizeof path, "%s/%s", root, entry->d_name), 1,
                        sizeof path - 1);
        compare(path);
        count++;
    }
    (void)closedir(folder);
    assert_in_range(count, 1, FOLDERS_MAX);
}

int main(void)
{
    const char *source = getenv("WATTGOV_SOURCE_ROOT");
    char root[PATH_SIZE];
    (void)snprintf(root, sizeof root, "%s/tests/golden/machines", source != NULL ? source : ".");
    DIR *folder = opendir(root);
    if (folder == NULL) {
        (void)printf("skipped: no golden machines: %s: %s\n", root, strerror(errno));
        return SKIPPED;
    }
    (void)closedir(folder);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(every_golden_machine_is_replayed_as_it_was, root),
    };
    return run_tests(tests);
}
