/* SPDX-License-Identifier: MIT
 *
 * Drives a served model as the tuner does, for the tests of src/live/workload_server.h: takes
 * options as NAME=VALUE, then steps, and prints one JSON object a step.
 *
 *     load_driver url=http://127.0.0.1:8000 model=m concurrency=2 -- set batch=4 delay=0.002
 *         warm measure min_s=1 max_s=2 relative_error=0.05 precise=p99_s recover
 *
 * NAME=VALUE behind `set` are settings (a VALUE that is no number is a label), behind `measure` and
 * `warm` parts of the plan. `wait` reads a line from standard input first.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/number.h"
#include "live/workload_server.h"

enum { LIST_MAX = 16 };

static const char *const outcomes[] = {"ok",   "cut",           "crashed",
                                       "hung", "out_of_memory", "interrupted"};

struct driver {
    struct wg_workload_server_opts opts;
    const char *shapes[LIST_MAX + 1], *files[LIST_MAX + 1];
    struct wg_server_knob_path paths[LIST_MAX];
    char *texts[LIST_MAX]; /* of the paths */
    size_t shape_count, file_count;
    struct wg_workload *workload;
    struct wg_workload_plan plan;
    const char *precise[LIST_MAX + 1];
    uint64_t stop_ns; /* 0: never */
    int marks;
};

__attribute__((noreturn)) static void die(const char *what)
{
    (void)fprintf(stderr, "load_driver: %s\n", what);
    exit(2);
}

static double number(const char *text)
{
    double value = 0;
    if (!wg__parse_double(text, &value))
        die(text);
    return value;
}

static bool should_stop(void *context)
{
    const struct driver *driver = context;
    return driver->stop_ns != 0 && wg__clock_ns() >= driver->stop_ns;
}

static void mark(bool begins, void *context)
{
    struct driver *driver = context;
    driver->marks += begins ? 1 : 10;
}

/* The text option called `name`; NULL: it is none. */
static const char **text_option(struct driver *driver, const char *name)
{
    struct wg_workload_server_opts *opts = &driver->opts;
    const struct {
        const char *name;
        const char **text;
    } texts[] = {
        {"url", &opts->url},
        {"control_url", &opts->control_url},
        {"model", &opts->model},
        {"model_version", &opts->model_version},
        {"prompt", &opts->prompt},
        {"arrivals", &opts->arrivals},
        {"config_file", &opts->config_file},
        {"command", &opts->command},
        {"ready_path", &opts->ready_path},
        {"log_file", &opts->log_file},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(texts[i].name, name) == 0)
            return texts[i].text;
    }
    return NULL;
}

/* Other options; false: there is none of that name. */
static bool take_number(struct driver *driver, const char *name, const char *value)
{
    struct wg_workload_server_opts *opts = &driver->opts;
    if (strcmp(name, "concurrency") == 0)
        opts->concurrency = (unsigned)number(value);
    else if (strcmp(name, "max_outstanding") == 0)
        opts->max_outstanding = (unsigned)number(value);
    else if (strcmp(name, "max_tokens") == 0)
        opts->max_tokens = (unsigned)number(value);
    else if (strcmp(name, "timeout_s") == 0)
        opts->timeout_s = number(value);
    else if (strcmp(name, "warm_up_s") == 0)
        opts->warm_up_s = number(value);
    else if (strcmp(name, "ready_s") == 0)
        opts->ready_s = number(value);
    else if (strcmp(name, "seed") == 0)
        opts->seed = (uint64_t)number(value);
    else if (strcmp(name, "json") == 0)
        opts->is_json = number(value) != 0;
    else if (strcmp(name, "chat") == 0)
        opts->is_chat = number(value) != 0;
    else if (strcmp(name, "stream") == 0)
        opts->is_streaming = number(value) != 0;
    else if (strcmp(name, "foreign") == 0)
        opts->is_foreign_load = number(value) != 0;
    else
        return false;
    return true;
}

