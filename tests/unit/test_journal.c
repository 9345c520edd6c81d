/* SPDX-License-Identifier: MIT
 *
 * The journal against a model of what it must mean: random histories, read back whole and cut off
 * at each byte.
 */
#include "device/journal.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "device/journal_lines.h"
#include "support/check.h"
#include "support/scratch.h"

enum { KNOBS = 3, LINES = 40, BYTES_MAX = 1 << 16 };

static const struct wg_journal_header header = {.pid = 4711,
                                                .start = 99,
                                                .boot = "b",
                                                .holder = "train: \"a\"\n\xff",
                                                .root = "/",
                                                .virtual_gpu = "",
                                                .timeout_ms = 5000};

struct scene {
    struct scratch scratch;
    char path[512];
    struct wg_journal journal;
};

static int open_file(const char *path, int flags)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
    scratch_require(fd >= 0, path);
    return fd;
}

static void open_scene(struct scene *scene)
{
    struct wg_error err = {0};
    scratch_open(&scene->scratch);
    (void)snprintf(scene->path, sizeof scene->path, "%s",
                   scratch_path(&scene->scratch, "1.journal"));
    if (wg__journal_begin(&scene->journal, open_file(scene->path, O_CREAT | O_TRUNC), scene->path,
                          &header, &err) != WG_OK)
        fail_msg("%s", err.text);
}

static void close_scene(struct scene *scene)
{
    wg__journal_fini(&scene->journal);
    scratch_close(&scene->scratch);
}

/* The values that the journal may leave a knob at, told by a list of its own. */
struct expected {
    bool is_taken;
    double original;
    double values[LINES];
    size_t count;
    bool is_confirmed;
};

struct history {
    struct expected knobs[KNOBS];
    uint64_t end; /* bytes of the journal then */
};

static const struct wg_journal_knob knobs[KNOBS] = {
    {.device = "GPU-0", .label = "gpu0", .knob = WG_KNOB_POWER_LIMIT, .step = 0.001},
    {.device = "GPU-0", .label = "gpu0", .knob = WG_KNOB_GPU_CLOCK, .step = NAN},
    {.device = "GPU-1", .label = "gpu1", .knob = WG_KNOB_POWER_LIMIT, .step = 0.001},
};

static void take(struct scene *scene, struct expected *expected, size_t i, double original)
{
    struct wg_journal_knob knob = knobs[i];
    knob.original = original;
    assert_int_equal(wg__journal_take(&scene->journal, &knob, NULL), WG_OK);
    *expected = (struct expected){.is_taken = true, .original = original};
}

/* One step of a history. */
static void step(struct scene *scene, struct expected *expected, size_t i, struct wg_rng *rng)
{
    struct wg_journal_knob *knob =
        wg__journal_find(&scene->journal, knobs[i].device, knobs[i].knob);
    assert_int_equal(knob != NULL, expected->is_taken);
    const double value = 100.0 + 200.0 * wg__rng_uniform(rng);
    const size_t unsure = expected->count - (expected->is_confirmed ? 1U : 0U);
    if (knob == NULL) {
        take(scene, expected, i, wg__rng_below(rng, 3) == 0 ? (double)NAN : value);
        return;
    }
    switch (wg__rng_below(rng, 8)) {
    case 0:
        assert_int_equal(wg__journal_given_back(&scene->journal, knob, false, NULL), WG_OK);
        *expected = (struct expected){.is_taken = false};
        return;
    case 1:
    case 2:
        if (expected->count == 0)
            return;
        assert_int_equal(wg__journal_applied(&scene->journal, knob, value, NULL), WG_OK);
        expected->values[0] = value;
        expected->count = 1;
        expected->is_confirmed = true;
        return;
    case 3:
        if (unsure == 0)
            return;
        assert_int_equal(wg__journal_refused(&scene->journal, knob, NULL), WG_OK);
        expected->count--;
        return;
    default:
        assert_int_equal(wg__journal_set(&scene->journal, knob, value, NULL), WG_OK);
        expected->values[expected->count++] = value;
    }
}

