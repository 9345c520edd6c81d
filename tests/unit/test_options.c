/* SPDX-License-Identifier: MIT
 *
 * Option tables: every kind of value, every way to get it wrong, and the generated help.
 */
#include "cli/options.h"

#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "support/check.h"

struct args {
    double eta;
    double slowdown;
    unsigned seeds;
    uint64_t seed;
    const char *trace;
    const char *charge;
    struct wg_option_list policies;
    struct wg_option_list gpus;
    bool json;
};

static const char *const policy_words[] = {"default", "zeus", "wattgov", NULL};

static const struct wg_option options[] = {
    {.name = "trace",
     WG_OPTION_STRING(struct args, trace),
     .value = "DIR",
     .is_required = true,
     .help = "Folder of the traces"},
    {.name = "eta",
     WG_OPTION_DOUBLE(struct args, eta),
     .value = "SHARE",
     .max = 1,
     .help = "Weight of energy against time"},
    {.name = "slowdown",
     WG_OPTION_DOUBLE(struct args, slowdown),
     .value = "F",
     .unit = "times",
     .min = 1,
     .max = HUGE_VAL,
     .min_is_excluded = true,
     .help = "Largest slowdown"},
    {.name = "seeds",
     WG_OPTION_UNSIGNED(struct args, seeds),
     .value = "N",
     .min = 1,
     .max = 1000,
     .help = "Repetitions, each with a random stream of its own, so that the spread can be told "
             "from the effect"},
    {.name = "seed", WG_OPTION_SEED(struct args, seed), .value = "N", .help = "First seed"},
    {.name = "profile-charge",
     WG_OPTION_STRING(struct args, charge),
     .value = "epoch|seconds:S",
     .help = "What profiling costs"},
    {.name = "policy",
     WG_OPTION_LIST(struct args, policies),
     .value = "P",
     .choices = policy_words,
     .fallback = "all",
     .help = "Policies to compare"},
    {.name = "gpu", WG_OPTION_LIST(struct args, gpus), .value = "NAME", .help = "GPU types"},
    {.name = "json", WG_OPTION_FLAG(struct args, json), .help = "Write JSON"},
};

static const struct wg_option_set set = {
    .command = "wattgov simulate training",
    .summary = "Replay recurring training jobs on measured traces.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog = "example:\n  wattgov simulate training --trace data/zeus",
};

enum { WORDS_MAX = 80 };

struct outcome {
    struct args args;
    enum wg_code code;
    bool wants_help;
    struct wg_error err;
};

/* Parses words that stand between blanks, behind "--trace T" unless they begin with '!'. */
static struct outcome parse(const char *line)
{
    static char copy[4096]; /* the texts in args point here until the next call */
    char name[] = "training";
    char *argv[WORDS_MAX] = {name};
    int argc = 1;
    struct outcome outcome = {
        .args = {.eta = 0.5, .slowdown = 1.5, .seeds = 20, .charge = "epoch", .trace = "T"}};
    if (line[0] == '!') {
        outcome.args.trace = NULL;
        line++;
    }
    (void)snprintf(copy, sizeof copy, "%s", line);
    for (char *at = copy; *at != '\0' && argc < WORDS_MAX;) {
        argv[argc++] = at;
        at += strcspn(at, " ");
        if (*at != '\0')
            *at++ = '\0';
    }
    outcome.code =
        wg__options_parse(&set, argc, argv, &outcome.args, &outcome.wants_help, &outcome.err);
    return outcome;
}

static void rejects(const char *line, const char *message)
{
    const struct outcome outcome = parse(line);
    if (outcome.code != WG_EINVAL)
        fail_msg("'%s' was accepted", line);
    assert_string_equal(outcome.err.text, message);
}

static void reads_values_of_all_kinds(void **state)
{
    (void)state;
    const struct outcome o = parse("!--trace data/zeus --eta 0.25 --slowdown=1.1 --seeds 7 "
                                   "--seed=18446744073709551615 --json --profile-charge=seconds:5");
    assert_int_equal(o.code, WG_OK);
    assert_false(o.wants_help);
    assert_string_equal(o.args.trace, "data/zeus");
    check_close(o.args.eta, 0.25, 0);
    check_close(o.args.slowdown, 1.1, 0);
    assert_int_equal(o.args.seeds, 7);
    assert_true(o.args.seed == UINT64_MAX);
    assert_true(o.args.json);
    assert_string_equal(o.args.charge, "seconds:5");
}

