#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What no prediction of `wattgov wave` may say, whatever calibrations are built in.

    wave_plausible.py PROGRAM
"""
import csv
import json
import os
import subprocess
import sys
import unittest

ROOT = os.environ.get("WATTGOV_SOURCE_ROOT", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
A100 = "a100-sxm4-80gb"
PROGRAM = None


def layers_of(*words):
    done = subprocess.run([PROGRAM, "wave", "analyze", *words, "--json"], stdout=subprocess.PIPE, text=True, timeout=100,
                          check=True)
    return json.loads(done.stdout)["gpus"][0]["layers"]


class Plausible(unittest.TestCase):
    def test_no_layer_is_faster_than_its_gpu_but_by_winograd_s_kernels(self):
        with open(os.path.join(ROOT, "data/wave/gpus.csv"), encoding="utf-8", newline="") as file:
            table = {row["id"]: row for row in csv.DictReader(file)}
        seen = 0
        for gpu in ("p6000", "v100-sxm2-32gb", "t4", A100, "h100-sxm-80gb", "l4"):
            row = table[gpu]
            peaks = {"fp32": 2e6 * float(row["sms"]) * float(row["fp32_lanes_per_sm"]) * float(row["boost_mhz"]),
                     "fp16": 1e12 * float(row["fp16_tflops"] or "inf")}
            for precision, peak in peaks.items():
                for model in ("vgg16", "resnet50"):
                    words = [model, "--gpu", gpu, "--batch", "32", "--precision", precision]
                    for layer in layers_of(*words):
                        gemm = layer["gemm"]
                        if gemm is None or layer["time_s"] is None:
                            continue
                        speed = 2 * gemm["batch"] * gemm["m"] * gemm["n"] * gemm["k"] / layer["time_s"]
                        if layer["kernel"]["is_winograd"]:
                            self.assertEqual(layer["op"], "Conv")
                            seen += 1
                        else:
                            self.assertLess(speed, 1.05 * peak, f"{words} {layer['name']}")
        self.assertGreater(seen, 0)

    def test_a_layer_that_moves_little_takes_little_on_every_gpu(self):
        """No measured row was small, so no fit may claim a floor from them: P4's once said a millisecond."""
        for gpu in ("p4", "p6000", "v100-sxm2-32gb", "t4", A100, "h100-sxm-80gb", "l4", "rtx-4090", "jetson-nano"):
            for precision in ("fp32", "fp16"):
                layers = layers_of("resnet50", "--gpu", gpu, "--batch", "1", "--precision", precision)
                times = {layer["name"]: layer["time_s"] for layer in layers}
                if times["avgpool"] is not None:
                    self.assertLess(times["avgpool"], 3e-5, f"{gpu}, {precision}")


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if not os.path.exists(PROGRAM):
        sys.exit(f"{PROGRAM} does not exist")
    unittest.main()
