/* SPDX-License-Identifier: MIT
 *
 * Joining one GPU and one job of a trace into a case to replay: an inner join, as Zeus's simulator
 * does.
 *
 * A case must be whole before anything is simulated: the checks here make every later loop safe
 * (each arm has a power row per limit and at least one run; the default reaches the target), and
 * each says in one line which file lacks what.
 *
 * Owns: a case owns its arena with all runs and strings.    Threads: pure, any thread.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "simulate/trace_rows.h"

/* A value of the metric, with six digits, and a separator. */
enum { TARGETS_SHOWN_MAX = 10, TARGET_BYTES = 16 };

static const struct wg_gpu_trace *find_gpu(const struct wg_training_trace *trace, const char *name)
{
    for (size_t i = 0; i < trace->gpu_count; i++)
        if (strcasecmp(trace->gpus[i].name, name) == 0)
            return &trace->gpus[i];
    return NULL;
}

static bool is_same(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

/* Inserts `value` into the ascending list unless it is there. */
static bool insert_sorted(double *list, size_t *count, size_t capacity, double value)
{
    size_t at = 0;
    while (at < *count && list[at] < value && !is_same(list[at], value))
        at++;
    if (at < *count && is_same(list[at], value))
        return true;
    if (*count == capacity)
        return false;
    memmove(list + at + 1, list + at, (*count - at) * sizeof *list);
    list[at] = value;
    (*count)++;
    return true;
}

static bool contains(const double *list, size_t count, double value)
{
    for (size_t i = 0; i < count; i++)
        if (is_same(list[i], value))
            return true;
    return false;
}

struct sizes {
    size_t count;
    double values[WG_ARMS_MAX];
};

/* Which batch sizes have runs, which have power rows; and the limits of the job on this GPU. */
static enum wg_code list_sizes(const struct wg_training_trace *trace,
                               const struct wg_gpu_trace *gpu, const struct wg_training_job *job,
                               struct sizes *with_runs, struct sizes *with_power,
                               struct wg_training_case *out, struct wg_error *err)
{
    for (size_t i = 0; i < trace->run_count; i++)
        if (wg__trace_key_is_job(&trace->runs[i].key, job) &&
            !insert_sorted(with_runs->values, &with_runs->count, WG_ARMS_MAX,
                           trace->runs[i].key.batch_size))
            return wg__fail(err, WG_EDATA, "%s: more than %d batch sizes for job '%s'",
                            trace->runs_path, WG_ARMS_MAX, job->name);
    for (size_t i = 0; i < gpu->row_count; i++) {
        const struct wg_power_row *row = &gpu->rows[i];
        if (!wg__trace_key_is_job(&row->key, job))
            continue;
        if (!insert_sorted(with_power->values, &with_power->count, WG_ARMS_MAX,
                           row->key.batch_size))
            return wg__fail(err, WG_EDATA, "%s: more than %d batch sizes for job '%s'", gpu->path,
                            WG_ARMS_MAX, job->name);
        if (!insert_sorted(out->limit_w, &out->limit_count, WG_POWER_LIMITS_MAX, row->limit_w))
            return wg__fail(err, WG_EDATA, "%s: more than %d power limits for job '%s'", gpu->path,
                            WG_POWER_LIMITS_MAX, job->name);
    }
    if (with_runs->count == 0)
        return wg__fail(err, WG_EDATA, "%s: no training runs of %s/%s/%s (job '%s')",
                        trace->runs_path, job->dataset, job->network, job->optimizer, job->name);
    if (with_power->count == 0)
        return wg__fail(err, WG_EDATA, "%s: no power rows of %s/%s/%s (job '%s')", gpu->path,
                        job->dataset, job->network, job->optimizer, job->name);
    return WG_OK;
}

/* Intersects the two lists into arms. */
static enum wg_code make_arms(const struct wg_gpu_trace *gpu, const struct wg_training_job *job,
                              const struct sizes *with_runs, const struct sizes *with_power,
                              struct wg_training_case *out, struct wg_error *err)
{
    for (size_t i = 0; i < with_runs->count; i++) {
        const double batch_size = with_runs->values[i];
        if (contains(with_power->values, with_power->count, batch_size)) {
            out->arms[out->arm_count++].batch_size = batch_size;
            continue;
        }
        if (!job->only_profiled)
            return wg__fail(err, WG_EDATA,
                            "%s: job '%s': batch size %.10g has training runs but no power rows; "
                            "expected one per power limit (or 'profiled' in the job table's "
                            "column batch_sizes)",
                            gpu->path, job->name, batch_size);
        out->left_out[out->left_out_count++] = batch_size;
    }
    if (out->arm_count == 0)
        return wg__fail(err, WG_EDATA,
                        "%s: job '%s': no batch size has both training runs and power rows",
                        gpu->path, job->name);
    return WG_OK;
}

static enum wg_code fill_power(const struct wg_gpu_trace *gpu, const struct wg_training_job *job,
                               struct wg_training_case *out, struct wg_training_arm *arm,
                               struct wg_error *err)
{
    for (size_t i = 0; i < gpu->row_count; i++) {
        const struct wg_power_row *row = &gpu->rows[i];
        if (!wg__trace_key_is_job(&row->key, job) || !is_same(row->key.batch_size, arm->batch_size))
            continue;
        size_t limit = 0;
        while (!is_same(out->limit_w[limit], row->limit_w))
            limit++;
        if (arm->power_w[limit] > 0)
            return wg__fail(err, WG_EDATA,
                            "%s:%zu: job '%s': batch size %.10g at %g W stands twice; expected one "
                            "row per batch size and limit",
                            gpu->path, row->line, job->name, arm->batch_size, row->limit_w);
        arm->power_w[limit] = row->power_w;
        arm->epoch_time_s[limit] = row->epoch_time_s * job->epoch_time_scale;
    }
    for (size_t limit = 0; limit < out->limit_count; limit++)
        if (!(arm->power_w[limit] > 0))
            return wg__fail(
                err, WG_EDATA,
                "%s: job '%s': batch size %.10g has no row at %g W; expected one for each "
                "of the job's %zu power limits",
                gpu->path, job->name, arm->batch_size, out->limit_w[limit], out->limit_count);
    return WG_OK;
}

/* Orders milestones by the epoch at which they were reached; equal epochs by difficulty. */
static void sort_milestones(struct wg_training_run *run, bool higher_is_better)
{
    for (size_t i = 1; i < run->milestone_count; i++) {
        const struct wg_milestone moved = run->milestones[i];
        size_t at = i;
        for (; at > 0; at--) {
            const struct wg_milestone *other = &run->milestones[at - 1];
            const bool harder =
                higher_is_better ? other->metric > moved.metric : other->metric < moved.metric;
            if (other->epoch < moved.epoch || (other->epoch == moved.epoch && !harder))
                break;
            run->milestones[at] = *other;
        }
        run->milestones[at] = moved;
    }
}

/* A row of an arm, and the first row of the run that it belongs to. */
struct row_of_run {
    const struct wg_run_row *row;
    const struct wg_run_row *first;
};

static int compare_addresses(const struct wg_run_row *a, const struct wg_run_row *b)
{
    return (a > b) - (a < b);
}

static int by_run(const void *a, const void *b)
{
    const struct wg_run_row *x = ((const struct row_of_run *)a)->row;
    const struct wg_run_row *y = ((const struct row_of_run *)b)->row;
    const int order = strcmp(x->run, y->run);
    return order != 0 ? order : compare_addresses(x, y);
}

static int by_first_row(const void *a, const void *b)
{
    const struct row_of_run *x = a, *y = b;
    const int order = compare_addresses(x->first, y->first);
    return order != 0 ? order : compare_addresses(x->row, y->row);
}

/* Brings the rows of each run together; runs stay in the order in which they begin in the file. */
static void group_by_run(struct row_of_run *rows, size_t count)
{
    qsort(rows, count, sizeof *rows, by_run);
    for (size_t i = 0; i < count; i++) {
        const bool is_first = i == 0 || strcmp(rows[i].row->run, rows[i - 1].row->run) != 0;
        rows[i].first = is_first ? rows[i].row : rows[i - 1].first;
    }
    qsort(rows, count, sizeof *rows, by_first_row);
}

/* Collects the `count` rows of one recorded run. */
static enum wg_code fill_run(const struct wg_training_trace *trace, const struct row_of_run *rows,
                             size_t count, const struct wg_training_job *job,
                             struct wg_training_case *out, struct wg_training_run *run,
                             bool *has_target, struct wg_error *err)
{
    run->milestones = wg__arena_alloc(&out->arena, count, sizeof *run->milestones);
    if (!run->milestones)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const struct wg_run_row *row = rows[i].row;
        if (is_same(row->target_metric, job->target_metric)) {
            if (*has_target)
                return wg__fail(err, WG_EDATA,
                                "%s:%zu: job '%s': run '%s' of batch size %.10g has target "
                                "metric %.10g twice; expected one row per run and metric",
                                trace->runs_path, row->line, job->name, row->run,
                                row->key.batch_size, row->target_metric);
            run->target_epoch = row->target_epoch;
            *has_target = true;
        }
        if (row->target_epoch > 0)
            run->milestones[run->milestone_count++] =
                (struct wg_milestone){row->target_metric, row->target_epoch};
    }
    sort_milestones(run, job->higher_is_better);
    return WG_OK;
}