static void leaves_defaults_alone(void **state)
{
    (void)state;
    const struct outcome o = parse("");
    assert_int_equal(o.code, WG_OK);
    check_close(o.args.eta, 0.5, 0);
    assert_int_equal(o.args.seeds, 20);
    assert_string_equal(o.args.charge, "epoch");
    assert_int_equal(o.args.policies.count, 0);
    assert_false(o.args.json);
}

static void collects_lists_in_order_and_takes_the_last_of_others(void **state)
{
    (void)state;
    const struct outcome o =
        parse("--policy zeus --gpu v100 --policy=wattgov --gpu a40 --seeds 3 --seeds 4");
    assert_int_equal(o.code, WG_OK);
    assert_int_equal(o.args.policies.count, 2);
    assert_string_equal(o.args.policies.items[0], "zeus");
    assert_string_equal(o.args.policies.items[1], "wattgov");
    assert_string_equal(o.args.gpus.items[1], "a40");
    assert_int_equal(o.args.seeds, 4);
}

static void accepts_the_ends_of_ranges(void **state)
{
    (void)state;
    assert_int_equal(parse("--eta 0").code, WG_OK);
    assert_int_equal(parse("--eta 1").code, WG_OK);
    assert_int_equal(parse("--seeds 1").code, WG_OK);
    assert_int_equal(parse("--seeds 1000").code, WG_OK);
    assert_int_equal(parse("--slowdown 1e9").code, WG_OK);
}

static void names_option_value_and_range_in_errors(void **state)
{
    (void)state;
    rejects("--eta 1.5", "--eta: '1.5' is not a number in 0 .. 1");
    rejects("--eta=-0.1", "--eta: '-0.1' is not a number in 0 .. 1");
    rejects("--eta -0.1", "--eta: '-0.1' is not a number in 0 .. 1");
    rejects("--eta nan", "--eta: 'nan' is not a number in 0 .. 1");
    rejects("--eta 0,5", "--eta: '0,5' is not a number in 0 .. 1");
    rejects("--eta=", "--eta: '' is not a number in 0 .. 1");
    rejects("--slowdown 1", "--slowdown: '1' is not a number above 1 times");
    rejects("--seeds 0", "--seeds: '0' is not a whole number in 1 .. 1000");
    rejects("--seeds 1001", "--seeds: '1001' is not a whole number in 1 .. 1000");
    rejects("--seeds 2.5", "--seeds: '2.5' is not a whole number in 1 .. 1000");
    rejects("--seeds 99999999999", "--seeds: '99999999999' is not a whole number in 1 .. 1000");
    rejects("--seed -1", "--seed: '-1' is not a whole number in 0 .. 18446744073709551615");
    rejects("--policy bogus", "--policy: 'bogus' is not default, zeus or wattgov");
    rejects("--gpu=", "--gpu: the value is empty, expected NAME (GPU types)");
}

static void asks_for_missing_values(void **state)
{
    (void)state;
    rejects("--eta", "--eta needs a value: a number in 0 .. 1");
    rejects("--eta --json", "--eta needs a value: a number in 0 .. 1");
    rejects("--gpu --", "--gpu needs a value: NAME");
    rejects("--json=yes", "--json takes no value, but got 'yes'");
    rejects("--help=yes", "--help takes no value, but got 'yes'");
    rejects("!--json", "--trace DIR is required");
}

static void suggests_the_nearest_option(void **state)
{
    (void)state;
    rejects("--sedes 3", "unknown option '--sedes'; did you mean '--seeds'?");
    rejects("--polcy=zeus", "unknown option '--polcy'; did you mean '--policy'?");
    rejects("--hlep", "unknown option '--hlep'; did you mean '--help'?");
    rejects("-json", "unknown option '-json'; did you mean '--json'?");
    rejects("--qqqqqqq 1", "unknown option '--qqqqqqq'; see 'wattgov simulate training --help'");
    rejects("-x", "unknown option '-x'; see 'wattgov simulate training --help'");
}

static void refuses_abbreviations_and_operands(void **state)
{
    (void)state;
    rejects("--slow 2", "unknown option '--slow'; did you mean '--slowdown'?");
    rejects("--prof epoch", "unknown option '--prof'; did you mean '--profile-charge'?");
    rejects("data", "unexpected argument 'data'; see 'wattgov simulate training --help'");
    rejects("-", "unexpected argument '-'; see 'wattgov simulate training --help'");
    rejects("-- --json", "unexpected argument '--json'; see 'wattgov simulate training --help'");
    assert_int_equal(parse("--json --").code, WG_OK);
}

