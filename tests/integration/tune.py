#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`wattgov tune` as its users call it: real commands measured on virtual GPUs, and what may go wrong with them.

    tests/integration/tune.py build/release/vgpu

The workloads are tune_workload.py, whose power and time follow the virtual clocks, and shell scripts that print figures.
"""
import json
import os
import signal
import sys
import time

import vgpu_case
from vgpu_case import ROOT, tool, wait_for, wait_for_line

WORKLOAD = os.path.join(ROOT, "tests/integration/tune_workload.py")

# A workload without a GPU: joules fall with the batch to 8 and rise behind it; latency rises with it.
SCRIPT = ('b={batch}; echo "{\\"requests\\": 100, \\"p99_s\\": 0.00$b, \\"energy_j\\": $((100 + 40 * (b - 8) * (b - 8)))}"')
BATCHES = "batch=1,2,4,6,8,9:batch"


class Case(vgpu_case.HoldingCase):
    verb, model = "tune", "a100"
    tune = vgpu_case.HoldingCase.call

    def result(self, *arguments, status=0, **kwargs):
        done = self.tune("--json", *arguments, **kwargs)
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(done.stdout)

    def script(self, text):
        """A shell script as words; what is no knob in braces stays."""
        return ["sh", "-c", text]


QUICK = ("--energy", "command", "--no-warm-up", "--settle", "0s", "--min-windows", "1", "--max-windows", "1")


class Searching(Case):
    def test_finds_what_measuring_everything_finds(self):
        knobs = ("--knob", "gpu_clock=600MHz,900MHz,1200MHz,1410MHz", "--knob", "batch=1,4,8:batch", "--limit",
                 "p99_s<=15ms", "--settle", "0s", "--no-warm-up", "--precision", "0.05")
        workload = ("--", "/usr/bin/python3", WORKLOAD, tool("wattgov-vgpu"), "--batch", "{batch}", "--seconds", "0.25")
        everything = self.result(*knobs, "--policy", "random", "--max-trials", 13, "--max-windows", 1, "--min-windows", 1,
                                 *workload)
        self.assertEqual(everything["end"], "exhausted")
        costs = {tuple(trial["settings"].values()): trial["objective"] for trial in everything["trials"]
                 if trial["limits"][0] <= 0.015}
        found = self.result(*knobs, "--html", self.path("t.html"), "-o", self.path("r.yaml"), *workload)
        settings = tuple(found["returned"]["settings"].values())
        self.assertIn(settings, costs)
        self.assertLessEqual(costs[settings], 1.1 * min(costs.values()), (costs, found["returned"]))
        self.assertLess(found["trials_counted"], 12)
        self.assertTrue(found["is_feasible"])
        self.assertEqual(found["energy"]["text"], "the energy counter of gpu0")
        self.assertGreater(found["saving"], 0.2)
        with open(self.path("t.html"), encoding="utf-8") as file:
            self.assertIn("<svg", file.read())
        self.expect_nothing_left()

    def test_limits_above_what_is_drawn_are_one_and_the_same(self):
        limits = (200, 250, 300, 350, 400)
        found = self.result("--knob", "gpu_clock=600MHz,900MHz", "--knob", "power_limit=" + ",".join(map(str, limits)), "--knob",
                            "batch=1,2:batch", "--settle", "0s", "--no-warm-up", "--max-windows", 1, "--min-windows", 1,
                            "--policy", "random", "--state", self.path("t.state"), "--", "/usr/bin/python3", WORKLOAD,
                            tool("wattgov-vgpu"), "--batch", "{batch}", "--seconds", "0.35")
        # Some 110 W are drawn: of each clock and batch one limit is measured, and then nothing is left.
        self.assertEqual((found["end"], found["trials_counted"]), ("exhausted", 4))
        settings = [trial["settings"] for trial in found["trials"]]
        self.assertEqual(len({(each["gpu_clock"], each["batch"]) for each in settings}), 4, settings)
        with open(self.path("t.state"), encoding="utf-8") as file:
            self.assertEqual({trial["slack_level"] for trial in json.load(file)["trials"]}, {200})
        self.expect_nothing_left()

    def test_the_real_load_counts_queues_and_idle_power(self):
        workload = self.script('b={batch}; echo "{\\"requests\\": $((b * 10)), \\"service_s\\": 0.0$((10 + b)), '
                               '\\"busy_s\\": 0.5}"; exec sleep 0.01')
        found = self.result("--knob", "batch=1,2,4,8:batch", "--arrivals", "poisson:40", "--slo", "p99<=200ms",
                            "--energy", "model:busy=100,idle=40", "--no-warm-up", "--load-requests", 5000, "--", *workload)
        # 11 ms a request alone: a share of 0.44 of the time, so idle power is more than half of what a request costs.
        first = found["trials"][0]
        self.assertEqual(first["settings"], {"batch": 1})
        self.assertAlmostEqual(first["figures"]["utilization"], 0.44, delta=0.03)
        self.assertGreater(first["limits"][0], 0.011 * 2)  # queueing
        self.assertTrue(found["is_feasible"])
        self.assertIn("stated model", found["energy"]["text"])

    # 50 requests of 0.1 s in 5 s at 100 W, or 4 s busy at 117.5 W and 1 s at 30 W: by hand, whatever the process takes.
    TOLD = 'echo "{\\"requests\\": 50, \\"service_s\\": 0.1, \\"time_s\\": 5, \\"idle_power_w\\": 30'

    def first(self, energy, figures, *arguments):
        found = self.result("--knob", "batch=1:batch", *QUICK[2:], "--energy", energy, "--max-trials", 1, *arguments, "--",
                            *self.script(self.TOLD + figures + '}"; sleep 0.1'))
        return found["trials"][0]["objective"]

    def test_joules_belong_to_the_time_that_is_told(self):
        load = ("--arrivals", "uniform:8", "--load-requests", 20000)  # busy for 0.8 of the time
        for energy, figures, alone, loaded in (
                ("command", ', \\"busy_s\\": 5, \\"energy_j\\": 500', 10, 100 * 0.1 + 30 * 0.2 / 8),
                ("command", ', \\"energy_j\\": 500', 10, 100 * 0.1 + 30 * 0.2 / 8),
                ("command", ', \\"busy_s\\": 4, \\"energy_j\\": 500', 10, 117.5 * 0.1 + 30 * 0.2 / 8),
                ("model:busy=100,idle=30", ', \\"busy_s\\": 5', 10, 100 * 0.1 + 30 * 0.2 / 8),
                ("model:busy=100,idle=30", '', 10, 100 * 0.1 + 30 * 0.2 / 8),
                ("model:busy=100,idle=30", ', \\"busy_s\\": 4', 430 / 50, 100 * 0.1 + 30 * 0.2 / 8)):
            with self.subTest(energy=energy, figures=figures):
                self.assertAlmostEqual(self.first(energy, figures), alone, delta=1e-9)
                self.assertAlmostEqual(self.first(energy, figures, *load), loaded, delta=0.01)

    def test_idle_power_that_nobody_tells_is_missed(self):
        told = self.TOLD + ', \\"energy_j\\": 500}"'
        arguments = ("--knob", "batch=1:batch", *QUICK[2:], "--energy", "command", "--max-trials", 1, "--arrivals", "uniform:8",
                     "--load-requests", 1000)
        for text, more, is_missed in ((told, (), False), (told.replace("idle_power_w", "other_w"), (), True),
                                      (told.replace("idle_power_w", "other_w"), ("--idle-power", 30), False)):
            done = self.tune(*arguments, *more, "--", *self.script(text))
            self.assertEqual("nothing tells idle power, so it counts as 0 W" in done.stderr, is_missed, done.stderr)
            self.assertEqual("counts as 0 W\n" in done.stdout, is_missed, done.stdout)

    def test_metered_joules_belong_to_the_marked_window(self):
        # The idle GPU's watts are constant: busy, idle and mean power are one, P, and a request costs P / rate.
        text = ('echo "wattgov: begin"; sleep 0.3; echo "wattgov: end"; sleep 0.3; '
                'echo "{\\"requests\\": 3, \\"service_s\\": 0.1, \\"time_s\\": 0.3}"')
        arguments = ("--knob", "batch=1:batch", *QUICK[2:], "--energy", "gpu", "--max-trials", 1)
        alone = self.tune("--json", *arguments, "--", *self.script(text))
        self.assertNotIn("let it print", alone.stderr)
        figures = json.loads(alone.stdout)["trials"][0]["figures"]
        self.assertAlmostEqual(figures["time_s"], 0.3, delta=0.1)
        self.assertAlmostEqual(figures["energy_per_request_j"], figures["power_w"] * figures["time_s"] / 3, delta=1e-6)
        at_load = ("--idle-power", round(figures["power_w"]), "--arrivals", "uniform:8")
        loaded = self.result(*arguments, *at_load, "--", *self.script(text))
        power_w = loaded["trials"][0]["figures"]["power_w"]
        self.assertAlmostEqual(loaded["trials"][0]["objective"] * 8 / power_w, 1, delta=0.1)
        unmarked = self.tune(*arguments, "--", *self.script(text.replace("wattgov: ", "")))
        self.assertIn("let it print 'wattgov: begin'", unmarked.stderr)

    def test_a_relative_limit_is_times_what_the_default_has(self):
        found = self.result("--knob", BATCHES, "--limit", "p99_s<=5x", *QUICK, "--", *self.script(SCRIPT))
        self.assertAlmostEqual(found["limits"][0]["bound"], 0.005)
        self.assertEqual(found["returned"]["settings"]["batch"], 4)

    def test_nothing_feasible_is_said(self):
        done = self.tune("--knob", BATCHES, "--limit", "p99_s<=0.0001", *QUICK, "--", *self.script(SCRIPT))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nothing is known to meet the limits; nearest: p99_s 0.001 of <= 0.0001", done.stdout)
        self.assertRegex(done.stdout, "returned +batch 1 ")

    def test_a_dry_run_needs_and_runs_nothing(self):
        done = self.tune("--dry-run", "--knob", "gpu_clock=3", "--knob", BATCHES, "--forbid", "batch>=8 && gpu_clock<1GHz",
                         "--", "touch", self.path("ran"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("14 configurations", done.stdout)
        self.assertIn("forbidden: batch>=8 && gpu_clock<1GHz\n", done.stdout)
        self.assertIn("at most 17 trials, each measured for 60 s at most", done.stdout)
        self.assertRegex(done.stdout, "first trial: gpu_clock 1410 MHz, batch 1")
        self.assertFalse(os.path.exists(self.path("ran")))
        self.assertNotIn("not how the device stands", done.stderr)
        done = self.tune("--dry-run", "--knob", "batch=1:batch", "--max-trials", 1, "--max-window", "2s", "--", "true")
        self.assertIn("\n1 configuration\n", done.stdout)
        self.assertIn("at most 1 trial, each measured for 2 s at most: no longer than 2s, ", done.stdout)
        done = self.tune("--dry-run", "--knob", "gpu_clock=600MHz,900MHz", "--", "true")
        self.assertIn("gpu_clock: the default that all is compared with is 900 MHz, which is not how the device stands (1410 MHz)",
                      done.stderr)

    def test_levels_of_a_file_are_those_of_the_list(self):
        with open(self.path("batches.csv"), "w", encoding="utf-8") as file:
            file.write("batch_size\n8\n2\n")
        knob = f"batch=from:{self.path('batches.csv')}"
        done = self.tune("--dry-run", "--knob", knob + ":batch:default=8", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("\n2 configurations\n", done.stdout)
        self.assertIn("first trial: batch 8", done.stdout)
        done = self.tune("--dry-run", "--knob", "batch=from:/nowhere.csv", "--", "true")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("/nowhere.csv", done.stderr)

    def test_csv_of_many_rows_gives_percentiles(self):
        found = self.result("--knob", "batch=1,2:batch", "--objective", "time:mean_s * {0} / 1".format(1), "--limit",
                            "p99_s<=1", *QUICK, "--", *self.script("echo latency_s; echo 0.1; echo 0.2; echo 0.3"))
        figures = found["trials"][0]["figures"]
        self.assertEqual((figures["requests"], figures["p50_s"]), (3, 0.2))
        self.assertAlmostEqual(figures["mean_s"], 0.2)

    def test_a_trial_tells_how_well_it_knows_its_figures(self):
        runs = self.path("runs")
        os.mkdir(runs)
        script = self.script(f'n=$(ls {runs} | wc -l); mkdir {runs}/$n; '
                             'echo "{\\"requests\\": 10, \\"p99_s\\": 1, \\"energy_j\\": $((100 + 60 * (n % 2)))}"')
        words = ("--knob", "batch=1,2:batch", "--energy", "command", "--no-warm-up", "--settle", "0s", "--min-windows", "4",
                 "--max-windows", "4", "--max-trials", "1")
        done = self.tune(*words, "--", *script)
        self.assertRegex(done.stderr, r"measured: energy_per_request_j 13 ± \d+\.\d % \(4 windows, .*; the 2 % asked for would take longer\)")
        self.assertNotIn("would take longer", self.tune(*words, "--precision", "0.5", "--", *script).stderr)

    def test_a_small_space_is_searched_whole_and_what_is_returned_is_confirmed(self):
        # 8 is the best and close to its limit: a budget of 3 trials would leave one of the others out.
        found = self.result("--knob", "batch=6,8,9:batch", *QUICK, "--limit", "p99_s<=0.0083", "--precision", "0.05", "--",
                            *self.script(SCRIPT))
        self.assertEqual({trial["settings"]["batch"] for trial in found["trials"]}, {6, 8, 9})
        self.assertEqual((found["returned"]["settings"], found["is_feasible"]), ({"batch": 8}, True))
        self.assertGreater(len(found["trials"]), 3)


class Failing(Case):
    def test_crashes_hangs_and_lack_of_memory_are_data(self):
        text = ('case {batch} in 9) echo "RuntimeError: CUDA out of memory." >&2; exit 1;; 6) trap "" TERM; sleep 30;; '
                '2) exit 3;; esac; ' + SCRIPT)
        found = self.result("--knob", BATCHES, *QUICK, "--hung-after", "300ms", "--policy", "random", "--", *self.script(text))
        outcomes = {trial["settings"]["batch"]: trial for trial in found["trials"]}
        self.assertEqual(outcomes[9]["outcome"], "out_of_memory")
        self.assertEqual(outcomes[6]["outcome"], "hung")
        self.assertEqual(outcomes[2]["outcome"], "crashed")
        self.assertIn("exit status 3", outcomes[2]["failure"])
        self.assertEqual(found["returned"]["settings"]["batch"], 8)
        self.assertEqual(found["trials_failed"], 3)

    def test_a_default_that_crashed_is_tried_once_more(self):
        # Its first run fails, as that of a server which just starts; or all of its runs do.
        def failing(runs, most):
            os.mkdir(runs)
            return self.script(f'if [ {{batch}} = 1 ] && [ $(ls {runs} | wc -l) -lt {most} ]; then mkdir {runs}/$$; exit 7; fi; ' + SCRIPT)
        found = self.result("--knob", BATCHES, *QUICK, "--", *failing(self.path("once"), 1))
        self.assertEqual([(trial["settings"], trial["outcome"], trial["reason"]) for trial in found["trials"][:2]],
                         [({"batch": 1}, "crashed", "default"), ({"batch": 1}, "measured", "again")])
        self.assertEqual(found["trials_failed"], 1)
        self.assertGreater(found["saving"], 0.9)
        found = self.result("--knob", BATCHES, *QUICK, "--", *failing(self.path("always"), 99))
        self.assertEqual([trial["outcome"] for trial in found["trials"]][:3], ["crashed", "crashed", "measured"])
        self.assertEqual(len(os.listdir(self.path("always"))), 2)
        self.assertEqual(found["returned"]["settings"], {"batch": 8})

    def test_a_bad_figure_is_that_configuration_s_fault_and_a_zero_may_be_an_answer(self):
        cases = {9: '{"requests": 0}', 6: '{"requests": 1, "p99_s": -1, "energy_j": 1, "accuracy": 1}', 4: '{"p99_s": 0.004}'}
        case = "case {batch} in " + "".join(f"{batch}) echo '{line}'; exit;; " for batch, line in cases.items())
        case += '2) a=0;; *) a=0.95;; esac; echo "{\\"requests\\": 100, \\"p99_s\\": 0.01, \\"errors\\": 0, ' \
                '\\"energy_j\\": $((100 + {batch})), \\"accuracy\\": $a}"'
        found = self.result("--knob", BATCHES, *QUICK, "--policy", "random", "--limit", "accuracy>=0.9", "--limit", "p99_s<=1",
                            "--limit", "errors/requests<=0.01", "--seed", 3, "--max-trials", 6, "--state", self.path("s"),
                            "--knob", "x=a:category", "--limit", "time:p99_s<=9x", "--", *self.script(case))
        outcomes = {trial["settings"]["batch"]: trial["outcome"] for trial in found["trials"]}
        self.assertEqual({batch: outcomes[batch] for batch in cases}, dict.fromkeys(cases, "crashed"))
        self.assertEqual([outcomes[batch] for batch in (1, 2, 8)], ["measured"] * 3)
        self.assertEqual(found["returned"]["settings"]["batch"], 1)  # 2 would be as cheap, and is never right
        self.assertEqual((found["end"], found["is_feasible"]), ("exhausted", True))
        self.assertEqual(found["trials"][0]["limits"][2], 0)

    def test_an_error_is_told_as_the_end(self):
        program = self.path("program")
        with open(program, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nrm "$0"; ' + SCRIPT.replace("{batch}", "$1"))
        os.chmod(program, 0o755)
        found = self.result("--knob", BATCHES, *QUICK, "-o", self.path("r.yaml"), "--", program, "{batch}", status=1)
        self.assertEqual((found["end"], found["is_validated"], found["trials_counted"]), ("failed", False, 1))
        self.assertIn("cannot run", found["why"])
        with open(self.path("r.yaml"), encoding="utf-8") as file:
            self.assertIn("end: failed\nis_feasible: true\nis_validated: false\n", file.read())

    def test_one_window_of_unknown_noise_says_little(self):
        # 8 % over the limit in the first window of a workload that nobody knows: that is no answer yet.
        count = self.path("count")
        text = (f'n=$(cat {count} 2>/dev/null || echo 0); echo $((n + 1)) > {count}; [ $((n % 2)) = 0 ] && p=0.108 || p=0.084; '
                'echo "{\\"requests\\": 1, \\"energy_j\\": 5, \\"p99_s\\": $p}"')
        found = self.result("--knob", "batch=1:batch", "--energy", "command", "--no-warm-up", "--min-windows", 2, "--max-windows",
                            2, "--limit", "p99_s<=0.1", "--", *self.script(text))
        self.assertEqual(found["trials"][0]["windows"], 2)
        self.assertAlmostEqual(found["trials"][0]["limits"][0], 0.096)
        found = self.result("--knob", "batch=1:batch", *QUICK, "--limit", "p99_s<=0.1", "--", *self.script(text))
        self.assertEqual((found["trials"][0]["limit_errors"], found["trials"][0]["objective_error"]), ([None], None))

    def test_a_hopeless_run_is_ended_by_its_first_lines(self):
        text = ('for i in 1 2 3 4 5 6; do echo "{\\"p99_s\\": 5}"; sleep 0.05; done; sleep 30')
        found = self.result("--knob", "batch=1,2:batch", "--limit", "p99_s<=1", *QUICK, "--max-trials", 2, "--", *self.script(
            f'if [ {{batch}} = 2 ]; then {text}; fi; ' + SCRIPT))
        cut = [trial for trial in found["trials"] if trial["settings"]["batch"] == 2][0]
        self.assertEqual((cut["outcome"], cut["limits"]), ("cut", [5]))
        self.assertRegex(cut["failure"], r"^p99_s is above [0-9.]+ for sure$")

    def test_a_level_that_the_driver_refuses_leaves_the_space(self):
        self.fault(self.machine, "error", "--function", "nvmlDeviceSetPowerManagementLimit", "--code", "2", "--from-call", "2",
                   "--calls", "1")
        found = self.result("--knob", "power_limit=200,300,400", *QUICK, "--policy", "random", "--", *self.script(
            'echo "{\\"requests\\": 1, \\"energy_j\\": 5}"'))
        refused = [trial for trial in found["trials"] if trial["outcome"] == "refused"]
        self.assertEqual(len(refused), 1)
        self.assertEqual(found["end"], "exhausted")
        self.assertEqual(found["trials_counted"], 2)
        self.expect_nothing_left()

    def test_a_lock_that_was_lost_is_set_and_measured_once_more(self):
        process = self.in_background("--json", "--knob", "gpu_clock=600MHz,1410MHz:default=600MHz", *QUICK[2:], "--max-trials", 1,
                                     "--", "/usr/bin/python3", WORKLOAD, tool("wattgov-vgpu"), "--seconds", "0.5")
        wait_for_line(process, "trial 1 ")
        wait_for(lambda: self.gpu(self.machine)["clock_lock_max_hz"] == 600e6, "the lock")
        self.fault(self.machine, "revert")
        out, err = process.communicate()
        self.assertIn("a clock ran above its lock: it is set and measured once more", err)
        trial, = json.loads(out)["trials"]
        self.assertEqual((trial["outcome"], trial["settings"]), ("measured", {"gpu_clock": 600e6}))

    def test_where_nothing_meets_the_limits_the_nearest_is_returned_and_told(self):
        text = ('for i in 1 2 3 4 5 6; do echo "{\\"p99_s\\": 0.{batch}, \\"requests\\": 9, \\"energy_j\\": 5}"; sleep 0.05; done')
        for policy in ("wattgov", "random"):
            done = self.tune("--knob", "batch=9,8,7:batch", "--limit", "p99_s<=0.1", *QUICK, "--policy", policy, "-o",
                             self.path("n.yaml"), "--", *self.script(text))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("nothing is known to meet the limits; nearest: p99_s", done.stdout)
            self.assertRegex(done.stderr, "(?m)^.*trial 1.*batch 9")  # the default, whatever the policy
            with open(self.path("n.yaml"), encoding="utf-8") as file:
                self.assertIn("is_feasible: false", file.read())

    def test_a_cap_of_somebody_else_ends_it_and_is_named(self):
        self.fault(self.machine, "cap", "--value", "150")
        done = self.tune("--json", "--knob", "gpu_clock=900,1000,1200,1410MHz", "--knob", "batch=1,2,4,8:batch", "--cool-down",
                         "50ms", "--settle", "0s", "--no-warm-up", "--min-windows", 1, "--max-windows", 1, "--",
                         "/usr/bin/python3", WORKLOAD, tool("wattgov-vgpu"), "--batch", "{batch}", "--seconds", "0.2")
        self.assertEqual(done.returncode, 1, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual((found["end"], len(found["trials"])), ("held", 5), done.stderr)
        self.assertIn("gpu0 enforces 150 W, 400 W was asked for", found["why"])
        self.expect_nothing_left()

    def test_a_hot_window_is_thrown_away(self):
        self.fault(self.machine, "temperature", "--value", "99")
        process = self.in_background("--json", "--knob", "gpu_clock=1410MHz", "--knob", "batch=1:batch", *QUICK, "--cool-down",
                                     "100ms", "--", "/usr/bin/python3", WORKLOAD, tool("wattgov-vgpu"), "--seconds", "0.2")
        wait_for_line(process, "thrown away")
        self.fault(self.machine, "clear")
        out, err = process.communicate()
        outcomes = [trial["outcome"] for trial in json.loads(out)["trials"]]
        self.assertEqual(outcomes[0], "discarded", err)

    def test_a_missing_figure_names_those_that_are_there(self):
        done = self.tune("--knob", BATCHES, "--limit", "p90_s<=1", *QUICK, "--", *self.script(SCRIPT))
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no figure 'p90_s'; there are: requests, p99_s, energy_j", done.stderr)

    def test_a_command_that_is_not_there_ends_it(self):
        done = self.tune("--knob", BATCHES, *QUICK, "--", "/no/such/program")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot run '/no/such/program'", done.stderr)

    def test_full_disks_fail_it_at_the_end(self):
        for option in ("-o", "--html"):
            done = self.tune("--knob", BATCHES, *QUICK, option, "/dev/full", *(("--state", self.path("s"))
                             if option == "-o" else ()), "--", *self.script(SCRIPT))
            self.assertEqual(done.returncode, 1, option)
            self.assertIn("No space left on device", done.stderr)
            self.assertRegex(done.stdout, "returned +batch 8 ")

    def test_a_state_that_cannot_be_written_fails_it_at_the_end(self):
        folder = self.path("gone")
        os.mkdir(folder)
        done = self.tune("--knob", BATCHES, *QUICK, "--state", os.path.join(folder, "s"), "--",
                         *self.script(f"rm -rf {folder}; {SCRIPT}"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("No such file or directory", done.stderr)
        self.assertRegex(done.stdout, "returned +batch 8 ")

    def test_whoever_may_not_set_is_told(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become somebody else")
        os.chmod(self.folder, 0o777)
        other = {"user": 65534, "group": 65534, "extra_groups": []}
        _, environment = self.start("--machine", "a100", **other)
        environment["WATTGOV_STATE_DIR"] = self.path("other")
        try:
            done = self.tune("--knob", "gpu_clock=3", *QUICK, "--", "true", env=environment, **other)
        except OSError as cause:
            self.skipTest(f"another user can't run the build: {cause}")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, "(root|CAP_SYS_ADMIN)")


class Interrupting(Case):
    def test_a_killed_one_leaves_nothing_set_and_resumes_as_if_nothing_had_been(self):
        knobs = ("--knob", "power_limit=200,250,300,350,400", "--knob", BATCHES, *QUICK, "--seed", 5)
        workload = ("--", *self.script(SCRIPT + "; sleep 0.1"))
        whole = self.result(*knobs, *workload)
        state = self.path("t.state")
        process = self.in_background(*knobs, "--state", state, *workload)
        wait_for_line(process, "trial 4 ")
        process.kill()
        process.wait()
        wait_for(lambda: self.limit_w() == 400, "the limit of before")
        with open(state, encoding="utf-8") as file:
            self.assertGreaterEqual(len(json.load(file)["trials"]), 3)
        resumed = self.result(*knobs, "--state", state, "--resume", *workload)
        self.assertGreaterEqual(resumed["trials_resumed"], 3)
        self.assertEqual([trial["settings"] for trial in resumed["trials"]],
                         [trial["settings"] for trial in whole["trials"]])
        self.assertEqual(resumed["returned"]["settings"], whole["returned"]["settings"])
        self.expect_nothing_left()
        other = self.tune(*knobs[:-1], 6, "--state", state, "--resume", *workload)
        self.assertEqual(other.returncode, 1)
        self.assertIn("is of another tuning: its seed differs", other.stderr)

    def test_a_state_of_other_devices_is_refused(self):
        words = ("--knob", BATCHES, *QUICK, "--state", self.path("t.state"))
        self.result(*words, "--", *self.script(SCRIPT))
        _, machine = self.start("--machine", "v100")
        done = self.tune(*words, "--resume", "--", *self.script(SCRIPT), env=machine)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is of another tuning: its devices differ", done.stderr)
        self.assertEqual(self.tune(*words, "--resume", "--", *self.script(SCRIPT)).returncode, 0)

    def test_one_tuning_at_a_time_writes_a_state(self):
        words = ("--knob", BATCHES, *QUICK, "--state", self.path("t.state"), "--", *self.script(SCRIPT + "; sleep 0.2"))
        whole = self.result(*words)
        first = self.in_background("--json", *words)
        wait_for_line(first, "trial 3 ")
        first.send_signal(signal.SIGSTOP)  # it has the file, however long that takes
        for resumes in ((), ("--resume",)):
            done = self.tune(*resumes, *words)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"t.state: another wattgov tune writes it (pid {first.pid})", done.stderr)
        first.send_signal(signal.SIGCONT)
        out, _ = first.communicate()
        self.assertEqual([trial["settings"] for trial in json.loads(out)["trials"]], [trial["settings"] for trial in whole["trials"]])
        self.assertEqual(self.result("--resume", *words)["trials_resumed"], len(whole["trials"]))

    def test_a_state_that_is_no_regular_file_is_refused(self):
        os.mkfifo(self.path("fifo"))  # nobody writes it and nobody reads it
        for path in (self.path("fifo"), "/dev/null"):
            for arguments in ((), ("--resume",)):
                done = self.tune("--knob", BATCHES, *QUICK, "--state", path, *arguments, "--", *self.script(SCRIPT))
                self.assertEqual(done.returncode, 2)
                self.assertIn(f"--state: '{path}' is no regular file", done.stderr)

    def test_a_window_that_we_were_stopped_in_is_measured_once_more(self):
        # The command serves on and ends; joules would be counted until we are continued.
        begun = self.path("begun")
        process = self.in_background("--json", "--knob", "batch=1,2:batch", *QUICK[2:], "--energy", "gpu", "--", *self.script(
            f'touch {begun}; sleep 0.3; echo "{{\\"requests\\": 10, \\"batch_is\\": {{batch}}}}"'))
        wait_for(lambda: os.path.exists(begun), "the command's start")
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(err.count("stopped and continued within a window: it is measured once more"), 1, err)
        for trial in json.loads(out)["trials"]:
            self.assertLess(trial["time_s"], 1.2, trial)

    def test_sigterm_ends_a_resume(self):
        knobs = ("--knob", "power_limit=200,300,400", "--knob", BATCHES, *QUICK, "--state", self.path("t.state"))
        workload = ("--", *self.script(f"[ -e {self.path('slow')} ] && exec sleep 600; " + SCRIPT))
        self.result(*knobs, "--max-trials", 2, *workload)
        with open(self.path("t.state"), encoding="utf-8") as file:
            held = json.load(file)
        held["trials"] = held["trials"] * 100  # each is decided on anew
        with open(self.path("t.state"), "w", encoding="utf-8") as file:
            json.dump(held, file)
        os.mkdir(self.path("slow"))
        process = self.in_background("--json", *knobs, "--resume", "--max-trials", 300, *workload)
        wait_for(lambda: [name for name in os.listdir(self.path("state/journal")) if name != "lock"], "the journal")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, err)
        found = json.loads(out)
        self.assertEqual((found["end"], found["why"]), ("interrupted", "interrupted by SIGTERM"))
        self.assertEqual((found["trials_resumed"], len(found["trials"])), (200, 200))
        self.expect_nothing_left()

    def test_thousands_of_old_trials_are_taken_in_at_once(self):
        knobs = ("--knob", BATCHES, *QUICK)
        state = self.path("t.state")
        self.result(*knobs, "--state", state, "--", *self.script(SCRIPT))
        with open(state, encoding="utf-8") as file:
            held = json.load(file)
        held["trials"] = (held["trials"] * 3800)[:3800]
        with open(state, "w", encoding="utf-8") as file:
            json.dump(held, file)
        begin_s = time.monotonic()
        found = self.result(*knobs, "--state", state, "--resume", "--max-trials", 3801, "--", *self.script(SCRIPT))
        self.assertLess(time.monotonic() - begin_s, 20)
        self.assertGreaterEqual(found["trials_resumed"], 3800)
        self.assertEqual(found["returned"]["settings"], {"batch": 8})

    def test_a_killed_one_leaves_no_command_running(self):
        child = self.path("child")
        process = self.in_background("--knob", "batch=1:batch", *QUICK, "--", *self.script(
            f'trap "" TERM; sleep 600 & echo $! > {child}.new; mv {child}.new {child}; wait'))
        wait_for(lambda: os.path.exists(child), "the command")
        with open(child, encoding="utf-8") as file:
            pid = int(file.read())
        process.kill()

        def is_gone():
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    return file.read().rsplit(")", 1)[1].split()[0] == "Z"
            except OSError:
                return True
        wait_for(is_gone, "the end of what the command has started")

    def test_ctrl_c_gives_the_best_so_far(self):
        process = self.in_background("--json", "--knob", BATCHES, *QUICK, "--", *self.script(SCRIPT + "; sleep 0.2"))
        wait_for_line(process, "trial 3 ")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 130, err)
        found = json.loads(out)
        self.assertEqual((found["end"], found["trials_counted"]), ("interrupted", 2))
        self.assertIsNotNone(found["returned"])
        self.assertFalse(found["is_validated"])
        self.assertEqual(found["why"], "interrupted by SIGINT")

    def test_ctrl_c_after_the_default_says_that_nothing_was_compared(self):
        process = self.in_background("--knob", BATCHES, *QUICK, "--state", self.path("s"), "--", *self.script(SCRIPT + "; sleep 0.2"))
        wait_for_line(process, "trial 2 ")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        self.assertIn("batch 1 (the default: nothing else was measured)", out)
        self.assertIn("go on: the same command with --resume", out)

    def test_what_somebody_else_sets_is_left_and_ends_it(self):
        process = self.in_background("--knob", "power_limit=200,300,400", *QUICK, "--", *self.script(
            'sleep 0.6; echo "{\\"requests\\": 1, \\"energy_j\\": 5}"'))
        wait_for_line(process, "trial 2 ")
        wait_for(lambda: self.limit_w() != 400, "a limit of ours")
        client = self.client(self.machine)
        self.assertEqual(client.call("nvmlDeviceSetPowerManagementLimit", 0, 222000)["code"], 0)
        _, err = process.communicate()
        self.assertEqual(process.returncode, 1)
        self.assertIn("somebody else has set power_limit to 222 W", err)
        self.assertEqual(self.limit_w(), 222)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    vgpu_case.main(__doc__)
