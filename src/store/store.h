/* SPDX-License-Identifier: MIT
 *
 * The memory of recurring jobs: a log of facts that outlives processes and machines.
 *
 * A store knows jobs, their runs (a survey, a look of a few seconds, is one too), what the runs
 * reported, and in which order all that came to be known. It knows no policy: whoever decides
 * rebuilds the decider from the facts (live/job_policy.h). Nothing is ever changed that a decider
 * has seen; a run's row only fills up.
 *
 *      run_add        OPEN --- run_epoch, run_profile, run_extend ---.
 *                      |  ^                                          |
 *         run_take_back|  |run_revive                                |
 *                      v  |                                          v
 *                     EXPIRED                     REACHED STOPPED FAILED CRASHED RETURNED
 *
 * Each arrow is one fact, and facts of a job are numbered 1, 2, 3, ... without gaps. A run that was
 * taken back because nobody heard of it may still come back: it is revived first.
 *
 * Whatever writes stands between `begin(writes)` and `commit`: such transactions exclude each
 * other, across processes and machines, and what `commit` has acknowledged outlives the loss of
 * power. Between them a function that fails leaves only `rollback` to do. Time is an argument:
 * seconds since 1970.
 *
 * One file a store so far (sqlite.c). A server database would be another table of functions; both
 * must pass tests/support/store_suite.h.
 *
 * Owns: its connection.    Threads: a store belongs to one thread at a time.
 */
#ifndef WG_STORE_STORE_H
#define WG_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    WG_STORE_TEXT_SIZE = 128, /* of every text here, its final zero included */
    WG_STORE_BATCH_SIZES_MAX = 64,
    WG_STORE_POINTS_MAX = 64,
    WG_STORE_BATCH_MAX = INT32_MAX,
    WG_STORE_EPOCHS_MAX = 1000000
};

/* No joules, seconds or watts are more: squares of them can still be summed. */
#define WG_STORE_AMOUNT_MAX 1e30

/* Numbers that are not known are NAN. Texts are UTF-8 without control characters. What is read is
 * in its range, or the store is damaged (WG_EDATA). */
struct wg_store_job {
    int64_t id; /* from job_add */
    char name[WG_STORE_TEXT_SIZE];
    double created_s;
    size_t batch_count;
    uint32_t batch_size[WG_STORE_BATCH_SIZES_MAX]; /* ascending, none is 0 */
    uint32_t default_batch;                        /* one of them */
    char metric[WG_STORE_TEXT_SIZE];
    bool higher_is_better;
    double target;
    unsigned max_epochs;
    char objective[WG_STORE_TEXT_SIZE]; /* as wg__objective_parse reads it */
    double max_power_w;                 /* of all GPUs of a run; NAN: the run knows */
    char policy[WG_STORE_TEXT_SIZE];
    char optimizer[WG_STORE_TEXT_SIZE]; /* "sgd", "adam"; "": not told */
    double learning_rate;               /* at `learning_rate_batch` */
    uint32_t learning_rate_batch;
    double lease_s; /* how long a run may be silent */
    uint64_t seed;
    uint64_t next_recurrence; /* the first that no run belongs to */
};

enum wg_run_state {
    WG_RUN_OPEN,
    WG_RUN_REACHED,
    WG_RUN_STOPPED,  /* by the policy */
    WG_RUN_FAILED,   /* ended without the target */
    WG_RUN_CRASHED,  /* no observation: the program broke */
    WG_RUN_RETURNED, /* no observation: given back by who had it */
    WG_RUN_EXPIRED,  /* no observation: taken back after its lease */
    WG_RUN_STATE_COUNT
};

/* "open", "reached", ...; NULL for what is no state. */
const char *wg__run_state_name(enum wg_run_state state);

struct wg_store_run {
    int64_t id; /* from run_add; unique in the store, also after its job was removed */
    int64_t job;
    bool is_survey;
    bool may_survey; /* who asked could have done a survey */
    uint64_t recurrence;
    unsigned attempt;
    uint32_t batch_size;
    int limit;       /* the policy's word for the power limit */
    uint64_t ticket; /* the policy's name of the run */
    char gpu_model[WG_STORE_TEXT_SIZE];
    unsigned gpu_count;
    double max_power_w; /* of its GPUs together */
    char host[WG_STORE_TEXT_SIZE];
    int64_t pid; /* 0: not known */
    double started_s;
    double lease_s;
    double lease_until_s;

