/* SPDX-License-Identifier: MIT
 *
 * Recordings written, read and replayed. The clock of the replay is the test's.
 */
#include <stdlib.h>
#include <zlib.h>

#include "base/rng.h"
#include "device/recording.h"
#include "support/fake_machine.h"
#include "support/scratch.h"

static const uint64_t START_NS = 5000000000U;

static struct wg_sample sample_at(double t_s, double power_w)
{
    struct wg_sample sample = {.t_ns = START_NS + (uint64_t)(t_s * 1e9), .span_ns = 20000};
    wg__sample_set(&sample, WG_METRIC_POWER_W, power_w);
    wg__sample_set(&sample, WG_METRIC_ENERGY_J, power_w * t_s);
    sample.has_throttle = true;
    sample.throttle = (uint32_t)WG_THROTTLE_IDLE | (uint32_t)WG_THROTTLE_POWER_LIMIT;
    return sample;
}

static void add(struct wg_recorder *recorder, size_t device, double t_s, double power_w)
{
    struct wg_error err = {0};
    const struct wg_sample sample = sample_at(t_s, power_w);
    if (wg__recorder_add_sample(recorder, device, &sample, &err) != WG_OK)
        fail_msg("%s", err.text);
}

/* Two GPUs and a CPU: samples at 0.1, 0.2, 0.3 s; the second GPU is lost at 0.2 s; the CPU has
 * none. */
static void record(const char *path)
{
    struct fake_world world = fake_world_of(3);
    world.devices[0].driver_index_plus_1 = 3; /* gpu2 */
    world.devices[0].uuid = "GPU-one";
    world.devices[1].uuid = "GPU-two";
    world.devices[2].kind = WG_DEVICE_CPU;
    world.devices[2].probe = FAKE_IS_LOST;
    struct wg_machine *machine = open_patient(&world);
    struct wg_recorder *recorder = NULL;
    struct wg_error err = {0};
    if (wg__recorder_open(&recorder, path, machine, START_NS, &err) != WG_OK)
        fail_msg("%s", err.text);
    add(recorder, 0, 0.1, 50.0);
    add(recorder, 1, 0.101, 60.0);
    add(recorder, 0, 0.2, 55.5);
    const struct wg_error lost = {.code = WG_ELOST, .text = "gpu3: call failed: lost (15)"};
    assert_int_equal(wg__recorder_add_error(recorder, 1, START_NS + 200000000U, &lost, &err),
                     WG_OK);
    add(recorder, 0, 0.3, 52.25);
    add(recorder, 0, 0.3, 99.0); /* not newer: skipped */
    add(recorder, 0, 0.25, 99.0);
    assert_int_equal(wg__recorder_close(recorder, START_NS + 350000000U, &err), WG_OK);
    wg_machine_close(machine);
}

static struct wg_recording *read_recording(const char *path)
{
    struct wg_recording *recording = NULL;
    struct wg_error err = {0};
    if (wg__recording_open(&recording, path, &err) != WG_OK)
        fail_msg("%s", err.text);
    return recording;
}

/* -- Writing and reading ------------------------------------------------------------------------
 */

static void what_was_recorded_is_read_back(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "a.trace");
    record(path);
    struct wg_recording *recording = read_recording(path);
    assert_int_equal(recording->backend_count, 1);
    assert_string_equal(recording->backends[0].name, "fake");
    assert_string_equal(recording->backends[0].text, "3 devices");
    assert_int_equal(recording->device_count, 3);
    assert_true(recording->is_closed);
    assert_int_equal(recording->end_ns, 350000000);
    assert_int_equal(recording->cut_line + recording->unknown_keys, 0);
    assert_int_equal(recording->answer_count, 5);

    const struct wg_device_info *info = &recording->devices[0].info;
    assert_int_equal(info->kind, WG_DEVICE_GPU);
    assert_int_equal(info->index, 2);
    assert_string_equal(info->label, "gpu2");
    assert_string_equal(info->uuid, "GPU-one");
    assert_null(info->pci);
    assert_int_equal(info->numa_node, UINT_MAX);
    assert_true(info->counts_in_total);
    assert_true(info->meters[WG_METRIC_POWER_W].is_present);
    check_close(info->meters[WG_METRIC_POWER_W].resolution, 0.001, 0.0);
    check_close(info->meters[WG_METRIC_POWER_W].update_period_s, 0.1, 0.0);
    assert_string_equal(info->meters[WG_METRIC_ENERGY_J].why_not,
                        "fake has no such reading or setting");
    assert_int_equal(recording->devices[2].info.state, WG_ELOST);
    assert_string_equal(recording->devices[2].info.state_text,
                        "cpu0: fakeProbe failed: GPU is lost (15)");

    const struct wg_recorded_device *first = &recording->devices[0];
    assert_int_equal(first->answer_count, 3);
    const struct wg_sample expected = sample_at(0.2, 55.5);
    const struct wg_sample *actual = &first->answers[1].sample;
    assert_int_equal(actual->t_ns, 200000000);
    assert_int_equal(actual->span_ns, expected.span_ns);
    assert_int_equal(actual->present, expected.present);
    assert_int_equal(actual->throttle, expected.throttle);
    assert_true(actual->has_throttle);
    check_close(actual->values[WG_METRIC_POWER_W], 55.5, 0.0);
    check_close(actual->values[WG_METRIC_ENERGY_J], expected.values[WG_METRIC_ENERGY_J], 0.0);
    assert_int_equal(recording->devices[1].answers[1].code, WG_ELOST);
    assert_string_equal(recording->devices[1].answers[1].text, "gpu3: call failed: lost (15)");
    wg__recording_close(recording);
    wg__recording_close(NULL);
    scratch_close(&scratch);
}

