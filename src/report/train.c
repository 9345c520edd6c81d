/* SPDX-License-Identifier: MIT
 *
 * wg_train_*: what a training process tells its governor.
 *
 * A step costs a look at the clock and a comparison. Only when the last line is some milliseconds
 * old is one written, with how many steps are done and when the last of them ended; so a step of
 * microseconds costs no more than one of seconds. The steps since then go out with the next step,
 * or before the next epoch or metric, or at the end.
 *
 * A child of fork shares the descriptor but not the training: before each write the process is
 * compared with the one that opened the reporter.
 *
 * Owns: the reporter.    Threads: a reporter belongs to one thread.
 */
#include "wattgov/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/number.h"
#include "report/train_link.h"

enum { LINE_MAX_BYTES = 192, NAME_BYTES = 32 };

/* The least and the most time between two lines of steps. Between them it is a thousand times what
 * the last line cost, so that telling takes at most 0.1 % of the time: to wake a reader on another
 * processor can take 40 us. */
static const uint64_t pause_min_ns = 5000000, pause_max_ns = 100000000;
enum { PAUSE_PER_COST = 1000 };

struct wg_train {
    bool is_active; /* false: every call does nothing */
    unsigned rank;
    pid_t pid;
    uint64_t step_count, epoch_count;
    uint64_t written_steps;
    uint64_t stepped_ns; /* when the last step ended */
    uint64_t next_ns;    /* not to write steps before */
    struct wg_train_link link;
};

/* Lines end with whose they are and when it was. */
static bool write_line(struct wg_train *train, uint64_t t_ns, uint64_t now_ns, const char *words)
{
    char line[LINE_MAX_BYTES];
    int length = 0;
    if (train->rank == 0)
        length = snprintf(line, sizeof line, "%s at %llu\n", words, (unsigned long long)t_ns);
    else
        length = snprintf(line, sizeof line, "%s rank %u at %llu\n", words, train->rank,
                          (unsigned long long)t_ns);
    return length > 0 && (size_t)length < sizeof line &&
           wg__train_link_write(&train->link, line, (size_t)length, now_ns);
}

static bool is_ours(struct wg_train *train)
{
    if (train->pid != getpid())
        train->is_active = false;
    return train->is_active;
}

static void write_steps(struct wg_train *train, uint64_t now_ns)
{
    if (!is_ours(train))
        return;
    char words[48];
    (void)snprintf(words, sizeof words, "step %llu", (unsigned long long)train->step_count);
    if (write_line(train, train->stepped_ns, now_ns, words))
        train->written_steps = train->step_count;
    const uint64_t end_ns = wg__clock_ns();
    uint64_t pause_ns = (end_ns - now_ns) * PAUSE_PER_COST;
    if (pause_ns > pause_max_ns)
        pause_ns = pause_max_ns;
    if (pause_ns < pause_min_ns)
        pause_ns = pause_min_ns;
    train->next_ns = end_ns + pause_ns;
}

static void flush(struct wg_train *train, uint64_t now_ns)
{
    if (train->written_steps != train->step_count)
        write_steps(train, now_ns);
}

static void write_count(struct wg_train *train, const char *word, uint64_t count)
{
    const uint64_t now_ns = wg__clock_ns();
    flush(train, now_ns);
    if (!is_ours(train))
        return;
    char words[64];
    (void)snprintf(words, sizeof words, "%s %llu", word, (unsigned long long)count);
    (void)write_line(train, now_ns, now_ns, words);
}

/* The rank that the launcher of the job gave it. */
static unsigned rank_from_environment(void)
{
    static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        uint64_t rank = 0;
        if (text != NULL && wg__parse_uint64(text, &rank) && rank <= UINT32_MAX)
            return (unsigned)rank;
    }
    return 0;
}