/* Options that may come several times; false: there is none of that name. */
static bool take_list(struct driver *driver, const char *name, const char *value)
{
    struct wg_workload_server_opts *opts = &driver->opts;
    if (strcmp(name, "shape") == 0 && driver->shape_count < LIST_MAX) {
        driver->shapes[driver->shape_count++] = value;
        opts->shapes = driver->shapes;
    } else if (strcmp(name, "file") == 0 && driver->file_count < LIST_MAX) {
        driver->files[driver->file_count++] = value;
        opts->body_files = driver->files;
    } else if (strcmp(name, "path") == 0 && opts->path_count < LIST_MAX) {
        char *knob = strdup(value); /* KNOB:PATH */
        char *colon = knob != NULL ? strchr(knob, ':') : NULL;
        if (colon == NULL)
            die(value);
        *colon = '\0';
        driver->texts[opts->path_count] = knob;
        driver->paths[opts->path_count++] =
            (struct wg_server_knob_path){.knob = knob, .path = colon + 1};
        opts->paths = driver->paths;
    } else {
        return false;
    }
    return true;
}

static void take_option(struct driver *driver, const char *name, const char *value)
{
    struct wg_workload_server_opts *opts = &driver->opts;
    const char **text = text_option(driver, name);
    if (text != NULL) {
        *text = value;
    } else if (strcmp(name, "protocol") == 0) {
        if (!wg__server_protocol_parse(value, &opts->protocol))
            die(value);
    } else if (strcmp(name, "batch_by") == 0) {
        opts->batch_by = *value == 'c' ? WG_SERVER_BATCH_BY_CLIENT : WG_SERVER_BATCH_BY_SERVER;
    } else if (strcmp(name, "statistics") == 0) {
        opts->statistics =
            *value == 't' ? WG_SERVER_STATISTICS_TRITON : WG_SERVER_STATISTICS_CLIENT;
    } else if (strcmp(name, "data") == 0) {
        opts->data = *value == 'z' ? WG_SERVER_DATA_ZEROS : WG_SERVER_DATA_RANDOM;
    } else if (!take_list(driver, name, value) && !take_number(driver, name, value)) {
        die(name);
    }
}

/* "NAME=VALUE": the value, the name cut off; NULL: it is a word. */
static char *split(char *word)
{
    char *equals = strchr(word, '=');
    if (equals == NULL)
        return NULL;
    *equals = '\0';
    return equals + 1;
}

static void print(struct wg_buffer *text)
{
    if (text->failed)
        die("out of memory");
    (void)printf("%s\n", text->data);
    (void)fflush(stdout);
    wg__buffer_fini(text);
}

static void begin(struct wg_json *json, struct wg_buffer *text, const char *step)
{
    wg__buffer_init(text);
    wg__json_init(json, text);
    wg__json_object(json);
    wg__json_member_string(json, "step", step);
}

static void tell(const char *step, enum wg_code code, const struct wg_error *err,
                 enum wg_workload_outcome outcome, const char *why, double switch_s)
{
    struct wg_buffer text;
    struct wg_json json;
    begin(&json, &text, step);
    wg__json_member_string(&json, "error", code != WG_OK ? err->text : NULL);
    wg__json_member_string(&json, "outcome", outcomes[outcome]);
    wg__json_member_string(&json, "why", why);
    wg__json_member_double(&json, "switch_s", switch_s);
    wg__json_close(&json);
    print(&text);
}

static void tell_sample(const struct driver *driver, enum wg_code code, const struct wg_error *err,
                        const struct wg_workload_sample *sample)
{
    struct wg_buffer text;
    struct wg_json json;
    begin(&json, &text, "measure");
    wg__json_member_string(&json, "error", code != WG_OK ? err->text : NULL);
    wg__json_member_string(&json, "outcome", outcomes[sample->outcome]);
    wg__json_member_string(&json, "why", sample->why);
    wg__json_member_double(&json, "time_s", sample->time_s);
    wg__json_member_double(&json, "requests", sample->requests);
    wg__json_member_uint(&json, "marks", (uint64_t)driver->marks);
    static const char *const keys[] = {"figures", "errors"};
    for (int of_error = 0; of_error < 2; of_error++) {
        wg__json_key(&json, keys[of_error]);
        wg__json_object(&json);
        for (size_t i = 0; i < sample->figure_count; i++)
            wg__json_member_double(&json, sample->figures[i].name,
                                   of_error != 0 ? sample->figures[i].error
                                                 : sample->figures[i].value);
        wg__json_close(&json);
    }
    wg__json_close(&json);
    print(&text);
}

