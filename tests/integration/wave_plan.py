#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`wattgov wave plan` as its users call it: goals, files, and what is refused.

    wave_plan.py PROGRAM
"""
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None
BASE = ["resnet50", "--gpu", "a100-sxm4-80gb", "--batch", "32", "--precision", "fp32"]


class Plan(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name, text=None):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def run_plan(self, *arguments, status=0):
        done = subprocess.run([PROGRAM, "wave", "plan", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=100, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 0 if status == 0 else 1, done.stderr)
        return done

    def plan(self, *arguments):
        plan = json.loads(self.run_plan(*BASE, "--json", *arguments).stdout)
        self.assertEqual(plan["schema"], "wattgov.wave.plan/1")
        for side in ("before", "after"):
            layers = [layer[side] for layer in plan["layers"]]
            self.assertAlmostEqual(sum(one["time_s"] for one in layers) / plan[side]["time_s"], 1, places=9)
            self.assertEqual(sum(one["parameters"] for one in layers), plan[side]["parameters"])
            self.assertLessEqual(plan[side]["time_low_s"], plan[side]["time_s"])
            self.assertLessEqual(plan[side]["time_s"], plan[side]["time_high_s"])
        return plan

    def test_least_time_keeps_its_share_of_parameters(self):
        plan = self.plan("--keep", "0.9")
        self.assertGreaterEqual(plan["after"]["parameters"], 0.9 * plan["before"]["parameters"])
        self.assertLess(plan["after"]["time_s"], plan["before"]["time_s"])
        self.assertTrue(plan["is_optimal"])
        # 37 widths: the stem, four that residual additions share, two in each of 16 blocks.
        self.assertEqual(len(plan["widths"]), 37)
        shared = [width for width in plan["widths"] if len(width["layers"]) > 1]
        self.assertEqual([len(width["layers"]) for width in shared], [4, 5, 7, 4])
        outputs = {layer["name"]: layer["after"].get("out") for layer in plan["layers"]}
        for width in plan["widths"]:
            self.assertEqual({outputs[name] for name in width["layers"]}, {width["after"]})
            self.assertTrue(width["after"] == width["before"] or width["after"] % 8 == 0)
        flops = self.plan("--keep-flops", "0.9")
        self.assertGreaterEqual(flops["after"]["flops"], 0.9 * flops["before"]["flops"])
        self.assertEqual((plan["kept_parameters"], plan["kept_flops"]), (0.9, None))
        self.assertEqual((flops["kept_parameters"], flops["kept_flops"]), (None, 0.9))
        both = self.plan("--keep", "0.97", "--keep-flops", "0.9")
        self.assertEqual((both["kept_parameters"], both["kept_flops"]), (0.97, 0.9))
        for what, share in (("parameters", 0.97), ("flops", 0.9)):
            self.assertGreaterEqual(both["after"][what], share * both["before"][what] * (1 - 1e-9))
        self.assertGreaterEqual(both["after"]["time_s"], flops["after"]["time_s"])
        self.assertLess(both["after"]["time_s"], both["before"]["time_s"])

    def test_most_parameters_stay_within_the_limit(self):
        plan = self.plan("--goal", "parameters")
        self.assertLessEqual(plan["after"]["time_s"], plan["before"]["time_s"] * (1 + 1e-9))
        self.assertGreater(plan["after"]["parameters"], plan["before"]["parameters"])
        limit = 0.9 * plan["before"]["time_s"]
        tight = self.plan("--goal", "parameters", "--limit", f"{1e3 * limit:.6f}ms")
        self.assertLessEqual(tight["after"]["time_s"], limit * (1 + 1e-6))
        self.assertIn("the least is", self.run_plan(*BASE, "--goal", "parameters", "--limit", "1us", status=1).stderr)

    def test_growing_never_lengthens_nor_shrinks(self):
        pruned = self.path("pruned.csv", "name,channels\nlayer1.0.conv1,61\nlayer4.0.conv2,397\nlayer3.0.conv1,201\n")
        plan = self.plan("--goal", "grow", "--pruned", pruned)
        self.assertLessEqual(plan["after"]["time_s"], plan["before"]["time_s"] * (1 + 1e-9))
        self.assertTrue(all(width["after"] >= width["before"] for width in plan["widths"]))

    def test_says_what_to_do_where_nothing_grows(self):
        """On an A100 ResNet-50's widths stand at step ends: no growth is free, and the limit named does grow some."""
        done = self.run_plan(*BASE, "--goal", "grow", "--range", "1:1").stdout
        self.assertIn("No width can grow at no cost; --limit allows some, as in --limit ", done)
        limit = done.split("as in --limit ")[1].split()[0]
        grown = self.plan("--goal", "grow", "--limit", limit)
        self.assertGreater(grown["after"]["parameters"], grown["before"]["parameters"])
        self.assertLessEqual(grown["after"]["time_s"], grown["before"]["time_s"] * 1.0101)
        self.assertNotIn("No width can grow", self.run_plan(*BASE, "--goal", "grow", "--limit", limit).stdout)

    def test_aligning_stays_near_and_below_what_there_was(self):
        first = self.plan("--range", "1:1")
        pruned = {width["layers"][0]: width["original"] * 2 // 3 - 1 for width in first["widths"]}
        plan = self.plan("--goal", "align", "--pruned", self.path("pruned.json", json.dumps(pruned)))
        self.assertGreaterEqual(plan["after"]["parameters"], plan["before"]["parameters"])
        self.assertLessEqual(plan["after"]["time_s"], plan["before"]["time_s"])
        for width in plan["widths"]:
            self.assertEqual(width["before"], pruned[width["layers"][0]])
            self.assertLessEqual(0.8 * width["before"], width["after"])
            self.assertLessEqual(width["after"], min(width["original"], 1.25 * width["before"]))
        # Its own plan can be read as what is present.
        narrow = self.plan("--keep", "0.7", "-o", self.path("plan.json"))
        again = self.plan("--goal", "align", "--pruned", self.path("plan.json"), "--range", "1:1")
        self.assertEqual([width["before"] for width in again["widths"]], [width["after"] for width in narrow["widths"]])

    def test_what_counts_more_is_kept(self):
        """Stages 2 and 3 against each other: the one that counts more keeps its channels, and the share is of that."""
        def stage(width):
            return int(width["layers"][0][len("layer")]) if width["layers"][0].startswith("layer") else 0

        first = self.plan("--range", "1:1")
        self.assertEqual({width["importance"] for width in first["widths"]}, {None})
        channels = {}
        for favoured in (2, 3):
            counts = {width["layers"][0]: 8 if stage(width) == favoured else 0.125
                      for width in first["widths"] if stage(width) in (2, 3)}
            path = self.path(f"{favoured}.json", json.dumps(counts))
            plan = self.plan("--keep", "0.9", "--importance", path)
            by_name = {name: width["importance"] for width in plan["widths"] for name in width["layers"]}
            self.assertEqual({name: by_name[name] for name in counts}, counts)
            kept = [sum(by_name.get(layer["name"], 1) * layer[side]["parameters"] for layer in plan["layers"]
                        if layer["name"] in by_name or layer["name"] == "fc") for side in ("before", "after")]
            self.assertGreaterEqual(kept[1], 0.9 * kept[0])
            for at in (2, 3):
                channels[favoured, at] = sum(width["after"] for width in plan["widths"] if stage(width) == at)
            # CSV says the same.
            text = "name,importance\n" + "".join(f"{name},{count}\n" for name, count in counts.items())
            self.assertEqual(self.plan("--keep", "0.9", "--importance", self.path("i.csv", text)), plan)
        self.assertGreater(channels[2, 2], channels[3, 2])
        self.assertGreater(channels[3, 3], channels[2, 3])
        # Equal weights change nothing.
        same = self.path("same.csv", "name,importance\nlayer1.0.conv1,1\n")
        self.assertEqual([width["after"] for width in self.plan("--importance", same)["widths"]],
                         [width["after"] for width in self.plan()["widths"]])
        self.assertIn("weighed by --importance", self.run_plan(*BASE, "--importance", same).stdout)

    def test_writes_text_front_and_page(self):
        front, page = self.path("front.csv"), self.path("page.html")
        done = self.run_plan(*BASE, "--pareto", front, "--html", page)
        self.assertIn("Proven: no choice among the candidates is better.", done.stdout)
        self.assertIn("layer1.0.conv1", done.stdout)
        with open(front, encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertGreater(len(rows), 10)
        for row, later in zip(rows, rows[1:]):
            self.assertLessEqual(float(row["time_s"]), float(later["time_s"]) * (1 + 1e-3))
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("<svg", text)
        self.assertIn("wattgov wave plan resnet50", text)

    def test_says_what_is_wrong(self):
        cases = [
            (BASE[:1], "--gpu", 2),
            ([*BASE, "--goal", "speed"], "latency, parameters, align or grow", 2),
            ([*BASE, "--goal", "grow", "--keep", "0.9"], "--limit", 2),
            ([*BASE, "--keep", "3", "--keep-flops", "0.9"], "of the candidates there is none", 1),
            ([*BASE, "--limit", "3ms"], "--goal parameters", 2),
            ([*BASE, "--goal", "align"], "--pruned", 2),
            ([*BASE, "--range", "2"], "--range: '2' is not two factors", 2),
            ([*BASE, "--range", "2:1"], "--range", 2),
            ([*BASE, "--candidates", "3"], "--candidates", 2),
            ([*BASE, "--keep", "3"], "the most is", 1),
            ([*BASE, "--pruned", self.path("wrong.csv", "name,channels\nconv9,3\n")], "wrong.csv:2: 'conv9'", 1),
            ([*BASE, "--importance", self.path("wrong.csv")], "no column 'importance'; its columns are: name, channels", 1),
            ([*BASE, "--importance", self.path("minus.csv", "name,importance\nlayer1.0.conv1,-1\n")],
             "minus.csv:2: 'layer1.0.conv1' has the importance -1", 1),
            ([*BASE, "--importance", self.path("none")], "none: cannot open", 1),
            ([*BASE, "-o", self.path("x"), "--html", self.path("x")], "the same file", 2),
        ]
        for arguments, part, status in cases:
            self.assertIn(part, self.run_plan(*arguments, status=status).stderr)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if not os.path.exists(PROGRAM):
        sys.exit(f"{PROGRAM} does not exist")
    unittest.main()
