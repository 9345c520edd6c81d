#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`wattgov job` as schedulers and their users call it.

    tests/integration/job.py build/release

Many callers at once, callers that are killed, stores that are locked, full, of another program or of a newer one,
and every line that a wrong command answers.
"""
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import unittest

BUILD = None
SEED = int(os.environ.get("WATTGOV_TEST_SEED", "1"))
KILLS = int(os.environ.get("WATTGOV_TEST_KILLS", "60"))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.store = os.path.join(self.folder, "jobs.db")

    def job(self, *arguments, expect=0, store=None, environment=None):
        """Runs `wattgov job`; returns what it has written on both streams."""
        command = [os.path.join(BUILD, "wattgov"), "job", *map(str, arguments)]
        if arguments[0] not in ("--help",):
            command += ["--store", store or self.store]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                              env=dict(os.environ, **(environment or {})), check=False)
        self.assertEqual(done.returncode, expect, f"{command}: {done.stdout}{done.stderr}")
        if expect in (0, 3):
            self.assertEqual(done.stderr, "")
        else:
            self.assertEqual(done.stdout, "")
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertTrue(done.stderr.startswith(f"wattgov job {arguments[0]}: "), done.stderr)
        return done.stdout + done.stderr

    def create(self, name="bert", **changes):
        options = {"batch-sizes": "8,16,32,64", "default": 32, "target": "acc>=0.8", "max-epochs": 20, **changes}
        self.job("create", name, *[word for key, value in options.items() for word in (f"--{key}", value)])

    def next(self, name="bert", *options):
        answer = json.loads(self.job("next", name, "--json", *options))
        self.assertEqual(answer["schema"], "wattgov.job.next/1")
        return answer

    def report(self, run, *options, name="bert", expect=0):
        return json.loads(self.job("report", name, run, "--json", *options, expect=expect))

    def facts(self, name="bert"):
        lines = self.job("export", name).splitlines()
        return [json.loads(line) for line in lines[1:]]


ENDED = ("--epochs", 5, "--energy", 1000, "--time", 10)


class Life(Case):
    def test_runs_are_opened_reported_and_shown(self):
        self.create(**{"learning-rate": 0.1})
        first = self.next()
        self.assertEqual((first["batch_size"], first["recurrence"], first["kind"]), (32, 0, "run"))
        self.assertEqual((first["learning_rate"], first["needs_profile"], first["power_limit_w"]), (0.1, True, None))
        self.assertEqual(self.job("report", "bert", first["run"], "--epoch", 1, "--metric", 0.5), "continue\n")
        self.assertEqual(self.job("report", "bert", first["run"], "--epoch", 2, "--metric", 0.8, expect=3), "reached\n")
        receipt = self.report(first["run"], "--reached", *ENDED)
        self.assertEqual((receipt["cost_j"], receipt["is_repeat"], receipt["wants_retry"]), (1000, False, False))
        shown = json.loads(self.job("show", "bert", "--json"))
        self.assertEqual((shown["completed"], shown["cost_j"], shown["open_runs"]), (1, 1000, 0))
        rows = {row["batch_size"]: row for row in shown["gpus"][0]["batch_sizes"]}
        self.assertEqual((rows[32]["reached"], rows[32]["mean_epochs"]), (1, 5))
        self.assertGreater(rows[8]["expected"]["cost_high_j"], rows[8]["expected"]["cost_low_j"])
        page = os.path.join(self.folder, "bert.html")
        self.assertIn("1 recurrence reached the target and cost 1000.0 J; saved", self.job("show", "bert", "--html", page))
        with open(page, encoding="utf-8") as file:
            self.assertIn("Cumulative cost", file.read())
        self.assertIn("bert", self.job("list"))
        self.job("rm", "bert")
        self.assertEqual(json.loads(self.job("list", "--json"))["jobs"], [])

    def test_a_failed_run_is_tried_again_with_what_has_worked(self):
        self.create()
        self.report(self.next()["run"], "--reached", *ENDED)
        other = self.next()
        self.assertTrue(self.report(other["run"], "--failed", *ENDED)["wants_retry"])
        again = self.next()
        self.assertEqual((again["recurrence"], again["attempt"], again["batch_size"]), (other["recurrence"], 1, 32))
        broken = self.report(again["run"], "--crashed")
        self.assertTrue(broken["wants_retry"])
        third = self.next()
        self.assertEqual((third["recurrence"], third["attempt"]), (other["recurrence"], 1))
        self.report(third["run"], "--reached", *ENDED)
        self.assertEqual(self.next()["recurrence"], other["recurrence"] + 1)

    def test_the_name_may_stand_behind_options(self):
        self.job("create", "--batch-sizes", "8,16", "--default", 8, "bert", "--target", "acc>=0.8", "--max-epochs", 9)
        run = json.loads(self.job("next", "--json", "--gpus", 1, "bert"))["run"]
        self.job("report", "--reached", "bert", *ENDED, run)
        self.assertIn("1 recurrence reached", self.job("show", "--store", self.store, "bert"))
        self.assertEqual(len(self.job("export", "--store", self.store, "bert").splitlines()), 3)
        self.assertIn("which job?", self.job("show", "--json", expect=2))
        self.assertIn("unexpected argument 'more'", self.job("show", "--json", "bert", "more", expect=2))
        self.assertIn("did you mean '--store'?", self.job("show", "--stroe", "x", "bert", expect=2))

    def test_no_default_is_shown_that_is_none(self):
        text = subprocess.run([os.path.join(BUILD, "wattgov"), "job", "report", "--help"], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        self.assertNotIn("-1", text)
        self.assertEqual(" ".join(text.split()).count("default: none; needed with --reached"), 3)

    def test_what_was_saved_is_told_apart_from_what_was_paid_in_vain(self):
        def shown():
            return json.loads(self.job("show", "bert", "--json"))
        self.create(policy="fixed")
        for energy in (800, 1200, 1000):  # the default alone has saved nothing, and that is certain
            self.report(self.next()["run"], "--reached", "--epochs", 5, "--energy", energy, "--time", 10)
            self.assertEqual([shown()[key] for key in ("saved_j", "saved_low_j", "saved_high_j")], [0, 0, 0])
        self.report(self.next()["run"], "--failed", "--epochs", 20, "--energy", 4000, "--time", 40)
        job = shown()
        self.assertEqual((job["completed"], job["completed_cost_j"], job["cost_j"]), (3, 3000, 7000))
        self.assertEqual((job["saved_j"], job["saved_low_j"]), (0, 0))
        self.next()
        text = self.job("show", "bert")
        self.assertIn("3 recurrences reached the target and cost 3000.0 J; 1 has not (yet, or given up) and cost 4000.0 J", text)
        self.assertIn("1 run is open; 0 came to nothing", text)

    def test_the_expected_cost_lies_within_its_interval_also_after_failures(self):
        self.create(**{"batch-sizes": "8,16", "default": 8})
        for _ in range(4):
            self.report(self.next()["run"], "--failed", "--epochs", 20, "--energy", 200, "--time", 10)
        self.report(self.next()["run"], "--reached", "--epochs", 15, "--energy", 150, "--time", 8)
        for row in json.loads(self.job("show", "bert", "--json"))["gpus"][0]["batch_sizes"]:
            expected = row["expected"]
            self.assertLess(expected["cost_low_j"], expected["cost_j"])
            self.assertLess(expected["cost_j"], expected["cost_high_j"])
            self.assertGreater(expected["recurrence_cost_j"], expected["cost_j"])

    def test_a_recurrence_that_is_reached_twice_counts_once(self):
        self.create()
        lost = self.next("bert", "--lease", "1ms")
        other = self.next()
        self.report(other["run"], "--reached", *ENDED)
        self.report(lost["run"], "--reached", *ENDED)
        self.assertIn("1 recurrence reached the target and cost 2000.0 J; saved", self.job("show", "bert"))

    def test_a_silent_run_is_taken_back_and_may_still_report(self):
        self.create()
        lost = self.next("bert", "--lease", "1ms")
        other = self.next()
        self.assertEqual((other["taken_back"], other["recurrence"], other["attempt"]), (1, 0, 0))
        self.report(lost["run"], "--reached", *ENDED)
        self.assertTrue(self.report(lost["run"], "--reached", *ENDED)["is_repeat"])
        self.assertEqual([fact["kind"] for fact in self.facts()],
                         ["started", "taken_back", "started", "revived", "ended"])

    def test_the_history_shows_runs_surveys_and_what_stands_out(self):
        self.create()
        ends = []
        for number in range(12):
            run = self.next("bert", "--survey")
            if run["kind"] == "survey":
                epochs, end = 0.25, ("--reached", "--epochs", 0.25, "--energy", 60, "--time", 2)
            elif run["batch_size"] == 32 or run["attempt"] > 0:
                epochs, end = 5, ("--reached", "--epochs", 5, "--energy", 1000 + number, "--time", 10)
            else:
                epochs, end = 20, ("--failed", "--epochs", 20, "--energy", 4000, "--time", 40)
            self.report(run["run"], *end)
            ends.append((run["run"], run["kind"], run["recurrence"], run["attempt"], run["batch_size"], end[0][2:], epochs,
                         end[4], end[6]))
        ends.append((self.next()["run"], "run", self.facts()[-1]["recurrence"], 0, self.facts()[-1]["batch_size"], "open", 0,
                     None, None))
        page = os.path.join(self.folder, "bert.html")
        shown = json.loads(self.job("show", "bert", "--json", "--html", page))
        fields = ("run", "kind", "recurrence", "attempt", "batch_size", "state", "epochs", "energy_j", "time_s")
        self.assertEqual([tuple(entry[field] for field in fields) for entry in shown["history"]], ends)
        paid = 0
        for entry in shown["history"]:
            paid += entry["cost_j"] or 0
            self.assertAlmostEqual(entry["cumulative_cost_j"], paid, places=6)
            self.assertEqual(entry["completes"], entry["kind"] == "run" and entry["state"] == "reached")
        for row in shown["gpus"][0]["batch_sizes"]:
            mine = [entry for entry in shown["history"] if entry["batch_size"] == row["batch_size"] and entry["state"] != "open"]
            self.assertEqual(row["surveys"], sum(entry["kind"] == "survey" for entry in mine))
            self.assertEqual(row["runs"], sum(entry["kind"] == "run" for entry in mine))
        self.assertGreater(sum(row["surveys"] for row in shown["gpus"][0]["batch_sizes"]), 0)
        text = self.job("show", "bert")
        self.assertIn("\n* the default; 32 stands out: of those that have reached the target, the one with the least cost with "
                      "retries\n", text)
        lines = text.partition("\nthe newest 10 of 13 runs and surveys\n")[2].partition("\n\n")[0].splitlines()[2:]
        self.assertEqual([int(line.split()[0]) for line in lines], [end[0] for end in reversed(ends[-10:])])
        with open(page, encoding="utf-8") as file:
            html = file.read()
        self.assertIn("13 runs and surveys, the newest first", html)
        self.assertIn("Cost of a run on 1 x unknown", html)
        self.assertIn("32 stands out", html)

    def test_what_was_learned_is_carried_to_another_gpu(self):
        self.create()
        for _ in range(8):
            run = self.next("bert", "--gpu-name", "A", "--gpus", 2)
            epochs = 5 if run["batch_size"] == 64 else 9
            self.report(run["run"], "--reached", "--epochs", epochs, "--energy", 100 * epochs, "--time", 9)
        run = self.next("bert", "--gpu-name", "B")
        self.assertEqual(run["batch_size"], 64)

        def gpus():
            return json.loads(self.job("show", "bert", "--json"))["gpus"]
        self.assertEqual([(gpu["gpu_model"], gpu["gpu_count"]) for gpu in gpus()], [("A", 2), ("B", 1)])
        # Epochs are the same on any GPU, but nothing has cost anything on this one yet.
        self.assertIsNone(gpus()[1]["default_cost_j"])
        for row in gpus()[1]["batch_sizes"]:
            joules = {value for name, value in row["expected"].items() if name.endswith("_j")}
            self.assertEqual((joules, row["mean_cost_j"]), ({None}, None))
            self.assertGreater(row["expected"]["epochs"], 4)
        table = self.job("show", "bert").partition("1 x B")[2].partition("\n\n")[0]
        self.assertNotIn("J", table)
        self.report(run["run"], "--reached", "--epochs", 5, "--energy", 70000, "--time", 9)
        for row in gpus()[1]["batch_sizes"]:
            self.assertGreater(row["expected"]["cost_j"], 10000)

    def test_surveys_are_reported_as_broken_epochs(self):
        self.create()
        self.report(self.next("bert", "--survey")["run"], "--reached", *ENDED)
        survey = self.next("bert", "--survey")
        self.assertEqual(survey["kind"], "survey")
        self.report(survey["run"], "--reached", "--epochs", 0.25, "--energy", 30, "--time", 1)
        self.assertNotEqual(self.next("bert", "--survey")["batch_size"], survey["batch_size"])

    def test_the_objective_cost_needs_the_largest_power(self):
        self.create(objective="cost:0.5")
        self.assertIn("--max-power", self.job("next", "bert", expect=2))
        run = self.next("bert", "--max-power", 300)
        self.assertEqual(self.report(run["run"], "--reached", *ENDED)["cost_j"], 0.5 * 1000 + 0.5 * 300 * 10)


    def test_an_epoch_may_be_told_again_but_none_may_be_taken_back(self):
        self.create()
        run = self.next()["run"]
        for epoch, metric, said, status in [(3, 0.1, "continue", 0), (3, 0.1, "continue", 0), (1, 5, "continue", 0),
                                            (4, 0.2, "continue", 0), (5, 0.9, "reached", 3), (5, 0.9, "reached", 3),
                                            (2, 0.1, "reached", 3)]:
            self.assertEqual(self.job("report", "bert", run, "--epoch", epoch, "--metric", metric, expect=status), said + "\n")
        self.assertEqual([(fact["epoch"], fact["metric"]) for fact in self.facts()[1:]], [(3, 0.1), (4, 0.2), (5, 0.9)])
        fewer = ("--epochs", 4, "--energy", 1000, "--time", 10)
        self.assertIn("--epochs: 4, but the run has told epoch 5 already",
                      self.job("report", "bert", run, "--reached", *fewer, expect=2))
        self.report(run, "--reached", *ENDED)
        self.assertTrue(self.report(run, "--reached", *ENDED)["is_repeat"])


class Errors(Case):
    def test_batch_sizes_of_a_file_are_those_of_the_list(self):
        path = os.path.join(self.folder, "batches.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write("batch_size,time_s\n32,2e-3\n8,1e-3\n16,1e-3\n")
        self.create(**{"batch-sizes": f"from:{path}", "default": 16})
        self.assertEqual(json.loads(self.job("export", "bert").splitlines()[0])["batch_sizes"],
                         [8, 16, 32])
        good = ["--default", "8", "--target", "loss<=1.2", "--max-epochs", "9", "--batch-sizes"]
        self.assertIn("not one of", self.job("create", "job", *good, f"from:{path}", "--default", 9, expect=2))
        self.assertIn("/nowhere", self.job("create", "job", *good, "from:/nowhere", expect=1))
        with open(path, "w", encoding="utf-8") as file:
            file.write("batch_size\n8\n")
        self.assertIn("at least two", self.job("create", "job", *good, f"from:{path}", expect=2))

    def test_wrong_jobs_are_refused_in_one_line(self):
        good = ["--batch-sizes", "8,16", "--default", "8", "--target", "loss<=1.2", "--max-epochs", "9"]
        for changed, words in [(["--batch-sizes", "8"], "at least two"), (["--batch-sizes", "8,8"], "twice"),
                               (["--batch-sizes", "8,-16"], "whole numbers"), (["--default", "9"], "not one of"),
                               (["--target", "loss"], "METRIC>=NUMBER"), (["--target", "loss<=nan"], "METRIC>=NUMBER"),
                               (["--target", "loss==1"], "('>' and '<' mean the same)"),
                               (["--batch-sizes", "8," * 3000], "2 to 64 whole numbers"),
                               (["--max-epochs", "0"], "in 1 .. 1000000"), (["--default", "0"], "'0'"),
                               (["--learning-rate", "0"], "'0'"), (["--max-power", "0"], "'0'"),
                               (["--learning-rate", "1", "--learning-rate-batch", "0"], "'0'"), (["--objective", "power"], "power"),
                               (["--policy", "zeuss"], "zeus"), (["--learning-rate", "-1"], "--learning-rate"),
                               (["--optimizer", "adam"], "--learning-rate is missing")]:
            self.assertIn(words, self.job("create", "job", *good, *changed, expect=2))
        for name in ("", "a b", ".a", "a/b", "x" * 65):
            self.assertIn("name", self.job("create", name, *good, expect=2))
        self.assertFalse(os.path.exists(self.store))
        self.assertIn("letters, digits", self.job("create", "x" * 10000, *good, expect=2))
        for number, target in enumerate(("acc>1", " acc >= 1 ")):
            self.job("create", f"more{number}", *good, "--target", target)
        self.assertEqual(self.job("list").count("acc>=1 "), 2)
        self.job("create", "job", *good)
        self.assertIn("has a job 'job' already", self.job("create", "job", *good, expect=1))

    def test_wrong_words_about_runs_are_refused_in_one_line(self):
        self.assertIn("no job was created there yet", self.job("next", "bert", expect=1))
        self.create()
        self.assertIn("did you mean 'bert'?", self.job("next", "brt", expect=1))
        for model in ("A\nB", "\x1b[31m", "\udcff", "x" * 128):
            self.assertIn("--gpu-name", self.job("next", "bert", "--gpu-name", model, expect=2))
        self.assertIn("--lease", self.job("next", "bert", "--lease", "0s", expect=2))
        self.assertIn("--max-power", self.job("next", "bert", "--max-power", 0, expect=2))
        run = self.next()["run"]
        for words, expected, code in [((run,), "one of --epoch", 2), ((run, "--reached", "--failed"), "--reached and --failed were both given", 2),
                                      ((run, "--epoch", 1, "--crashed"), "--epoch and --crashed were both given", 2),
                                      ((run, "--reached"), "must be given with --reached", 2),
                                      ((run, "--reached", *ENDED, "--energy", "-1"), "--energy", 2),
                                      ((run, "--reached", *ENDED, "--epochs", "1.5"), "not a whole number", 2),
                                      ((run, "--failed", *ENDED, "--epochs", "21"), "more than the job's 20", 2),
                                      ((run, "--reached", *ENDED, "--energy", "0"), "no measurement", 2),
                                      ((run, "--reached", *ENDED, "--time", "0"), "no measurement", 2),
                                      ((run, "--epoch", 1, "--metric", "nan"), "'nan'", 2),
                                      ((run, "--epoch", 21), "21 is more than the job's 20", 2),
                                      ((run, "--epoch", 2, "--energy", 3), "are told at the end", 2),
                                      ((run + 9, "--crashed"), "no run", 1), (("x", "--crashed"), "'x'", 2)]:
            self.assertIn(expected, self.job("report", "bert", *words, expect=code))
        self.report(run, "--reached", *ENDED)
        self.assertIn("is refused", self.job("report", "bert", run, "--failed", *ENDED, expect=1))
        self.assertIn("has ended", self.job("report", "bert", run, "--epoch", 9, expect=1))
        self.next()
        self.assertIn("--force", self.job("rm", "bert", expect=1))
        self.job("rm", "bert", "--force")

    def test_stores_that_cannot_be_used_say_why(self):
        with open(self.store, "w", encoding="utf-8") as file:
            file.write("no database at all, but long enough to be looked at by SQLite " * 20)
        self.assertIn("is no store of jobs", self.job("list", expect=1))
        os.unlink(self.store)
        other = sqlite3.connect(self.store)
        other.execute("CREATE TABLE things(x)")
        other.commit()
        other.close()
        self.assertIn("database of another program", self.job("list", expect=1))
        os.unlink(self.store)
        self.create()
        newer = sqlite3.connect(self.store)
        newer.execute("PRAGMA user_version = 99")
        newer.close()
        self.assertIn("has schema 99", self.job("next", "bert", expect=1))
        for path in (self.folder, "/dev/null"):
            self.assertIn("cannot be opened: it is no regular file", self.job("next", "bert", store=path, expect=1))

    def test_a_damaged_store_is_an_error_that_names_it(self):
        self.create()
        self.report(self.next()["run"], "--reached", *ENDED)
        with open(self.store, "rb") as file:
            good = file.read()

        def all_say(words, commands):
            for command in commands:
                said = self.job(*command, expect=1)
                self.assertIn(f"'{self.store}' is damaged: ", said)
                self.assertIn(words, said)
        with open(self.store, "wb") as file:
            file.write(good.replace(b"energy", b"\xffnergy"))
        readers = [("list",), ("show", "bert"), ("export", "bert")]
        writers = [("next", "bert"), ("report", "bert", 1, "--failed", *ENDED)]
        all_say("'objective'", readers + writers)
        with open(self.store, "wb") as file:
            file.write(good)
        damage = sqlite3.connect(self.store)
        damage.execute("DELETE FROM batch_sizes")
        damage.commit()
        damage.close()
        all_say("batch sizes", readers + writers)
        damage = sqlite3.connect(self.store)
        damage.execute("INSERT INTO batch_sizes VALUES(1, 32), (1, 64)")
        damage.execute("UPDATE jobs SET next_recurrence = 1 << 40")
        damage.commit()
        damage.close()
        all_say("1099511627776 recurrences", [("show", "bert")])

    def test_a_locked_store_is_waited_for(self):
        self.create()
        holder = sqlite3.connect(self.store, isolation_level=None, check_same_thread=False)
        holder.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.5, lambda: holder.execute("ROLLBACK"))
        release.start()
        self.next()
        release.join()
        holder.execute("BEGIN IMMEDIATE")
        self.assertEqual(json.loads(self.job("list", "--json"))["jobs"][0]["recurrences"], 1)  # readers go on
        holder.execute("ROLLBACK")
        holder.close()

    def mount(self, options):
        small = os.path.join(self.folder, "small")
        os.mkdir(small)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", small], check=False,
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no file system may be mounted here")
        self.addCleanup(lambda: subprocess.run(["umount", small], check=True))
        return small

    def see_one_job(self, count):
        self.assertEqual([job["name"] for job in json.loads(self.job("list", "--json"))["jobs"]], ["bert"])
        self.assertIn("job bert", self.job("show", "bert"))
        self.assertEqual(len(self.facts()), count)

    @unittest.skipUnless(os.geteuid() == 0, "mounts a small file system: only root may")
    def test_a_full_disk_changes_nothing_and_can_be_mended(self):
        small = self.mount("size=300k")
        self.store = os.path.join(small, "jobs.db")
        self.create()
        run = self.next()["run"]
        room = os.statvfs(small)
        with open(os.path.join(small, "ballast"), "wb") as file:
            file.write(b"x" * (room.f_bavail * room.f_frsize))
        said = self.job("report", "bert", run, "--reached", *ENDED, expect=1)
        self.assertIn("the disk is full", said)
        self.see_one_job(1)
        for left in ("-wal", "-shm"):
            os.unlink(self.store + left)
        with open(os.path.join(small, "more"), "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass
        self.see_one_job(1)
        os.unlink(os.path.join(small, "ballast"))
        self.assertFalse(self.report(run, "--reached", *ENDED)["is_repeat"])
        self.assertEqual([fact["kind"] for fact in self.facts()], ["started", "ended"])

    @unittest.skipUnless(os.geteuid() == 0, "mounts a small file system: only root may")
    def test_a_store_on_a_read_only_file_system_can_be_looked_at(self):
        small = self.mount("size=1m")
        self.store = os.path.join(small, "jobs.db")
        self.create()
        run = self.next()["run"]
        for left in ("-wal", "-shm", None):  # with what the last process left, and as a copy of the file alone
            subprocess.run(["mount", "-o", "remount,ro", small], check=True)
            self.see_one_job(1)
            for words in (("next", "bert"), ("report", "bert", run, "--crashed"), ("rm", "bert", "--force")):
                self.assertIn("cannot be written: Read-only file system", self.job(*words, expect=1))
            subprocess.run(["mount", "-o", "remount,rw", small], check=True)
            if left is not None:
                os.unlink(self.store + left)

    @unittest.skipUnless(os.geteuid() == 0, "becomes another user: only root may")
    def test_who_may_only_read_can_look_but_not_write(self):
        self.create()
        self.next()
        os.chmod(self.folder, 0o755)
        os.chmod(self.store, 0o644)

        def as_nobody(*arguments):
            return subprocess.run([os.path.join(BUILD, "wattgov"), "job", *arguments, "--store", self.store], user=65534,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
                                  env=dict(os.environ, WATTGOV_STATE_DIR=os.path.join(self.folder, "nobody")))
        probe = subprocess.run([os.path.join(BUILD, "wattgov"), "--version"], user=65534, check=False,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if probe.returncode != 0:
            self.skipTest("the program lies where others may not go")
        for left in ("-wal", "-shm", None):
            for words in (("list",), ("show", "bert"), ("export", "bert")):
                done = as_nobody(*words)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn("bert", done.stdout)
            done = as_nobody("next", "bert")
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("cannot be written: Permission denied", done.stderr)
            if left is not None:
                os.unlink(self.store + left)
        self.assertEqual(len(self.facts()), 1)


class Crowd(Case):
    def test_many_at_once_lose_and_double_nothing(self):
        self.create()
        acknowledged = []

        def work():
            for _ in range(6):
                run = self.next()
                self.report(run["run"], "--reached", *ENDED)
                acknowledged.append((run["run"], run["recurrence"]))
        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(acknowledged), 36)
        self.assertEqual(sorted(recurrence for _, recurrence in acknowledged), list(range(36)))
        facts = self.facts()
        self.assertEqual([fact["fact"] for fact in facts], list(range(1, 73)))
        self.assertEqual(sorted(fact["run"] for fact in facts if fact["kind"] == "ended"),
                         sorted(run for run, _ in acknowledged))

    def test_killing_at_any_moment_loses_nothing_that_was_acknowledged(self):
        self.create()
        chance = random.Random(SEED)
        print(f"{KILLS} kills, seed {SEED}", file=sys.stderr)
        ended, started = {}, set()
        command = [os.path.join(BUILD, "wattgov"), "job"]
        # Half of the calls should get as far as their commit: the window follows the speed of the machine.
        longest = 0.03
        for _ in range(KILLS):
            if started - set(ended) and chance.random() < 0.6:
                run = min(started - set(ended))
                words = ["report", "bert", str(run), "--reached", "--epochs", "5", "--energy", str(1000 + run), "--time",
                         "10", "--json", "--store", self.store]
            else:
                run = None
                words = ["next", "bert", "--json", "--store", self.store]
            child = subprocess.Popen(command + words, stdout=subprocess.PIPE)
            killer = threading.Timer(chance.uniform(0, longest), child.send_signal, [signal.SIGKILL])
            killer.start()
            said = child.communicate(timeout=60)[0]
            killer.join()
            is_acknowledged = said.endswith(b"}\n")
            longest *= 0.9 if is_acknowledged else 1.12
            if not is_acknowledged:
                continue
            answer = json.loads(said)
            if run is None:
                started.add(answer["run"])
            else:
                ended[run] = answer["cost_j"]
        facts = self.facts()
        self.assertEqual([fact["fact"] for fact in facts], list(range(1, len(facts) + 1)))
        found_started = [fact["run"] for fact in facts if fact["kind"] == "started"]
        found_ended = {fact["run"]: fact["cost_j"] for fact in facts if fact["kind"] == "ended"}
        self.assertEqual(len(found_started), len(set(found_started)))
        self.assertLessEqual(started, set(found_started))
        self.assertEqual({run: found_ended[run] for run in ended}, ended)
        self.assertEqual(sum(fact["kind"] == "ended" for fact in facts), len(found_ended))
        self.assertGreater(len(started), 2)
        check = sqlite3.connect(self.store)
        self.assertEqual(check.execute("PRAGMA integrity_check").fetchone(), ("ok",))
        check.close()
        for run in set(found_started) - set(found_ended):  # what was not acknowledged can be made again
            self.report(run, "--reached", "--epochs", 5, "--energy", 1000 + run, "--time", 10)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main()