static void expect_model(const struct wg_journal *journal, const struct history *history)
{
    for (size_t i = 0; i < KNOBS; i++) {
        const struct expected *expected = &history->knobs[i];
        const struct wg_journal_knob *knob =
            wg__journal_find(journal, knobs[i].device, knobs[i].knob);
        assert_int_equal(knob != NULL, expected->is_taken);
        if (knob == NULL)
            continue;
        assert_int_equal(isnan(knob->original), isnan(expected->original));
        if (!isnan(expected->original))
            check_close(knob->original, expected->original, 0.0);
        assert_int_equal(knob->value_count, expected->count);
        assert_int_equal(knob->is_confirmed, expected->is_confirmed);
        for (size_t j = 0; j < expected->count; j++)
            check_close(knob->values[j], expected->values[j], 0.0);
        assert_string_equal(knob->label, knobs[i].label);
    }
}

static void expect_read(struct scene *scene, const struct history *history)
{
    struct wg_journal read;
    struct wg_error err = {0};
    if (wg__journal_read(&read, open_file(scene->path, 0), false, scene->path, &err) != WG_OK)
        fail_msg("%s", err.text);
    expect_model(&read, history);
    assert_int_equal(read.length, history->end);
    wg__journal_fini(&read);
}

static void what_was_written_is_what_is_read(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct scene scene;
        struct wg_rng rng;
        struct history history = {.end = 0};
        wg__rng_init(&rng, seed);
        open_scene(&scene);
        for (size_t line = 0; line < LINES; line++) {
            const size_t i = wg__rng_below(&rng, KNOBS);
            step(&scene, &history.knobs[i], i, &rng);
        }
        history.end = scene.journal.length;
        expect_model(&scene.journal, &history);
        expect_read(&scene, &history);
        close_scene(&scene);
    }
}

/* A death at any byte: what is read is what the whole lines before it say. */
static void cut_off_anywhere_it_says_what_its_whole_lines_say(void **state)
{
    (void)state;
    static struct history histories[LINES + 1];
    struct scene scene;
    struct wg_rng rng;
    wg__rng_init(&rng, 7);
    open_scene(&scene);
    histories[0] = (struct history){.end = scene.journal.length};
    for (size_t line = 0; line < LINES; line++) {
        const size_t i = wg__rng_below(&rng, KNOBS);
        histories[line + 1] = histories[line];
        step(&scene, &histories[line + 1].knobs[i], i, &rng);
        histories[line + 1].end = scene.journal.length;
    }
    size_t at = LINES;
    for (uint64_t length = scene.journal.length; length >= histories[0].end; length--) {
        while (histories[at].end > length)
            at--;
        assert_int_equal(truncate(scene.path, (off_t)length), 0);
        expect_read(&scene, &histories[at]);
    }
    /* Less than its header: its holder died before it could set anything. */
    for (uint64_t length = histories[0].end; length-- > 0;) {
        struct wg_journal read;
        assert_int_equal(truncate(scene.path, (off_t)length), 0);
        assert_int_equal(wg__journal_read(&read, open_file(scene.path, 0), false, scene.path, NULL),
                         WG_OK);
        assert_true(read.is_ended);
        wg__journal_fini(&read);
    }
    close_scene(&scene);
}

/* Who finds half a line and goes on writes a whole one in its place. */
static void half_a_line_is_cut_off_before_the_next(void **state)
{
    (void)state;
    struct scene scene;
    struct history history = {.end = 0};
    open_scene(&scene);
    take(&scene, &history.knobs[0], 0, 300);
    const int fd = open_file(scene.path, O_APPEND);
    static const char half[] = "{\"set\":\"power_limit\",\"device\":\"GPU-0\",\"value\":1";
    assert_int_equal(write(fd, half, sizeof half - 1), sizeof half - 1);
    struct wg_journal read;
    assert_int_equal(wg__journal_read(&read, fd, false, scene.path, NULL), WG_OK);
    assert_true(read.is_torn);
    assert_int_equal(wg__journal_end(&read, NULL), WG_OK);
    wg__journal_fini(&read);
    assert_int_equal(wg__journal_read(&read, open_file(scene.path, 0), false, scene.path, NULL),
                     WG_OK);
    assert_true(read.is_ended);
    assert_false(read.is_torn);
    wg__journal_fini(&read);
    close_scene(&scene);
}

