#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`wattgov wave calibrate` and `evaluate` as their users call them: files in any form, figures counted once more.

    wave_evaluate.py PROGRAM

The data are of a GPU that computes in whole waves, with noise of 2 %. What `evaluate` counts is counted here again,
from the rows that --predictions writes and by the definitions of the man page, pair by pair.
"""
import csv
import gzip
import itertools
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None
GPU = "a100-sxm4-80gb"
SMS = 108
SCHEMA = {"schema": str, "gpu": str, "folds": int, "rows": int, "recalled": int, "unmeasured": int,
          "of_other_gpus": int, "mape": float, "median_ape": float, "coverage": float, "spearman_tail": float,
          "steps": {"count": int, "recall": float, "precision": float, "told_above": float}, "cliff_auc": float, "cliffs": int,
          "cliff_places": int, "advice": {"windows": int, "share_of_best": float, "best_fixed_multiple": float,
                                          "multiple": int}, "baselines": {"roofline": {"mape": float}}, "note": str}
COLUMNS = ["gpu", "op", "dtype", "B", "m", "n", "k", "us"]


def staircase(m, n, k):
    return 4 + math.ceil(math.ceil(m / 128) * math.ceil(n / 128) / SMS) * k * 0.02


def measurements(seed=3, ops=("linear",)):
    """Rows of 20 shapes, around each multiple of 256."""
    noise = random.Random(seed)
    sizes = sorted({*range(64, 1600, 128), *range(256, 1600, 256), *(m + 1 for m in range(256, 1600, 256))})
    return [{"gpu": "NVIDIA A100-SXM4-80GB", "op": op, "dtype": "fp16", "B": 1, "m": m, "n": n, "k": k,
             "us": repr(round(staircase(m, n, k) * (1 + at / 7) * (1 + noise.uniform(-0.02, 0.02)), 4))}
            for at, op in enumerate(ops) for n in (1024, 1536, 2304, 4096, 5120) for k in (512, 1024, 2048, 4096)
            for m in sizes]


def ranks(values):
    """From 0, equal ones sharing the mean."""
    return [sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2
            for value in values]


def correlation(a, b):
    a_mean, b_mean = statistics.fmean(a), statistics.fmean(b)
    above = sum((x - a_mean) * (y - b_mean) for x, y in zip(a, b))
    return above / math.sqrt(sum((x - a_mean) ** 2 for x in a) * sum((y - b_mean) ** 2 for y in b))


class Recount:
    """The figures of `evaluate`, from the rows of --predictions."""

    def __init__(self, path):
        with open(path, encoding="utf-8", newline="") as file:
            self.rows = list(csv.DictReader(file))
        for row in self.rows:
            for name in ("m", "measured_us", "predicted_us", "low_us", "high_us", "full_us", "waves", "roofline_us"):
                row[name] = float(row[name])
        curves = {}
        for row in self.rows:
            if row["pass"] == "":
                curves.setdefault(tuple(row[name] for name in ("op", "dtype", "B", "n", "k")), []).append(row)
        self.curves = [sorted(curve, key=lambda row: row["m"]) for curve in curves.values()]
        self.pairs = [pair for curve in self.curves for pair in itertools.pairwise(curve)
                      if pair[0]["m"] < pair[1]["m"]]

    def errors(self, of="predicted_us"):
        return [abs(row[of] - row["measured_us"]) / row["measured_us"] for row in self.rows]

    def coverage(self):
        return statistics.fmean(row["low_us"] <= row["measured_us"] <= row["high_us"] for row in self.rows)

    def steps(self):
        near = [(a, b) for a, b in self.pairs if a["m"] >= 64 and b["m"] <= 1.25 * a["m"]]
        real = [b["measured_us"] > 1.08 * a["measured_us"] for a, b in near]
        rises = [b["predicted_us"] / a["predicted_us"] - 1 for a, b in near]
        keys = [(a["dtype"], a["fold"]) for a, b in near]
        above = {}
        for dtype, fold in set(keys):
            others = [at for at, key in enumerate(keys) if key[0] == dtype and key[1] != fold]
            steps = sum(real[at] for at in others)
            fitted = fold != "" and 0 < steps < len(others)
            above[dtype, fold] = max(0, sorted(rises[at] for at in others)[-steps - 1]) if fitted else 0.07
        told = [rise > above[key] for rise, key in zip(rises, keys)]
        both = sum(a and b for a, b in zip(real, told))
        return {"count": sum(real), "recall": both / sum(real), "precision": both / sum(told),
                "told_above": statistics.fmean(above[key] for key in keys)}

    def cliffs(self):
        """Rises that were told, at cliffs and elsewhere; the share of pairs in the right order."""
        places = [(a, b) for a, b in self.pairs if a["m"] % 64 == 0 and b["m"] == a["m"] + 1]
        is_cliff = [b["measured_us"] >= 1.1 * a["measured_us"] for a, b in places]
        rises = [b["predicted_us"] / a["predicted_us"] for a, b in places]
        cliffs = [rise for rise, cliff in zip(rises, is_cliff) if cliff]
        others = [rise for rise, cliff in zip(rises, is_cliff) if not cliff]
        right = sum((a > b) + (a == b) / 2 for a in cliffs for b in others)
        return len(places), len(cliffs), right / (len(cliffs) * len(others))

    def tail(self):
        rows = [row for row in self.rows if row["waves"] > 1]
        return correlation(ranks([1 - row["full_us"] / row["predicted_us"] for row in rows]),
                           ranks([1 - row["full_us"] / row["measured_us"] for row in rows]))

    def advice(self):
        shares, fixed = [], {64: [], 128: [], 256: [], 512: []}
        for curve in self.curves:
            for first in curve:
                window = [row for row in curve if first["m"] <= row["m"] <= 1.25 * first["m"]]
                if first["m"] < 64 or len(window) < 2:
                    continue
                best = max(row["m"] / row["measured_us"] for row in window)
                chosen = max(window, key=lambda row: row["m"] / row["predicted_us"])
                shares.append(chosen["m"] / chosen["measured_us"] / best)
                for multiple, into in fixed.items():
                    row = max([row for row in window if row["m"] % multiple == 0] or window, key=lambda row: row["m"])
                    into.append(row["m"] / row["measured_us"] / best)
        means = {multiple: statistics.fmean(values) for multiple, values in fixed.items()}
        best = max(means, key=means.get)
        return {"windows": len(shares), "share_of_best": statistics.fmean(shares),
                "best_fixed_multiple": means[best], "multiple": best}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        return self.path(name)

    def csv(self, name, rows, columns=COLUMNS, end="\n"):
        lines = [",".join(columns)] + [",".join(str(row[column]) for column in columns) for row in rows]
        return self.write(name, end.join(lines) + end)

    def run_wave(self, *arguments, status=0, stdout=subprocess.PIPE):
        done = subprocess.run([PROGRAM, "wave", *map(str, arguments)], stdout=stdout, stderr=subprocess.PIPE, text=True,
                              timeout=100, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1 if status else 0, done.stderr)
        if status:
            self.assertTrue(done.stderr.startswith(f"wattgov wave {arguments[0]}: "), done.stderr)
        return done

    def evaluate(self, *arguments):
        return json.loads(self.run_wave("evaluate", *arguments, "--gpu", GPU, "--json").stdout)

    def check_same(self, found, wanted):
        """But for the last digits: 0.1 ms is not 100 us to the last bit."""
        self.assertEqual(list(found), list(wanted))
        for key, value in wanted.items():
            if isinstance(value, dict):
                self.check_same(found[key], value)
            elif isinstance(value, float):
                self.assertAlmostEqual(found[key], value, places=9, msg=key)
            else:
                self.assertEqual(found[key], value, key)


class Evaluate(Case):
    def check_schema(self, found, wanted=None):
        wanted = wanted or SCHEMA
        self.assertEqual(list(found), list(wanted))
        for key, kind in wanted.items():
            if isinstance(kind, dict):
                self.check_schema(found[key], kind)
            elif found[key] is not None:
                self.assertIsInstance(found[key], (int, float) if kind is float else kind, key)

    def check_recount(self, found, path):
        recount = Recount(path)
        self.assertEqual(found["rows"], len(recount.rows))
        self.assertAlmostEqual(found["mape"], statistics.fmean(recount.errors()), places=9)
        self.assertAlmostEqual(found["median_ape"], statistics.median(recount.errors()), places=9)
        self.assertAlmostEqual(found["baselines"]["roofline"]["mape"], statistics.fmean(recount.errors("roofline_us")),
                               places=9)
        self.assertAlmostEqual(found["coverage"], recount.coverage(), places=9)
        # Tails that are equal but for the rounding to microseconds are tied here or there.
        self.assertAlmostEqual(found["spearman_tail"], recount.tail(), places=3)
        places, cliffs, area = recount.cliffs()
        self.assertEqual((found["cliff_places"], found["cliffs"]), (places, cliffs))
        self.assertAlmostEqual(found["cliff_auc"], area, places=9)
        for key, value in {**recount.steps(), **recount.advice()}.items():
            self.assertAlmostEqual({**found["steps"], **found["advice"]}[key], value, places=9, msg=key)

    def test_figures_are_those_of_the_rows(self):
        """By what is built in, by folds, and of two operators whose curves must not be mixed."""
        one, two = self.csv("one.csv", measurements()), self.csv("two.csv", measurements(ops=("linear", "bmm")))
        for file, options in ((one, []), (one, ["--folds", "3"]), (two, [])):
            with self.subTest(file=file, options=options):
                found = self.evaluate(file, *options, "--predictions", "rows.csv")
                self.check_schema(found)
                self.assertEqual((found["schema"], found["gpu"]), ("wattgov.wave.evaluate/1", GPU))
                self.check_recount(found, self.path("rows.csv"))
                self.assertGreater(found["steps"]["count"], 20)
                self.assertGreater(found["cliffs"], 20)

    def test_data_that_cannot_say_it_give_null(self):
        found = self.evaluate(self.csv("a.csv", measurements()[:1]))
        self.check_schema(found)
        self.assertEqual([found[key] for key in ("rows", "folds", "cliff_auc", "spearman_tail")], [1, None, None, None])
        self.assertEqual(found["steps"], {"count": 0, "recall": None, "precision": None, "told_above": None})
        self.assertEqual(found["advice"],
                         {"windows": 0, "share_of_best": None, "best_fixed_multiple": None, "multiple": 0})
        self.assertGreater(found["mape"], 0)

    def test_folds_repeat_and_follow_the_seed(self):
        file = self.csv("a.csv", measurements())
        runs = [self.evaluate(file, "--folds", "4", *options) for options in
                ([], ["--seed", "1"], ["--seed", "2"], ["--seed", "2"])]
        self.assertEqual(runs[0], runs[1])
        self.assertEqual(runs[2], runs[3])
        self.assertNotEqual(runs[1]["mape"], runs[2]["mape"])
        self.assertEqual((runs[0]["folds"], runs[0]["recalled"], runs[0]["note"]), (4, 0, None))
        # The law is one that the model has, and other shapes teach it.
        self.assertLess(runs[0]["mape"], 0.04)
        self.assertGreater(runs[0]["steps"]["recall"], 0.9)
        # Rows in another order are the same data.
        rows = measurements()
        random.Random(1).shuffle(rows)
        again = self.evaluate(self.csv("b.csv", rows), "--folds", "4")
        self.assertEqual(again["rows"], runs[0]["rows"])
        self.assertAlmostEqual(again["mape"], runs[0]["mape"], delta=0.01)

    def test_text_says_what_the_json_says(self):
        file = self.csv("a.csv", measurements())
        found = self.evaluate(file)
        text = self.run_wave("evaluate", file, "--gpu", GPU).stdout
        self.assertIn(f"{found['rows']} measurements of NVIDIA A100-SXM4-80GB, predicted by what is built in\n", text)
        for name, value in (("mean absolute error", found["mape"]), ("median absolute error", found["median_ape"]),
                            ("steps above 8 %: found", found["steps"]["recall"])):
            self.assertRegex(text, rf"(?m)^{name} +{100 * value:.1f} %$")
        self.assertRegex(text, rf"(?m)^cliffs of one row: area under the curve +{found['cliff_auc']:.3f}$")

    def test_what_is_left_out_is_said(self):
        rows = measurements()[:40]
        rows[3]["us"], rows[4]["us"], rows[5]["us"] = "", "nan", "N/A"
        rows[7]["gpu"] = "NVIDIA H100 80GB HBM3"
        file = self.csv("a.csv", rows)
        found = self.evaluate(file)
        self.assertEqual((found["rows"], found["unmeasured"], found["of_other_gpus"]), (36, 3, 1))
        words = "36 measurements of NVIDIA A100-SXM4-80GB (3 without a time, 1 of other GPUs left out)"
        self.assertIn(words, self.run_wave("evaluate", file, "--gpu", GPU).stdout)
        self.assertIn(words, self.run_wave("calibrate", file, "--gpu", GPU, "-o", "a.json").stdout)
        told = json.loads(self.run_wave("calibrate", file, "--gpu", GPU, "-o", "a.json", "--json").stdout)
        self.assertEqual((told["rows"], told["unmeasured"], told["of_other_gpus"]), (36, 3, 1))

    def test_rows_that_teach_nothing_are_said(self):
        """Too few of their type, or a type that the GPU does not have."""
        rows = measurements()[:60]
        for at in range(7):
            rows[at]["dtype"] = "fp32"
        file = self.csv("a.csv", rows)
        told = json.loads(self.run_wave("calibrate", file, "--gpu", GPU, "-o", "a.json", "--json").stdout)
        self.assertEqual((told["rows"], told["unused"], len(told["entries"])), (60, 7, 1))
        self.assertIn("60 measurements of NVIDIA A100-SXM4-80GB, of which 7 teach nothing",
                      self.run_wave("calibrate", file, "--gpu", GPU, "-o", "a.json").stdout)
        rows[0]["dtype"] = rows[1]["dtype"] = "fp8"
        file = self.csv("b.csv", rows)
        for command in (["evaluate"], ["calibrate", "-o", "b.json"]):
            self.assertIn("b.csv: 2 rows are fp8, which a100-sxm4-80gb does not multiply",
                          self.run_wave(*command, file, "--gpu", GPU, status=1).stderr)
            self.run_wave(*command, file, "--gpu", GPU, "--where", "dtype=fp16")

    def test_conditions_choose_rows(self):
        rows = [{**row, "split": "test" if at % 3 == 0 else "train"} for at, row in enumerate(measurements()[:60])]
        found = self.evaluate(self.csv("a.csv", rows, [*COLUMNS, "split"]), "--where", "split=test")
        self.assertEqual(found["rows"], 20)


class Calibrate(Case):
    def calibrate(self, file, *options, output="mine.json"):
        told = json.loads(self.run_wave("calibrate", file, "--gpu", GPU, "-o", output, "--json", *options).stdout)
        self.assertEqual(list(told), ["schema", "gpu", "output", "rows", "unmeasured", "of_other_gpus", "unused", "entries"])
        self.assertEqual((told["schema"], told["output"]), ("wattgov.wave.calibrate/1", output))
        with open(self.path(output), "rb") as file:
            return told, file.read()

    def test_a_calibration_predicts_better_than_what_is_built_in(self):
        train = [row for row in measurements() if row["k"] != 1024]
        others = self.csv("others.csv", [row for row in measurements() if row["k"] == 1024])
        told, written = self.calibrate(self.csv("train.csv", train))
        [entry] = told["entries"]
        self.assertEqual((entry["dtype"], entry["op"], entry["points"]), ("fp16", "linear", len(train)))
        before, after = self.evaluate(others), self.evaluate(others, "--calibration", "mine.json")
        self.assertLess(after["mape"], 0.05)
        self.assertLess(after["mape"], before["mape"] / 4)
        self.assertEqual((after["recalled"], after["note"]), (0, None))
        # The same data give the same file.
        self.assertEqual(self.calibrate("train.csv", output="again.json")[1], written)

    def test_rows_that_the_calibration_has_are_no_proof(self):
        rows = measurements()[:240]
        file = self.csv("a.csv", rows)
        self.calibrate(file)
        found = self.evaluate(file, "--calibration", "mine.json")
        self.assertEqual((found["recalled"], found["rows"]), (len(rows), len(rows)))
        self.assertIn(f"{len(rows)} of the rows are measurements that the calibration itself has", found["note"])
        self.assertIn(found["note"], self.run_wave("evaluate", file, "--gpu", GPU, "--calibration", "mine.json").stdout)
        # Without the points the formula alone is shown.
        _, short = self.calibrate(file, "--no-points", output="short.json")
        formula = self.evaluate(file, "--calibration", "short.json")
        self.assertEqual((formula["recalled"], formula["note"]), (0, None))
        self.assertGreater(formula["mape"], 0)
        self.assertLess(len(short), os.path.getsize(self.path("mine.json")))

    def test_other_commands_take_it(self):
        self.calibrate(self.csv("a.csv", measurements()[:240]))
        sweep = ["sweep", "--gemm", "513,4096,1024", "--gpu", GPU, "--precision", "fp16", "--axis", "batch",
                 "--from", "513", "--to", "513", "--json"]
        own = json.loads(self.run_wave(*sweep, "--calibration", "mine.json").stdout)
        built_in = json.loads(self.run_wave(*sweep).stdout)
        self.assertNotEqual(own, built_in)

    def test_a_calibration_of_any_times_can_be_read(self):
        """However strange the data: what was written is read, and predicts finite times."""
        noise = random.Random(5)
        shapes = [(m, n, k) for n in (1, 64, 1024, 5120) for k in (1, 512, 4096)
                  for m in (1, 64, 128, 129, 257, 512, 1000, 4096, 2**31)]
        laws = {"all the same": lambda *_: 7, "all least": lambda *_: 1e-3, "all most": lambda *_: 1e9,
                "a thousand times too fast": lambda m, n, k: 1e-3 * staircase(m, n, k),
                "of any size": lambda *_: 10 ** noise.uniform(-3, 9),
                "falling": lambda m, n, k: 1e-3 + 1e8 / (m * n * k),
                "steep": lambda m, n, k: min(1e9, 1e-3 + 1e-12 * (m * n * k) ** 2)}
        for (name, law), dtype, often in itertools.product(laws.items(), ("fp32", "fp16"), (1, 3)):
            if often > 1 and (name, dtype) != ("of any size", "fp16"):
                continue  # from 300 rows on there is a forest
            with self.subTest(law=name, dtype=dtype, often=often):
                file = self.csv("odd.csv", [{"m": m, "n": n, "k": k + i, "us": repr(law(m, n, k))}
                                            for m, n, k in shapes for i in range(often)], ["m", "n", "k", "us"])
                self.run_wave("calibrate", file, "--gpu", GPU, "--dtype", dtype, "-o", "odd.json")
                found = self.evaluate(file, "--dtype", dtype, "--calibration", "odd.json")
                self.assertEqual(found["rows"], found["recalled"])
                self.assertLess(found["mape"], 1e-3)

    def test_convolutions_with_their_passes(self):
        conv = ["gpu", "op", "dtype", "N", "C", "K", "R", "S", "H", "W", "stride", "pad", "groups", "ms"]
        rows = []
        for op, n, c, k, h in itertools.product(("conv", "conv_dgrad", "conv_wgrad"), (8, 16, 24), (64, 128),
                                                (64, 128, 256), (14, 28)):
            rows.append(dict(zip(conv, (GPU, op, "fp16", n, c, k, 3, 3, h, h, 1, 1, 1,
                                        1e-3 * (5 + 3e-10 * 18 * n * h * h * c * k)))))
        told, _ = self.calibrate(self.csv("conv.csv", rows, conv))
        self.assertEqual(sum(entry["points"] for entry in told["entries"]), len(rows))
        found = self.evaluate("conv.csv", "--predictions", "rows.csv")
        self.assertEqual((found["rows"], found["steps"]["count"], found["advice"]["windows"]), (len(rows), 0, 0))
        written = Recount(self.path("rows.csv"))
        self.assertEqual({row["pass"] for row in written.rows}, {"forward", "dgrad", "wgrad"})
        self.assertAlmostEqual(found["mape"], statistics.fmean(written.errors()), places=9)
        forward = {(row["m"], row["n"], row["k"]) for row in written.rows if row["pass"] == "forward"}
        self.assertEqual(forward, {(r["N"] * r["H"] ** 2, str(r["K"]), str(9 * r["C"])) for r in rows})


class Forms(Case):
    """The same measurements in other words, and what is wrong in a line."""

    def test_columns_in_any_order_and_unit_and_ends_of_lines(self):
        rows = measurements()[:60]
        wanted = self.evaluate(self.csv("a.csv", rows))
        more = [{**row, "note": '"a, b"', "ms": repr(float(row["us"]) / 1000), "GPU": GPU, "median_ms": 1}
                for row in rows]
        shuffled = ["note", "us", "k", "B", "dtype", "n", "gpu", "m", "op"]
        milli = [column if column != "us" else "ms" for column in COLUMNS]
        with open(self.csv("b.csv", rows, end="\r\n"), "rb") as file:
            text = file.read()
        forms = {"shuffled": self.csv("c.csv", more, shuffled), "ms": self.csv("d.csv", more, milli),
                 "crlf": self.path("b.csv"), "mark": self.write("e.csv", b"\xef\xbb\xbf" + text),
                 "gzip": self.write("f.csv.gz", gzip.compress(text)), "no end": self.write("g.csv", text.rstrip()),
                 "us before median_ms": self.csv("h.csv", more, [*COLUMNS, "median_ms"]),
                 "id of the GPU": self.csv("i.csv", more, ["GPU", *COLUMNS[1:]])}
        for name, file in forms.items():
            with self.subTest(name):
                found = self.evaluate(file)
                self.check_same(found, wanted)
        plain = self.csv("j.csv", rows, ["m", "n", "k", "us"])
        self.assertEqual(self.evaluate(plain, "--dtype", "fp16")["mape"], wanted["mape"])

    def test_a_gpu_of_ones_own_is_found_by_its_names(self):
        self.write("my-gpu.yaml", "like: a100-sxm4-80gb\nname: My GPU 9000\nsms: 98\n")
        rows = measurements()[:40]
        for name in ("my-gpu", "My GPU 9000", ""):
            file = self.csv("own.csv", [{**row, "gpu": name} for row in rows] + [{**rows[0], "gpu": "h100-sxm-80gb"}])
            options = [file, "--gpu", "my-gpu.yaml", "--json"]
            found = json.loads(self.run_wave("evaluate", *options).stdout)
            self.assertEqual((found["gpu"], found["rows"], found["of_other_gpus"]), ("my-gpu", 40, 1))
            self.run_wave("calibrate", *options, "-o", "mine.json")
            found = json.loads(self.run_wave("evaluate", *options, "--calibration", "mine.json").stdout)
            self.assertEqual(found["recalled"], 40)

    def test_known_kernels_are_used(self):
        rows = [{**row, "kernel": "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn",
                 "grid": f"{math.ceil(row['m'] / 128)}x{math.ceil(row['n'] / 128)}x1", "tile": "128x128"}
                for row in measurements()]
        plain = self.evaluate(self.csv("a.csv", rows))
        by_tile = self.evaluate(self.csv("b.csv", rows, [*COLUMNS, "grid", "tile"]))
        by_name = self.evaluate(self.csv("c.csv", rows, [*COLUMNS, "kernel", "grid"]))
        self.assertNotEqual(plain["mape"], by_tile["mape"])
        self.assertAlmostEqual(by_tile["mape"], by_name["mape"], delta=0.02)
        told = json.loads(self.run_wave("calibrate", "b.csv", "--gpu", GPU, "-o", "b.json", "--json").stdout)
        self.assertLess(told["entries"][0]["known"]["mape"], 0.03)

    def test_what_is_wrong_is_said_in_a_line(self):
        good = "64,64,64,3,fp16"
        header = "m,n,k,us,dtype\n"
        os.mkdir(self.path("folder"))
        texts = {
            "empty": ("", ":1: the file is empty"), "header": (header, ": no measurement in it\n"),
            "nan": (header + "64,64,64,nan,fp16\n64,64,64,,fp16\n", ": no measurement in it: 2 without a time"),
            "negative": (header + good + "\n64,64,64,-3,fp16\n", ":3: column 'us': '-3' is no time"),
            "zero": (header + "64,64,64,0,fp16\n", ":2: column 'us': '0' is no time"),
            "tiny": (header + "64,64,64,1e-320,fp16\n", ":2: column 'us': '1e-320' is no time"),
            "huge": (header + "64,64,64,1e300,fp16\n", ":2: column 'us': '1e300' is no time"),
            "infinite": (header + "64,64,64,inf,fp16\n", ":2: column 'us': 'inf' is not a number"),
            "words": (header + "64,64,64,fast,fp16\n", ":2: column 'us': 'fast' is not a number"),
            "size 0": (header + "64,64,0,3,fp16\n", ":2: column 'k': '0' is not a whole number from 1"),
            "size -1": (header + "-1,64,64,3,fp16\n", ":2: column 'm': '-1' is not a whole number"),
            "size 1.5": (header + "64,1.5,64,3,fp16\n", ":2: column 'n': '1.5' is not a whole number"),
            "size nan": (header + "nan,1,64,3,fp16\n", ":2: column 'm': 'nan' is not a whole number"),
            "size 2^40": (header + "1099511627776,1,64,3,fp16\n", ":2: column 'm': '1099511627776' is not a whole"),
            "short": (header + "64,64,64\n", ":2: expected 5 fields as in the header, found 3"),
            "long": (header + good + ",1\n", ":2: expected 5 fields as in the header, found 6"),
            "twice": ("m,n,k,us,us,dtype\n64,64,64,3,3,fp16\n", ":1: columns 4 and 5 are both 'us'"),
            "no m": ("n,k,us,dtype\n64,64,3,fp16\n", ":1: neither a column m"),
            "no k": ("m,n,us,dtype\n64,64,3,fp16\n", ":1: no column 'k'"),
            "no time": ("m,n,k,dtype\n64,64,64,fp16\n", ":1: no column with a time"),
            "no dtype": ("m,n,k,us\n64,64,64,3\n", ":1: no column dtype; --dtype says"),
            "fp64": (header + "64,64,64,3,fp64\n", ":2: column 'dtype': 'fp64' is no precision"),
            "no type": (header + "64,64,64,3,\n", ":2: column 'dtype'"),
            "other GPU": ("gpu," + header + "h100," + good + "\n", "no measurement is of a100-sxm4-80gb, but of h100"),
            "tile": ("tile," + header + "square," + good + "\n", ":2: column 'tile': 'square' is not a tile like"),
            "grid": ("grid," + header + "1x," + good + "\n", ":2: column 'grid': '1x' is not a grid like 9x32x1"),
            "conv": ("N,C,K,R,H,us,dtype\n1,3,8,9,4,3,fp16\n", ":2: column 'C': "),
            "pass": ("op,N,C,K,R,H,us,dtype\nconv_up,1,3,8,3,8,3,fp16\n", ":2: column 'op': 'conv_up' is not known"),
            "binary": (bytes(range(256)) * 8, ":1: "), "quote": (header + '"64,64,64,3,fp16\n', ":2: "),
            "gzip": (gzip.compress((header + good).encode())[:20], ":1: the gzip file is cut off"),
        }
        for command in (["evaluate"], ["calibrate", "-o", "out.json"]):
            for name, (data, part) in texts.items():
                with self.subTest(command=command[0], name=name):
                    self.write(name, data)
                    error = self.run_wave(*command, name, "--gpu", GPU, status=1).stderr
                    self.assertIn(part, error)
                    self.assertTrue(error[:-1].isprintable(), error)
                    self.assertFalse(os.path.exists(self.path("out.json")))
            self.assertIn("no GPU 'a10000'", self.run_wave(*command, "header", "--gpu", "a10000", status=1).stderr)
            for name, part in (("none.csv", "cannot open: No such file"), ("folder", "cannot read: Is a directory")):
                error = self.run_wave(*command, name, "--gpu", GPU, status=1).stderr
                self.assertIn(f"{name}: {part}", error)

    def test_wrong_options_are_usage(self):
        file = self.csv("a.csv", measurements()[:30])
        cases = [
            (["evaluate", "--gpu", GPU], "which data?"), (["calibrate", "--gpu", GPU, "-o", "x"], "which data?"),
            (["evaluate", file], "--gpu"), (["calibrate", file, "--gpu", GPU], "--output"),
            (["evaluate", file, "--gpu", ""], "--gpu"),
            (["evaluate", file, "--gpu", GPU, "--dtype", "fp64"], "--dtype: 'fp64'"),
            (["evaluate", file, "--gpu", GPU, "--folds", "1"], "--folds"),
            (["evaluate", file, "--gpu", GPU, "--folds", "65"], "--folds"),
            (["evaluate", file, "--gpu", GPU, "--folds", "-2"], "--folds"),
            (["evaluate", file, "--gpu", GPU, "--folds"], "--folds"),
            (["evaluate", file, "--gpu", GPU, "--seed", "x"], "--seed"),
            (["evaluate", file, "--gpu", GPU, "--folds", "2", "--calibration", "x"], "--folds and --calibration"),
            (["evaluate", file, "--gpu", GPU, "--where", "split"], "COLUMN=VALUE"),
            (["evaluate", file, "--gpu", GPU, "--where", "none=1"], "none"),
            (["evaluate", file, file, "--gpu", GPU], "a.csv"),
            (["calibrate", file, "--gpu", GPU, "-o", ""], "--output"),
        ]
        for arguments, part in cases:
            with self.subTest(arguments):
                self.assertIn(part, self.run_wave(*arguments, status=2).stderr)

    def test_a_calibration_that_is_none_is_refused(self):
        file = self.csv("a.csv", measurements()[:40])
        self.run_wave("calibrate", file, "--gpu", GPU, "-o", "mine.json")
        with open(self.path("mine.json"), "rb") as written:
            text = written.read()
        cut = [text[:length] for length in (0, 1, len(text) // 3, len(text) // 2, len(text) - 3)]
        for at, data in enumerate(cut + [b"[]", b"{}", b"null", file.encode(), b"\0" * 100,
                                         text.replace(b"/1", b"/9", 1)]):
            with self.subTest(at):
                self.write("bad.json", data)
                self.assertIn("bad.json", self.run_wave("evaluate", file, "--gpu", GPU, "--calibration", "bad.json",
                                                        status=1).stderr)
        self.assertIn("none.json: cannot open", self.run_wave("evaluate", file, "--gpu", GPU, "--calibration", "none.json",
                                                              status=1).stderr)

    def test_a_calibration_of_another_gpu_is_carried_over_by_data_sheet(self):
        self.run_wave("calibrate", self.csv("a.csv", measurements()[:240]), "--gpu", GPU, "-o", "mine.json")
        rows = [{**row, "gpu": "h100-sxm-80gb"} for row in measurements()[:50]]
        options = [self.csv("b.csv", rows), "--gpu", "h100-sxm-80gb", "--json"]
        own = json.loads(self.run_wave("evaluate", *options).stdout)
        mixed = json.loads(self.run_wave("evaluate", *options, "--calibration", "mine.json").stdout)
        self.assertEqual((mixed["recalled"], mixed["rows"]), (0, 50))
        self.assertEqual(mixed["mape"], own["mape"])  # that GPU's own parameters are nearer

    def test_outputs_that_cannot_be_written(self):
        file = self.csv("a.csv", measurements()[:40])
        for target in ("/dev/full", "/nowhere/x", self.folder):
            for arguments in (["calibrate", file, "--gpu", GPU, "-o", target],
                              ["evaluate", file, "--gpu", GPU, "--predictions", target]):
                with self.subTest(arguments):
                    self.assertIn(target, self.run_wave(*arguments, status=1).stderr)
        with open("/dev/full", "w", encoding="utf-8") as full:
            for arguments in (["calibrate", file, "--gpu", GPU, "-o", "x.json"], ["evaluate", file, "--gpu", GPU],
                              ["evaluate", file, "--gpu", GPU, "--json"]):
                with self.subTest(arguments):
                    self.assertIn("No space", self.run_wave(*arguments, status=1, stdout=full).stderr)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if not os.path.exists(PROGRAM):
        sys.exit(f"{PROGRAM} does not exist")
    unittest.main()