static void lets_help_win_over_errors(void **state)
{
    (void)state;
    assert_true(parse("!--eta 7 --help").wants_help);
    assert_true(parse("-h").wants_help);
    const struct outcome o = parse("--eta 0.1 --help");
    check_close(o.args.eta, 0.5, 0); /* the help shows defaults, not what was just given */
    rejects("-- --help", "unexpected argument '--help'; see 'wattgov simulate training --help'");
}

static void limits_the_length_of_lists(void **state)
{
    (void)state;
    char line[4096] = "";
    size_t length = 0;
    for (int i = 0; i < WG_OPTION_LIST_MAX; i++)
        length += (size_t)snprintf(line + length, sizeof line - length, "%s--gpu=g%d",
                                   i > 0 ? " " : "", i);
    assert_int_equal(parse(line).args.gpus.count, WG_OPTION_LIST_MAX);
    (void)snprintf(line + length, sizeof line - length, " --gpu=more");
    rejects(line, "--gpu: 'more' is one too many, at most 64 are accepted");
}

static void writes_help_with_units_ranges_and_defaults(void **state)
{
    (void)state;
    struct wg_buffer out;
    wg__buffer_init(&out);
    const struct args args = {.eta = 0.5, .slowdown = 1.5, .seeds = 20, .charge = "epoch"};
    wg__options_help(&set, &args, &out);
    assert_false(out.failed);
    static const char *const parts[] = {
        "usage: wattgov simulate training --trace DIR [OPTION]...\n\nReplay recurring",
        "  --trace DIR                 Folder of the traces (required)\n",
        "Weight of energy against time (a number in 0 .. 1; default: 0.5)\n",
        "Largest slowdown (a number above 1 times; default: 1.5 times)\n",
        "(a whole number in 1 .. 1000;\n                              default: 20)\n",
        "  --profile-charge epoch|seconds:S\n",
        "\n                              What profiling costs (default: epoch)\n",
        "Policies to compare (default, zeus or wattgov; repeatable; default:\n",
        "\n                              all)\n",
        "GPU types (repeatable)\n",
        "  --json                      Write JSON\n",
        "  --help                      Show this text\n",
        "\nexample:\n  wattgov simulate training --trace data/zeus\n",
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(out.data, parts[i]) == NULL)
            fail_msg("the help lacks '%s':\n%s", parts[i], out.data);
    for (const char *line = out.data; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        assert_true(length <= 100);
        line += length + (line[length] == '\n');
    }
    wg__buffer_fini(&out);
}

static void survives_want_of_memory(void **state)
{
    (void)state;
    const struct args args = {.eta = 0.5, .charge = "epoch"};
    bool has_worked = false;
    for (size_t nth = 1; !has_worked; nth++) {
        struct wg_buffer out;
        wg__buffer_init(&out);
        wg__alloc_fail_from(nth);
        wg__options_help(&set, &args, &out);
        const struct outcome o = parse("--eta 7"); /* rejects, with less to say */
        wg__alloc_fail_from(0);
        assert_int_equal(o.code, WG_EINVAL);
        assert_non_null(strstr(o.err.text, "--eta: '7' is not a"));
        has_worked = !out.failed;
        wg__buffer_fini(&out);
        assert_true(nth < 1000);
    }
}