    unsigned last_epoch;
    double metric; /* at the last epoch, or as the end told */
    bool has_profile;
    double epoch_cost_j, epoch_cost_max_limit_j, first_epoch_cost_j; /* the profile */

    enum wg_run_state state;
    double ended_s;
    double epochs; /* a survey's may be broken */
    double energy_j, time_s, cost_j;
    double setting;             /* of the power knob that it ended with */
    double steps_per_epoch;     /* as its command told them */
    double saved_j, saved_sd_j; /* of its cost, by its power limits, and the standard deviation */
};

enum wg_fact_kind {
    WG_FACT_STARTED,
    WG_FACT_PROFILED,
    WG_FACT_EPOCH,
    WG_FACT_ENDED,
    WG_FACT_TAKEN_BACK,
    WG_FACT_REVIVED,
    WG_FACT_KIND_COUNT
};

struct wg_store_fact {
    uint64_t number; /* within its job, from 1 */
    enum wg_fact_kind kind;
    unsigned epoch; /* of EPOCH */
    double metric;  /* likewise */
};

/* One fact and its run as it is now. The callback must not write to the store; false ends the walk,
 * which is no failure. */
typedef bool wg_store_fact_fn(void *context, const struct wg_store_fact *fact,
                              const struct wg_store_run *run);
typedef bool wg_store_job_fn(void *context, const struct wg_store_job *job);
typedef bool wg_store_run_fn(void *context, const struct wg_store_run *run);

/* What a search for the best power limit or clock has measured; fields as in
 * optimize/train_governor.h. */
struct wg_store_point {
    double setting;
    double power_w, throughput;
    double power_sd, throughput_sd;
    double measured_s;
    unsigned measurements, discarded;
    double settle_s;
};

/* What a profile holds for; texts are kept as wg__utf8_copy_plain does it, except `owner`. */
struct wg_store_profile_key {
    const char *owner; /* the job, or the command: any length */
    const char *gpu_model;
    unsigned gpu_count;
    const char *knob;
    uint32_t batch_size; /* 0: not known */
};

struct wg_store;

struct wg_store_ops {
    const char *name;
    void (*close)(struct wg_store *store);
    /* Where it lies, for messages. */
    const char *(*location)(const struct wg_store *store);

    /* How long `begin` waits for others, from now on; 0: as it was opened with. */
    void (*set_patience)(struct wg_store *store, double patience_s);

    /* WG_EBUSY: others have kept it locked for longer than the patience. `writes` false: all that
     * is read until the commit is of one moment. */
    enum wg_code (*begin)(struct wg_store *store, bool writes, struct wg_error *err);
    enum wg_code (*commit)(struct wg_store *store, struct wg_error *err);
    void (*rollback)(struct wg_store *store);

    /* WG_ESTATE: there is a job of this name. */
    enum wg_code (*job_add)(struct wg_store *store, struct wg_store_job *job, struct wg_error *err);
    enum wg_code (*job_get)(struct wg_store *store, const char *name, struct wg_store_job *out,
                            struct wg_error *err); /* WG_ENOENT */
    enum wg_code (*job_each)(struct wg_store *store, wg_store_job_fn *each, void *context,
                             struct wg_error *err); /* by name */
    /* With all its runs and facts. */
    enum wg_code (*job_remove)(struct wg_store *store, int64_t job, struct wg_error *err);

