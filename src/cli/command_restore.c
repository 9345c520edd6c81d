/* SPDX-License-Identifier: MIT
 *
 * `wattgov restore`: gives back by hand what a dead wattgov has left set, and shows who holds what.
 *
 * Every command does the same before its own work; this one does nothing else, so that it can be
 * run when something did not come back, and says with its exit status whether all is well.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/markup.h"
#include "cli/options.h"
#include "cli/stale_settings.h"
#include "device/journal_folder.h"

struct args {
    const char *state_dir;
    bool list;
    bool json;
};

static const struct wg_option options[] = {
    {.name = "list",
     WG_OPTION_FLAG(struct args, list),
     .help = "Restores nothing: shows which settings are noted, and who holds them."},
    {.name = "state-dir",
     WG_OPTION_STRING(struct args, state_dir),
     .value = "DIR",
     .fallback = "WATTGOV_STATE_DIR, else for root /var/lib/wattgov",
     .help = "Where the journals of settings lie."},
    {.name = "json", WG_OPTION_FLAG(struct args, json), .help = "Writes JSON instead of text."},
};

static const struct wg_option_set set = {
    .command = "wattgov restore",
    .summary = "Gives settings of devices back that a wattgov which has died has left, and shows "
               "what others hold. Settings that somebody else has made since are left alone.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog = "examples:\n"
              "  wattgov restore\n"
              "  wattgov restore --list",
};

/* The report while it is made: knobs first, then journals; `json` NULL: text. */
struct report {
    struct wg_buffer *text;
    struct wg_json *json;
    size_t lines;
    size_t unreadable; /* journals, by the list alone */
    size_t restoring;  /* likewise; somebody is at it */
};

static void add_note(const struct wg_restore_note *note, void *context)
{
    static const char *const words[] = {[WG_RESTORE_DONE] = "restored",
                                        [WG_RESTORE_FOREIGN] = "foreign",
                                        [WG_RESTORE_FAILED] = "failed",
                                        [WG_RESTORE_UNREADABLE] = "unreadable"};
    struct report *report = context;
    if (note->outcome == WG_RESTORE_UNREADABLE)
        return; /* comes with the journals */
    report->lines++;
    if (report->json == NULL) {
        wg__restore_note_text(note, report->text);
        wg__buffer_puts(report->text, "\n");
        return;
    }
    struct wg_json *json = report->json;
    wg__json_object(json);
    wg__json_member_string(json, "device", note->device);
    wg__json_member_string(json, "label", note->label);
    wg__json_member_string(json, "knob", wg_knob_key(note->knob));
    wg__json_member_double(json, "original", note->original);
    wg__json_member_double(json, "found", note->found);
    wg__json_member_string(json, "outcome", words[note->outcome]);
    wg__json_member_string(json, "holder", note->holder);
    wg__json_member_string(json, "error", note->err != NULL ? note->err->text : NULL);
    wg__json_close(json);
}

/* By its guard, or by another command, where the writer has died. */
static bool is_restoring(const struct wg_journal_look *look)
{
    return look->journal != NULL && look->is_live &&
           !wg__journal_has_writer(&look->journal->header);
}

static const char *state_of(const struct wg_journal_look *look)
{
    if (look->journal == NULL)
        return "unreadable";
    if (look->is_live)
        return is_restoring(look) ? "restoring" : "held";
    switch (wg__journal_place(&look->journal->header)) {
    case WG_JOURNAL_HERE:
        return "stale";
    case WG_JOURNAL_GONE:
        return "gone";
    case WG_JOURNAL_ELSEWHERE:
        break;
    }
    return "elsewhere";
}

/* What a knob is set to, as far as the journal knows; the original where nothing was set. */
static double value_of(const struct wg_journal_knob *knob)
{
    return knob->value_count > 0 ? knob->values[knob->value_count - 1] : knob->original;
}

static void add_knob_json(const struct wg_journal_knob *knob, struct wg_json *json)
{
    wg__json_object(json);
    wg__json_member_string(json, "device", knob->device);
    wg__json_member_string(json, "label", knob->label);
    wg__json_member_string(json, "knob", wg_knob_key(knob->knob));
    wg__json_member_double(json, "original", knob->original);
    wg__json_member_double(json, "value", value_of(knob));
    wg__json_close(json);
}

static void add_journal_json(const struct wg_journal_look *look, struct wg_json *json)
{
    wg__json_object(json);
    wg__json_member_string(json, "path", look->path);
    wg__json_member_string(json, "state", state_of(look));
    if (look->journal == NULL) {
        wg__json_member_string(json, "error", look->err->text);
    } else {
        wg__json_member_string(json, "holder", look->journal->header.holder);
        wg__json_member_uint(json, "pid", (uint64_t)look->journal->header.pid);
        wg__json_key(json, "knobs");
        wg__json_array(json);
        for (size_t i = 0; i < look->journal->knob_count; i++)
            if (!look->journal->knobs[i].is_done)
                add_knob_json(&look->journal->knobs[i], json);
        wg__json_close(json);
    }
    wg__json_close(json);
}