/* One that nobody reads would leave its settings behind. */
static void what_would_be_too_long_to_be_read_is_not_written(void **state)
{
    (void)state;
    static const struct wg_journal_knob knob = {
        .device = "GPU-0", .label = "gpu0", .original = 300, .step = 1};
    struct scene scene;
    struct wg_error err = {0};
    open_scene(&scene);
    const uint64_t length = scene.journal.length;
    scene.journal.length = WG_JOURNAL_BYTES_MAX - 20; /* as after very many lines */
    assert_int_equal(wg__journal_take(&scene.journal, &knob, &err), WG_EIO);
    assert_non_null(strstr(err.text, "1.journal is full: 67108864 bytes"));
    assert_int_equal(scene.journal.knob_count, 0);
    scene.journal.length = length;
    assert_int_equal(wg__journal_take(&scene.journal, &knob, NULL), WG_OK);
    close_scene(&scene);
}

static void texts_of_any_bytes_come_back_as_text(void **state)
{
    (void)state;
    struct scene scene;
    struct wg_journal read;
    open_scene(&scene);
    assert_int_equal(wg__journal_read(&read, open_file(scene.path, 0), false, scene.path, NULL),
                     WG_OK);
    assert_string_equal(read.header.holder, "train: \"a\"\n\xef\xbf\xbd");
    assert_int_equal(read.header.pid, 4711);
    assert_int_equal(read.header.start, 99);
    assert_int_equal(read.header.timeout_ms, 5000);
    wg__journal_fini(&read);
    close_scene(&scene);
}

static void what_may_stand_there_is_judged(void **state)
{
    (void)state;
    double values[2] = {175, 120};
    const struct wg_journal_knob knob = {.knob = WG_KNOB_POWER_LIMIT,
                                         .original = 300,
                                         .step = 0.001,
                                         .values = values,
                                         .value_count = 2,
                                         .is_confirmed = true};
    static const struct {
        double found;
        enum wg_journal_verdict verdict;
    } cases[] = {
        {300, WG_JOURNAL_LEAVE},     {300.0009, WG_JOURNAL_LEAVE},
        {175, WG_JOURNAL_RESTORE},   {175.0009, WG_JOURNAL_RESTORE},
        {175.1, WG_JOURNAL_FOREIGN}, {120, WG_JOURNAL_RESTORE},
        {121, WG_JOURNAL_RESTORE}, /* asked for, never confirmed: a driver may have rounded */
        {125, WG_JOURNAL_FOREIGN},   {(double)NAN, WG_JOURNAL_RESTORE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(wg__journal_judge(&knob, cases[i].found), cases[i].verdict);
    struct wg_journal_knob other = knob;
    other.is_done = true;
    assert_int_equal(wg__journal_judge(&other, 175), WG_JOURNAL_LEAVE);
    other = knob;
    other.value_count = 0;
    assert_int_equal(wg__journal_judge(&other, (double)NAN), WG_JOURNAL_LEAVE);
    assert_true(wg__journal_is_same(&knob, (double)NAN, (double)NAN));
    assert_false(wg__journal_is_same(&knob, (double)NAN, 1));
    assert_true(wg__journal_is_same(&knob, 175, 175.0009));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_what_is_read),
        cmocka_unit_test(cut_off_anywhere_it_says_what_its_whole_lines_say),
        cmocka_unit_test(half_a_line_is_cut_off_before_the_next),
        cmocka_unit_test(what_would_be_too_long_to_be_read_is_not_written),
        cmocka_unit_test(texts_of_any_bytes_come_back_as_text),
        cmocka_unit_test(what_may_stand_there_is_judged),
    };
    return run_tests(tests);
}