static enum wg_code add_runs(const struct wg_training_trace *trace, const struct row_of_run *rows,
                             size_t count, const struct wg_training_job *job,
                             struct wg_training_case *out, struct wg_training_arm *arm,
                             bool *has_target, struct wg_error *err)
{
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && rows[end].first == rows[begin].first;)
            end++;
        struct wg_training_run run = {0};
        bool run_has_target = false;
        enum wg_code code =
            fill_run(trace, rows + begin, end - begin, job, out, &run, &run_has_target, err);
        if (code != WG_OK)
            return code;
        /* A run without a row for this target says nothing about it: Zeus's join drops it too. */
        if (!run_has_target)
            continue;
        *has_target = true;
        arm->runs[arm->run_count++] = run;
    }
    return WG_OK;
}

static bool is_of_arm(const struct wg_run_row *row, const struct wg_training_job *job,
                      const struct wg_training_arm *arm)
{
    return is_same(row->key.batch_size, arm->batch_size) && wg__trace_key_is_job(&row->key, job);
}

static enum wg_code fill_runs(const struct wg_training_trace *trace,
                              const struct wg_training_job *job, struct wg_training_case *out,
                              struct wg_training_arm *arm, bool *has_target, struct wg_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->run_count; i++)
        count += is_of_arm(&trace->runs[i], job, arm);
    arm->runs = wg__arena_alloc(&out->arena, count, sizeof *arm->runs);
    struct row_of_run *rows = wg__alloc_zeroed(count, sizeof *rows);
    if (!arm->runs || !rows) {
        wg__free(rows);
        return wg__fail(err, WG_ENOMEM, "out of memory");
    }
    count = 0;
    for (size_t i = 0; i < trace->run_count; i++)
        if (is_of_arm(&trace->runs[i], job, arm))
            rows[count++].row = &trace->runs[i];
    group_by_run(rows, count);
    const enum wg_code code = add_runs(trace, rows, count, job, out, arm, has_target, err);
    wg__free(rows);
    return code;
}

