#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`wattgov-vload`: measured training jobs on virtual GPUs take the measured time and energy.

    tests/integration/vload.py build/release/vgpu
"""
import csv
import os

import vgpu_case
from vgpu_case import DEADLINE_S, ROOT, Case, wait_for


def measured(gpu, batch_size):
    """Seconds and watts of an epoch of cifar100, by power limit."""
    with open(os.path.join(ROOT, f"data/zeus/trace/summary_power_{gpu}.csv"), encoding="utf-8") as file:
        return {float(row["power_limit"]): (float(row["time_per_epoch"]), float(row["average_power"]))
                for row in csv.DictReader(file)
                if row["dataset"] == "cifar100" and row["optimizer"] == "adadelta"
                and row["batch_size"] == str(batch_size)}


def lines_of(text, word):
    """The lines that begin with `word`, as lists of words."""
    return [line.split() for line in text.splitlines() if line.startswith(word + " ")]


def fields(line):
    """{"time_s": 3.2, ...} of the pairs behind the first two words."""
    return {line[i]: float(line[i + 1]) for i in range(2, len(line) - 1, 2)}


class Vload(Case):
    def vload(self, environment, *arguments, job="cifar100"):
        done = self.vgpu(job, *arguments, program="wattgov-vload", env=environment)
        return done

    def test_an_epoch_takes_the_measured_time_and_energy_at_each_limit(self):
        for gpu, machine in (("v100", "v100"), ("a40", "a40")):
            _, environment = self.start("--machine", machine, "--anyone-may-set")
            client = self.client(environment)
            rows = measured(gpu, 1024)
            for limit in sorted(rows)[::3]:
                self.assertEqual(client.call("nvmlDeviceSetPowerManagementLimit", 0, int(limit * 1000))["code"], 0)
                time_s, power_w = rows[limit]
                done = self.vload(environment, "--gpu", gpu, "--batch-size", 1024, "--epochs", 1, "--time-scale",
                                  time_s * 2)  # half a second
                self.assertEqual(done.returncode, 0, done.stderr)
                epoch, = lines_of(done.stdout, "epoch")
                got = fields(epoch)
                self.assertAlmostEqual(got["time_s"], time_s, delta=0.005 * time_s)
                self.assertAlmostEqual(got["energy_j"], time_s * power_w, delta=0.05 * time_s * power_w)
                self.assertEqual(got["limit_w"], limit)
                self.assertTrue(done.stdout.splitlines()[-1].endswith(" epochs_done"))

    def test_the_energy_is_the_jobs_own_when_the_machine_cannot_keep_up(self):
        _, environment = self.start("--machine", "v100")
        done = self.vload(environment, "--gpu", "V100", "--epochs", 1, "--time-scale", 1000000, "--steps-per-epoch", 200000,
                          "--print-every", 200000, job="squad")
        self.assertEqual(done.returncode, 0, done.stderr)
        got = fields(lines_of(done.stdout, "epoch")[0])
        # Of a V100 at work; by the clock, a thousand times as much passed.
        self.assertTrue(100 < got["energy_j"] / got["time_s"] < 260, done.stdout)

    def test_an_epoch_of_so_many_samples_has_steps_by_its_batch_size(self):
        _, environment = self.start("--machine", "v100")
        for batch_size, steps in ((32, 4), (56, 3)):  # of 128 samples: the last step is filled up
            done = self.vload(environment, "--gpu", "V100", "--batch-size", batch_size, "--epochs", 1, "--time-scale", 1000000,
                              "--samples-per-epoch", 128, job="squad")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(lines_of(done.stdout, "step")), steps)

    def test_the_power_shows_the_period_of_the_steps(self):
        _, environment = self.start("--machine", "v100")
        process = self.background(environment, "wattgov-vload", "cifar100", "--gpu", "V100", "--batch-size", 1024,
                                  "--steps-per-epoch", 10, "--time-scale", 4)
        seen = set()

        def both():
            gpu = self.gpu(environment)
            if gpu["loads"] and gpu["loads"][0]["utilization"] in (0.5, 1):
                seen.add(round(gpu["power_w"]))
            return len(seen) >= 2
        wait_for(both, "two levels of power")
        self.assertEqual(len(seen), 2)
        process.kill()
        process.wait(DEADLINE_S)
        wait_for(lambda: not self.gpu(environment)["loads"], "the end of the load")

    def test_a_limit_that_is_set_meanwhile_slows_it_down_at_once(self):
        _, environment = self.start("--machine", "v100", "--anyone-may-set")
        client = self.client(environment)
        process = self.background(environment, "wattgov-vload", "cifar100", "--gpu", "V100", "--batch-size", 1024,
                                  "--epochs", 2, "--steps-per-epoch", 2, "--time-scale", 10)
        self.assertTrue(process.stdout.readline().startswith("job cifar100 gpu v100 batch_size 1024 run "))
        self.assertTrue(process.stdout.readline().startswith("step 1/2 epoch 1 "))
        client.call("nvmlDeviceSetPowerManagementLimit", 0, 100000)
        output, _ = process.communicate(timeout=DEADLINE_S)
        first, second = (fields(line)["time_s"] for line in lines_of(output, "epoch"))
        rows = measured("v100", 1024)
        fast, slow = rows[250.0][0], rows[100.0][0]
        self.assertGreater(first, (fast + slow) / 2 - 0.5)
        self.assertLess(first, slow)
        self.assertAlmostEqual(second, slow, delta=0.01 * slow)

    def test_the_metric_is_that_of_a_measured_run_and_repeats_from_the_seed(self):
        _, environment = self.start("--machine", "v100")
        outputs = []
        for seed in (1, 1, 2, 3, 4):
            done = self.vload(environment, "--gpu", "V100", "--batch-size", 1024, "--time-scale", 50000, "--seed", seed,
                              "--steps-per-epoch", 1)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            outputs.append([fields(line)["metric"] for line in lines_of(done.stdout, "epoch")])
            self.assertTrue(done.stdout.splitlines()[-1].endswith(" target_reached"))
        self.assertEqual(outputs[0], outputs[1])
        self.assertGreater(len(set(map(tuple, outputs))), 1)
        with open(os.path.join(ROOT, "data/zeus/trace/summary_train.csv"), encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["dataset"] == "cifar100"
                    and row["optimizer"] == "adadelta" and row["batch_size"] == "1024"]
        reached = {int(row["target_epoch"]) for row in rows
                   if float(row["target_metric"]) == 0.6 and row["target_epoch"] != "nan"}
        for metrics in outputs:
            self.assertIn(len(metrics), reached)
            self.assertEqual(metrics, sorted(metrics))
            self.assertGreaterEqual(metrics[-1], 0.6)
            self.assertLess(metrics[-2], 0.6)

    def test_a_target_out_of_reach_is_a_failure(self):
        _, environment = self.start("--machine", "v100")
        done = self.vload(environment, "--gpu", "V100", "--batch-size", 1024, "--time-scale", 50000, "--max-epochs", 3)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout.splitlines()[-1], r"^done epochs 3 metric \S+ time_s \S+ energy_j \S+ "
                                                       r"target_not_reached$")
        self.assertEqual(self.gpu(environment)["loads"], [])

    def test_a_signal_ends_it_cleanly(self):
        _, environment = self.start("--machine", "v100")
        path = os.path.join(self.folder, "progress")
        process = self.background(environment, "wattgov-vload", "cifar100", "--gpu", "V100", "--batch-size", 1024,
                                  "--progress-file", path, "--time-scale", 5)
        lines = [process.stdout.readline() for _ in range(3)]
        process.terminate()
        output, errors = process.communicate(timeout=DEADLINE_S)
        self.assertEqual((process.returncode, errors), (1, ""))
        self.assertTrue(output.endswith(" stopped\n"))
        self.assertEqual(self.gpu(environment)["loads"], [])
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "".join(lines) + output)

    def test_it_runs_on_the_device_that_was_asked_for(self):
        _, environment = self.start("--machine", "v100", "--machine", "v100")
        process = self.background(environment, "wattgov-vload", "cifar100", "--gpu", "V100", "--device", 1)
        shown = wait_for(lambda: next((now for now in [self.show(environment)] if now["gpus"][1]["loads"]), None),
                         "the load")
        self.assertEqual(shown["gpus"][0]["loads"], [])
        self.assertEqual(shown["gpus"][1]["loads"][0]["curve_points"], 7)
        process.terminate()

    def test_wrong_usage_names_what_there_is(self):
        _, environment = self.start("--machine", "v100")
        for arguments, text in (
                (["cifar", "--gpu", "V100"], "'cifar' is not a known job (librispeech, squad,"),
                (["cifar100", "--gpu", "H100"], "'H100' is not a GPU of the trace (a40, v100)"),
                (["cifar100", "--gpu", "V100", "--batch-size", "1000"],
                 "'1000' is not a batch size of cifar100 that was measured on v100 (8, 16, 32,"),
                (["cifar100", "--gpu", "V100", "--device", "1"], "'1' is not a GPU of the machine, which has 1"),
                (["--gpu", "V100"], "which job?"), (["cifar100"], "--gpu NAME is required"),
                (["cifar100", "--gpu", "V100", "--epochs", "1", "--target", "0.5"], "--epochs excludes")):
            self.expect_usage(self.vgpu(*arguments, program="wattgov-vload", env=environment), text)


if __name__ == "__main__":
    vgpu_case.main(__doc__)
