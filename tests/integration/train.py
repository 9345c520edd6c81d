#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`wattgov train` as its users call it: real processes under the governor, on virtual GPUs.

    tests/integration/train.py build/release

The jobs are wattgov-vload (a measured one, by its own steps), shell scripts that append lines, and small programs.
"""
import json
import os
import re
import signal
import subprocess
import sys

import vgpu_case
from vgpu_case import DEADLINE_S, tool, wait_for, wait_for_line

# cifar100 on the V100 at its default batch size: at cost:0.5, 175 W costs least, 200 W 0.8 % more.
JOB = ("cifar100", "--gpu", "V100", "--steps-per-epoch", "100", "--print-every", "1000")
QUICK = ("--profile", "warmup=300ms,measure=700ms")


class Case(vgpu_case.HoldingCase):
    verb, model = "train", "v100"
    train = vgpu_case.HoldingCase.call

    def wait_for_limit(self, is_wanted, what):
        return wait_for(lambda: is_wanted(self.limit_w()), what)


class Governing(Case):
    def test_finds_holds_and_gives_back_the_best_limit(self):
        done = self.train(*QUICK, "--json", "--output", self.path("r.json"), "--html", self.path("r.html"), "--",
                          tool("wattgov-vload"), *JOB, "--epochs", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("r.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(report["schema"], "wattgov.train/1")
        self.assertTrue(report["is_governed"])
        self.assertEqual((report["progress"], report["steps"]), ("told", 200))
        self.assertEqual(report["epochs"], 2)
        stage, = report["stages"]
        self.assertEqual((stage["knob"], stage["settings"][0], stage["settings"][-1]), ("power_limit", 100, 250))
        self.assertIn(stage["best"], (175, 200))
        self.assertEqual(report["not_restored"], 0)
        self.assertGreater(report["saving"]["energy_share"], 0.05)
        self.assertGreaterEqual(len(stage["profile"]), 3)
        self.assertRegex(done.stderr, r"holding power_limit (175|200) W")
        told = re.search(r" (\d+) s: (\d+) steps, ([\d.]+) a second, (\d+\.\d) W, power_limit \d+ W \(.+\)", done.stderr)
        self.assertTrue(told, done.stderr)
        t_s, steps, rate, power_w = map(float, told.groups())
        self.assertAlmostEqual(rate, steps / t_s, delta=0.04 * rate)  # the second is rounded
        self.assertTrue(80 < power_w < 200, told[0])
        self.expect_nothing_left()
        with open(self.path("r.html"), encoding="utf-8") as file:
            self.assertIn("<svg", file.read())

    def test_reads_the_steps_from_the_output_and_passes_it_through(self):
        script = 'for n in 1 2 3; do echo "it $n of 3"; echo "warning: $n" >&2; done; echo acc=0.75; exit 5'
        done = self.train("--json", "--step-regex", r"^it (\d+) of", "--metric-regex", r"acc=(\S+)", "--", "sh", "-c",
                          script)
        self.assertEqual(done.returncode, 5, done.stderr)
        text = "".join(f"it {n} of 3\n" for n in (1, 2, 3)) + "acc=0.75\n"
        self.assertTrue(done.stdout.startswith(text), done.stdout)
        report = json.loads(done.stdout[len(text):])
        self.assertEqual((report["progress"], report["steps"], report["metric"]), ("printed", 3, 0.75))
        self.assertEqual(report["exit_status"], 5)
        for n in (1, 2, 3):
            self.assertIn(f"warning: {n}\n", done.stderr)
        self.expect_nothing_left()

    def test_a_script_tells_its_steps_by_a_line(self):
        script = ('for n in 1 2 3 4; do echo "step $n" >> "$WATTGOV_PROGRESS"; done; '
                  'echo "metric nan loss" >> "$WATTGOV_PROGRESS"; echo "epoch 1" >> "$WATTGOV_PROGRESS"')
        report = json.loads(self.train("--json", "--", "bash", "-c", script).stdout)
        self.assertEqual((report["progress"], report["steps"], report["epochs"]), ("told", 4, 1))
        self.assertIsNone(report["metric"])

    def test_the_steps_of_an_epoch_are_counted_in_a_resumed_job_too(self):
        for first, steps in ((1, (100, 200)), (6, (31, 131))):  # the second goes on within its fifth epoch
            script = "".join(f'echo "step {step}" >> "$WATTGOV_PROGRESS"; echo "epoch {first + n}" >> "$WATTGOV_PROGRESS"; '
                             for n, step in enumerate(steps))
            report = json.loads(self.train("--json", "--", "bash", "-c", script).stdout)
            self.assertEqual((report["steps"], report["epochs"]), (steps[-1], first + 1))
            self.assertEqual(report["steps_per_epoch"], 100)

    def test_observing_sets_nothing(self):
        process = self.in_background("--observe", *QUICK, "--json", "--", tool("wattgov-vload"), *JOB,
                                           "--epochs", "1")
        seen = set()
        while process.poll() is None:
            seen.add(self.limit_w())
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(seen, {250})
        report = json.loads(out[out.index('{"schema"'):])
        self.assertFalse(report["is_governed"])
        self.assertEqual(report["why_not"], "--observe")
        self.assertGreater(report["saving"]["expected_cost_share"], 0)
        self.assertIsNone(report["saving"]["energy_j"])

    def test_several_gpus_and_ranks_are_one_job(self):
        with open(self.path("two.yaml"), "w", encoding="utf-8") as file:
            file.write("id: two\ndriver: 550.54.15\ncuda_version: 12.4\ngpus:\n  - like: v100\n    count: 2\n")
        _, environment = self.start("--machine", self.path("two.yaml"))
        environment["WATTGOV_STATE_DIR"] = self.path("state")
        script = 'for r in 0 1; do RANK=$r "$0" "$@" --device $r & done; wait'
        process = self.in_background(*QUICK, "--json", "--no-cache", "--", "bash", "-c", script,
                                           tool("wattgov-vload"), *JOB, "--epochs", "1", env=environment)
        seen = set()
        while process.poll() is None:
            seen.add(tuple(gpu["limit_w"] for gpu in self.show(environment)["gpus"]))
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        report = json.loads(out[out.index('{"schema"'):])
        self.assertEqual((report["ranks"], report["steps"], report["epochs"]), (2, 100, 1))
        self.assertEqual(len(report["devices"]), 2)
        self.assertEqual(report["max_power_w"], 500)
        parts = sum(device["energy_j"] for device in report["devices"])
        self.assertAlmostEqual(report["total"]["energy_j"], parts, delta=1e-6 * parts)
        # The same limit on both, but for the moment between the two calls.
        self.assertIn((250, 250), seen)
        self.assertTrue(any(a == b < 250 for a, b in seen), seen)
        self.assertEqual([gpu["limit_w"] for gpu in self.show(environment)["gpus"]], [250, 250])

    def test_whoever_may_not_set_observes_and_is_told(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become somebody else")
        os.chmod(self.folder, 0o777)
        other = {"user": 65534, "group": 65534, "extra_groups": []}
        _, environment = self.start("--machine", "a100", **other)
        environment["WATTGOV_STATE_DIR"] = self.path("other")
        try:
            done = self.train("--", "true", env=environment, **other)
        except OSError as cause:
            self.skipTest(f"another user can't run the build: {cause}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "only observing: .*(root|CAP_SYS_ADMIN)")

    def test_without_a_gpu_the_command_runs_all_the_same(self):
        done = self.train("--gpu", "none", "--", "sh", "-c", "exit 7")
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("there is no GPU", done.stderr)


    def test_a_governor_that_was_stopped_measures_nothing_by_what_has_piled_up(self):
        process = self.in_background(*QUICK, "--no-cache", "--json", "--output", self.path("r.json"), "--",
                                           tool("wattgov-vload"), *JOB, "--epochs", "2")
        self.wait_for_limit(lambda limit: limit < 250, "a lower limit")
        process.send_signal(signal.SIGSTOP)
        before = self.gpu(self.machine)["energy_j"]
        wait_for(lambda: self.gpu(self.machine)["energy_j"] > before + 600, "some 4 s of training")
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        with open(self.path("r.json"), encoding="utf-8") as file:
            stage, = json.load(file)["stages"]
        self.assertIn(stage["best"], (175, 200), err)
        for point in stage["profile"]:
            self.assertGreater(point["measured_s"], 0.4, err)
            # As measured on the V100, from 100 W to 250 W.
            self.assertTrue(80 < point["power_w"] < 200 and 8.5 < point["steps_per_s"] < 14, point)
        self.expect_nothing_left()

    def test_a_driver_that_refuses_every_setting_is_only_observed(self):
        for code, said in ((4, "no permission"), (3, "not supported")):
            with self.subTest(code=code):
                self.fault(self.machine, "error", "--function", "nvmlDeviceSetPowerManagementLimit", "--code", code)
                done = self.train(*QUICK, "--no-cache", "--json", "--output", self.path("r.json"), "--",
                                  tool("wattgov-vload"), *JOB, "--epochs", "1")
                self.fault(self.machine, "clear")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stderr.count("nvmlDeviceSetPowerManagementLimit"), 1, done.stderr)
                self.assertRegex(done.stderr, f"only observing: .*{said}")
                with open(self.path("r.json"), encoding="utf-8") as file:
                    report = json.load(file)
                self.assertFalse(report["is_governed"])
                self.assertIn(said, report["why_not"])
                stage, = report["stages"]
                point, = stage["profile"]
                self.assertAlmostEqual(point["power_w"], 187.7, delta=3)
                self.expect_nothing_left()


    def test_the_command_may_change_its_folder_before_it_tells_anything(self):
        os.mkdir(self.path("sub"))
        script = 'cd sub; echo "step 1" >> "$WATTGOV_PROGRESS"; echo "step 2" >> "$WATTGOV_PROGRESS"'
        done = self.train("--json", "--progress", "told", "--", "sh", "-c", script, cwd=self.folder)
        self.assertEqual(json.loads(done.stdout)["steps"], 2, done.stderr)

    def test_a_table_that_nobody_reads_is_no_failure_of_the_command(self):
        for status in (0, 7):
            with open("/dev/full", "wb") as full:
                done = subprocess.run(self.command("--", "sh", "-c", f"exit {status}"), stderr=full, env=self.machine,
                                      timeout=DEADLINE_S, check=False)
            self.assertEqual(done.returncode, status)


class Ends(Case):
    def start_job(self, *options):
        """A job that runs until it is ended, once its limit was lowered."""
        process = self.in_background(*QUICK, *options, "--", tool("wattgov-vload"), *JOB, "--epochs", "1000")
        self.wait_for_limit(lambda limit: limit < 250, "a lower limit")
        return process

    def test_signals_are_passed_on_and_the_status_is_the_commands(self):
        process = self.start_job()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 1, err)  # of vload, which was stopped
        self.assertIn("stopped", out)
        self.expect_nothing_left()

    def test_what_batch_systems_warn_by_is_passed_on_too(self):
        for number in (signal.SIGXCPU, signal.SIGALRM, signal.SIGPWR, signal.SIGRTMIN + 3):
            process = self.in_background("--no-cache", "--", "bash", "-c",
                                               f'trap "exit 9" {int(number)}; echo ready; while :; do sleep 0.02; done')
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(number)
            _, err = process.communicate(timeout=DEADLINE_S)
            self.assertEqual(process.returncode, 9, (number, err))
        self.expect_nothing_left()

    def test_a_command_that_is_killed_leaves_nothing(self):
        process = self.start_job()
        job = subprocess.run(["pgrep", "-P", str(process.pid), "-x", "wattgov-vload"], stdout=subprocess.PIPE, text=True,
                             check=True).stdout.split()
        os.kill(int(job[0]), signal.SIGKILL)
        _, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL, err)
        self.assertIn("SIGKILL", err)
        self.expect_nothing_left()

    def test_a_killed_governor_leaves_nothing(self):
        process = self.start_job()
        process.kill()
        process.wait()
        self.wait_for_limit(lambda limit: limit == 250, "the original limit")

    def test_a_killed_guard_is_replaced(self):
        process = self.start_job()
        guard, = self.guards()
        os.kill(guard, signal.SIGKILL)
        wait_for_line(process, "another one watches now")
        process.kill()
        process.wait()
        self.wait_for_limit(lambda limit: limit == 250, "the original limit")

    def test_what_a_dead_governor_left_and_does_not_come_back_stops_no_training(self):
        process = self.start_job("--no-cache")
        self.fault(self.machine, "error", "--function", "nvmlDeviceSetPowerManagementLimit", "--code", "999")
        for pid in (*self.guards(), process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait()
        done = self.train("--", "echo", "ran")
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)
        self.assertRegex(done.stderr, "only observing: .*which has died; it is not restored yet")
        self.fault(self.machine, "clear")
        done = self.train("--", "echo", "ran")
        self.assertRegex(done.stderr, "power_limit is back at 250 W")
        self.expect_nothing_left()

    def guards(self):
        pids = subprocess.run(["pgrep", "-f", "guard.*"], stdout=subprocess.PIPE, text=True, check=False).stdout.split()
        return [int(pid) for pid in pids if self.is_ours(pid)]

    def is_ours(self, pid):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                return os.fsencode(self.path("state")) in file.read()
        except OSError:
            return False

    def test_a_second_governor_is_refused_by_the_name_of_the_first(self):
        self.start_job()
        done = self.train("--", "echo", "must not run")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"wattgov train: .*power_limit.*wattgov train: .*vload.*\d+")

    def test_a_process_that_outlives_the_command_may_go_on_telling_steps(self):
        # Its lines come while the governor ends: they are no reason to crash, or to set anything.
        # It opens the file once: to append by name would make it anew when it is gone.
        script = ('(exec 3>> "$WATTGOV_PROGRESS"; n=0; while [ -e "$WATTGOV_PROGRESS" ] && [ $n -lt 200000 ]; do '
                  'n=$((n+1)); echo "step $n" >&3; done) >/dev/null 2>&1 & sleep 0.3')
        done = self.train("--no-cache", "--json", "--", "bash", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(json.loads(done.stdout)["steps"], 0)
        self.expect_nothing_left()

    def test_somebody_elses_limit_is_left_as_it_is(self):
        # Found at once in the search, before the next setting would write over it.
        process = self.start_job()
        self.expect_it_is_left(process)

    def test_somebody_elses_limit_is_left_while_one_is_held(self):
        process = self.start_job()
        wait_for_line(process, "holding power_limit")
        self.expect_it_is_left(process)

    def test_steps_at_somebody_elses_limit_save_nothing(self):
        process = self.in_background(*QUICK, "--no-cache", "--json", "--output", self.path("r.json"), "--",
                                           tool("wattgov-vload"), *JOB, "--epochs", "3")
        wait_for_line(process, "holding power_limit")
        self.assertEqual(self.client(self.machine).call("nvmlDeviceSetPowerManagementLimit", 0, 250000)["code"], 0)
        wait_for_line(process, "somebody else has set power_limit to 250")
        process.communicate(timeout=DEADLINE_S)
        with open(self.path("r.json"), encoding="utf-8") as file:
            saving = json.load(file)["saving"]
        # Some ten of 24 s ran at limits that save a tenth or a fifth.
        self.assertTrue(0 < saving["energy_share"] < 0.11, saving)

    def test_the_holder_of_the_smallest_limit_is_named_too(self):
        process = self.in_background("--no-cache", "--objective", "energy", "--profile", "warmup=50ms,measure=100ms",
                                           "--", tool("wattgov-vload"), *JOB, "--epochs", "1000")
        wait_for_line(process, "holding power_limit 100 W")
        done = self.train("--", "echo", "must not run")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"power_limit.*wattgov train: .*vload.*\d+")

    def expect_it_is_left(self, process):
        client = self.client(self.machine)
        self.assertEqual(client.call("nvmlDeviceSetPowerManagementLimit", 0, 222000)["code"], 0)
        wait_for_line(process, "somebody else has set power_limit to 222")
        self.assertEqual(self.limit_w(), 222)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=DEADLINE_S)
        self.assertEqual(self.limit_w(), 222)

    def test_a_command_that_is_not_there_is_an_error_and_sets_nothing(self):
        done = self.train("--", "/no/such/program")
        self.assertEqual(done.returncode, 127)
        self.assertRegex(done.stderr, "wattgov train: cannot run '/no/such/program': No such file")
        self.expect_nothing_left()


class Usage(Case):
    def test_wrong_use_is_told_in_one_line(self):
        for arguments, text in (
                ((), "what to run?"),
                (("--objective", "joy", "--", "true"), "--objective: "),
                (("--objective", "slowdown:0.5", "--", "true"), "--objective: "),
                (("--knob", "volume", "--", "true"), "--knob: 'volume'"),
                (("--knob", "gpu_clock", "--knob", "gpu_clock", "--", "true"), "--knob: gpu_clock is given twice"),
                (("--profile", "warmup=5", "--", "true"), "--profile: 'warmup=5'"),
                (("--profile", "warmup=5s,", "--", "true"), "--profile: 'warmup=5s,'"),
                (("--profile", "cool=5s", "--", "true"), "--profile: 'cool=5s'"),
                (("--step-regex", "step (", "--", "true"), "step ("),
                (("--json", "--output", "x", "--html", "x", "--", "true"), "the same file"),
        ):
            done = self.train(*arguments, cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout), (2, ""), (arguments, done.stderr))
            self.assertIn(text, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    vgpu_case.main(__doc__)
