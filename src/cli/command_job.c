/* SPDX-License-Identifier: MIT
 *
 * `wattgov job`: jobs that recur. Here: the tree of its commands, and making, listing and removing
 * jobs.
 *
 * Threads: the main thread.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/number.h"
#include "cli/job_args.h"
#include "cli/table.h"
#include "live/job.h"
#include "live/job_policy.h"
#include "optimize/objective.h"

static const struct wg_command *const children[] = {
    &wg__command_job_create, &wg__command_job_run,  &wg__command_job_next,
    &wg__command_job_report, &wg__command_job_list, &wg__command_job_show,
    &wg__command_job_export, &wg__command_job_rm,   NULL,
};

const struct wg_command wg__command_job = {
    .name = "job",
    .summary = "Learns over the runs of a recurring training job which batch size costs least",
    .children = children,
    .epilog = "examples:\n"
              "  wattgov job create bert --batch-sizes 8,16,32,64 --default 32 \\\n"
              "      --target 'acc>=0.84' --max-epochs 20\n"
              "  wattgov job run bert -- python train.py --bs {batch_size}\n"
              "  wattgov job next bert --json\n"
              "  wattgov job report bert 1 --reached --epochs 7 --energy 81000 --time 410\n"
              "  wattgov job show bert",
};

struct create_args {
    const char *store;
    const char *batch_sizes;
    unsigned default_batch;
    const char *target;
    unsigned max_epochs;
    const char *objective;
    const char *policy;
    double max_power_w;
    const char *optimizer;
    double learning_rate;
    unsigned learning_rate_batch;
    double lease_s;
    uint64_t seed;
};

static const char *const policies[] = {"wattgov", "zeus", "grid", "fixed", NULL};
static const char *const optimizers[] = {"sgd", "adam", NULL};

static const struct wg_option create_options[] = {
    {.name = "batch-sizes",
     WG_OPTION_STRING(struct create_args, batch_sizes),
     .value = "LIST",
     .is_required = true,
     .help = "Batch sizes to choose from, with commas between them: 8,16,32; or from:FILE, the "
             "column batch_size of a CSV file, as wattgov wave analyze --batches writes it."},
    {.name = "default",
     WG_OPTION_UNSIGNED(struct create_args, default_batch),
     .value = "BATCH",
     .min = 1,
     .max = WG_STORE_BATCH_MAX,
     .fallback = "none: must be given",
     .help = "The batch size that you would use; one of the list."},
    {.name = "target",
     WG_OPTION_STRING(struct create_args, target),
     .value = "GOAL",
     .is_required = true,
     .help =
         "When a run is done: METRIC>=NUMBER or METRIC<=NUMBER, as 'acc>=0.84'; '>' and '<' mean "
         "the same."},
    {.name = "max-epochs",
     WG_OPTION_UNSIGNED(struct create_args, max_epochs),
     .value = "N",
     .min = 1,
     .max = WG_STORE_EPOCHS_MAX,
     .fallback = "none: must be given",
     .help = "A run that has not reached the target by then has failed."},
    {.name = "objective",
     WG_OPTION_STRING(struct create_args, objective),
     .value = "WHAT",
     .help = "What to save: energy, time, cost:ETA (ETA x energy + (1 - ETA) x largest power x "
             "time) or slowdown:F (energy, at power limits that slow down by at most F)."},
    {.name = "policy",
     WG_OPTION_STRING(struct create_args, policy),
     .value = "NAME",
     .choices = policies,
     .help = "Who chooses: wattgov, zeus, grid (each once, then the best) or fixed (the default)."},
    {.name = "max-power",
     WG_OPTION_DOUBLE(struct create_args, max_power_w),
     .value = "W",
     .unit = "W",
     .min = 0,
     .min_is_excluded = true,
     .max = 1e6,
     .fallback = "told by each run",
     .help = "Largest power limit of a run's GPUs together, which the objective cost needs."},
    {.name = "optimizer",
     WG_OPTION_STRING(struct create_args, optimizer),
     .value = "NAME",
     .choices = optimizers,
     .fallback = "sgd",
     .help = "How the learning rate follows the batch size: sgd in proportion, adam with its "
             "square root."},
    {.name = "learning-rate",
     WG_OPTION_DOUBLE(struct create_args, learning_rate),
     .value = "X",
     .min = 0,
     .min_is_excluded = true,
     .max = 1e6,
     .fallback = "none: no hint is given",
     .help = "The learning rate at --learning-rate-batch."},
    {.name = "learning-rate-batch",
     WG_OPTION_UNSIGNED(struct create_args, learning_rate_batch),
     .value = "BATCH",
     .min = 1,
     .max = WG_STORE_BATCH_MAX,
     .fallback = "that of --default",
     .help = "The batch size that the learning rate is for."},
    {.name = "lease",
     WG_OPTION_DURATION(struct create_args, lease_s),
     .value = "TIME",
     .min = 1,
     .max = 365 * 86400.0,
     .help = "A run of which nothing was heard for so long is taken back: its machine has died."},
    {.name = "seed",
     WG_OPTION_SEED(struct create_args, seed),
     .value = "N",
     .help = "Of the policy's choices."},
    WG_JOB_OPTION_STORE(struct create_args, store),
};

static const struct wg_option_set create_set = {
    .command = "wattgov job create",
    .word = "NAME",
    .summary = "Makes a job that recurs: what to choose from, and when a run of it is done.",
    .options = create_options,
    .count = sizeof create_options / sizeof create_options[0],
    .epilog = "example:\n"
              "  wattgov job create bert --batch-sizes 8,16,32,64 --default 32 \\\n"
              "      --target 'acc>=0.84' --max-epochs 20 --learning-rate 1e-4 --optimizer adam\n",
};

static enum wg_code check_numbers(const struct create_args *args, struct wg_store_job *job,
                                  struct wg_error *err)
{
    if (args->default_batch == 0)
        return wg__fail(err, WG_EINVAL, "--default is missing: the batch size that you would use");
    if (wg__job_arm(job, args->default_batch) == SIZE_MAX)
        return wg__fail(err, WG_EINVAL, "--default: %u is not one of --batch-sizes (%s)",
                        args->default_batch, args->batch_sizes);
    if (args->max_epochs == 0)
        return wg__fail(err, WG_EINVAL, "--max-epochs is missing: the most that a run may do");
    job->default_batch = args->default_batch;
    job->max_epochs = args->max_epochs;
    if (args->learning_rate > 0) {
        job->learning_rate = args->learning_rate;
        job->learning_rate_batch =
            args->learning_rate_batch > 0 ? args->learning_rate_batch : args->default_batch;
        return WG_OK;
    }
    job->learning_rate = NAN;
    if (args->learning_rate_batch > 0 || args->optimizer != NULL)
        return wg__fail(err, WG_EINVAL, "--learning-rate is missing: what should be scaled?");
    return WG_OK;
}

static enum wg_code describe_job(const struct create_args *args, const char *name,
                                 struct wg_store_job *job, struct wg_error *err)
{
    struct wg_objective objective;
    *job = (struct wg_store_job){.created_s = wg__clock_wall_s(),
                                 .max_power_w =
                                     args->max_power_w > 0 ? args->max_power_w : (double)NAN,
                                 .lease_s = args->lease_s,
                                 .seed = args->seed};
    enum wg_code code = wg__job_parse_batches(args->batch_sizes, job, err);
    if (code == WG_OK)
        code = wg__job_parse_target(args->target, job, err);
    if (code == WG_OK)
        code = check_numbers(args, job, err);
    if (code == WG_OK)
        code = wg__objective_parse(args->objective, &objective, err);
    (void)snprintf(job->name, sizeof job->name, "%s", name);
    (void)snprintf(job->objective, sizeof job->objective, "%s", args->objective);
    (void)snprintf(job->policy, sizeof job->policy, "%s", args->policy);
    (void)snprintf(job->optimizer, sizeof job->optimizer, "%s",
                   args->optimizer != NULL ? args->optimizer : "sgd");
    return code;
}

static enum wg_code add_job(const struct create_args *args, struct wg_store_job *job,
                            struct wg_error *err)
{
    struct wg_store *store = NULL;
    const struct wg_store_opts opts = {.path = args->store};
    enum wg_code code = wg__store_open(&store, &opts, err);
    if (code == WG_OK)
        code = store->ops->begin(store, true, err);
    if (code == WG_OK) {
        code = store->ops->job_add(store, job, err);
        if (code == WG_OK)
            code = store->ops->commit(store, err);
        else
            store->ops->rollback(store);
    }
    wg__store_close(store);
    return code;
}

static int run_create(int argc, char *argv[])
{
    struct create_args args = {.objective = "energy", .policy = "wattgov", .lease_s = 86400};
    struct wg_store_job job;
    struct wg_error err;
    const char *name = NULL;
    int status = WG_EXIT_OK;
    const enum wg_code named = wg__job_take_name(&create_set, &argc, &argv, &name, &err);
    if (!wg__command_begin(&create_set, argc, argv, &args, &status))
        return status;
    if (named != WG_OK || describe_job(&args, name, &job, &err) != WG_OK ||
        add_job(&args, &job, &err) != WG_OK)
        return wg__command_fail(&create_set, &err);
    return WG_EXIT_OK;
}

const struct wg_command wg__command_job_create = {
    .name = "create",
    .summary = "Makes a job: its batch sizes and its target",
    .run = run_create,
};

struct list_args {
    const char *store;
    bool json;
};

static const struct wg_option list_options[] = {
    {.name = "json", WG_OPTION_FLAG(struct list_args, json), .help = "Write JSON."},
    WG_JOB_OPTION_STORE(struct list_args, store),
};

static const struct wg_option_set list_set = {
    .command = "wattgov job list",
    .summary = "Lists the jobs.",
    .options = list_options,
    .count = sizeof list_options / sizeof list_options[0],
};

struct listing {
    struct wg_table *table;
    struct wg_json *json;
};

static bool list_job(void *context, const struct wg_store_job *job)
{
    const struct listing *listing = context;
    char target[WG_DOUBLE_TEXT_SIZE];
    wg__format_double(target, job->target);
    if (listing->table != NULL) {
        wg__table_cell(listing->table, "%s", job->name);
        wg__table_cell(listing->table, "%llu", (unsigned long long)job->next_recurrence);
        wg__table_cell(listing->table, "%s%s%s", job->metric,
                       job->higher_is_better ? ">=" : "<=", target);
        wg__table_cell(listing->table, "%u..%u", job->batch_size[0],
                       job->batch_size[job->batch_count - 1]);
        wg__table_cell(listing->table, "%u", job->default_batch);
        wg__table_cell(listing->table, "%s", job->objective);
        wg__table_cell(listing->table, "%s", job->policy);
        return true;
    }
    wg__json_object(listing->json);
    wg__json_member_string(listing->json, "name", job->name);
    wg__json_member_uint(listing->json, "recurrences", job->next_recurrence);
    wg__json_member_double(listing->json, "created_s", job->created_s);
    wg__json_member_string(listing->json, "metric", job->metric);
    wg__json_member_double(listing->json, "target", job->target);
    wg__json_member_bool(listing->json, "higher_is_better", job->higher_is_better);
    wg__json_member_uint(listing->json, "default_batch_size", job->default_batch);
    wg__json_member_string(listing->json, "objective", job->objective);
    wg__json_member_string(listing->json, "policy", job->policy);
    wg__json_close(listing->json);
    return true;
}

static enum wg_code write_list(struct wg_store *store, bool as_json, struct wg_buffer *out,
                               struct wg_error *err)
{
    static const struct wg_table_column columns[] = {
        {"Job", WG_ALIGN_LEFT},      {"Recurrences", WG_ALIGN_RIGHT},
        {"Target", WG_ALIGN_LEFT},   {"Batch sizes", WG_ALIGN_LEFT},
        {"Default", WG_ALIGN_RIGHT}, {"Objective", WG_ALIGN_LEFT},
        {"Policy", WG_ALIGN_LEFT},
    };
    struct wg_table table;
    struct wg_json json;
    wg__table_init(&table, columns, sizeof columns / sizeof columns[0]);
    wg__json_init(&json, out);
    struct listing listing = {.table = as_json ? NULL : &table, .json = &json};
    if (as_json) {
        wg__json_object(&json);
        wg__json_member_string(&json, "schema", "wattgov.job.list/1");
        wg__json_key(&json, "jobs");
        wg__json_array(&json);
    }
    const enum wg_code code =
        store != NULL ? store->ops->job_each(store, list_job, &listing, err) : WG_OK;
    if (as_json) {
        wg__json_close(&json);
        wg__json_close(&json);
        wg__buffer_puts(out, "\n");
    } else {
        wg__table_write(&table, wg__wants_color(stdout), out);
    }
    wg__table_fini(&table);
    return code;
}

static int run_list(int argc, char *argv[])
{
    struct list_args args = {0};
    struct wg_store *store = NULL;
    struct wg_buffer out;
    struct wg_error err;
    int status = WG_EXIT_OK;
    if (!wg__command_begin(&list_set, argc, argv, &args, &status))
        return status;
    wg__buffer_init(&out);
    enum wg_code code = wg__job_open_store_to_read(&store, args.store, &err);
    if (code == WG_ENOENT && args.store == NULL) /* nobody has made a job yet */
        code = WG_OK;
    if (code == WG_OK)
        code = write_list(store, args.json, &out, &err);
    if (code == WG_OK)
        code = wg__command_print(stdout, &out, &err);
    wg__buffer_fini(&out);
    wg__store_close(store);
    return code == WG_OK ? WG_EXIT_OK : wg__command_fail(&list_set, &err);
}