    /* Takes all but the end's fields of `run`, and gives it an id. Its recurrence no longer waits
     * for a retry. */
    enum wg_code (*run_add)(struct wg_store *store, struct wg_store_run *run, struct wg_error *err);
    enum wg_code (*run_get)(struct wg_store *store, int64_t job, int64_t id,
                            struct wg_store_run *out, struct wg_error *err); /* WG_ENOENT */
    /* The open ones in the order of their start: at most `capacity`, `count_out` says how many
     * there are. */
    enum wg_code (*run_open)(struct wg_store *store, int64_t job, struct wg_store_run *out,
                             size_t capacity, size_t *count_out, struct wg_error *err);
    enum wg_code (*run_each)(struct wg_store *store, int64_t job, wg_store_run_fn *each,
                             void *context, struct wg_error *err);
    /* These need an open run, else WG_ESTATE. The epoch must be beyond the last one. */
    enum wg_code (*run_extend)(struct wg_store *store, int64_t id, double lease_until_s,
                               struct wg_error *err);
    enum wg_code (*run_profile)(struct wg_store *store, const struct wg_store_run *run,
                                struct wg_error *err); /* id and the profile's fields */
    enum wg_code (*run_epoch)(struct wg_store *store, int64_t id, unsigned epoch, double metric,
                              struct wg_error *err);
    enum wg_code (*run_end)(struct wg_store *store, const struct wg_store_run *run,
                            struct wg_error *err); /* id, metric and the end's fields */
    enum wg_code (*run_take_back)(struct wg_store *store, int64_t id, double now_s,
                                  struct wg_error *err);
    /* Needs an expired one. */
    enum wg_code (*run_revive)(struct wg_store *store, int64_t id, double lease_until_s,
                               struct wg_error *err);

    /* Recurrences that wait for their next attempt. `retry_find` gives the oldest; false: none.
     * `recurrence_get` counts what has happened to one so far. */
    enum wg_code (*retry_add)(struct wg_store *store, int64_t job, uint64_t recurrence,
                              struct wg_error *err);
    enum wg_code (*retry_remove)(struct wg_store *store, int64_t job, uint64_t recurrence,
                                 struct wg_error *err);
    enum wg_code (*retry_find)(struct wg_store *store, int64_t job, bool *has_out,
                               uint64_t *recurrence_out, struct wg_error *err);
    enum wg_code (*recurrence_get)(struct wg_store *store, int64_t job, uint64_t recurrence,
                                   unsigned counts_out[WG_RUN_STATE_COUNT], struct wg_error *err);

    /* The facts after number `after`, in their order. */
    enum wg_code (*fact_each)(struct wg_store *store, int64_t job, uint64_t after,
                              wg_store_fact_fn *each, void *context, struct wg_error *err);

    /* A decider's state after the fact `number`: a cache, one a job, that may be missing. `version`
     * says who can read it. The bytes go to `take` while the call lasts. */
    enum wg_code (*snapshot_put)(struct wg_store *store, int64_t job, uint64_t number,
                                 const char *version, const void *bytes, size_t length,
                                 struct wg_error *err);
    enum wg_code (*snapshot_get)(struct wg_store *store, int64_t job, const char *version,
                                 void (*take)(void *context, uint64_t number, const void *bytes,
                                              size_t length),
                                 void *context, struct wg_error *err);

    /* Replaces the profile under `key`; gets it, rising by setting. A count of 0: there is none.
     * These two make their own transaction when none is open. */
    enum wg_code (*profile_put)(struct wg_store *store, const struct wg_store_profile_key *key,
                                double now_s, const struct wg_store_point *points, size_t count,
                                struct wg_error *err);
    enum wg_code (*profile_get)(struct wg_store *store, const struct wg_store_profile_key *key,
                                struct wg_store_point out[WG_STORE_POINTS_MAX], size_t *count_out,
                                double *when_s_out, struct wg_error *err);
};

/* First member of every store's own struct. */
struct wg_store {
    const struct wg_store_ops *ops;
};

struct wg_store_opts {
    const char *path;   /* NULL: jobs.db under wg__state_dir, which is made when it is missing */
    double patience_s;  /* waits so long for a lock; 0: 10 s */
    bool must_exist;    /* WG_ENOENT instead of making a new store */
    bool reads_only;    /* likewise, and where nothing can be written it is read all the same */
    unsigned max_pages; /* tests of a full disk: largest size; 0: no limit */
};

/* Opens a store, makes it when there is none, and brings an older one to the present schema.
 * WG_EUNSUPPORTED: its schema is newer than this program; WG_EDATA: it is something else, or
 * damaged; WG_EPERM, WG_EIO, WG_EBUSY. Messages name the path and what to do. */
enum wg_code wg__store_open(struct wg_store **out, const struct wg_store_opts *opts,
                            struct wg_error *err);
void wg__store_close(struct wg_store *store); /* NULL is fine */

/* sqlite_open.c */
enum wg_code wg__store_open_sqlite(struct wg_store **out, const struct wg_store_opts *opts,
                                   struct wg_error *err);

#endif