static double random_double(struct wg_rng *rng)
{
    return ldexp(wg__rng_uniform(rng), (int)wg__rng_below(rng, 80) - 40);
}

static void every_double_and_every_nanosecond_survives(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "a.trace");
    struct fake_world world = fake_world_of(1);
    struct wg_machine *machine = open_patient(&world);
    struct wg_recorder *recorder = NULL;
    enum { COUNT = 500 };
    static struct wg_sample samples[COUNT];
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    assert_int_equal(wg__recorder_open(&recorder, path, machine, START_NS, NULL), WG_OK);
    for (uint64_t i = 0; i < COUNT; i++) {
        samples[i] = (struct wg_sample){.t_ns = START_NS + i * i * 104729U * 977U, .span_ns = i};
        for (int metric = 0; metric < WG_METRIC_COUNT; metric++)
            wg__sample_set(&samples[i], (enum wg_metric)metric, random_double(&rng));
        assert_int_equal(wg__recorder_add_sample(recorder, 0, &samples[i], NULL), WG_OK);
    }
    assert_int_equal(wg__recorder_close(recorder, 0, NULL), WG_OK); /* ends with the last */
    wg_machine_close(machine);
    struct wg_recording *recording = read_recording(path);
    assert_int_equal(recording->answer_count, COUNT);
    assert_int_equal(recording->end_ns, samples[COUNT - 1].t_ns - START_NS);
    for (size_t i = 0; i < COUNT; i++) {
        struct wg_sample expected = samples[i];
        expected.t_ns -= START_NS;
        assert_memory_equal(&recording->devices[0].answers[i].sample, &expected, sizeof expected);
    }
    wg__recording_close(recording);
    scratch_close(&scratch);
}

static void a_recording_that_is_cut_anywhere_is_read_up_to_there(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "a.trace");
    record(path);
    size_t length = 0;
    char *bytes = scratch_read(path, &length);
    size_t lines = 0;
    size_t described = 0; /* bytes of the lines that say what the machine is */
    for (size_t i = 0; i < length && lines < 5; i++) {
        lines += bytes[i] == '\n';
        described = i;
    }
    size_t before = 0;
    for (size_t cut = 0; cut < length; cut += cut + 64 < described ? 61 : 1) {
        struct wg_recording *recording = NULL;
        struct wg_error err = {0};
        const enum wg_code code = wg__recording_open_memory(&recording, "cut", bytes, cut, &err);
        if (cut < described) {
            assert_int_equal(code, WG_EDATA);
            continue;
        }
        if (code != WG_OK)
            fail_msg("cut at %zu of %zu: %s", cut, length, err.text);
        const bool is_whole_line = bytes[cut - 1] == '\n' || bytes[cut] == '\n';
        assert_int_equal(recording->cut_line != 0, !is_whole_line);
        assert_true(recording->answer_count >= before && recording->answer_count <= before + 1);
        before = recording->answer_count;
        wg__recording_close(recording);
    }
    assert_int_equal(before, 5);
    struct wg_error err = {0};
    struct wg_recording *recording = NULL;
    assert_int_equal(wg__recording_open_memory(&recording, "cut", bytes, 0, &err), WG_EDATA);
    assert_string_equal(err.text, "cut:1: the file ends here, its first line is missing");
    free(bytes);
    scratch_close(&scratch);
}