static void finds_near_words_only(void **state)
{
    (void)state;
    static const char *const words[] = {"train", "tune", "wave", "simulate", "measure"};
    assert_string_equal(wg__nearest_word("trian", words, 5), "train");
    assert_string_equal(wg__nearest_word("sim", words, 5), "simulate");
    assert_string_equal(wg__nearest_word("mesure", words, 5), "measure");
    assert_null(wg__nearest_word("x", words, 5));
    assert_null(wg__nearest_word("", words, 5));
    assert_null(wg__nearest_word("completely-else", words, 5));
    char longer[200];
    memset(longer, 't', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_null(wg__nearest_word(longer, words, 5));
}

/* A command in a command, as `wattgov measure` has it. */
struct run_args {
    double interval_s;
    const char *output;
    struct wg_option_command command;
};

static const struct wg_option run_options[] = {
    {.name = "interval",
     WG_OPTION_DURATION(struct run_args, interval_s),
     .value = "TIME",
     .min = 0.001,
     .max = 60,
     .help = "Time between samples."},
    {.name = "output",
     .letter = 'o',
     WG_OPTION_STRING(struct run_args, output),
     .value = "FILE",
     .help = "Where to."},
};

static const struct wg_option_set run_set = {
    .command = "wattgov measure",
    .summary = "Measures.",
    .options = run_options,
    .count = sizeof run_options / sizeof run_options[0],
    WG_OPTION_COMMAND(struct run_args, command),
};

static void takes_the_words_behind_two_dashes_as_a_command(void **state)
{
    (void)state;
    char *argv[] = {(char[]){"measure"}, (char[]){"--interval"}, (char[]){"2s"}, (char[]){"--"},
                    (char[]){"train"},   (char[]){"--help"},     (char[]){"--"}, NULL};
    struct run_args args = {.interval_s = 0.1};
    bool wants_help = true;
    assert_int_equal(wg__options_parse(&run_set, 7, argv, &args, &wants_help, NULL), WG_OK);
    assert_false(wants_help);
    check_close(args.interval_s, 2, 0);
    assert_int_equal(args.command.count, 3);
    assert_ptr_equal(args.command.words, argv + 4);
    assert_null(args.command.words[args.command.count]);

    struct wg_error err; /* nothing behind the dashes: a variable of a script was empty, say */
    assert_int_equal(wg__options_parse(&run_set, 4, argv, &args, &wants_help, &err), WG_EINVAL);
    assert_string_equal(err.text, "there is no command behind --");
}

static enum wg_code parse_run(char *word, char *value, struct run_args *args, struct wg_error *err)
{
    char *argv[] = {(char[]){"measure"}, word, value, NULL};
    bool wants_help = false;
    return wg__options_parse(&run_set, value != NULL ? 3 : 2, argv, args, &wants_help, err);
}

static void a_command_without_dashes_is_told_where_it_stands(void **state)
{
    (void)state;
    struct run_args args = {0};
    struct wg_error err;
    assert_int_equal(parse_run((char[]){"train.py"}, NULL, &args, &err), WG_EINVAL);
    assert_string_equal(err.text, "unexpected argument 'train.py'; a command stands behind --: "
                                  "'wattgov measure -- train.py'");
}

static void a_time_has_a_unit_and_a_range(void **state)
{
    (void)state;
    struct run_args args = {0};
    struct wg_error err;
    static const char range[] = " is not a time in 1ms .. 1m, with its unit";
    char *const bad[] = {(char[]){"100"}, (char[]){"0ms"}, (char[]){"61s"}, (char[]){"fast"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char expected[128];
        (void)snprintf(expected, sizeof expected, "--interval: '%s'%s", bad[i], range);
        assert_int_equal(parse_run((char[]){"--interval"}, bad[i], &args, &err), WG_EINVAL);
        assert_string_equal(err.text, expected);
    }
    assert_int_equal(parse_run((char[]){"--interval"}, (char[]){"1m"}, &args, &err), WG_OK);
    check_close(args.interval_s, 60, 0);
    assert_int_equal(parse_run((char[]){"--interval"}, NULL, &args, &err), WG_EINVAL);
    assert_string_equal(err.text, "--interval needs a value: a time in 1ms .. 1m, with its unit");
}

static void an_option_may_have_a_letter(void **state)
{
    (void)state;
    struct run_args args = {0};
    struct wg_error err;
    assert_int_equal(parse_run((char[]){"-o"}, (char[]){"x"}, &args, &err), WG_OK);
    assert_string_equal(args.output, "x");
    assert_int_equal(parse_run((char[]){"-ox"}, NULL, &args, &err), WG_EINVAL);
    assert_int_equal(parse_run((char[]){"-o"}, NULL, &args, &err), WG_EINVAL);
    assert_string_equal(err.text, "--output needs a value: FILE");
}

static void the_help_shows_command_letters_and_times(void **state)
{
    (void)state;
    const struct run_args args = {.interval_s = 0.1};
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__options_help(&run_set, &args, &out);
    static const char *const parts[] = {
        "usage: wattgov measure [OPTION]... [-- CMD [ARG]...]\n",
        "Time between samples. (a time in 1ms .. 1m, with its unit; default:\n",
        " 100ms)\n",
        "  -o, --output FILE           Where to.\n",
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(out.data, parts[i]) == NULL)
            fail_msg("the help lacks '%s':\n%s", parts[i], out.data);
    wg__buffer_fini(&out);
}

static void words_a_rejection(void **state)
{
    (void)state;
    struct wg_error err;
    assert_int_equal(wg__option_reject(&err, "drift", "x", "JOB@RECURRENCE"), WG_EINVAL);
    assert_string_equal(err.text, "--drift: 'x' is not JOB@RECURRENCE");
}

static void puts_words_before_options_in_their_order(void **state)
{
    (void)state;
    static const struct {
        const char *given[8], *expected[8];
    } cases[] = {
        {{"x"}, {"x"}},
        {{"a", "b"}, {"a", "b"}},
        {{"a", "--json", "b"}, {"a", "b", "--json"}},
        {{"--eta", "0.1", "a", "--seeds=2", "-", "--json"},
         {"a", "-", "--eta", "0.1", "--seeds=2", "--json"}},
        {{"--json", "a", "--", "b"}, {"a", "--json", "--", "b"}},
        {{"--eta", "--json", "a"}, {"a", "--eta", "--json"}}, /* a value is missing */
        {{"--jsn", "a", "b"}, {"--jsn", "a", "b"}},           /* may have a value */
        {{"--json", "a", "--help", "b"}, {"a", "--json", "--help", "b"}},
        {{"a", "--eta"}, {"a", "--eta"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char words[8][16], *argv[9] = {(char[]){"training"}};
        int argc = 1;
        for (; argc < 8 && cases[i].given[argc - 1] != NULL; argc++) {
            (void)snprintf(words[argc], sizeof words[argc], "%s", cases[i].given[argc - 1]);
            argv[argc] = words[argc];
        }
        wg__options_words_first(&set, argc, argv);
        assert_string_equal(argv[0], "training");
        for (int k = 1; k < argc; k++)
            assert_string_equal(argv[k], cases[i].expected[k - 1]);
        assert_null(argv[argc]);
    }
}

static void names_that_are_not_known_get_those_that_are(void **state)
{
    (void)state;
    struct wg_error err;
    static const char *const names[] = {"a40", "v100", "a", "b", "c", "d", "e",
                                        "f",   "g",    "h", "i", "j", "k", "l"};
    assert_int_equal(wg__option_check_name("gpu", "v100", "a GPU", names, 2, &err), WG_OK);
    assert_int_equal(wg__option_check_name("gpu", "V100", "a GPU", names, 2, &err), WG_EINVAL);
    assert_string_equal(err.text, "--gpu: 'V100' is not a GPU (a40, v100); did you mean 'v100'?");
    assert_int_equal(wg__option_check_name("gpu", "titan", "a GPU", names, 14, &err), WG_EINVAL);
    assert_string_equal(err.text, "--gpu: 'titan' is not a GPU (a40, v100, a, b, c, d, e, f, g, h, "
                                  "i, j and 2 more)");
    wg__alloc_fail_from(1);
    const enum wg_code code = wg__option_reject_name("gpu", "titan", "a GPU", names, 2, &err);
    wg__alloc_fail_from(0);
    assert_int_equal(code, WG_ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_values_of_all_kinds),
        cmocka_unit_test(leaves_defaults_alone),
        cmocka_unit_test(collects_lists_in_order_and_takes_the_last_of_others),
        cmocka_unit_test(accepts_the_ends_of_ranges),
        cmocka_unit_test(names_option_value_and_range_in_errors),
        cmocka_unit_test(asks_for_missing_values),
        cmocka_unit_test(suggests_the_nearest_option),
        cmocka_unit_test(refuses_abbreviations_and_operands),
        cmocka_unit_test(lets_help_win_over_errors),
        cmocka_unit_test(limits_the_length_of_lists),
        cmocka_unit_test(writes_help_with_units_ranges_and_defaults),
        cmocka_unit_test(survives_want_of_memory),
        cmocka_unit_test(finds_near_words_only),
        cmocka_unit_test(takes_the_words_behind_two_dashes_as_a_command),
        cmocka_unit_test(a_command_without_dashes_is_told_where_it_stands),
        cmocka_unit_test(a_time_has_a_unit_and_a_range),
        cmocka_unit_test(an_option_may_have_a_letter),
        cmocka_unit_test(the_help_shows_command_letters_and_times),
        cmocka_unit_test(puts_words_before_options_in_their_order),
        cmocka_unit_test(words_a_rejection),
        cmocka_unit_test(names_that_are_not_known_get_those_that_are),
    };
    return run_tests(tests);
}
