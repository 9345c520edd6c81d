#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The real PyTorch training that other tests govern (tests/support/torch_loop.py): it learns, keeps the virtual GPU
busy, and tells its progress in each of its ways.

    tests/integration/torch_training.py build/release

Without Debian's python3-torch everything is skipped with status 77.
"""
import json
import os
import re
import subprocess
import sys
import textwrap

from progress_file import ProgressFile
from python_binding import BUILD, ROOT, Binding, main

LOOP = os.path.join(ROOT, "tests/support/torch_loop.py")
VGPU = os.path.join(BUILD or "", "vgpu/wattgov-vgpu")
EPOCHS, STEPS = 4, 25


class Training(Binding):
    def setUp(self):
        super().setUp()
        self.governor = ProgressFile(os.path.join(self.folder, "progress"))
        self.addCleanup(os.close, self.governor.fd)

    def train(self, *options, status=0, wrap=(), **more):
        """Runs it on a virtual V100; what it printed."""
        command = [VGPU, "run", "--machine", "v100", "--anyone-may-set", "--", *wrap, sys.executable, LOOP,
                   "--library", os.path.join(BUILD, "tests/support/vgpu_work.so"), "--epochs", str(EPOCHS), "--steps",
                   str(STEPS), *options]
        environment = self.environment(WATTGOV_PROGRESS=self.governor.path, PYTHONWARNINGS="", **more)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
                              env=environment)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def test_it_learns_keeps_the_gpu_busy_and_tells_by_steps(self):
        path = os.path.join(self.folder, "measured.json")
        said = self.train(wrap=[os.path.join(BUILD, "wattgov"), "measure", "--json", "-o", path, "--"])
        steps = re.findall(r"^step (\d+) loss ([\d.]+)$", said, flags=re.MULTILINE)
        accuracies = re.findall(r"^epoch \d+ accuracy ([\d.]+)$", said, flags=re.MULTILINE)
        self.assertEqual([int(number) for number, _ in steps], list(range(1, EPOCHS * STEPS + 1)))
        self.assertEqual(len(accuracies), EPOCHS)
        self.assertGreater(float(accuracies[-1]), 0.95)
        self.assertLess(float(steps[-1][1]), 0.5 * float(steps[0][1]))
        busy_s = float(re.search(r"gpu_s ([\d.]+)$", said, flags=re.MULTILINE).group(1))
        self.assertGreater(busy_s, EPOCHS * STEPS * 0.0099)
        with open(path, encoding="utf-8") as file:
            gpus = [one for one in json.load(file)["repeats"][0]["devices"] if one["id"].startswith("GPU-")]
        # A V100 draws 33 W idle and its limit, 250 W, at full load; it is idle while torch is imported.
        self.assertGreater(gpus[0]["energy_j"], 0.9 * 250 * busy_s)
        self.assertLess(gpus[0]["energy_j"], 250 * busy_s + 33 * gpus[0]["time_s"] + 15)

        told = self.governor.told()
        self.assertEqual(told[:2], ["step 0", "batch_size 32"])
        self.assertEqual([line for line in told[2:] if not line.startswith("metric")],
                         [line for epoch in range(1, EPOCHS + 1) for line in (f"step {epoch * STEPS}", f"epoch {epoch}")])
        metrics = [f"{float(line.split()[1]):.4f}" for line in told if line.startswith("metric")]
        self.assertEqual(metrics, accuracies)

        # A seed repeats it, whatever way it tells.
        self.governor.clear()
        again = self.train("--work-ms", "0.1", "--tell", "file")
        self.assertEqual(re.findall(r"accuracy ([\d.]+)$", again, flags=re.MULTILINE), accuracies)
        with open(self.governor.path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual(len(lines), 1 + EPOCHS * (STEPS + 2))
        self.assertEqual(lines[STEPS], f"step {STEPS}")

    def test_wattgov_train_governs_it_and_gives_the_limit_back(self):
        told, shown = (os.path.join(self.folder, name) for name in ("train.json", "show.json"))
        script = f'"$@"; status=$?; "{VGPU}" show --json >"{shown}"; exit $status'
        self.train("--epochs", "8", "--steps", "50",
                   wrap=["sh", "-c", script, "sh", os.path.join(BUILD, "wattgov"), "train", "--no-cache", "--profile",
                         "warmup=200ms,measure=400ms", "--json", "-o", told, "--"], XDG_STATE_HOME=self.folder)
        with open(told, encoding="utf-8") as file:
            result = json.load(file)
        self.assertEqual({key: result[key] for key in ("progress", "steps", "epochs", "batch_size", "ranks", "is_governed",
                                                       "not_restored", "exit_status")},
                         {"progress": "told", "steps": 400, "epochs": 8, "batch_size": 32, "ranks": 1, "is_governed": True,
                          "not_restored": 0, "exit_status": 0})
        self.assertGreater(result["metric"], 0.95)
        profile = result["stages"][0]["profile"]
        self.assertGreaterEqual(len(profile), 2)
        at = {one["setting"]: one for one in profile}
        # The largest limit is the fastest, and the GPU's part of a step is 10 ms there.
        self.assertLess(at[250]["steps_per_s"], 100)
        self.assertEqual(max(at.values(), key=lambda one: one["power_w"]), at[250])
        with open(shown, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["gpus"][0]["limit_w"], 250)

    def test_failures_and_ends_can_be_asked_for(self):
        said = self.train("--work-ms", "0.1", "--nan-at-epoch", "1", "--fail-at-step", "30", status=3)
        self.assertTrue(said.rstrip().splitlines()[-1].startswith("step 30 "))
        self.assertIn("metric nan accuracy", self.governor.told())
        self.assertEqual(self.train("--work-ms", "0.1", "--target", "0.8").count("epoch"), 1)


if __name__ == "__main__":
    if subprocess.run([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print(f"skipped: {sys.executable} has no torch: install the Debian package python3-torch")
        sys.exit(77)
    main(textwrap.dedent(__doc__))