/* The values of the metric that the job's runs have rows for: the TARGETS_SHOWN_MAX nearest to the
 * wanted one, ascending. Returns how many; `is_cut`: there are others. */
static size_t list_targets(const struct wg_training_trace *trace, const struct wg_training_job *job,
                           double targets[static TARGETS_SHOWN_MAX + 1], bool *is_cut)
{
    size_t count = 0;
    *is_cut = false;
    for (size_t i = 0; i < trace->run_count; i++) {
        const struct wg_run_row *row = &trace->runs[i];
        if (!wg__trace_key_is_job(&row->key, job))
            continue;
        (void)insert_sorted(targets, &count, TARGETS_SHOWN_MAX + 1, row->target_metric);
        if (count <= TARGETS_SHOWN_MAX)
            continue;
        *is_cut = true;
        count--;
        if (fabs(targets[0] - job->target_metric) > fabs(targets[count] - job->target_metric))
            memmove(targets, targets + 1, count * sizeof *targets);
    }
    return count;
}

static enum wg_code reject_target(const struct wg_training_trace *trace,
                                  const struct wg_training_job *job, struct wg_error *err)
{
    double targets[TARGETS_SHOWN_MAX + 1];
    bool is_cut;
    const size_t count = list_targets(trace, job, targets, &is_cut);
    char list[TARGETS_SHOWN_MAX * TARGET_BYTES] = "";
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%.6g",
                                   i == 0 ? "" : ", ", targets[i]);
    return wg__fail(err, WG_EUNREACHABLE,
                    "%s: job '%s': no run has a row for target metric %g; expected one that the "
                    "runs have%s: %s",
                    trace->runs_path, job->name, job->target_metric, is_cut ? ", such as" : "",
                    list);
}