static void add_journal_text(const struct wg_journal_look *look, struct wg_buffer *text)
{
    if (look->journal == NULL) {
        wg__append_plain(text, look->err->text);
        wg__buffer_printf(text, "; it is left in place: look at it, set the devices by hand and "
                                "remove it\n");
        return;
    }
    const struct wg_journal *journal = look->journal;
    wg__buffer_printf(text, "%s: ", state_of(look));
    wg__append_plain(text, journal->header.holder);
    wg__buffer_printf(text, " (pid %lld), ", (long long)journal->header.pid);
    wg__append_plain(text, look->path);
    wg__buffer_puts(text, is_restoring(look)
                              ? "; its guard, or another command, is at it: look again soon\n"
                              : "\n");
    for (size_t i = 0; i < journal->knob_count; i++) {
        const struct wg_journal_knob *knob = &journal->knobs[i];
        if (knob->is_done)
            continue;
        wg__buffer_puts(text, "  ");
        wg__append_plain(text, knob->label);
        wg__buffer_printf(text, " %s: ", wg_knob_key(knob->knob));
        wg__append_setting(text, knob->knob, value_of(knob));
        wg__buffer_puts(text, ", before ");
        wg__append_setting(text, knob->knob, knob->original);
        wg__buffer_puts(text, "\n");
    }
}

static bool add_journal(struct wg_journal_look *look, void *context)
{
    struct report *report = context;
    report->lines++;
    report->unreadable += look->journal == NULL;
    report->restoring += is_restoring(look);
    if (report->json != NULL)
        add_journal_json(look, report->json);
    else
        add_journal_text(look, report->text);
    return true;
}

static enum wg_code make_report(const struct args *args, struct report *report,
                                struct wg_restore_summary *summary, struct wg_error *err)
{
    struct wg_json *json = report->json;
    *summary = (struct wg_restore_summary){0};
    if (json != NULL) {
        wg__json_object(json);
        wg__json_member_string(json, "schema", "wattgov.restore/1");
        wg__json_key(json, "knobs");
        wg__json_array(json);
    }
    enum wg_code code = WG_OK;
    if (!args->list)
        code = wg__restore_stale(args->state_dir, add_note, report, summary, err);
    if (json != NULL) {
        wg__json_close(json);
        wg__json_key(json, "journals");
        wg__json_array(json);
    }
    if (code == WG_OK)
        code = wg__journal_each_below(args->state_dir, add_journal, report, err);
    if (json != NULL) {
        wg__json_close(json);
        wg__json_close(json);
        wg__buffer_puts(report->text, "\n");
    } else if (report->lines == 0) {
        wg__buffer_puts(report->text,
                        args->list ? "no settings are noted\n" : "nothing was left to restore\n");
    }
    return code;
}

/* A folder that was named and is not there is a typing error, and not the news that nothing is
 * left.
 */
static enum wg_code check_folder(const struct args *args, struct wg_error *err)
{
    struct stat found;
    if (args->state_dir == NULL)
        return WG_OK;
    if (stat(args->state_dir, &found) != 0)
        return wg__fail_errno(err, errno, "--state-dir: '%s'", args->state_dir);
    return S_ISDIR(found.st_mode)
               ? WG_OK
               : wg__fail(err, WG_EINVAL, "--state-dir: '%s' is no folder", args->state_dir);
}

static int run(int argc, char *argv[])
{
    struct args args = {.state_dir = NULL};
    int status = WG_EXIT_OK;
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    struct wg_error err;
    struct wg_buffer text;
    struct wg_json json;
    wg__buffer_init(&text);
    wg__json_init(&json, &text);
    struct report report = {.text = &text, .json = args.json ? &json : NULL};
    struct wg_restore_summary summary;
    enum wg_code code = check_folder(&args, &err);
    if (code == WG_OK)
        code = make_report(&args, &report, &summary, &err);
    if (code == WG_OK)
        code = wg__command_print(stdout, &text, &err);
    if (code != WG_OK)
        status = wg__command_fail(&set, &err);
    else if (summary.failed > 0 || report.unreadable > 0 || (report.restoring > 0 && !args.list))
        status = WG_EXIT_FAILED;
    wg__buffer_fini(&text);
    return status;
}

const struct wg_command wg__command_restore = {
    .name = "restore",
    .summary = "Give back settings that a wattgov which has died has left",
    .run = run};
