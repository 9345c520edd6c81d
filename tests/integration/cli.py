#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The program as its users call it: results, bad input, closed pipes, full disks.

    tests/integration/cli.py build/release/wattgov             run the tests
    tests/integration/cli.py build/release/wattgov --update    make tests/golden/training anew

A golden is {"command": [...], "result": {...}}: what `wattgov simulate training` with these arguments has
written as JSON, without the times of decisions. Results are compared to 1e-9 of each number. The policy
wattgov has no golden: its constants may be tuned, and tests of their own watch what it reaches.
"""
import csv
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.environ.get("WATTGOV_SOURCE_ROOT", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
TRACE = os.path.join(ROOT, "data/zeus/trace")
TINY = os.path.join(ROOT, "tests/golden/tiny_trace")
GOLDENS = os.path.join(ROOT, "tests/golden/training")
PROGRAM = None

GOLDEN_COMMANDS = {
    "zeus": ["--policy", "zeus", "--recurrences", "30", "--seeds", "3"],
    "grid": ["--policy", "grid", "--gpu", "v100", "--recurrences", "30", "--seeds", "3"],
    "zeus_seconds": ["--policy", "zeus", "--gpu", "a40", "--job", "squad", "--recurrences", "30",
                     "--seeds", "3", "--profile-charge", "seconds:5", "--eta", "1"],
    "zeus_in_flight": ["--policy", "zeus", "--gpu", "v100", "--job", "cifar100", "--recurrences", "30",
                       "--seeds", "3", "--concurrency", "4", "--window", "10", "--seed", "11"],
    "yardsticks": ["--policy", "default", "--policy", "oracle", "--recurrences", "2", "--seeds", "2"],
}

# Keys that stood in the first release of the schema; others may be added, these stay.
CASE_KEYS = {"gpu", "job", "policy", "recurrences", "seeds", "energy_j", "time_s", "cost_j",
             "cost_over_oracle", "cost_over_default", "regret_oracle_runs", "final", "cumulative_cost_j"}
SUMMARY_KEYS = {"policy", "geomean_cost_over_default", "geomean_energy_over_default",
                "geomean_time_over_default", "mean_excess_over_oracle", "worst_excess_over_oracle",
                "cases_above_default"}


def run(*arguments, **kwargs):
    """Runs the program; returns the completed process with its texts."""
    kwargs.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([PROGRAM, *arguments], stderr=subprocess.PIPE, text=True, timeout=100,
                          check=False, **kwargs)


def training(*arguments, trace=TRACE, **kwargs):
    return run("simulate", "training", "--trace", trace, *arguments, **kwargs)


def replay(*arguments, trace=TRACE):
    """The parsed JSON of a replay, the times of decisions left out."""
    done = training("--json", *arguments, trace=trace)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    result = json.loads(done.stdout, parse_constant=lambda name: 1 / 0)
    del result["decision_us"]
    return result


def golden_result(arguments):
    result = replay(*arguments)
    for case in result["cases"]:
        for key in ("cumulative_low_j", "cumulative_high_j", "cumulative_default_j", "cumulative_oracle_j"):
            del case[key]
    return result


class Goldens(unittest.TestCase):
    def compare(self, got, want, where):
        if isinstance(want, dict):
            self.assertEqual(list(got), list(want), where)
            for key, value in want.items():
                self.compare(got[key], value, f"{where}.{key}")
        elif isinstance(want, list):
            self.assertEqual(len(got), len(want), where)
            for i, value in enumerate(want):
                self.compare(got[i], value, f"{where}[{i}]")
        elif isinstance(want, float):
            self.assertTrue(math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9), f"{where}: {got}, not {want}")
        else:
            self.assertEqual(got, want, where)

    def test_results_are_those_of_the_goldens(self):
        for name in GOLDEN_COMMANDS:
            with open(os.path.join(GOLDENS, name + ".json"), encoding="utf-8") as file:
                golden = json.load(file)
            self.assertEqual(golden["command"], GOLDEN_COMMANDS[name])
            self.compare(golden_result(golden["command"]), golden["result"], name)

    def test_default_and_oracle_agree_with_zeus_own_simulator_to_every_printed_digit(self):
        result = replay("--policy", "default", "--recurrences", "100", "--seeds", "1")
        cases = {(case["gpu"], case["job"]): case for case in result["cases"]}
        with open(os.path.join(ROOT, "tests/golden/zeus_totals.csv"), encoding="utf-8") as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
        self.assertEqual(len(rows), 12)
        for row in rows:
            case = cases[row["gpu"], row["job"]]
            self.assertEqual(case["default"]["batch_size"], float(row["default_batch_size"]))
            self.assertEqual(case["oracle"]["batch_size"], float(row["oracle_batch_size"]))
            self.assertEqual(case["oracle"]["power_limit_w"], float(row["oracle_limit_w"]))
            for who in ("default", "oracle"):
                for column, key, unit in (("energy_mj", "energy_j", 1e6), ("time_h", "time_s", 3600),
                                          ("cost_mj", "cost_j", 1e6)):
                    want = row[f"{who}_{column}"]
                    digits = len(want.split(".")[1])
                    self.assertEqual(f"{case[who][key] / unit:.{digits}f}", want, f"{row} {who} {column}")


class Results(unittest.TestCase):
    def test_json_has_the_schema(self):
        done = training("--json", "--gpu", "v100", "--job", "squad", "--recurrences", "5", "--seeds", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        result = json.loads(done.stdout)
        self.assertEqual(result["schema"], "wattgov.simulate.training/1")
        self.assertEqual([case["policy"] for case in result["cases"]], ["default", "zeus", "wattgov", "oracle"])
        for case in result["cases"]:
            self.assertLessEqual(CASE_KEYS, set(case))
            self.assertEqual(len(case["cumulative_cost_j"]), 5)
            for key in ("energy_j", "time_s", "cost_j"):
                self.assertLessEqual({"mean", "sd"}, set(case[key]))
            for key in ("cost_over_oracle", "cost_over_default", "regret_oracle_runs"):
                self.assertLessEqual({"mean", "worst"}, set(case[key]))
            self.assertLessEqual({"batch_size", "power_limit_w"}, set(case["final"]))
        for summary in result["summary"]:
            self.assertLessEqual(SUMMARY_KEYS, set(summary))
        self.assertGreater(result["decision_us"]["p50"], 0)
        self.assertGreaterEqual(result["decision_us"]["p99"], result["decision_us"]["p50"])

    def test_what_is_not_there_is_null(self):
        done = training("--json", "--policy", "default", "--recurrences", "1", "--seeds", "1")
        self.assertIn('"decision_us":{"p50":null,"p99":null,"policies":[]}', done.stdout)

    def test_threads_change_nothing(self):
        arguments = ["--recurrences", "15", "--seeds", "5", "--policy", "zeus", "--policy", "wattgov"]
        results = [replay(*arguments, "--threads", threads) for threads in ("1", "2", "7")]
        self.assertEqual(results[0], results[1])
        self.assertEqual(results[0], results[2])

    def test_seeds_matter(self):
        arguments = ["--recurrences", "15", "--seeds", "2", "--policy", "zeus"]
        self.assertEqual(replay(*arguments), replay(*arguments, "--seed", "1"))
        self.assertNotEqual(replay(*arguments)["cases"], replay(*arguments, "--seed", "2")["cases"])

    def test_finds_the_table_of_jobs_beside_the_trace(self):
        result = replay("--gpu", "toy", "--job", "toy", "--policy", "default", "--seeds", "1",
                        "--recurrences", "3", trace=TINY)
        self.assertEqual(result["cases"][0]["cumulative_cost_j"], [7200, 14400, 21600])
        self.assertEqual(result["cases"][0]["left_out"], [64])

    def test_tables_are_at_most_120_columns_wide(self):
        done = training("--recurrences", "5", "--seeds", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertLessEqual(max(len(line) for line in lines), 120)
        self.assertNotIn("\x1b", done.stdout)
        for word in ("a40", "v100", "librispeech", "movielens-1m", "over oracle"):
            self.assertIn(word, done.stdout)

    def test_drift_and_warm_start_and_seconds_run(self):
        drift = replay("--gpu", "toy", "--job", "toy", "--drift", "toy-slow@2", "--recurrences", "4",
                       "--seeds", "1", "--policy", "default", trace=TINY)
        self.assertEqual(drift["cases"][0]["cumulative_default_j"], [7200, 14400, 28800, 43200])
        self.assertEqual((drift["drift_job"], drift["drift_at"]), ("toy-slow", 2))
        warm = replay("--warm-start", "V100", "--recurrences", "4", "--seeds", "1", "--policy", "wattgov")
        self.assertEqual({case["gpu"] for case in warm["cases"]}, {"a40"})
        seconds = replay("--profile-charge", "seconds:2.5", "--recurrences", "4", "--seeds", "1")
        self.assertEqual(seconds["profile_seconds"], 2.5)


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_csv_has_a_row_per_case_and_recurrence(self):
        done = training("--csv", self.path("curve.csv"), "--json", "--gpu", "a40", "--recurrences", "6",
                        "--seeds", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("curve.csv"), encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 6 * 4 * 6)
        result = json.loads(done.stdout)
        for i, case in enumerate(result["cases"]):
            for r in range(6):
                row = rows[6 * i + r]
                self.assertEqual((row["gpu"], row["job"], row["policy"], row["recurrence"]),
                                 (case["gpu"], case["job"], case["policy"], str(r + 1)))
                self.assertEqual(float(row["cumulative_cost_j"]), case["cumulative_cost_j"][r])
                self.assertEqual(float(row["oracle_j"]), case["cumulative_oracle_j"][r])
                self.assertLessEqual(float(row["low_j"]), float(row["high_j"]))

    def test_the_report_stands_alone_and_is_small(self):
        done = training("--html", self.path("report.html"), "--seeds", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("report.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertLess(len(page), 3_000_000)
        self.assertTrue(page.startswith("<!DOCTYPE html>"))
        self.assertEqual(page.count("<svg"), page.count("</svg>"))
        # A chart per job of the cost above the oracle; cost, front and two maps of choices; the mean; legends.
        self.assertGreaterEqual(page.count("<svg"), 12 * 5 + 1)
        self.assertIn("Attempts that failed or were stopped are not counted", page)
        self.assertIn("Cost above the oracle, job by job", page)
        self.assertIn("off by luck", page)
        for loaded in ("<script", "src=", "href=", "@import", "url("):
            self.assertNotIn(loaded, page)
        self.assertIn("wattgov simulate training --trace", page)

    def test_the_report_of_one_case_shows_no_plot_twice(self):
        done = training("--html", self.path("report.html"), "--gpu", "a40", "--job", "squad", "--seeds", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("report.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertNotIn("job by job", page)
        # For a screen and for a phone.
        self.assertEqual(page.count(">Cost above the oracle</text>"), 2)

    def test_nothing_is_left_behind_when_a_replay_fails(self):
        done = training("--html", self.path("report.html"), "--csv", self.path("curve.csv"), "--target", "0.123")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(os.listdir(self.folder), [])

    def test_outputs_are_checked_before_the_work(self):
        for option in ("--html", "--csv"):
            done = training(option, "/nowhere/at/all", "--seeds", "100000")
            self.assertEqual(done.returncode, 1)
            self.assertIn("/nowhere", done.stderr)
        for option, name, part in (("--csv", "x.csv.gz", "without .gz"), ("--html", "x.GZ", "without .gz"),
                                   ("--csv", "-", "/dev/stdout")):
            done = training(option, name, "--seeds", "100000", cwd=self.folder)
            self.assertEqual(done.returncode, 2)
            self.assertIn(part, done.stderr)
            self.assertEqual(os.listdir(self.folder), [])
        for name in ("x", "./x", "../" + os.path.basename(self.folder) + "/x"):
            done = training("--html", self.path("x"), "--csv", self.path(name))
            self.assertEqual(done.returncode, 2)
            self.assertIn("same file", done.stderr)

    def test_every_command_checks_its_outputs_alike(self):
        """Packed names, "-" and one name for two files: before the work, in the same words, and nothing is written."""
        product, wave = ["--gemm", "64,64,64", "--gpu", "a100"], ["resnet50", "--gpu", "a100"]
        commands = [(["measure"], ["csv", "output"], ["--", "true"]),
                    (["record"], ["output"], ["--", "true"]),
                    (["train"], ["html", "output"], ["--", "true"]),
                    (["tune", "--knob", "power_limit"], ["output", "html"], ["--", "true"]),
                    (["job", "show", "x"], ["html"], []),
                    (["simulate", "training", "--trace", TRACE], ["csv", "html"], []),
                    (["simulate", "tuning", "--grid", "/nowhere", "--knob", "a:gpu_clock", "--objective", "b"],
                     ["csv", "html"], []),
                    (["simulate", "serving", "--profile", "/nowhere", "--slo", "1", "--arrivals", "uniform:1"],
                     ["csv", "html"], []),
                    (["wave", "analyze", *wave], ["csv", "batches", "html"], []),
                    (["wave", "plan", *wave], ["output", "pareto", "html"], []),
                    (["wave", "sweep", *product], ["output", "html"], []),
                    (["wave", "calibrate", "/nowhere", "--gpu", "a100"], ["output"], []),
                    (["wave", "evaluate", "/nowhere", "--gpu", "a100"], ["predictions"], []),
                    (["wave", "import", "resnet50"], ["output"], [])]
        for words, options, tail in commands:
            cases = [(["--" + option, name], part) for option in options
                     for name, part in (("x.gz", f"--{option}: 'x.gz' is written as plain text"),
                                        ("-", "use /dev/stdout for the output"))]
            cases += [(["--" + one, "x", "--" + other, "x"], f"--{one} and --{other} name the same file 'x'")
                      for at, one in enumerate(options) for other in options[at + 1:]]
            for arguments, part in cases:
                with self.subTest(command=words[:2], arguments=arguments):
                    done = run(*words, *arguments, *tail, cwd=self.folder, stdin=subprocess.DEVNULL)
                    self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                    self.assertIn(part, done.stderr)
                    self.assertEqual(os.listdir(self.folder), [])

    def test_what_a_wave_command_reads_is_not_written_over(self):
        """However it is spelled: measurements and models cost more than a run."""
        data = self.path("data.csv")
        commands = [(["calibrate"], ["output"]), (["evaluate"], ["predictions"]), (["import"], ["output"]),
                    (["analyze"], ["csv", "batches", "html"]), (["plan"], ["output", "pareto", "html"]),
                    (["sweep", "--layer", "x"], ["output", "html"])]
        os.symlink("data.csv", self.path("link.csv"))
        for words, options in commands:
            for option in options:
                for name in (data, "data.csv", "./data.csv", "link.csv"):
                    with self.subTest(command=words[0], option=option, name=name):
                        with open(data, "w", encoding="utf-8") as file:
                            file.write("m,n,k,us,dtype\n1,2,3,4,fp16\n")
                        done = run("wave", *words, data, "--gpu", "a100-sxm4-80gb", "--" + option, name,
                                   cwd=self.folder)
                        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                        self.assertIn(f"--{option}: '{name}' is what is read, and would be lost", done.stderr)
                        with open(data, encoding="utf-8") as file:
                            self.assertEqual(file.read(), "m,n,k,us,dtype\n1,2,3,4,fp16\n")

    def test_a_limit_on_the_size_of_files_is_a_failure_and_keeps_the_old_file(self):
        with open(self.path("curve.csv"), "w", encoding="utf-8") as file:
            file.write("old")
        done = training("--csv", self.path("curve.csv"), "--seeds", "1",
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
        self.assertEqual(done.returncode, 1)
        self.assertIn("curve.csv: cannot write: File too large", done.stderr)
        self.assertEqual(os.listdir(self.folder), ["curve.csv"])
        with open(self.path("curve.csv"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "old")

    def test_ending_it_while_it_writes_leaves_no_part_of_a_file(self):
        command = [PROGRAM, "simulate", "training", "--trace", TINY, "--gpu", "toy", "--job", "toy", "--policy",
                   "oracle", "--recurrences", "20000", "--seeds", "1", "--csv", self.path("curve.csv")]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None and not os.listdir(self.folder):
                pass
            process.terminate()
            process.wait(timeout=100)
        # Had it written all before the signal came, the file is whole too.
        self.assertEqual(os.listdir(self.folder), ["curve.csv"])
        with open(self.path("curve.csv"), encoding="utf-8") as file:
            self.assertEqual(file.read().count("\n") % 20000, 1)

    def spoil(self, name, change):
        """A copy of the tiny trace with one file changed: `change` maps its text; None: the file is removed."""
        for file in os.listdir(TINY):
            shutil.copy(os.path.join(TINY, file), self.folder)
        if change is None:
            os.remove(self.path(name))
            return
        with open(self.path(name), encoding="utf-8") as file:
            text = file.read()
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(change(text))

    def check_rejects(self, *parts, arguments=("--gpu", "toy", "--job", "toy"), status=1):
        done = training(*arguments, trace=self.folder)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_bad_traces_are_named_with_file_line_and_column(self):
        runs, power, jobs = "summary_train.csv", "summary_power_toy.csv", "jobs.csv"
        self.spoil(runs, None)
        self.check_rejects(runs)
        self.spoil(runs, lambda text: "")
        self.check_rejects(runs, "empty")
        self.spoil(power, lambda text: text.splitlines()[0] + "\n")
        self.check_rejects(power, "no rows")
        self.spoil(runs, lambda text: text.replace("d,n,16,sgd,0.1,1,0.5,3", "d,n,16,sgd,0.1,1,0.5,three"))
        self.check_rejects(runs + ":7", "target_epoch", "three")
        self.spoil(power, lambda text: text.replace("d,n,16,sgd,100,9,90", "d,n,16,sgd,100,nan,90"))
        self.check_rejects(power + ":5", "time_per_epoch", "nan")
        self.spoil(power, lambda text: text.replace("d,n,16,sgd,100,9,90\n", ""))
        self.check_rejects(power, "batch size 16", "100 W")
        self.spoil(jobs, lambda text: text.replace("profiled", "all"))
        self.check_rejects(power, "batch size 64", "no power rows")
        self.spoil(jobs, lambda text: text.replace("0.5,10,8,profiled,1,1", "0.5,3,8,profiled,1,1", 1))
        self.check_rejects(runs + ": job 'toy' on toy", "never reached within 3 epochs")
        self.spoil(jobs, lambda text: text.replace("higher", "more", 1))
        self.check_rejects(jobs + ":2", "direction", "'more'")

    def test_a_table_of_jobs_that_is_a_broken_link_is_no_reason_to_take_another(self):
        self.spoil("jobs.csv", None)
        os.symlink("nothing", self.path("jobs.csv"))
        self.check_rejects("jobs.csv: cannot open")
        os.remove(self.path("jobs.csv"))
        for arguments in ((), ("--job", "toy")):
            self.check_rejects("no case to replay", "built-in job table", "expected a jobs.csv in " + self.folder,
                               "--jobs FILE", arguments=arguments, status=2)

    def test_targets_that_do_not_exist_say_which_do(self):
        self.spoil("README.md", None)
        self.check_rejects("summary_train.csv: job 'toy'", "metric 99; expected one that the runs have: 0.3, 0.5",
                           arguments=("--gpu", "toy", "--job", "toy", "--target", "99"))
        self.check_rejects("--target is for all jobs, name its job with --job", "metric 99",
                           arguments=("--gpu", "toy", "--target", "99"))

    def test_an_unknown_job_names_the_file_of_the_jobs(self):
        self.spoil("README.md", None)
        self.check_rejects(f"'squat' is not a job of {self.path('jobs.csv')} (toy, ", arguments=("--job", "squat"),
                           status=2)

    def test_a_drift_says_what_is_compared(self):
        self.spoil("jobs.csv", lambda text: text.replace("toy-slow,d,n,sgd,accuracy,higher,0.5,10",
                                                         "toy-slow,d,n,sgd,accuracy,higher,0.5,3"))
        for job, is_reached in (("toy-large", True), ("toy-slow", False)):
            done = training("--gpu", "toy", "--job", "toy", "--drift", job + "@2", "--recurrences", "4", "--seeds",
                            "1", "--policy", "default", "--policy", "grid", "--html", self.path("report.html"),
                            trace=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"toy  default +8  200 W")
            self.assertIn(f"After 2 recurrences each job turns into {job}.", done.stdout)
            with open(self.path("report.html"), encoding="utf-8") as file:
                page = file.read()
            self.assertIn(f"After 2 recurrences each job turns into {job}.", page)
            self.assertNotIn("floor", page.lower())
            for text, part in ((done.stdout, "never reaches the new job's target for: toy on toy."),
                               (done.stdout, "charged 20 attempts in vain"), (page, "charged 20 attempts in vain"),
                               (page, "(never reaches the target)")):
                self.assertEqual(part in text, not is_reached, part)

    def test_names_cannot_steer_the_terminal(self):
        self.spoil("README.md", None)
        os.remove(self.path("summary_power_Tiny.csv"))
        os.rename(self.path("summary_power_toy.csv"), self.path("summary_power_\x1b[31mtoy.csv"))
        for arguments in ((), ("--gpu", "none"), ("--html", self.path("report.html"))):
            done = training("--job", "toy", "--recurrences", "2", "--seeds", "1", *arguments, trace=self.folder)
            self.assertIn("toy", done.stdout + done.stderr)
            self.assertNotIn("\x1b", done.stdout + done.stderr)
        with open(self.path("report.html"), encoding="utf-8") as file:
            self.assertNotIn("\x1b", file.read())

    def test_large_batch_sizes_are_shown_in_full(self):
        for name in ("summary_train.csv", "summary_power_toy.csv", "jobs.csv"):
            with open(os.path.join(TINY, name), encoding="utf-8") as file:
                text = file.read()
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text.replace("d,n,32,", "d,n,1048576,").replace("d,n,64,", "d,n,2097152,"))
        done = training("--job", "toy", "--policy", "oracle", "--default", "1048576", "--html",
                        self.path("report.html"), trace=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("report.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("1048576", page)
        self.assertNotIn("e+06", page + done.stdout)

    def test_combinations_that_were_named_must_exist(self):
        self.spoil("README.md", None)
        self.check_rejects("summary_power_Tiny.csv", "no power rows",
                           arguments=("--gpu", "tiny", "--job", "hopeless"))
        self.check_rejects("no case to replay", arguments=("--gpu", "toy", "--warm-start", "toy"), status=2)


class Usage(unittest.TestCase):
    def check_rejects(self, arguments, *parts, status=2):
        done = training(*arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("wattgov simulate training: "), done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_values_out_of_range_name_option_and_range(self):
        self.check_rejects(["--eta", "1.5"], "--eta", "1.5", "0 .. 1")
        self.check_rejects(["--eta", "-0.1"], "--eta")
        self.check_rejects(["--eta", "nan"], "--eta", "nan")
        self.check_rejects(["--recurrences", "0"], "--recurrences", "'0'", "1 .. 100000")
        self.check_rejects(["--recurrences", "1.5"], "--recurrences")
        self.check_rejects(["--seeds", "0"], "--seeds")
        self.check_rejects(["--beta", "0.5"], "--beta")
        self.check_rejects(["--target", "nan"], "--target")
        self.check_rejects(["--default", "inf"], "--default")
        self.check_rejects(["--concurrency", "0"], "--concurrency", "1 .. 64")
        self.check_rejects(["--threads", "0"], "--threads")
        self.check_rejects(["--survey-seconds", "0"], "--survey-seconds")
        self.check_rejects(["--survey-seconds", "1e200"], "--survey-seconds", "at most 1000000 s")
        self.check_rejects(["--profile-charge", "seconds:1e200"], "--profile-charge", "at most 1000000")
        self.check_rejects(["--window", "4097"], "--window", "0 .. 4096")
        for charge in ("seconds", "seconds:", "seconds:0", "seconds:nan", "seconds:-1", "epochs"):
            self.check_rejects(["--profile-charge", charge], "--profile-charge", "'epoch' or 'seconds:S'")
        for drift in ("squad", "@30", "squad@", "squad@0", "squad@100", "squad@x"):
            self.check_rejects(["--drift", drift], "--drift", drift, "JOB@R")

    def test_unknown_names_say_what_exists(self):
        self.check_rejects(["--gpu", "h100"], "--gpu", "h100", "a40, v100")
        self.check_rejects(["--job", "squat"], "--job", "librispeech", "did you mean 'squad'")
        self.check_rejects(["--policy", "fixed"], "--policy", "grid, zeus, wattgov")
        self.check_rejects(["--drift", "none@30"], "--drift", "'none'", "librispeech")
        self.check_rejects(["--warm-start", "x"], "--warm-start", "a40, v100")
        self.check_rejects(["--nonsense"], "--nonsense")
        self.check_rejects(["stray"], "stray")

    def test_missing_files_are_failures(self):
        done = training(trace="/nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere", done.stderr)
        self.check_rejects(["--jobs", "/nowhere.csv"], "/nowhere.csv", status=1)
        done = run("simulate", "training")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--trace", done.stderr)

    def test_help_names_every_option_and_exits_with_success(self):
        done = run("simulate", "training", "--help")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stderr, "")
        for option in ("trace", "gpu", "job", "policy", "recurrences", "seeds", "eta", "beta", "concurrency",
                       "window", "drift", "warm-start", "threads", "json", "csv", "html", "profile-charge"):
            self.assertIn("--" + option, done.stdout)
        self.assertEqual(run("simulate", "--help").returncode, 0)
        root = run("--help")
        self.assertEqual(root.returncode, 0)
        for purpose in ("training", "recurring jobs", "inference servers"):
            self.assertIn(purpose, root.stdout.partition("commands:")[0])
        self.assertEqual(run("simulate").returncode, 2)
        self.assertEqual(run("simulate", "trainin").returncode, 2)

    def test_a_full_disk_is_a_failure(self):
        for extra in (["--json"], []):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = training("--recurrences", "2", "--seeds", "1", *extra, stdout=full)
            self.assertEqual(done.returncode, 1)
            self.assertIn("No space left", done.stderr)

    def test_a_closed_pipe_is_a_failure_with_a_message(self):
        read_end, write_end = os.pipe()
        os.close(read_end)
        done = training("--recurrences", "2", "--seeds", "1", stdout=write_end)
        os.close(write_end)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Broken pipe", done.stderr)


def update():
    os.makedirs(GOLDENS, exist_ok=True)
    for name, command in GOLDEN_COMMANDS.items():
        with open(os.path.join(GOLDENS, name + ".json"), "w", encoding="utf-8") as file:
            json.dump({"command": command, "result": golden_result(command)}, file, separators=(",", ":"))
            file.write("\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        unittest.main()