static enum wg_code check_target(const struct wg_training_trace *trace,
                                 const struct wg_training_job *job, struct wg_training_case *out,
                                 bool has_target, struct wg_error *err)
{
    if (!has_target)
        return reject_target(trace, job, err);
    size_t kept = 0;
    for (size_t i = 0; i < out->arm_count; i++)
        if (out->arms[i].run_count > 0)
            out->arms[kept++] = out->arms[i];
    out->arm_count = kept;
    return WG_OK;
}

static bool reaches_target(const struct wg_training_arm *arm, unsigned max_epochs)
{
    for (size_t i = 0; i < arm->run_count; i++)
        if (arm->runs[i].target_epoch > 0 && arm->runs[i].target_epoch <= max_epochs)
            return true;
    return false;
}

static enum wg_code find_default(const struct wg_training_trace *trace,
                                 const struct wg_gpu_trace *gpu, const struct wg_training_job *job,
                                 struct wg_training_case *out, struct wg_error *err)
{
    const double largest = out->arms[out->arm_count - 1].batch_size;
    const double wanted = fmin(job->default_batch_size, largest);
    size_t arm = 0;
    while (arm < out->arm_count && !is_same(out->arms[arm].batch_size, wanted))
        arm++;
    if (arm == out->arm_count)
        return wg__fail(
            err, WG_EDATA,
            "%s: job '%s': the default batch size %.10g has no power rows or no training "
            "runs; expected one of the %zu batch sizes from %.10g to %.10g that have both",
            gpu->path, job->name, job->default_batch_size, out->arm_count, out->arms[0].batch_size,
            largest);
    out->default_arm = arm;
    bool is_reached = false;
    for (size_t i = 0; i < out->arm_count; i++)
        if (i == arm || job->default_may_fail)
            is_reached |= reaches_target(&out->arms[i], job->max_epochs);
    if (is_reached)
        return WG_OK;
    return wg__fail(err, WG_EUNREACHABLE,
                    "%s: job '%s' on %s: target metric %g is never reached within %u epochs at %s "
                    "batch size %.10g; expected a target that it reaches",
                    trace->runs_path, job->name, gpu->name, job->target_metric, job->max_epochs,
                    job->default_may_fail ? "any batch size beside" : "the default", wanted);
}

/* Gives each batch size the runs of the one that is `scale` times smaller (the nearest there is).
 */
static enum wg_code scale_critical_batch(struct wg_training_case *out, double scale,
                                         struct wg_error *err)
{
    if (is_same(scale, 1))
        return WG_OK;
    struct wg_training_arm *source = wg__arena_alloc(&out->arena, out->arm_count, sizeof *source);
    if (!source)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    memcpy(source, out->arms, out->arm_count * sizeof *source);
    for (size_t i = 0; i < out->arm_count; i++) {
        const double wanted = log2(out->arms[i].batch_size / scale);
        size_t nearest = 0;
        for (size_t j = 1; j < out->arm_count; j++)
            if (fabs(log2(source[j].batch_size) - wanted) <
                fabs(log2(source[nearest].batch_size) - wanted))
                nearest = j;
        out->arms[i].runs = source[nearest].runs;
        out->arms[i].run_count = source[nearest].run_count;
    }
    return WG_OK;
}

