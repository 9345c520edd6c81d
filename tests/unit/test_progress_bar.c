/* SPDX-License-Identifier: MIT
 *
 * The progress bar on a pseudo-terminal, with a clock that the test moves.
 */
#include "cli/progress_bar.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/markup.h"
#include "support/check.h"

static const uint64_t SECOND = 1000000000;

struct terminal {
    int controller; /* we read here what was written to `fd` */
    int fd;
};

static struct terminal open_terminal(unsigned short columns)
{
    struct terminal terminal = {posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), -1};
    if (terminal.controller < 0 || grantpt(terminal.controller) != 0 ||
        unlockpt(terminal.controller) != 0)
        skip();
    terminal.fd = open(ptsname(terminal.controller), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal.fd >= 0);
    const struct winsize size = {.ws_row = 24, .ws_col = columns};
    assert_int_equal(ioctl(terminal.fd, TIOCSWINSZ, &size), 0);
    assert_int_equal(fcntl(terminal.controller, F_SETFL, O_NONBLOCK), 0);
    return terminal;
}

static void close_terminal(struct terminal terminal)
{
    (void)close(terminal.fd);
    (void)close(terminal.controller);
}

/* What was drawn since the last call. */
static const char *drawn(struct terminal terminal)
{
    static char text[4096];
    size_t length = 0;
    for (;;) {
        const ssize_t got = read(terminal.controller, text + length, sizeof text - 1 - length);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    text[length] = '\0';
    return text;
}

static void stays_silent_for_the_first_second(void **state)
{
    (void)state;
    const struct terminal terminal = open_terminal(80);
    struct wg_progress_bar progress;
    wg__progress_bar_init_at(&progress, terminal.fd, "simulating", "cases", 100, 5 * SECOND);
    wg__progress_bar_advance_at(&progress, 50, 5 * SECOND + SECOND - 1);
    wg__progress_bar_fini(&progress);
    assert_string_equal(drawn(terminal), "");
    close_terminal(terminal);
}

static void draws_ten_times_a_second_and_erases_at_the_end(void **state)
{
    (void)state;
    const struct terminal terminal = open_terminal(80);
    struct wg_progress_bar progress;
    wg__progress_bar_init_at(&progress, terminal.fd, "simulating", "cases", 100, 5 * SECOND);
    wg__progress_bar_advance_at(&progress, 25, 7 * SECOND);
    const char *line = drawn(terminal);
    assert_int_equal(line[0], '\r');
    assert_non_null(strstr(line, "simulating  ━"));
    assert_non_null(strstr(line, " 25 %  25/100 cases  12.5/s  6 s left\033[K"));
    wg__progress_bar_advance_at(&progress, 1, 7 * SECOND + SECOND / 10 - 1);
    assert_string_equal(drawn(terminal), "");
    wg__progress_bar_advance_at(&progress, 1, 7 * SECOND + SECOND / 10);
    assert_non_null(strstr(drawn(terminal), "27/100"));
    wg__progress_bar_fini(&progress);
    assert_string_equal(drawn(terminal), "\r\033[K");
    wg__progress_bar_fini(&progress);
    assert_string_equal(drawn(terminal), "");
    close_terminal(terminal);
}

static void stays_silent_off_a_terminal(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    struct wg_progress_bar progress;
    wg__progress_bar_init_at(&progress, ends[1], "simulating", "cases", 10, 0);
    wg__progress_bar_advance_at(&progress, 5, 100 * SECOND);
    wg__progress_bar_fini(&progress);
    char byte;
    assert_true(read(ends[0], &byte, 1) == -1 && errno == EAGAIN);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void fits_any_width(void **state)
{
    (void)state;
    const struct wg_progress_bar progress = {.label = "simulating", .unit = "cases", .total = 2000};
    static const uint64_t done[] = {0, 1, 999, 1140, 2000, 5000};
    for (unsigned columns = 0; columns <= 250; columns++) {
        for (size_t i = 0; i < sizeof done / sizeof done[0]; i++) {
            char line[1024];
            const size_t length =
                wg__progress_bar_line(line, sizeof line, columns, &progress, done[i], 3 * SECOND);
            assert_int_equal(length, strlen(line));
            assert_true(wg__text_width(line) <= columns);
        }
    }
}

static void shows_bar_numbers_rate_and_time_left(void **state)
{
    (void)state;
    char line[1024];
    const struct wg_progress_bar progress = {.label = "job", .unit = "runs", .total = 40000};
    wg__progress_bar_line(line, sizeof line, 58, &progress, 10000, 4 * SECOND);
    assert_string_equal(line, "job  ━━╸──────   25 %  10000/40000 runs  2.5k/s  12 s left");
    wg__progress_bar_line(line, sizeof line, 40, &progress, 40000, 4 * SECOND);
    assert_string_equal(line, "job  100 %  40000/40000 runs  10.0k/s");
    wg__progress_bar_line(line, sizeof line, 80, &progress, 1, 4 * SECOND);
    assert_non_null(strstr(line, "0.25/s  44:26 h left"));
    const struct wg_progress_bar nothing = {.label = "job", .unit = "runs"};
    wg__progress_bar_line(line, sizeof line, 80, &nothing, 0, 0);
    assert_non_null(strstr(line, "100 %  0/0 runs"));
}

static void *advance_often(void *argument)
{
    for (uint64_t i = 0; i < 10000; i++)
        wg__progress_bar_advance_at(argument, 1, 2 * SECOND + i * (SECOND / 1000));
    return NULL;
}

static void *drain(void *argument)
{
    char bytes[4096];
    const int fd = *(int *)argument;
    while (read(fd, bytes, sizeof bytes) > 0)
        continue;
    return NULL;
}

static void counts_exactly_from_several_threads(void **state)
{
    (void)state;
    struct terminal terminal = open_terminal(80);
    assert_int_equal(fcntl(terminal.controller, F_SETFL, 0), 0); /* the reader waits */
    struct wg_progress_bar progress;
    wg__progress_bar_init_at(&progress, terminal.fd, "simulating", "steps", 40000, 0);
    pthread_t reader, workers[4];
    assert_int_equal(pthread_create(&reader, NULL, drain, &terminal.controller), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&workers[i], NULL, advance_often, &progress), 0);
    for (int i = 0; i < 4; i++)
        (void)pthread_join(workers[i], NULL);
    assert_true(atomic_load(&progress.done) == 40000);
    assert_true(atomic_load(&progress.is_drawn));
    wg__progress_bar_fini(&progress);
    (void)close(terminal.fd); /* ends the reader */
    (void)pthread_join(reader, NULL);
    (void)close(terminal.controller);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stays_silent_for_the_first_second),
        cmocka_unit_test(draws_ten_times_a_second_and_erases_at_the_end),
        cmocka_unit_test(stays_silent_off_a_terminal),
        cmocka_unit_test(fits_any_width),
        cmocka_unit_test(shows_bar_numbers_rate_and_time_left),
        cmocka_unit_test(counts_exactly_from_several_threads),
    };
    return run_tests(tests);
}
