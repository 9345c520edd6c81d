/* SPDX-License-Identifier: MIT
 *
 * `wattgov top`: a live view of power, energy, clocks, limits and what holds them down.
 *
 * The meter samples in the background; at each interval the newest samples and the energy of a
 * window that stays open are drawn (top_view.c), keys are answered at once (top_screen.c). The
 * lists of processes are slow to get, so they are asked for only while they are shown, and at most
 * once a second, on threads of their own: a GPU that hangs costs its own lines, never a key or a
 * picture (process_reader.h).
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/device_args.h"
#include "cli/options.h"
#include "cli/process_list.h"
#include "cli/process_reader.h"
#include "cli/top_frame.h"
#include "cli/top_screen.h"
#include "cli/top_view.h"
#include "device/deadline.h"
#include "live/child.h"
#include "wattgov/window.h"

static const uint64_t ns_per_s = 1000000000;

/* So long a new picture waits for new lists, once: what comes later is in the next picture. */
static const uint64_t list_patience_ns = 50000000;
static const uint64_t close_patience_ns = 500000000;

enum { READY_TIMEOUT_MS = 1000 };

struct args {
    struct wg_device_args devices;
    double interval_s;
};

static const struct wg_option options[] = {
    WG_DEVICE_OPTIONS(struct args, devices),
    {.name = "interval",
     WG_OPTION_DURATION(struct args, interval_s),
     .value = "TIME",
     .min = 0.1,
     .max = 60,
     .help = "Time between two pictures."},
};

static const struct wg_option_set set = {
    .command = "wattgov top",
    .summary =
        "Shows power, energy since the start, clocks, limits, temperature and what holds the "
        "clocks down, live. Key ? explains the keys.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog = "examples:\n"
              "  wattgov top\n"
              "  wattgov top --gpu 0-3 --interval 500ms",
};

struct top {
    const struct args *args;
    struct wg_top_screen *screen;
    struct wg_machine *machine;
    struct wg_meter *meter;
    struct wg_window *window; /* since the start or the reset */
    const struct wg_device_info *const *infos;
    const struct wg_backend_info *const *backends;
    struct wg_window_result *results;  /* a device */
    struct wg_error *errors;           /* a device: why it has no sample */
    struct wg_process_reader *reader;  /* NULL until processes were shown */
    struct wg_process_list *processes; /* a device */
    uint64_t processes_ns;             /* when they were asked for */
    struct wg_top_row *rows;
    struct wg_top_state state;
    struct wg_top_frame frame;
};

static enum wg_code reset_energy(struct top *top, struct wg_error *err)
{
    struct wg_window *window = NULL;
    const enum wg_code code = wg_window_begin(&window, top->meter, "top", NULL, 0, err);
    if (code != WG_OK)
        return code;
    wg_window_free(top->window);
    top->window = window;
    return WG_OK;
}