static void gzipped_recordings_are_read_too(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "a.trace");
    record(path);
    size_t length = 0;
    char *bytes = scratch_read(path, &length);
    gzFile file = gzopen(path, "wb");
    assert_int_equal(gzwrite(file, bytes, (unsigned)length), length);
    assert_int_equal(gzclose(file), Z_OK);
    struct wg_recording *recording = read_recording(path);
    assert_int_equal(recording->answer_count, 5);
    wg__recording_close(recording);
    free(bytes);
    scratch_close(&scratch);
}

#define HEADER                                                                                     \
    "{\"schema\":\"wattgov.machine/1\",\"wattgov\":\"0.1.0\",\"backend_count\":0,"                 \
    "\"device_count\":1}\n"
#define DEVICE_WITH(more)                                                                          \
    "{\"device\":0,\"kind\":\"gpu\",\"index\":0,\"label\":\"gpu0\",\"id\":\"GPU-1\","              \
    "\"name\":\"A\",\"backend\":\"nvml\",\"memory_bytes\":0,\"state\":\"WG_OK\"" more "}\n"
#define DEVICE          DEVICE_WITH("")
#define POWER(t, value) "{\"device\":0,\"t_s\":" t ",\"metrics\":{\"power_w\":" value "}}\n"

static const struct {
    const char *text, *message;
} damaged[] = {
    {"", "r:1: the file ends here, its first line is missing"},
    {"hello\n", "r:1: column 5: "},
    {"[]\n", "r:1: no JSON object"},
    {"{}\n", "r:1: 'schema' is missing"},
    {"{\"schema\":\"wattgov.machine/2\"}\n",
     "r:1: the schema is 'wattgov.machine/2', this version reads 'wattgov.machine/1'"},
    {"{\"schema\":7}\n", "r:1: 'schema' is no text"},
    {"{\"schema\":\"wattgov.machine/1\",\"wattgov\":\"0\",\"backend_count\":65,"
     "\"device_count\":1}\n",
     "r:1: 'backend_count' is not a whole number from 0 to 64"},
    {"{\"schema\":\"wattgov.machine/1\",\"wattgov\":\"0\",\"backend_count\":0,"
     "\"device_count\":4097}\n",
     "r:1: 'device_count' is not a whole number from 0 to 4096"},
    {"{\"schema\":\"wattgov.machine/1\",\"wattgov\":\"0\",\"backend_count\":0,"
     "\"device_count\":-1}\n",
     "'device_count' is not a whole number"},
    {HEADER, "r:2: the file ends here, lines of devices are missing"},
    {HEADER "{\"device\":1}\n", "r:2: device 1, expected 0"},
    {HEADER "{\"device\":0}\n", "r:2: 'kind' is missing"},
    {HEADER "{\"device\":0,\"device\":0}\n", "r:2: column "},
    {HEADER DEVICE_WITH(",\"uuid\":1"), "r:2: 'uuid' is no text"},
    {HEADER DEVICE_WITH(",\"is_mig\":1"), "r:2: 'is_mig' is neither true nor false"},
    {HEADER DEVICE_WITH(",\"mig_uuids\":[1]"), "r:2: 'mig_uuids' holds something that is no text"},
    {HEADER DEVICE_WITH(",\"meters\":{\"power_w\":1}"),
     "r:2: meter 'power_w': 'power_w' is no object"},
    {HEADER DEVICE_WITH(",\"meters\":{\"power_w\":{\"present\":true}}"),
     "r:2: meter 'power_w': 'source' is missing"},
    {HEADER DEVICE_WITH(",\"meters\":{\"power_w\":{\"source\":\"s\"}}"),
     "r:2: meter 'power_w': 'why_not' is missing"},
    {HEADER DEVICE_WITH(",\"meters\":{\"power_w\":{\"present\":true,\"source\":\"s\","
                        "\"update_period_s\":-1}}"),
     "r:2: meter 'power_w': 'update_period_s' is not a number from 0 to 1e+06"},
    {HEADER DEVICE_WITH(",\"knobs\":{\"power_limit\":{\"present\":true,\"source\":\"s\","
                        "\"min\":2,\"max\":1}}"),
     "r:2: knob 'power_limit': 'max' is below 'min'"},
    {HEADER DEVICE_WITH(",\"knobs\":{\"gpu_clock\":{\"present\":true,\"source\":\"s\","
                        "\"min\":1,\"max\":2,\"levels\":[1,1]}}"),
     "r:2: knob 'gpu_clock': 'levels' are not rising numbers"},
    {HEADER DEVICE "{\"device\":1,\"t_s\":0,\"metrics\":{}}\n", "r:3: device 1, there are 1"},
    {HEADER DEVICE "{\"device\":0,\"metrics\":{}}\n", "r:3: 't_s' is missing"},
    {HEADER DEVICE POWER("-1", "1"), "r:3: 't_s' is not a number from 0 to 1e+08"},
    {HEADER DEVICE POWER("1e9", "1"), "r:3: 't_s' is not a number from 0 to 1e+08"},
    {HEADER DEVICE POWER("1e999", "1"), "r:3: column "},
    {HEADER DEVICE POWER("1", "NaN"), "r:3: column "},
    {HEADER DEVICE POWER("1", "\"x\""), "r:3: 'power_w' is no number"},
    {HEADER DEVICE "{\"device\":0,\"t_s\":1}\n", "r:3: 'metrics' is missing"},
    {HEADER DEVICE POWER("2", "1") POWER("1", "1"), "r:4: the time of device 0 goes back"},
    {HEADER DEVICE "{\"device\":0,\"t_s\":1,\"error\":\"WG_WHAT\",\"text\":\"\"}\n",
     "r:3: 'error': there is no code 'WG_WHAT'"},
    {HEADER DEVICE "{\"device\":0,\"t_s\":1,\"error\":\"WG_OK\",\"text\":\"\"}\n",
     "r:3: 'error' is WG_OK"},
    {HEADER DEVICE "{\"device\":0,\"t_s\":1,\"error\":\"WG_EIO\"}\n", "r:3: 'text' is missing"},
    {HEADER DEVICE "{\"device\":0,\"t_s\":1,\"metrics\":{},\"throttle\":[1]}\n",
     "r:3: 'throttle' holds something that is no text"},
    {HEADER DEVICE POWER("2", "1") "{\"end\":true,\"t_s\":1}\n",
     "r:4: the recording ends before its last answer"},
    {HEADER DEVICE "{\"end\":true,\"t_s\":1}\n" POWER("2", "1"),
     "r:4: something behind the end of the recording"},
};