const struct wg_command wg__command_job_list = {
    .name = "list",
    .summary = "Lists the jobs",
    .run = run_list,
};

struct rm_args {
    const char *store;
    bool force;
};

static const struct wg_option rm_options[] = {
    {.name = "force",
     WG_OPTION_FLAG(struct rm_args, force),
     .help = "Also when runs of it are open; their reports will be refused."},
    WG_JOB_OPTION_STORE(struct rm_args, store),
};

static const struct wg_option_set rm_set = {
    .command = "wattgov job rm",
    .word = "NAME",
    .summary = "Removes a job with all that is known about it. 'wattgov job export' keeps a copy.",
    .options = rm_options,
    .count = sizeof rm_options / sizeof rm_options[0],
};

static enum wg_code remove_job(struct wg_store *store, const char *name, bool force,
                               struct wg_error *err)
{
    struct wg_store_job job;
    struct wg_store_run first;
    size_t open = 0;
    enum wg_code code = wg__job_find(store, name, &job, err);
    if (code == WG_OK)
        code = store->ops->run_open(store, job.id, &first, 1, &open, err);
    if (code == WG_OK && open > 0 && !force)
        code = wg__fail(err, WG_ESTATE,
                        "job '%s' has %zu open run%s: --force removes it all the "
                        "same",
                        name, open, open == 1 ? "" : "s");
    return code == WG_OK ? store->ops->job_remove(store, job.id, err) : code;
}

static int run_rm(int argc, char *argv[])
{
    struct rm_args args = {0};
    struct wg_store *store = NULL;
    struct wg_error err;
    const char *name = NULL;
    int status = WG_EXIT_OK;
    enum wg_code code = wg__job_take_name(&rm_set, &argc, &argv, &name, &err);
    if (!wg__command_begin(&rm_set, argc, argv, &args, &status))
        return status;
    if (code == WG_OK)
        code = wg__job_open_store(&store, args.store, &err);
    if (code == WG_OK)
        code = store->ops->begin(store, true, &err);
    if (code == WG_OK) {
        code = remove_job(store, name, args.force, &err);
        if (code == WG_OK)
            code = store->ops->commit(store, &err);
        else
            store->ops->rollback(store);
    }
    wg__store_close(store);
    return code == WG_OK ? WG_EXIT_OK : wg__command_fail(&rm_set, &err);
}

const struct wg_command wg__command_job_rm = {
    .name = "rm",
    .summary = "Removes a job",
    .run = run_rm,
};
