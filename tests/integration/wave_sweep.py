#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`wattgov wave sweep` as its users call it: staircases as text, CSV, JSON and a page.

    wave_sweep.py PROGRAM
"""
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser

PROGRAM = None


def run(*arguments):
    return subprocess.run([PROGRAM, "wave", "sweep", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=100, check=False)


class Sweep(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, *arguments):
        done = run(*arguments, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        document = json.loads(done.stdout)
        self.assertEqual(document["schema"], "wattgov.wave.sweep/1")
        return document

    def fails(self, status, part, *arguments):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("wattgov wave sweep: "), done.stderr)
        self.assertIn(part, done.stderr)

    def test_a_product_has_a_staircase(self):
        document = self.read("--gemm", "512,4096,4096", "--gpu", "a100-pcie-40gb", "--precision", "fp32", "--from", "8",
                             "--to", "4096", "--step", "8")
        points = document["points"]
        self.assertEqual([point["value"] for point in points], list(range(8, 4097, 8)))
        stair = document["stair"]
        by_value = {point["value"]: point for point in points}
        self.assertEqual(stair["value"], 4096)
        self.assertEqual(stair["time_s"], by_value[4096]["time_s"])
        self.assertLess(by_value[stair["below"]]["time_s"], 0.99 * stair["time_s"])
        for point in points:
            self.assertLessEqual(point["low_s"], point["time_s"])
            self.assertGreaterEqual(point["high_s"], point["time_s"])
            self.assertAlmostEqual(point["flops_per_s"] * point["time_s"], 2 * 512 * 4096 * point["value"], delta=1)
        steps = sum(point["is_step"] for point in points)
        self.assertGreater(steps, 3)  # it is a staircase
        self.assertLess(steps, len(points) / 8)

    def test_files_say_what_json_says(self):
        arguments = ("--conv", "32,256,14,14,256,3,3", "--gpu", "t4", "--precision", "fp32", "--axis", "batch")
        rows, page = self.path("stairs.csv"), self.path("stairs.html")
        document = self.read(*arguments, "-o", rows, "--html", page)
        with open(rows, encoding="utf-8", newline="") as lines:
            read = list(csv.DictReader(lines))
        self.assertEqual(len(read), len(document["points"]))
        for row, point in zip(read, document["points"]):
            self.assertEqual(int(row["batch"]), point["value"])
            self.assertEqual(float(row["time_s"]), point["time_s"])
            self.assertEqual(row["origin"], point["origin"])
            self.assertEqual(int(row["is_step"]), point["is_step"])
        with open(page, encoding="utf-8") as text:
            html = text.read()
        HTMLParser().feed(html)
        self.assertEqual(html.count("<svg"), 6)  # three charts, each wide and for a phone
        self.assertIn("--axis batch", html)  # the command that made it

    def test_a_layer_of_a_network_is_swept_as_if_it_stood_alone(self):
        alone = self.read("--conv", "16,64,56,56,64,3,3", "--gpu", "a100", "--precision", "fp32")
        self.fails(2, "nearest: layer1.0.conv1", "resnet18", "--gpu", "a100", "--layer", "layer1.0.conv")
        within = self.read("resnet18", "--gpu", "a100", "--batch", "16", "--precision", "fp32", "--layer",
                           "layer1.0.conv1")
        self.assertEqual(within["model"], "resnet18")
        self.assertEqual([(p["value"], p["time_s"]) for p in within["points"]],
                         [(p["value"], p["time_s"]) for p in alone["points"]])

    def test_a_gpu_of_ones_own_is_a_file(self):
        own = self.path("half.yaml")
        with open(own, "w", encoding="utf-8") as text:
            text.write("like: a100-pcie-40gb\nsms: 54\n")
        arguments = ("--gemm", "4096,4096,4096", "--precision", "fp32", "--from", "4096", "--to", "4096")
        half, whole = self.read(*arguments, "--gpu", own), self.read(*arguments, "--gpu", "a100-pcie-40gb")
        self.assertEqual(half["gpu"], "half")
        ratio = half["points"][0]["time_s"] / whole["points"][0]["time_s"]
        self.assertTrue(1.7 < ratio < 2.2, ratio)  # half the SMs, and much more than they can hold
        with open(own, "w", encoding="utf-8") as text:
            text.write("like: a100-pcie-40gb\nsm: 54\n")
        self.fails(1, "half.yaml:2: unknown key 'sm'", *arguments, "--gpu", own)

    def test_what_is_wrong_is_said_in_one_line(self):
        product = ("--gemm", "1,2,3")
        self.fails(2, "expected MODEL, --gemm or --conv", "--gpu", "a100")
        self.fails(2, "--gpu", *product)
        self.fails(1, "nearest: a100", *product, "--gpu", "a100-sxm5")
        self.fails(2, "one of them", *product, "--conv", "1,2,3,4,5,1,1", "--gpu", "a100")
        self.fails(2, "one of them", "resnet18", *product, "--gpu", "a100")
        self.fails(2, "of a MODEL", *product, "--layer", "x", "--gpu", "a100")
        self.fails(2, "of a MODEL", *product, "--batch", "3", "--gpu", "a100")
        self.fails(2, "--layer is missing", "resnet18", "--gpu", "a100")
        self.fails(2, "has no resolution", *product, "--axis", "resolution", "--gpu", "a100")
        self.fails(2, "is empty", *product, "--from", "9", "--to", "8", "--gpu", "a100")
        self.fails(2, "larger --step", *product, "--to", "1000000", "--step", "1", "--gpu", "a100")
        self.fails(2, "does not fit", "--conv", "1,2,3,3,4,9,9,1,0", "--gpu", "a100")
        self.fails(1, "fp8", *product, "--gpu", "a100", "--precision", "fp8")
        for bad in ("1", "1,2", "1,2,0", "1,2,x", "1,,2", "1,2,3,4,5", "-1,2,3", "1,2,99999999999999999999"):
            self.fails(2, "--gemm", f"--gemm={bad}", "--gpu", "a100")
        page = self.path("page")
        self.fails(2, "same file", *product, "--gpu", "a100", "--html", page, "--output", page)
        self.fails(1, "no/such", *product, "--gpu", "a100", "--html", "no/such/page.html")
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