static void damaged_recordings_are_refused_with_file_and_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        struct wg_recording *recording = NULL;
        struct wg_error err = {0};
        const enum wg_code code = wg__recording_open_memory(&recording, "r", damaged[i].text,
                                                            strlen(damaged[i].text), &err);
        if (code != WG_EDATA || strstr(err.text, damaged[i].message) == NULL)
            fail_msg("row %zu: '%s', expected '%s'", i, err.text, damaged[i].message);
        assert_null(recording);
    }
}

static void what_a_newer_version_may_add_is_left_out_and_counted(void **state)
{
    (void)state;
    static const char text[] =
        HEADER DEVICE_WITH(",\"colour\":\"green\",\"meters\":{\"smell\":{\"present\":true}"
                           "}") "\n{\"device\":0,\"t_s\":1,\"metrics\":{\"power_w\":null,"
                                "\"smell\":1,"
                                "\"energy_j\":3},\"throttle\":[\"boredom\",\"idle\"]}\n";
    struct wg_recording *recording = NULL;
    struct wg_error err = {0};
    if (wg__recording_open_memory(&recording, "r", text, sizeof text - 1, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_int_equal(recording->unknown_keys, 3);
    const struct wg_sample *sample = &recording->devices[0].answers[0].sample;
    assert_int_equal(sample->present, 1U << WG_METRIC_ENERGY_J);
    assert_int_equal(sample->throttle, WG_THROTTLE_IDLE);
    assert_false(recording->is_closed);
    wg__recording_close(recording);
}

static void texts_can_do_nothing_to_a_terminal(void **state)
{
    (void)state;
    static const char text[] = HEADER DEVICE_WITH(",\"driver\":\"\\u001b[2J\\n5\"");
    struct wg_recording *recording = NULL;
    assert_int_equal(wg__recording_open_memory(&recording, "r", text, sizeof text - 1, NULL),
                     WG_OK);
    assert_string_equal(recording->devices[0].info.driver, "?[2J?5");
    wg__recording_close(recording);
}

static void a_recorder_reports_what_it_cannot_write(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    struct fake_world world = fake_world_of(1);
    struct wg_machine *machine = open_patient(&world);
    struct wg_recorder *recorder = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__recorder_open(&recorder, scratch_path(&scratch, "no/a"), machine, 0, &err),
                     WG_ENOENT);
    assert_non_null(strstr(err.text, "/no/a: cannot open for writing: No such file"));
    if (access("/dev/full", W_OK) == 0) {
        assert_int_equal(wg__recorder_open(&recorder, "/dev/full", machine, 0, &err), WG_EIO);
        assert_string_equal(err.text, "/dev/full: cannot write: No space left on device");
    }
    assert_null(recorder);
    const char *path = scratch_path(&scratch, "a.trace");
    assert_int_equal(wg__recorder_open(&recorder, path, machine, 0, &err), WG_OK);
    const struct wg_sample sample = sample_at(0.0, 1.0);
    assert_int_equal(wg__recorder_add_sample(recorder, 1, &sample, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "device 1 is not in the recording, it has 1"));
    assert_int_equal(wg__recorder_add_error(recorder, 1, 0, &err, &err), WG_EINVAL);
    assert_int_equal(wg__recorder_close(recorder, 0, &err), WG_OK);
    assert_int_equal(wg__recorder_close(NULL, 0, &err), WG_OK);
    wg_machine_close(machine);
    scratch_close(&scratch);
}

/* -- Replaying ----------------------------------------------------------------------------------
 */

static uint64_t now_of(void *context)
{
    return *(const uint64_t *)context;
}

static struct wg_machine *replay(const char *path, uint64_t *now_ns, const char *selector)
{
    char device[600];
    (void)snprintf(device, sizeof device, "replay:%s", path);
    const struct wg_machine_setup setup = {.replay_now_ns = now_of, .replay_context = now_ns};
    const struct wg_machine_opts opts =
        WG_MACHINE_OPTS(.device = device, .gpus = &selector, .gpu_count = selector != NULL);
    struct wg_machine *machine = NULL;
    struct wg_error err = {0};
    if (wg__machine_open_setup(&machine, &setup, &opts, &err) != WG_OK)
        fail_msg("%s", err.text);
    return machine;
}

static void devices_answer_what_they_answered_at_that_moment(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "a.trace");
    record(path);
    uint64_t now_ns = 1000000000000U;
    const uint64_t opened_ns = now_ns;
    struct wg_machine *machine = replay(path, &now_ns, NULL);
    assert_int_equal(wg_machine_device_count(machine), 3);
    assert_string_equal(info_of(machine, 0)->label, "gpu2");
    assert_string_equal(info_of(machine, 1)->label, "gpu3");
    assert_string_equal(info_of(machine, 0)->backend, "fake");
    assert_int_equal(info_of(machine, 2)->state, WG_ELOST);
    assert_string_equal(info_of(machine, 2)->state_text,
                        "cpu0: fakeProbe failed: GPU is lost (15)");
    assert_string_equal(wg_machine_backend(machine, 0)->text,
                        "3 devices, 5 answers over 0.350 s, recorded by wattgov " WG_VERSION);

    static const struct {
        uint64_t t_ns, answer_ns;
        double power_w;
    } rows[] = {
        {0, 0, 50.0}, /* before the first one, as of now */
        {99999999, 99999999, 50.0},
        {100000000, 100000000, 50.0},
        {199999999, 100000000, 50.0},
        {200000000, 200000000, 55.5},
        {300000000, 300000000, 52.25},
        {350000000, 300000000, 52.25},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct wg_sample sample;
        now_ns = opened_ns + rows[i].t_ns;
        assert_int_equal(
            wg_device_read(wg_machine_device(machine, 0), 1U << WG_METRIC_POWER_W, &sample, NULL),
            WG_OK);
        assert_int_equal(sample.present, 1U << WG_METRIC_POWER_W);
        assert_int_equal(sample.t_ns, opened_ns + rows[i].answer_ns);
        check_close(sample.values[WG_METRIC_POWER_W], rows[i].power_w, 0.0);
    }
    now_ns = opened_ns + 150000000U;
    expect_power(machine, 1, 60.0);
    now_ns = opened_ns + 200000000U;
    expect_failure(machine, 1, WG_ELOST, "gpu3: call failed: lost (15)");
    now_ns = opened_ns + 350000001U;
    expect_failure(machine, 0, WG_ESTATE, "gpu2: the recording has ended after 0.350 s");
    wg_machine_close(machine);
    scratch_close(&scratch);
}