static enum wg_code take_opts(struct wg_train_opts *out, const struct wg_train_opts *opts,
                              struct wg_error *err)
{
    *out = (struct wg_train_opts){.size = sizeof *out};
    if (opts == NULL)
        return WG_OK;
    if (opts->size < sizeof opts->size)
        return wg__fail(err, WG_EINVAL, "wg_train_opts.size is %zu, expected %zu", opts->size,
                        sizeof *out);
    const size_t known = opts->size < sizeof *out ? opts->size : sizeof *out;
    memcpy(out, opts, known);
    for (size_t i = known; i < opts->size; i++) {
        if (((const unsigned char *)opts)[i] != 0)
            return wg__fail(err, WG_EINVAL,
                            "wg_train_opts has a member that this version does not know");
    }
    return WG_OK;
}

enum wg_code wg_train_open(struct wg_train **out, const struct wg_train_opts *opts,
                           struct wg_error *err)
{
    if (out == NULL)
        return wg__fail(err, WG_EINVAL, "wg_train_open: no place for the reporter");
    *out = NULL;
    struct wg_train_opts known;
    const enum wg_code sound = take_opts(&known, opts, err);
    if (sound != WG_OK)
        return sound;
    struct wg_train *train = wg__alloc_zeroed(1, sizeof *train);
    if (train == NULL)
        return wg__fail(err, WG_ENOMEM, "no memory for a reporter of training");
    *out = train;
    train->link.fd = -1;
    train->step_count = train->written_steps = known.first_step;
    train->epoch_count = known.first_epoch;
    const char *path = known.path != NULL ? known.path : getenv("WATTGOV_PROGRESS");
    if (path == NULL || *path == '\0')
        return WG_OK;
    train->rank = known.has_rank ? known.rank : rank_from_environment();
    train->pid = getpid();
    const uint64_t now_ns = wg__clock_ns();
    const enum wg_code code = wg__train_link_open(&train->link, path, now_ns, err);
    if (code != WG_OK) {
        wg__train_link_close(&train->link);
        return code;
    }
    train->is_active = true;
    train->stepped_ns = now_ns;
    write_steps(train, now_ns); /* where counting begins */
    train->next_ns = 0;
    return WG_OK;
}

void wg_train_close(struct wg_train *train)
{
    if (train == NULL)
        return;
    if (train->is_active)
        flush(train, wg__clock_ns());
    wg__train_link_close(&train->link);
    wg__free(train);
}

bool wg_train_is_active(const struct wg_train *train)
{
    return train != NULL && train->is_active && train->pid == getpid() &&
           wg__train_link_has_listener(&train->link);
}

void wg_train_steps(struct wg_train *train, uint64_t count)
{
    if (train == NULL || !train->is_active || count == 0)
        return;
    train->step_count += count;
    train->stepped_ns = wg__clock_ns();
    if (train->stepped_ns >= train->next_ns)
        write_steps(train, train->stepped_ns);
}

void wg_train_step(struct wg_train *train)
{
    wg_train_steps(train, 1);
}

void wg_train_epoch(struct wg_train *train)
{
    if (train == NULL || !train->is_active)
        return;
    train->epoch_count++;
    write_count(train, "epoch", train->epoch_count);
}

void wg_train_batch_size(struct wg_train *train, uint64_t count)
{
    if (train != NULL && train->is_active && count > 0)
        write_count(train, "batch_size", count);
}

void wg_train_metric(struct wg_train *train, const char *name, double value)
{
    if (train == NULL || !train->is_active)
        return;
    const uint64_t now_ns = wg__clock_ns();
    flush(train, now_ns);
    if (!is_ours(train))
        return;
    char number[WG_DOUBLE_TEXT_SIZE];
    char word[NAME_BYTES] = "";
    wg__format_double(number, value);
    for (size_t i = 0; name != NULL && name[i] != '\0' && i < sizeof word - 1; i++) {
        const unsigned char byte = (unsigned char)name[i];
        word[i] = name[i]; /* a blank would begin another word */
        if (byte <= 0x20 || byte == 0x7F)
            word[i] = '_';
    }
    char words[WG_DOUBLE_TEXT_SIZE + NAME_BYTES + 16];
    (void)snprintf(words, sizeof words, "metric %s%s%s", number, *word != '\0' ? " " : "", word);
    (void)write_line(train, now_ns, now_ns, words);
}
