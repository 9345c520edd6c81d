#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`wattgov job run`: recurrences of a job whose command is a real process, on a virtual GPU.

    tests/integration/job_run.py build/release

The command needs 6, 4 or 12 epochs at batch sizes 8, 16 and 32, of a few hundredths of a second each.
"""
import json
import os
import signal
import sqlite3
import subprocess
import unittest

import vgpu_case
from vgpu_case import DEADLINE_S, tool, wait_for

SCRIPT = r"""
import os, sys, time
how, batch = sys.argv[1], int(sys.argv[2])
assert os.environ["WATTGOV_BATCH_SIZE"] == sys.argv[2]
needs = {8: 6, 16: 4, 32: 12}[batch]
if how == "breaks":
    sys.exit(7)
with open(os.environ["WATTGOV_PROGRESS"], "a", buffering=1) as progress:
    for epoch in range(1, 1000):
        time.sleep(0.02)
        value = "nan" if how.startswith("diverges") or how == "nan" and epoch == 1 else 0.8 * epoch / (9 if how == "slow" else needs)
        if how == "slow":
            time.sleep(0.2)
        if how == "prints":
            print(f"epoch {epoch} acc {value:.4f}", flush=True)
        elif how in ("metric_first", "diverges_first"):
            progress.write(f"metric {value} acc\nepoch {epoch}\n")
        elif how == "mute":
            progress.write(f"epoch {epoch}\n")
        elif how != "silent":
            progress.write(f"epoch {epoch}\nmetric {value}\n")
        if how == "silent" and epoch == 3:
            break