static void gpus_of_a_recording_are_chosen_by_their_recorded_numbers(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "a.trace");
    record(path);
    uint64_t now_ns = 0;
    static const char *const selectors[] = {"3", "GPU-two"};
    /* What this machine's environment hides is none of the recording's business. */
    assert_int_equal(setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
    for (size_t i = 0; i < 2; i++) {
        struct wg_machine *machine = replay(path, &now_ns, selectors[i]);
        assert_int_equal(wg_machine_device_count(machine), 2);
        assert_string_equal(info_of(machine, 0)->label, "gpu3");
        assert_string_equal(info_of(machine, 1)->label, "cpu0");
        wg_machine_close(machine);
    }
    struct wg_machine *machine = replay(path, &now_ns, NULL);
    assert_int_equal(wg_machine_device_count(machine), 3);
    wg_machine_close(machine);
    assert_int_equal(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
    scratch_close(&scratch);
}

static void the_public_way_to_a_replay_reports_bad_files(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    char device[600];
    struct wg_machine *machine = NULL;
    struct wg_error err = {0};
    (void)snprintf(device, sizeof device, "replay:%s", scratch_path(&scratch, "none"));
    const struct wg_machine_opts opts = WG_MACHINE_OPTS(.device = device);
    assert_int_equal(wg_machine_open(&machine, &opts, &err), WG_ENOENT);
    assert_non_null(strstr(err.text, "/none: cannot open: No such file or directory"));
    scratch_write(scratch.path, "x\n", 2);
    assert_int_equal(wg_machine_open(&machine, &opts, &err), WG_EDATA);
    assert_non_null(strstr(err.text, "/none:1: column "));
    assert_null(machine);
    record(scratch.path);
    assert_int_equal(wg_machine_open(&machine, &opts, &err), WG_OK);
    assert_int_equal(wg_machine_device_count(machine), 3);
    wg_machine_close(machine);
    scratch_close(&scratch);
}

static enum wg_code record_and_replay(struct wg_machine *machine, const char *path,
                                      struct wg_error *err)
{
    struct wg_recorder *recorder = NULL;
    enum wg_code code = wg__recorder_open(&recorder, path, machine, START_NS, err);
    for (int i = 0; i < 40 && code == WG_OK; i++) {
        const struct wg_sample sample = sample_at(0.1 * i, 1.0);
        code = wg__recorder_add_sample(recorder, 0, &sample, err);
    }
    if (code == WG_OK)
        code = wg__recorder_close(recorder, START_NS, err);
    else
        (void)wg__recorder_close(recorder, START_NS, NULL);
    if (code != WG_OK)
        return code;
    char device[600];
    (void)snprintf(device, sizeof device, "replay:%s", path);
    static const char *const selectors[] = {"0"};
    const struct wg_machine_opts opts =
        WG_MACHINE_OPTS(.device = device, .gpus = selectors, .gpu_count = 1);
    struct wg_machine *replayed = NULL;
    code = wg_machine_open(&replayed, &opts, err);
    wg_machine_close(replayed);
    return code;
}

static void every_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "a.trace");
    struct fake_world world = fake_world_of(1);
    struct wg_machine *machine = open_patient(&world);
    size_t failures = 0;
    for (size_t nth = 1;; nth++) {
        struct wg_error err = {0};
        wg__alloc_fail_from(nth);
        const enum wg_code code = record_and_replay(machine, path, &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            break;
        if (code != WG_ENOMEM)
            fail_msg("allocation %zu: %s", nth, err.text);
        assert_non_null(strstr(err.text, "out of memory"));
        failures++;
    }
    assert_in_range(failures, 25, 100);
    wg_machine_close(machine);
    scratch_close(&scratch);
}

int main(void)
{
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_recorded_is_read_back),
        cmocka_unit_test(every_double_and_every_nanosecond_survives),
        cmocka_unit_test(a_recording_that_is_cut_anywhere_is_read_up_to_there),
        cmocka_unit_test(gzipped_recordings_are_read_too),
        cmocka_unit_test(damaged_recordings_are_refused_with_file_and_line),
        cmocka_unit_test(what_a_newer_version_may_add_is_left_out_and_counted),
        cmocka_unit_test(texts_can_do_nothing_to_a_terminal),
        cmocka_unit_test(a_recorder_reports_what_it_cannot_write),
        cmocka_unit_test(devices_answer_what_they_answered_at_that_moment),
        cmocka_unit_test(gpus_of_a_recording_are_chosen_by_their_recorded_numbers),
        cmocka_unit_test(the_public_way_to_a_replay_reports_bad_files),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaks_nothing),
    };
    return run_tests(tests);
}