static enum wg_code top_open(struct top *top, const struct args *args, struct wg_error *err)
{
    top->args = args;
    /* The screen first: its signals are blocked when the threads of the machine start. */
    enum wg_code code = wg__top_screen_open(&top->screen, err);
    if (code == WG_OK)
        code = wg__device_args_open(&args->devices, &top->machine, err);
    if (code == WG_OK)
        code = wg__machine_infos(top->machine, &top->infos, err);
    if (code == WG_OK)
        code = wg__machine_backends(top->machine, &top->backends, err);
    if (code != WG_OK)
        return code;
    const size_t count = wg_machine_device_count(top->machine);
    top->results = wg__alloc_zeroed(count + 1, sizeof *top->results);
    top->errors = wg__alloc_zeroed(count + 1, sizeof *top->errors);
    top->processes = wg__alloc_zeroed(count + 1, sizeof *top->processes);
    top->rows = wg__alloc_zeroed(count + 1, sizeof *top->rows);
    if (top->results == NULL || top->errors == NULL || top->processes == NULL || top->rows == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    top->state = (struct wg_top_state){.rows = top->rows,
                                       .row_count = count,
                                       .backends = top->backends,
                                       .backend_count = wg_machine_backend_count(top->machine),
                                       .interval_s = args->interval_s};
    code = wg_meter_open(&top->meter, top->machine, NULL, err);
    if (code != WG_OK)
        return code;
    (void)wg_meter_wait_ready(top->meter, READY_TIMEOUT_MS, NULL);
    return reset_energy(top, err);
}

/* Ends what asks the driver. It may hang there. */
static void end_readers(void *context)
{
    struct top *top = context;
    const bool has_stopped = wg__process_reader_stop(top->reader);
    wg_window_free(top->window);
    wg_meter_close(top->meter);
    if (has_stopped) /* else it uses the machine */
        wg_machine_close(top->machine);
}

/* Frees all, except where a driver hangs: the user has left and waits for no GPU, so what its call
 * uses stays until the process ends, which is next. */
static void top_close(struct top *top)
{
    struct wg_worker *worker = NULL;
    wg__top_screen_close(top->screen);
    enum wg_code code = wg__worker_new(&worker, NULL);
    if (code == WG_OK)
        code = wg__worker_call(worker, end_readers, NULL, top, close_patience_ns);
    wg__worker_free(worker);
    if (code == WG_ETIMEOUT)
        return;
    if (code != WG_OK) /* no memory, or no thread */
        end_readers(top);
    const size_t count = top->processes != NULL ? top->state.row_count : 0;
    for (size_t i = 0; i < count; i++)
        wg__process_list_fini(&top->processes[i]);
    wg__free((void *)top->infos);
    wg__free((void *)top->backends);
    wg__free(top->results);
    wg__free(top->errors);
    wg__free(top->processes);
    wg__free(top->rows);
    wg__top_frame_fini(&top->frame);
    wg__free(top);
}

/* Asks each GPU that answers; one that doesn't is left alone. */
static void ask_for_processes(struct top *top)
{
    for (size_t i = 0; i < top->state.row_count; i++)
        if (top->rows[i].trouble == NULL)
            wg__process_reader_ask(top->reader, i);
    wg__process_reader_wait(top->reader, list_patience_ns);
}

static void read_processes(struct top *top)
{
    if (!top->state.has_processes)
        return;
    const struct wg_device_args *args = &top->args->devices;
    const bool is_here = args->device == NULL;
    if (top->reader == NULL &&
        wg__process_reader_start(&top->reader, top->machine, is_here, args->root, NULL) != WG_OK) {
        top->state.has_processes = false; /* no memory, or no threads: the next key tries again */
        return;
    }
    const uint64_t now_ns = wg__clock_ns();
    if (now_ns - top->processes_ns >= ns_per_s) {
        top->processes_ns = now_ns;
        ask_for_processes(top);
    }
    for (size_t i = 0; i < top->state.row_count; i++) {
        struct wg_process_list *list = &top->processes[i];
        wg__process_reader_get(top->reader, i, list);
        top->rows[i].processes = list->items;
        top->rows[i].process_count = top->rows[i].trouble == NULL ? list->count : 0;
    }
}

/* The newest samples, and the energy up to now. */
static void look(struct top *top)
{
    struct wg_window_result total = {.energy_j = NAN};
    const size_t count = top->state.row_count;
    const bool has_energy = wg_window_read(top->window, &total, top->results, count, NULL) == WG_OK;
    for (size_t i = 0; i < count; i++) {
        struct wg_top_row *row = &top->rows[i];
        *row = (struct wg_top_row){.info = top->infos[i],
                                   .energy_j = has_energy ? top->results[i].energy_j : (double)NAN,
                                   .processes = row->processes,
                                   .process_count = row->process_count};
        if (wg_meter_latest(top->meter, i, &row->sample, &top->errors[i]) != WG_OK) {
            row->sample = (struct wg_sample){0};
            row->trouble = top->errors[i].text;
        }
    }
    top->state.total_energy_j = has_energy ? total.energy_j : (double)NAN;
    top->state.is_total_partial = has_energy && (total.flags & WG_WINDOW_PARTIAL) != 0;
    top->state.elapsed_s = total.time_s;
    read_processes(top);
}

static enum wg_code draw(struct top *top, struct wg_error *err)
{
    unsigned width, height;
    wg__top_screen_size(top->screen, &width, &height);
    const enum wg_code code = wg__top_frame_reset(&top->frame, width, height, err);
    if (code != WG_OK)
        return code;
    const size_t max = wg__top_view_scroll_max(&top->state, height);
    if (top->state.scroll > max)
        top->state.scroll = max;
    wg__top_view(&top->state, &top->frame);
    wg__top_screen_draw(top->screen, &top->frame);
    return WG_OK;
}

/* Moves by `rows`; draw() holds it within what there is. */
static void scroll_by(struct top *top, long rows)
{
    const size_t scroll = top->state.scroll;
    const size_t up = rows < 0 ? (size_t)-rows : 0;
    top->state.scroll = rows >= 0 ? scroll + (size_t)rows : scroll > up ? scroll - up : 0;
}

/* True: there is something new to read before the next picture. */
static bool answer(struct top *top, enum wg_top_key key)
{
    const long page = top->frame.height > 5 ? (long)top->frame.height - 5 : 1;
    switch (key) {
    case WG_TOP_KEY_PROCESSES:
        top->state.has_processes = !top->state.has_processes;
        return true;
    case WG_TOP_KEY_RESET:
        (void)reset_energy(top, NULL); /* without memory the old window goes on */
        return true;
    case WG_TOP_KEY_HELP:
        top->state.has_help = !top->state.has_help;
        return false;
    case WG_TOP_KEY_UP:
    case WG_TOP_KEY_DOWN:
        scroll_by(top, key == WG_TOP_KEY_UP ? -1 : 1);
        return false;
    case WG_TOP_KEY_PAGE_UP:
    case WG_TOP_KEY_PAGE_DOWN:
        scroll_by(top, key == WG_TOP_KEY_PAGE_UP ? -page : page);
        return false;
    case WG_TOP_KEY_HOME:
        top->state.scroll = 0;
        return false;
    case WG_TOP_KEY_END:
        top->state.scroll = wg__top_view_scroll_max(&top->state, top->frame.height);
        return false;
    case WG_TOP_KEY_NONE:
    case WG_TOP_KEY_QUIT:
    case WG_TOP_KEY_REDRAW:
    case WG_TOP_KEY_OTHER:
        break;
    }
    return false;
}

/* Until the user leaves, or a signal asks us to. */
static enum wg_code show(struct top *top, struct wg_error *err)
{
    const uint64_t interval_ns = (uint64_t)(top->args->interval_s * 1e9);
    uint64_t next_ns = wg__clock_ns();
    enum wg_code code = WG_OK;
    for (enum wg_top_key key = WG_TOP_KEY_NONE; key != WG_TOP_KEY_QUIT && code == WG_OK;
         key = wg__top_screen_wait(top->screen, next_ns)) {
        const bool is_asked = answer(top, key);
        const uint64_t now_ns = wg__clock_ns();
        if (is_asked || now_ns >= next_ns)
            look(top);
        if (now_ns >= next_ns)
            next_ns = now_ns + interval_ns;
        code = draw(top, err);
    }
    return code;
}

static int run(int argc, char *argv[])
{
    struct args args = {.devices = WG_DEVICE_ARGS_DEFAULT, .interval_s = 1};
    int status = WG_EXIT_OK;
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    struct wg_error err;
    struct top *top = wg__alloc_zeroed(1, sizeof *top); /* may outlive this function */
    if (top == NULL) {
        (void)wg__fail(&err, WG_ENOMEM, "out of memory");
        return wg__command_fail(&set, &err);
    }
    enum wg_code code = top_open(top, &args, &err);
    if (code == WG_OK)
        code = show(top, &err);
    const int signal = top->screen != NULL ? wg__top_screen_signal(top->screen) : 0;
    top_close(top); /* the terminal is itself again before we write to it */
    if (code != WG_OK)
        return wg__command_fail(&set, &err);
    return signal != 0 ? WG_EXIT_SIGNAL + signal : status;
}

const struct wg_command wg__command_top = {
    .name = "top", .summary = "Watch power, energy, clocks and limits live", .run = run};