"""


class Case(vgpu_case.Case):
    def setUp(self):
        super().setUp()
        self.environment["WATTGOV_STATE_DIR"] = os.path.join(self.folder, "state")
        for name in ("WATTGOV_PROGRESS", "RANK", "CUDA_VISIBLE_DEVICES"):
            self.environment.pop(name, None)
        _, self.machine = self.start("--machine", "v100")
        self.script = os.path.join(self.folder, "train.py")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        self.job("create", "job", "--batch-sizes", "8,16,32", "--default", "8", "--target", "acc>=0.8", "--max-epochs", "20")

    def command(self, *words):
        return [os.path.join(os.path.dirname(tool("x")), "../wattgov"), "job", *words]

    def job(self, *words, expect=0):
        done = subprocess.run(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=DEADLINE_S, env=self.machine)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def train(self, how, *options, expect=0):
        return self.job("run", "job", "--json", "--observe", *options, "--", "/usr/bin/python3", self.script, how,
                        "{batch_size}", expect=expect)

    def ends(self):
        facts = [json.loads(line) for line in self.job("export", "job").stdout.splitlines()[1:]]
        return [fact["state"] for fact in facts if fact["kind"] == "ended"]


class Recurrences(Case):
    def test_several_recurrences_learn_and_are_remembered(self):
        for number in range(4):
            result = json.loads(self.train(("plain", "metric_first")[number % 2]).stdout)
            self.assertTrue(result["reached"])
            self.assertEqual(result["recurrence"], number)
            self.assertGreater(result["energy_j"], 0)
        shown = json.loads(self.job("show", "job", "--json").stdout)
        self.assertEqual((shown["completed"], shown["open_runs"]), (4, 0))
        self.assertIn("V100", shown["gpus"][0]["gpu_model"])
        for row in shown["gpus"][0]["batch_sizes"]:
            if row["reached"]:
                self.assertEqual(row["mean_epochs"], {8: 6, 16: 4, 32: 12}[row["batch_size"]])

    def test_progress_is_read_from_what_the_command_prints(self):
        done = self.train("prints", "--epoch-regex", r"epoch (\d+)", "--metric-regex", r"acc (\S+)")
        self.assertIn("the target was reached after 1 attempt", done.stderr)

    def test_what_teaches_nothing_is_said_and_given_back(self):
        self.assertIn("without telling its metric once", self.train("silent", expect=1).stderr)
        self.assertIn("broke 3 times in a row", self.train("breaks", expect=1).stderr)
        missing = self.job("run", "job", "--observe", "--", "/no/such/program", "{batch_size}", expect=1)
        self.assertIn("/no/such/program", missing.stderr)
        self.assertIn("without telling its metric once", self.train("mute", expect=1).stderr)
        self.assertIn("not a number", self.train("nan").stderr)
        self.assertEqual(self.ends(), ["crashed"] * 4 + ["returned", "crashed", "reached"])

    def test_a_metric_that_is_never_a_number_is_tried_three_times(self):
        for how in ("diverges", "diverges_first"):  # the metric after its epoch, and before it
            said = self.train(how, expect=1).stderr
            self.assertIn("3 runs in a row have diverged", said)
            self.assertEqual(said.count("epoch 1: the metric 'acc' is not a number"), 3, said)
        self.assertEqual(self.ends(), ["failed"] * 6)

    def test_a_wrong_profile_is_refused_and_opens_no_run(self):
        said = self.train("plain", "--profile", "warmup=5", expect=2).stderr
        self.assertIn("--profile: 'warmup=5'", said)
        self.assertEqual(self.ends(), [])

    def test_only_a_search_that_came_to_its_end_is_kept_for_the_next_run(self):
        # The fastest limit is known after one measurement; the cheapest needs more than this run has time for.
        for objective, is_kept in (("time", True), ("energy", False)):
            self.job("create", objective, "--batch-sizes", "16,32", "--default", "32", "--target", "f1>=84", "--max-epochs",
                     "6", "--policy", "fixed", "--objective", objective)
            self.job("run", objective, "--profile", "warmup=50ms,measure=100ms", "--", tool("wattgov-vload"), "squad", "--gpu",
                     "V100", "--batch-size", "{batch_size}", "--time-scale", "4000", "--steps-per-epoch", "40",
                     "--print-every", "1000")
            order = json.loads(self.job("next", objective, "--gpu-name", self.gpu_of(objective), "--json").stdout)
            self.assertEqual((order["needs_profile"], order["power_limit_w"]), (not is_kept, 250 if is_kept else None))
        shown = json.loads(self.job("show", "time", "--json").stdout)
        self.assertEqual([row["power_limit_w"] for row in shown["gpus"][0]["batch_sizes"]], [None, 250])
        self.assertEqual(shown["history"][0]["power_limit_w"], 250)
        self.assertIn(" 250 W ", self.job("show", "time").stdout)

    def test_a_survey_sees_what_an_epoch_of_another_batch_size_costs(self):
        self.job("create", "squad", "--batch-sizes", "32,56", "--default", "32", "--target", "f1>=84", "--max-epochs", "6",
                 "--objective", "energy")
        command = ("run", "squad", "--profile", "warmup=50ms,measure=150ms", "--json", "--", tool("wattgov-vload"), "squad",
                   "--gpu", "V100", "--batch-size", "{batch_size}", "--time-scale", "1000", "--samples-per-epoch", "5120",
                   "--print-every", "10000")
        surveys = []
        for _ in range(6):  # until a batch size that was surveyed is run
            report = self.job(*command).stdout
            surveys.append(json.loads(report[report.index('{"schema"'):])["surveys"])
            facts = [json.loads(line) for line in self.job("export", "squad").stdout.splitlines()[1:]]
            starts = {fact["run"]: fact for fact in facts if fact["kind"] == "started"}
            costs = {True: {}, False: {}}
            for fact in facts:
                if fact["kind"] == "profiled":
                    start = starts[fact["run"]]
                    costs[start["is_survey"]][start["batch_size"]] = fact["epoch_cost_max_limit_j"]
            both = set(costs[True]) & set(costs[False])
            if both:
                break
        self.assertEqual(surveys[0], 0)  # nothing was known of an epoch's steps
        self.assertGreater(sum(surveys), 0)
        for batch_size in both:
            self.assertAlmostEqual(costs[True][batch_size], costs[False][batch_size], delta=0.1 * costs[False][batch_size])
        ends = {fact["run"]: fact for fact in facts if fact["kind"] == "ended"}
        for run, start in starts.items():
            if start["is_survey"]:
                self.assertEqual(ends[run]["state"], "reached")
                self.assertLess(ends[run]["epochs"], 1)
        self.assertTrue(both, facts)

    def test_a_locked_store_lengthens_no_run(self):
        process = subprocess.Popen(self.command("run", "job", "--observe", "--json", "--", "/usr/bin/python3", self.script,
                                                "slow", "{batch_size}"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=self.machine)
        self.stack.callback(process.kill)
        wait_for(lambda: '"epoch"' in self.job("export", "job").stdout, "an epoch")
        holder = sqlite3.connect(os.path.join(self.folder, "state/jobs.db"), isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        self.stack.callback(holder.close)
        said = ""
        while "locked" not in said:  # the run goes on, some 8 epochs of 0.22 s are still to come
            said = process.stderr.readline()
            self.assertTrue(said)
        trainers = ["pgrep", "-P", str(process.pid), "-x", "python3"]
        wait_for(lambda: subprocess.run(trainers, stdout=subprocess.PIPE, check=False).returncode != 0, "the command's end")
        holder.execute("ROLLBACK")
        out, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertLess(json.loads(out)["time_s"], 4)  # 9 epochs take 2 s; a wait for the lock took 10 s
        self.assertEqual(self.ends(), ["reached"])

    def test_the_search_is_not_taken_for_time_at_the_limit_that_it_found(self):
        self.job("create", "squad", "--batch-sizes", "16,32", "--default", "32", "--target", "f1>=84", "--max-epochs", "6",
                 "--policy", "fixed")
        for _ in range(2):
            self.job("run", "squad", "--profile", "warmup=50ms,measure=150ms", "--", tool("wattgov-vload"), "squad", "--gpu",
                     "V100", "--batch-size", "{batch_size}", "--time-scale", "1000", "--samples-per-epoch", "5120",
                     "--print-every", "10000")
        facts = [json.loads(line) for line in self.job("export", "squad").stdout.splitlines()[1:]]
        at_largest_j = {fact["run"]: fact["epoch_cost_max_limit_j"] for fact in facts if fact["kind"] == "profiled"}
        ends = [fact for fact in facts if fact["kind"] == "ended"]
        paid_j = sum(fact["cost_j"] for fact in ends)
        saved_j = sum(fact["epochs"] * at_largest_j[fact["run"]] for fact in ends) - paid_j
        shown = json.loads(self.job("show", "squad", "--json").stdout)
        self.assertAlmostEqual(shown["saved_j"], saved_j, delta=0.03 * paid_j)
        self.assertGreater(shown["saved_high_j"] - shown["saved_low_j"], 0)

    def test_a_command_that_ignores_its_batch_size_is_told_of(self):
        script = 'echo "batch_size 4096" >> "$WATTGOV_PROGRESS"; echo "metric 0.9" >> "$WATTGOV_PROGRESS"; sleep 0.1'
        said = self.job("run", "job", "--observe", "--", "sh", "-c", script).stderr
        self.assertEqual(said.count("says that its batch size is 4096, but this run is one of 8"), 1, said)

    def test_giving_up_is_said_also_quietly(self):
        self.job("create", "vain", "--batch-sizes", "8,16", "--default", "8", "--target", "acc>=0.8", "--max-epochs", "1")
        script = 'echo "epoch 1" >> "$WATTGOV_PROGRESS"; echo "metric 0.1" >> "$WATTGOV_PROGRESS"; sleep 0.02'
        done = self.job("run", "vain", "-q", "--observe", "--", "sh", "-c", script, expect=1)
        self.assertIn("given up after 20 attempts", done.stderr)

    def test_no_surveys_are_made_when_they_are_not_wanted(self):
        self.job("create", "squad", "--batch-sizes", "32,56", "--default", "32", "--target", "f1>=84", "--max-epochs", "6")
        for _ in range(3):
            self.job("run", "squad", "--no-surveys", "--", tool("wattgov-vload"), "squad", "--gpu", "V100", "--batch-size",
                     "{batch_size}", "--time-scale", "100000", "--samples-per-epoch", "1280", "--print-every", "10000")
        self.assertNotIn('"is_survey":true', self.job("export", "squad").stdout)

    def gpu_of(self, name):
        return json.loads(self.job("show", name, "--json").stdout)["gpus"][0]["gpu_model"]

    def test_an_interrupted_run_is_given_back(self):
        process = subprocess.Popen(self.command("run", "job", "--observe", "--", "/usr/bin/python3", self.script, "slow",
                                                "{batch_size}"), stderr=subprocess.PIPE, text=True, env=self.machine)
        self.stack.callback(process.kill)

        def has_trained():
            return '"epoch"' in self.job("export", "job").stdout
        wait_for(has_trained, "an epoch")
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=DEADLINE_S)[1]
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("interrupted, and the run given back", err)
        self.assertEqual(self.ends(), ["returned"])

    def test_a_killed_run_is_taken_back_after_the_lease_of_its_job(self):
        self.job("create", "short", "--batch-sizes", "8,16", "--default", "8", "--target", "acc>=0.8", "--max-epochs", "20",
                 "--lease", "1s")
        process = subprocess.Popen(self.command("run", "short", "--observe", "--", "/usr/bin/python3", self.script, "slow",
                                                "{batch_size}"), stderr=subprocess.DEVNULL, env=self.machine,
                                   start_new_session=True)
        self.stack.callback(process.wait)
        self.stack.callback(os.killpg, process.pid, signal.SIGKILL)
        wait_for(lambda: self.job("export", "short").stdout.count('"epoch"') > 6, "epochs for longer than the lease")
        self.assertNotIn("taken_back", self.job("export", "short").stdout)
        self.assertEqual(self.next_of("short")["taken_back"], 0)  # it lives, and has said so
        os.killpg(process.pid, signal.SIGKILL)
        self.assertEqual(process.wait(DEADLINE_S), -signal.SIGKILL)

        def taken_back():
            order = self.next_of("short")
            return order if order["taken_back"] else None
        self.assertEqual(wait_for(taken_back, "the end of the lease")["recurrence"], 0)

    def next_of(self, name):
        order = json.loads(self.job("next", name, "--json").stdout)
        self.job("report", name, str(order["run"]), "--returned")
        return order


if __name__ == "__main__":
    vgpu_case.main(__doc__)