static enum wg_code build(const struct wg_training_trace *trace, const struct wg_gpu_trace *gpu,
                          const struct wg_training_job *job, struct wg_training_case *out,
                          struct wg_error *err)
{
    out->gpu = wg__arena_strdup(&out->arena, gpu->name);
    out->job = wg__arena_strdup(&out->arena, job->name);
    out->metric = wg__arena_strdup(&out->arena, job->metric);
    if (!out->gpu || !out->job || !out->metric)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    out->higher_is_better = job->higher_is_better;
    out->target_metric = job->target_metric;
    out->max_epochs = job->max_epochs;
    out->max_power_w = gpu->max_power_w;
    struct sizes with_runs = {0}, with_power = {0};
    enum wg_code code = list_sizes(trace, gpu, job, &with_runs, &with_power, out, err);
    if (code == WG_OK)
        code = make_arms(gpu, job, &with_runs, &with_power, out, err);
    bool has_target = false;
    for (size_t i = 0; i < out->arm_count && code == WG_OK; i++) {
        code = fill_power(gpu, job, out, &out->arms[i], err);
        if (code == WG_OK)
            code = fill_runs(trace, job, out, &out->arms[i], &has_target, err);
    }
    if (code == WG_OK)
        code = check_target(trace, job, out, has_target, err);
    if (code == WG_OK)
        code = scale_critical_batch(out, job->critical_batch_scale, err);
    if (code == WG_OK)
        code = find_default(trace, gpu, job, out, err);
    return code;
}

enum wg_code wg__trace_case(const struct wg_training_trace *trace, const char *gpu_name,
                            const struct wg_training_job *job, struct wg_training_case **out,
                            struct wg_error *err)
{
    const struct wg_gpu_trace *gpu = find_gpu(trace, gpu_name);
    if (!gpu)
        return wg__fail(err, WG_ENOENT, "no file summary_power_%s.csv in the trace folder",
                        gpu_name);
    struct wg_training_case *made = wg__alloc_zeroed(1, sizeof *made);
    if (!made)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    wg__arena_init(&made->arena);
    enum wg_code code = build(trace, gpu, job, made, err);
    if (code != WG_OK) {
        wg__case_free(made);
        return code;
    }
    *out = made;
    return WG_OK;
}

void wg__case_free(struct wg_training_case *training_case)
{
    if (!training_case)
        return;
    wg__arena_fini(&training_case->arena);
    wg__free(training_case);
}

static bool has_arm(const struct wg_training_case *training_case, double batch_size)
{
    for (size_t i = 0; i < training_case->arm_count; i++)
        if (is_same(training_case->arms[i].batch_size, batch_size))
            return true;
    return false;
}

static enum wg_code keep_common(struct wg_training_case *kept, const double *common, size_t count,
                                struct wg_error *err)
{
    const double wanted = kept->arms[kept->default_arm].batch_size;
    size_t next = 0;
    bool has_default = false;
    for (size_t i = 0; i < kept->arm_count; i++) {
        if (!contains(common, count, kept->arms[i].batch_size))
            continue;
        if (is_same(kept->arms[i].batch_size, wanted)) {
            kept->default_arm = next;
            has_default = true;
        }
        kept->arms[next++] = kept->arms[i];
    }
    kept->arm_count = next;
    return has_default ? WG_OK
                       : wg__fail(err, WG_EINVAL,
                                  "job '%s' on %s: its default batch size %.10g is not one of the "
                                  "batch sizes that both jobs have",
                                  kept->job, kept->gpu, wanted);
}

enum wg_code wg__case_intersect(struct wg_training_case *a, struct wg_training_case *b,
                                struct wg_error *err)
{
    double common[WG_ARMS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < a->arm_count; i++)
        if (has_arm(b, a->arms[i].batch_size))
            common[count++] = a->arms[i].batch_size;
    enum wg_code code = keep_common(a, common, count, err);
    /* The second job's default is never run: after the change the first job's name still holds. */
    if (code == WG_OK) {
        b->default_arm = 0;
        for (size_t i = 0; i < b->arm_count; i++)
            if (is_same(b->arms[i].batch_size, a->arms[a->default_arm].batch_size))
                b->default_arm = i;
        code = keep_common(b, common, count, err);
    }
    return code;
}