static void take_plan(struct driver *driver, const char *name, char *value)
{
    struct wg_workload_plan *plan = &driver->plan;
    size_t count = 0;
    if (value == NULL)
        die(name);
    if (strcmp(name, "min_s") == 0)
        plan->min_s = number(value);
    else if (strcmp(name, "max_s") == 0)
        plan->max_s = number(value);
    else if (strcmp(name, "relative_error") == 0)
        plan->relative_error = number(value);
    else if (strcmp(name, "hung_s") == 0)
        plan->hung_s = number(value);
    else if (strcmp(name, "cut_name") == 0)
        plan->cut_name = value;
    else if (strcmp(name, "cut_above") == 0)
        plan->cut_above = number(value);
    else if (strcmp(name, "stop_s") == 0)
        driver->stop_ns = wg__clock_ns() + (uint64_t)(number(value) * 1e9);
    else if (strcmp(name, "precise") != 0)
        die(name);
    else
        while (*value != '\0' && count < LIST_MAX) {
            driver->precise[count++] = value;
            value += strcspn(value, ",");
            if (*value == ',')
                *value++ = '\0';
        }
}

static void set(struct driver *driver, char **words, size_t count)
{
    struct wg_workload_setting settings[LIST_MAX];
    for (size_t i = 0; i < count; i++) {
        const char *value = split(words[i]);
        settings[i] = (struct wg_workload_setting){.name = words[i]};
        if (!wg__parse_double(value, &settings[i].value))
            settings[i].label = value;
    }
    enum wg_workload_outcome outcome = WG_WORKLOAD_OK;
    char why[WG_WORKLOAD_WHY_SIZE] = "";
    struct wg_error err = {.code = WG_OK};
    const enum wg_code code =
        driver->workload->ops->set(driver->workload, settings, count, &outcome, why, &err);
    tell("set", code, &err, outcome, why, wg__workload_server_switch_s(driver->workload));
}

static void step(struct driver *driver, const char *name, char **words, size_t count)
{
    const struct wg_workload_ops *ops = driver->workload->ops;
    struct wg_error err = {.code = WG_OK};
    if (strcmp(name, "set") == 0) {
        set(driver, words, count);
        return;
    }
    if (strcmp(name, "wait") == 0) {
        int byte;
        do
            byte = getchar();
        while (byte != '\n' && byte != EOF);
        return;
    }
    if (strcmp(name, "recover") == 0) {
        const enum wg_code code = ops->recover(driver->workload, &err);
        tell("recover", code, &err, WG_WORKLOAD_OK, "", 0);
        return;
    }
    memset(driver->precise, 0, sizeof driver->precise);
    driver->plan = (struct wg_workload_plan){.min_s = 0.5,
                                             .max_s = 2,
                                             .hung_s = 10,
                                             .precise = driver->precise,
                                             .should_stop = should_stop,
                                             .mark = mark,
                                             .context = driver};
    driver->stop_ns = 0;
    driver->marks = 0;
    for (size_t i = 0; i < count; i++) {
        char *value = split(words[i]);
        take_plan(driver, words[i], value);
    }
    if (strcmp(name, "warm") == 0) {
        enum wg_workload_outcome outcome = WG_WORKLOAD_OK;
        char why[WG_WORKLOAD_WHY_SIZE] = "";
        const enum wg_code code =
            ops->warm_up(driver->workload, &driver->plan, &outcome, why, &err);
        tell("warm", code, &err, outcome, why, 0);
    } else if (strcmp(name, "measure") == 0) {
        struct wg_workload_sample sample;
        const enum wg_code code = ops->measure(driver->workload, &driver->plan, &sample, &err);
        tell_sample(driver, code, &err, &sample);
    } else {
        die(name);
    }
}

int main(int argc, char **argv)
{
    static struct driver driver;
    int at = 1;
    (void)signal(SIGPIPE, SIG_IGN);
    for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
        char *value = split(argv[at]);
        if (value == NULL)
            die(argv[at]);
        take_option(&driver, argv[at], value);
    }
    struct wg_error err = {.code = WG_OK};
    const enum wg_code code = wg__workload_server_open(&driver.workload, &driver.opts, &err);
    tell("open", code, &err, WG_WORKLOAD_OK, "", 0);
    if (code != WG_OK)
        return 1;
    for (at++; at < argc;) {
        const char *name = argv[at++];
        int end = at;
        while (end < argc && strchr(argv[end], '=') != NULL)
            end++;
        step(&driver, name, &argv[at], (size_t)(end - at));
        at = end;
    }
    driver.workload->ops->close(driver.workload);
    for (size_t i = 0; i < driver.opts.path_count; i++)
        free(driver.texts[i]);
    return 0;
}
