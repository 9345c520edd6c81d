#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`wattgov wave` as its users call it.

What follows from the numbers of an analysis (grids from tiles, waves from grids, totals from layers, shares) is
computed here again; the sizes of the built-in networks are those that their papers and fvcore give.

    wave.py PROGRAM
"""
import csv
import gzip
import html.parser
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.environ.get("WATTGOV_SOURCE_ROOT", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
A100 = "a100-sxm4-80gb"
PROGRAM = None

# What stood in the first release of the schema; other keys may be added, these stay, and what they hold.
NUMBER = (int, float)
MAYBE = (int, float, type(None))
PROMISED = {
    "schema": str,
    "model": {"name": str, "kind": str, "batch_size": (int, type(None)), "precision": (str, type(None))},
    "max_waste": MAYBE, "max_total_waste": MAYBE, "calibration": (str, type(None)),
    "gpus": [{"gpu": {"id": str, "name": str, "sms": int, "tdp_w": MAYBE, "idle_w": MAYBE},
              "total": {"time_s": NUMBER, "time_low_s": NUMBER, "time_high_s": NUMBER, "recoverable_s": NUMBER,
                        "waste": NUMBER, "idle_sm_s": NUMBER, "idle_energy_least_j": MAYBE,
                        "idle_energy_most_j": MAYBE, "stream_k_saves_s": NUMBER, "flops": NUMBER,
                        "measured_s": MAYBE, "layers_predicted": int, "layers_unpredicted": int,
                        "time_by_origin_s": {"measured": NUMBER, "interpolated": NUMBER, "model": NUMBER,
                                             "transferred": NUMBER},
                        "time_by_bound_s": {"compute": NUMBER, "memory": NUMBER, "launch": NUMBER}},
              "layers": [{"name": str, "op": str, "gemm": (dict, type(None)), "kernel": (dict, type(None)),
                          "blocks": MAYBE, "waves": MAYBE, "tile_efficiency": MAYBE, "wave_efficiency": MAYBE,
                          "bound": (str, type(None)), "origin": (str, type(None)), "time_s": MAYBE,
                          "time_low_s": MAYBE, "time_high_s": MAYBE, "tail_s": MAYBE, "waste": MAYBE,
                          "stream_k_saves_s": MAYBE, "measured_s": MAYBE, "is_wasteful": bool}],
              "batches": (dict, type(None)), "notes": [str]}]}


def run(*arguments, **kwargs):
    kwargs.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([PROGRAM, "wave", *arguments], stderr=subprocess.PIPE, text=True, timeout=100, check=False,
                          **kwargs)


def analyze(*arguments, status=0):
    done = run("analyze", *arguments, "--json")
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


def ceil_div(a, b):
    return -(-a // b)


class Scratch(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def check_refused(self, done, *parts, status=2):
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout or "", "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("wattgov wave analyze: "), done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)


class Help(unittest.TestCase):
    def test_every_command_explains_itself(self):
        done = run("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for command in re.findall(r"^  ([a-z]+)  ", done.stdout, flags=re.MULTILINE):
            done = run(command, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)
            self.assertTrue(done.stdout.startswith(f"usage: wattgov wave {command} "), done.stdout)

    def test_what_is_no_command_is_wrong_usage(self):
        for words in ([], ["analyse"], ["--json"]):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertEqual(done.stderr.count("\n"), 1)
            self.assertTrue(done.stderr.startswith("wattgov wave: "), done.stderr)


class Analysis(Scratch):
    NETWORKS = {"vgg16": [], "vgg16-cifar": [], "resnet18": [], "resnet50": [], "resnet56-cifar": [],
                "mobilenet-v2": [], "bert-base": ["--set-dim", "sequence=128"]}

    def check_holds(self, promised, found, where):
        if isinstance(promised, dict):
            self.assertIsInstance(found, dict, where)
            for key, inner in promised.items():
                self.assertIn(key, found, where)
                self.check_holds(inner, found[key], f"{where}.{key}")
        elif isinstance(promised, list):
            self.assertIsInstance(found, list, where)
            for i, inner in enumerate(found):
                self.check_holds(promised[0], inner, f"{where}[{i}]")
        else:
            self.assertIsInstance(found, promised, where)

    def check_layer(self, layer, sms):
        name = layer["name"]
        self.assertLessEqual(0, layer["tail_s"], name)
        self.assertLess(layer["tail_s"], layer["time_s"], name)
        self.assertLessEqual(layer["time_low_s"], layer["time_s"], name)
        self.assertGreaterEqual(layer["time_high_s"], layer["time_s"], name)
        self.assertAlmostEqual(layer["waste"], layer["tail_s"] / layer["time_s"], places=12, msg=name)
        if layer["stream_k_saves_s"] is not None:
            self.assertLessEqual(layer["stream_k_saves_s"], layer["tail_s"], name)
        if layer["gemm"] is None or layer["blocks"] is None:
            self.assertIsNone(layer["waves"], name)
            return
        gemm, kernel = layer["gemm"], layer["kernel"]
        tiles_m, tiles_n = ceil_div(gemm["m"], kernel["tile_m"]), ceil_div(gemm["n"], kernel["tile_n"])
        self.assertEqual(layer["blocks"], gemm["batch"] * tiles_m * tiles_n * kernel["split_k"], name)
        self.assertAlmostEqual(layer["tile_efficiency"], gemm["m"] * gemm["n"] / (
            tiles_m * kernel["tile_m"] * tiles_n * kernel["tile_n"]), places=12, msg=name)
        self.assertAlmostEqual(layer["wave_efficiency"], layer["waves"] / math.ceil(layer["waves"]), places=12,
                               msg=name)
        self.assertLessEqual(layer["waves"], layer["blocks"] / sms + 1e-9, name)

    def check_total(self, of):
        total, layers, gpu = of["total"], of["layers"], of["gpu"]
        for key, part in (("time_s", "time_s"), ("time_low_s", "time_low_s"), ("time_high_s", "time_high_s"),
                          ("recoverable_s", "tail_s")):
            self.assertAlmostEqual(total[key] / math.fsum(layer[part] for layer in layers), 1, places=9, msg=key)
        self.assertAlmostEqual(total["waste"], total["recoverable_s"] / total["time_s"])
        self.assertAlmostEqual(total["idle_sm_s"], gpu["sms"] * total["recoverable_s"])
        for key, watts in (("idle_energy_least_j", gpu["idle_w"]), ("idle_energy_most_j", gpu["tdp_w"])):
            if watts is None:
                self.assertIsNone(total[key])
            else:
                self.assertAlmostEqual(total[key], watts * total["recoverable_s"])
        for key in ("time_by_origin_s", "time_by_bound_s"):
            self.assertAlmostEqual(math.fsum(total[key].values()), total["time_s"])

    def test_every_built_in_network_holds_what_the_schema_promised(self):
        for network, words in self.NETWORKS.items():
            for precision, gpu in (("fp16", A100), ("fp32", "v100-sxm2-32gb")):
                with self.subTest(network=network, precision=precision):
                    found = analyze(network, "--gpu", gpu, "--batch", "32", "--precision", precision, *words)
                    self.check_holds(PROMISED, found, "found")
                    self.assertEqual(found["schema"], "wattgov.wave.analyze/1")
                    self.assertEqual(found["model"], {"name": network, "kind": "built-in", "batch_size": 32,
                                                      "precision": precision})
                    of = found["gpus"][0]
                    self.assertEqual(of["gpu"]["id"], gpu)
                    self.assertEqual(of["total"]["layers_unpredicted"], 0)
                    self.assertEqual(len({layer["name"] for layer in of["layers"]}), len(of["layers"]))
                    for layer in of["layers"]:
                        self.check_layer(layer, of["gpu"]["sms"])
                    self.check_total(of)

    def test_operations_are_those_of_the_papers(self):
        # 2 a multiply-add: torchvision's GFLOPS (which are multiply-adds) of its weights; ResNet-56: He et al.
        for network, macs, tolerance in (("vgg16", 15.47e9, 0.001), ("resnet18", 1.814e9, 0.001),
                                         ("resnet50", 4.089e9, 0.001), ("mobilenet-v2", 0.301e9, 0.004),
                                         ("resnet56-cifar", 0.1255e9, 0.02), ("vgg16-cifar", 0.3135e9, 0.02)):
            total = analyze(network, "--gpu", A100, "--batch", "2")["gpus"][0]["total"]
            self.assertAlmostEqual(total["flops"] / (2 * 2 * macs), 1, delta=tolerance, msg=network)

    def test_layers_are_the_products_that_they_are(self):
        layers = analyze("resnet50", "--gpu", A100, "--batch", "32")["gpus"][0]["layers"]
        sizes = [tuple(layer["gemm"][key] for key in ("batch", "m", "n", "k")) for layer in layers if layer["gemm"]]
        self.assertEqual(len(sizes), 54)
        self.assertEqual(sizes[0], (1, 32 * 112 * 112, 64, 3 * 7 * 7))
        self.assertEqual(sizes[-1], (1, 32, 1000, 2048))

    def test_text_csv_and_json_agree(self):
        words = ["resnet18", "--gpu", A100, "--batch", "8"]
        layers = analyze(*words)["gpus"][0]["layers"]
        done = run("analyze", *words, "--layers", "all", "--csv", self.path("l.csv"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("l.csv"), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["layer"] for row in rows], [layer["name"] for layer in layers])
        for row, layer in zip(rows, layers):
            for key in ("time_s", "tail_s", "waves", "blocks"):
                self.assertEqual(row[key], "" if layer[key] is None else row[key])
                if layer[key] is not None:
                    self.assertEqual(float(row[key]), layer[key])
            shown = row["layer"] if len(row["layer"]) <= 30 else ".." + row["layer"][-28:]
            self.assertIn(shown, done.stdout)
        few = run("analyze", *words, "--layers", "3").stdout
        kinds = {}
        for layer in layers:
            kinds.setdefault((layer["op"], str(layer["gemm"]), layer["time_s"]), []).append(layer)
        self.assertIn(f"The 3 of {len(kinds)} kinds of layers with the longest tails together", few)
        self.assertIn(f"all {len(layers)} layers", few)
        worst = max(kinds.values(), key=lambda alike: sum(layer["tail_s"] for layer in alike))
        row = next(line for line in few.splitlines() if line.startswith(worst[0]["name"]))
        self.assertEqual(row.split()[1], str(len(worst)))
        for line in done.stdout.splitlines():
            if not line.startswith("note: "):
                self.assertLessEqual(len(line), 120, line)

    def test_the_model_may_stand_anywhere(self):
        first = analyze("resnet18", "--gpu", A100)
        self.assertEqual(analyze("--gpu", A100, "resnet18"), first)
        self.assertEqual(first["model"]["batch_size"], 1)

    def test_larger_batches_and_faster_types_are_that(self):
        def per_sample(*words):
            return analyze("resnet50", "--gpu", A100, *words)["gpus"][0]["total"]["time_s"] / int(words[1])
        self.assertLess(per_sample("--batch", "64"), per_sample("--batch", "1"))
        self.assertLess(per_sample("--batch", "64"), per_sample("--batch", "64", "--precision", "fp32"))

    def test_gpus_are_compared(self):
        found = analyze("resnet50", "--gpu", A100, "--gpu", "l4", "--batch", "32")
        self.assertEqual([of["gpu"]["id"] for of in found["gpus"]], [A100, "l4"])
        done = run("analyze", "resnet50", "--gpu", A100, "--gpu", "l4", "--batch", "32")
        self.assertIn(f"Speed-up over {A100}", done.stdout)
        alone = analyze("resnet50", "--gpu", "l4", "--batch", "32")
        self.assertEqual(alone["gpus"][0], found["gpus"][1])

    def test_what_it_cannot_be_trusted_in_is_said(self):
        hopper = analyze("resnet18", "--gpu", "h100-sxm-80gb", "--batch", "8")["gpus"][0]
        self.assertTrue(any("Hopper" in note for note in hopper["notes"]), hopper["notes"])
        ampere = analyze("resnet18", "--gpu", A100, "--batch", "8")["gpus"][0]
        self.assertFalse(any("Hopper" in note for note in ampere["notes"]), ampere["notes"])
        for of in (hopper, ampere):
            carried = any("carried over" in note for note in of["notes"])
            self.assertEqual(carried, of["total"]["time_by_origin_s"]["transferred"] > 0)


class Guide(unittest.TestCase):
    """Predictions move with each new calibration: the guide's form is compared exactly, its figures roughly."""

    def test_the_example_of_the_guide_looks_like_what_the_command_prints(self):
        with open(os.path.join(ROOT, "docs/wave.md"), encoding="utf-8") as file:
            example = re.search(r"of them prints:\n\n```\n(.*?)```", file.read(), flags=re.DOTALL).group(1)
        done = run("analyze", "resnet50", "--gpu", A100, "--batch", "32", "--layers", "5")
        self.assertEqual(done.stdout.splitlines()[0], example.splitlines()[0])
        for said, found in zip(example.splitlines()[2:3], done.stdout.splitlines()[2:3]):
            self.assertEqual(said.split(), found.split())
        for label in ("predicted: ", "recoverable: ", "idle meanwhile: ", "batch: "):
            self.assertEqual((example.count("\n" + label), done.stdout.count("\n" + label)), (1, 1), label)
        said, found = (float(re.search(r"predicted: ([\d.]+) ms", text).group(1)) for text in (example, done.stdout))
        self.assertAlmostEqual(said / found, 1, delta=0.3, msg="write it anew")

    def test_the_check_of_the_guide_holds(self):
        with open(os.path.join(ROOT, "docs/wave.md"), encoding="utf-8") as file:
            guide = re.sub(r"\s+", " ", file.read())
        said = re.search(r"In fp16 ([\d.]+) ms are predicted and ([\d.]+) ms were measured, "
                         r"in fp32 ([\d.]+) and ([\d.]+) ms", guide).groups()
        for precision, predicted, measured in (("fp16", *said[:2]), ("fp32", *said[2:])):
            path = os.path.join(ROOT, f"tests/golden/profiles/tensorrt-{precision}")
            total = analyze(f"{path}.graph.json.gz", "--gpu", A100, "--times", f"{path}.profile.json.gz")["gpus"][0][
                "total"]
            self.assertEqual(f"{1e3 * total['compared_measured_s']:.2f}", measured)
            self.assertAlmostEqual(1e3 * total["compared_predicted_s"] / float(predicted), 1, delta=0.2,
                                   msg="write it anew")


class Waste(Scratch):
    WORDS = ["resnet50", "--gpu", A100, "--batch", "32"]

    def test_a_layer_that_wastes_more_is_named_and_fails(self):
        shares = {layer["name"]: layer["waste"] for layer in analyze(*self.WORDS)["gpus"][0]["layers"]
                  if layer["gemm"]}
        worst = max(shares, key=shares.get)
        limit = shares[worst]
        done = run("analyze", *self.WORDS, "--max-waste", repr(limit * 0.999))
        self.assertEqual(done.returncode, 1)
        self.assertIn("recoverable: ", done.stdout)  # the results come first
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn(f"{worst} ({100 * limit:.1f} %)", done.stderr)
        found = analyze(*self.WORDS, "--max-waste", repr(limit * 0.999), status=1)
        self.assertEqual([layer["name"] for layer in found["gpus"][0]["layers"] if layer["is_wasteful"]],
                         [name for name, share in shares.items() if share > limit * 0.999])
        self.assertEqual(run("analyze", *self.WORDS, "--max-waste", repr(limit)).returncode, 0)
        self.assertEqual(run("analyze", *self.WORDS, "--max-waste", "100%").returncode, 0)

    def test_so_do_the_layers_together(self):
        share = analyze(*self.WORDS)["gpus"][0]["total"]["waste"]
        self.assertEqual(run("analyze", *self.WORDS, "--max-total-waste", f"{100 * share * 1.001:.9f}%").returncode, 0)
        done = run("analyze", *self.WORDS, "--max-total-waste", f"{100 * share * 0.999:.9f}%")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the layers together waste", done.stderr)


class Batches(Scratch):
    WORDS = ["resnet50", "--gpu", A100]

    def test_batch_sizes_are_maxima_of_throughput(self):
        path = self.path("b.csv")
        found = analyze(*self.WORDS, "--batch", "16", "--batches", path, "--max-batch", "48")
        points = found["gpus"][0]["batches"]["points"]
        self.assertEqual([point["batch_size"] for point in points], list(range(1, 49)))
        self.assertAlmostEqual(points[15]["time_s"], found["gpus"][0]["total"]["time_s"], places=9)
        rates = [point["samples_per_s"] for point in points]
        for i, point in enumerate(points):
            self.assertAlmostEqual(point["samples_per_s"], (i + 1) / point["time_s"])
            if point["is_best"]:
                self.assertEqual(rates[i], max(rates[:i + 1]))
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([int(row["batch_size"]) for row in rows],
                         [point["batch_size"] for point in points if point["is_best"]])
        self.assertGreaterEqual(len(rows), 2)

    def test_a_job_and_a_tuning_take_them(self):
        path = self.path("b.csv")
        analyze(*self.WORDS, "--batches", path, "--max-batch", "40")
        with open(path, encoding="utf-8", newline="") as file:
            sizes = [int(row["batch_size"]) for row in csv.DictReader(file)]
        store = self.path("jobs.db")
        subprocess.run([PROGRAM, "job", "create", "net", "--batch-sizes", f"from:{path}", "--default", str(sizes[-1]),
                        "--target", "acc>=0.7", "--max-epochs", "9", "--store", store], check=True, timeout=60)
        job = subprocess.run([PROGRAM, "job", "export", "net", "--store", store], stdout=subprocess.PIPE, check=True,
                             timeout=60).stdout
        self.assertEqual(json.loads(job.splitlines()[0])["batch_sizes"], sizes)
        done = subprocess.run([PROGRAM, "tune", "--dry-run", "--knob", f"batch=from:{path}:batch", "--", "true"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
                              env=dict(os.environ, WATTGOV_STATE_DIR=self.folder.name))
        self.assertIn(f"\n{len(sizes)} configuration", done.stdout + done.stderr)

    def test_what_is_free_costs_no_more(self):
        found = analyze(*self.WORDS, "--batch", "24", "--max-batch", "60")["gpus"][0]["batches"]
        free = found["free_to"]
        times = [point["time_s"] for point in found["points"]]
        self.assertLessEqual(24, free)
        self.assertLessEqual(times[free - 1], times[23] * 1.01)
        self.assertGreater(min(times[free:]), times[23] * 1.01)


class Profiles(Scratch):
    """Those that others have recorded: TensorRT's ResNet-18 at batch 32 on an A100, one GEMM under ncu."""
    FOLDER = os.path.join(ROOT, "tests/golden/profiles")

    def test_an_engine_tells_its_gpu_batch_kernels_and_times(self):
        found = analyze(os.path.join(self.FOLDER, "tensorrt-fp16.graph.json.gz"), "--gpu", A100)
        self.assertEqual((found["model"]["kind"], found["model"]["batch_size"]), ("tensorrt", 32))
        of = found["gpus"][0]
        with gzip.open(os.path.join(self.FOLDER, "tensorrt-fp16.profile.json.gz"), "rt") as file:
            times = {layer["name"]: layer["averageMs"] / 1e3 for layer in json.load(file) if "name" in layer}
        self.assertAlmostEqual(of["total"]["measured_s"], math.fsum(times.values()), places=9)
        for layer in of["layers"]:
            if layer["measured_s"] is not None:
                self.assertAlmostEqual(layer["measured_s"], times[layer["name"]], places=12)
        blocks = {layer["blocks"] for layer in of["layers"] if layer["kernel"] and layer["kernel"]["is_known"]}
        self.assertLessEqual({392, 98, 196, 100}, blocks)  # by hand: 3.63, 0.91, 1.81 and 0.93 waves
        conv = next(layer for layer in of["layers"] if layer["blocks"] == 392)
        self.assertAlmostEqual(conv["waves"], 392 / 108)
        # Within the range that it states itself, as a whole.
        self.assertLess(of["total"]["time_low_s"], of["total"]["measured_s"])
        self.assertGreater(of["total"]["time_high_s"], of["total"]["measured_s"])

    def test_a_launch_without_sizes_has_waves_but_no_prediction(self):
        found = analyze(os.path.join(self.FOLDER, "ncu.log.gz"), "--gpu", "b200")
        layer, = found["gpus"][0]["layers"]
        self.assertEqual((layer["blocks"], layer["time_s"], layer["gemm"]), (288, None, None))
        self.assertAlmostEqual(layer["waves"], 288 / 148)
        self.assertAlmostEqual(layer["measured_tail_s"], layer["measured_s"] * (1 - 288 / 148 / 2))
        self.assertTrue(any("152 SMs, not on 148" in note for note in found["gpus"][0]["notes"]))
        done = run("analyze", os.path.join(self.FOLDER, "ncu.log.gz"), "--gpu", "b200", "--max-waste", "2%")
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 layer wastes more than 2 % on b200", done.stderr)

    def test_what_a_profile_has_is_not_to_be_chosen(self):
        path = os.path.join(self.FOLDER, "tensorrt-fp16.graph.json.gz")
        for words in (["--batch", "8"], ["--precision", "fp32"], ["--set-dim", "batch=8"]):
            self.check_refused(run("analyze", path, "--gpu", A100, *words), words[0], "is a profile")
        self.check_refused(run("analyze", os.path.join(self.FOLDER, "ncu.log.gz"), "--gpu", "b200", "--batches",
                               self.path("b.csv")), "no batch that could be changed")
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_times_may_lie_elsewhere(self):
        found = analyze(os.path.join(self.FOLDER, "tensorrt-fp32.graph.json.gz"), "--gpu", A100, "--times",
                        os.path.join(self.FOLDER, "tensorrt-fp32.profile.json.gz"))
        self.assertGreater(found["gpus"][0]["total"]["measured_s"], 1e-3)
        done = run("analyze", os.path.join(self.FOLDER, "tensorrt-fp32.graph.json.gz"), "--gpu", A100, "--times",
                   "/nowhere.json")
        self.check_refused(done, "/nowhere.json", status=1)


class Models(Scratch):
    """ONNX files, made here: one linear layer, one convolution at a fixed batch."""

    @staticmethod
    def field(number, value):
        if isinstance(value, int):
            return Models.varint(number << 3) + Models.varint(value)
        value = value.encode() if isinstance(value, str) else value
        return Models.varint(number << 3 | 2) + Models.varint(len(value)) + value

    @staticmethod
    def varint(value):
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes(out + bytes([value]))

    def value_info(self, name, dims):
        shape = b"".join(self.field(1, self.field(2, d) if isinstance(d, str) else self.field(1, d)) for d in dims)
        return self.field(1, name) + self.field(2, self.field(1, self.field(1, 1) + self.field(2, shape)))

    def model(self, name, op, x_dims, w_dims, y_dims):
        node = self.field(1, "x") + self.field(1, "w") + self.field(2, "y") + self.field(3, "the layer") + \
            self.field(4, op)
        weight = b"".join(self.field(1, d) for d in w_dims) + self.field(2, 1) + self.field(8, "w") + \
            self.field(9, bytes(4 * math.prod(w_dims)))
        graph = self.field(1, node) + self.field(2, "g") + self.field(5, weight) + \
            self.field(11, self.value_info("x", x_dims)) + self.field(12, self.value_info("y", y_dims))
        return self.write(name, self.field(1, 8) + self.field(7, graph) + self.field(8, self.field(2, 13)))

    def sizes(self, *words):
        found = analyze(*words, "--gpu", A100)
        layer = next(layer for layer in found["gpus"][0]["layers"] if layer["gemm"])
        return found["model"]["batch_size"], tuple(layer["gemm"][key] for key in ("batch", "m", "n", "k"))

    def test_an_open_batch_is_given(self):
        path = self.model("m.onnx", "MatMul", ["N", 512], [512, 256], ["N", 256])
        self.assertEqual(self.sizes(path), (1, (1, 1, 256, 512)))
        self.assertEqual(self.sizes(path, "--batch", "24"), (24, (1, 24, 256, 512)))
        self.assertEqual(self.sizes(path, "--set-dim", "N=24"), (24, (1, 24, 256, 512)))
        self.assertEqual(self.sizes(path, "--set-dim", "x:0=24"), (24, (1, 24, 256, 512)))

    def test_a_fixed_batch_is_scaled(self):
        path = self.model("m.onnx", "Conv", [2, 16, 30, 30], [32, 16, 3, 3], [2, 32, 28, 28])
        self.assertEqual(self.sizes(path), (2, (1, 2 * 28 * 28, 32, 144)))
        self.assertEqual(self.sizes(path, "--batch", "6"), (6, (1, 6 * 28 * 28, 32, 144)))

    def test_a_file_beats_no_network_of_the_same_name_unless_it_is_pointed_at(self):
        self.model("resnet50", "MatMul", [4, 64], [64, 32], [4, 32])
        for word, kind in (("resnet50", "built-in"), ("./resnet50", "onnx")):
            done = run("analyze", word, "--gpu", A100, "--json", cwd=self.folder.name)
            self.assertEqual(json.loads(done.stdout)["model"]["kind"], kind)


class Checker(html.parser.HTMLParser):
    """Tags must be closed in the order in which they were opened."""
    VOID = {"meta", "br", "rect", "line", "path", "circle", "polyline", "polygon", "use"}

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()


class Page(Scratch):
    def test_the_page_stands_alone_and_is_well_formed(self):
        path = self.path("page.html")
        done = run("analyze", "resnet18", "--gpu", A100, "--gpu", "t4", "--batch", "4", "--html", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, encoding="utf-8") as file:
            page = file.read()
        checker = Checker()
        checker.feed(page)
        checker.close()
        self.assertEqual(checker.open, [])
        self.assertGreaterEqual(page.count("<svg"), 2 * (1 + 9))
        self.assertIn("Layers and their tails", page)
        self.assertIn("wattgov wave analyze resnet18", page)
        self.assertNotIn("http://", page.replace("http://www.w3.org", ""))
        self.assertIsNone(re.search(r"\bnan\b|\binf\b", page))
        self.assertLess(len(page), 1 << 20)


class Refusals(Scratch):
    def refused(self, *words, parts, status=2):
        self.check_refused(run("analyze", *words, cwd=self.folder.name), *parts, status=status)

    def test_options_that_say_nothing_that_can_be_done(self):
        for words, *parts in [
                ([], "which model?"),
                (["resnet50"], "--gpu"),
                (["--gpu", A100], "which model?"),
                (["resnet50", "vgg16", "--gpu", A100], "unexpected argument 'vgg16'"),
                (["resnet50", "--gpu", A100, "--batch", "0"], "--batch: '0'", "1 .. 1048576"),
                (["resnet50", "--gpu", A100, "--batch", "1048577"], "--batch"),
                (["resnet50", "--gpu", A100, "--batch", "-1"], "--batch"),
                (["resnet50", "--gpu", A100, "--precision", "fp17"], "fp17", "fp16"),
                (["resnet50", "--gpu", A100, "--set-dim", "batch"], "--set-dim: 'batch'", "NAME=VALUE"),
                (["resnet50", "--gpu", A100, "--set-dim", "batch=0"], "--set-dim: 'batch=0'"),
                (["resnet50", "--gpu", A100, "--set-dim", "batch=99999999999"], "--set-dim"),
                (["resnet50", "--gpu", A100, "--set-dim", "=3"], "--set-dim: '=3'"),
                (["resnet50", "--gpu", A100, "--set-dim", "width=3"], "--set-dim", "width"),
                (["resnet50", "--gpu", A100, "--layers", "few"], "--layers: 'few'", "all"),
                (["resnet50", "--gpu", A100, "--layers", "-1"], "--layers"),
                (["resnet50", "--gpu", A100, "--max-waste", "15"], "--max-waste: '15'", "15%"),
                (["resnet50", "--gpu", A100, "--max-waste", "-1%"], "--max-waste"),
                (["resnet50", "--gpu", A100, "--max-waste", "%"], "--max-waste"),
                (["resnet50", "--gpu", A100, "--max-waste", "nan"], "--max-waste"),
                (["resnet50", "--gpu", A100, "--max-total-waste", "0x1"], "--max-total-waste"),
                (["resnet50", "--gpu", A100, "--max-batch", "4097"], "--max-batch"),
                (["resnet50", "--gpu", A100, "--times", "x.json"], "--times"),
                (["resnet50", "--gpu", A100, "--csv", "x", "--html", "x"], "same file 'x'"),
                (["resnet50", "--gpu", A100, "--csv", "x.gz"], ".gz"),
                (["resnet50", "--gpu", A100, "--gpu", "l4", "--batches", "x"], "--batches"),
                (["resnet50", "--gpu", A100, "--gpu", A100], "twice"),
        ]:
            with self.subTest(words=words):
                self.refused(*words, parts=parts)
                self.assertEqual(os.listdir(self.folder.name), [])

    def test_gpus_that_are_none_name_the_nearest(self):
        done = run("analyze", "resnet50", "--gpu", "a100-smx4-80gb")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1))
        self.assertIn(A100, done.stderr)

    def test_sizes_that_are_open_are_asked_for(self):
        parts = ["('sequence')", "; give it a value with --set-dim NAME=VALUE"]
        self.refused("bert-base", "--gpu", A100, parts=parts, status=1)

    def test_types_that_the_gpu_lacks_are_refused(self):
        done = run("analyze", "resnet50", "--gpu", "p6000", "--precision", "fp8")
        self.check_refused(done, "fp8", "p6000", status=1)

    def test_networks_that_are_none_name_the_nearest(self):
        self.refused("resnet51", "--gpu", A100, parts=["resnet51", "did you mean 'resnet5"], status=1)
        self.refused("yolo", "--gpu", A100, parts=["yolo", "resnet50", "vgg16"], status=1)

    def test_files_that_are_no_models(self):
        os.mkdir(self.path("folder.onnx"))
        self.write("empty.onnx", "")
        self.write("text.onnx", "hello, world\n" * 9)
        self.write("brace.json", "{")
        self.write("list.json", "[]")
        self.write("zip.gz", b"\x1f\x8b\x08")
        self.write("noise.onnx", bytes((i * 37 + 11) % 256 for i in range(4096)))
        self.write("zeros.onnx", bytes(4096))
        self.write("header.csv", "m,n,k,ms\n")
        for name in ("none.onnx", "folder.onnx", "empty.onnx", "text.onnx", "brace.json", "list.json", "zip.gz",
                     "noise.onnx", "zeros.onnx", "header.csv", "/dev/null", "empty.onnx/x"):
            with self.subTest(name=name):
                self.refused(name, "--gpu", A100, parts=[os.path.basename(name)], status=1)

    def test_a_size_that_is_open_is_asked_for(self):
        self.refused("bert-base", "--gpu", A100, parts=["sequence"], status=1)

    def test_products_beyond_all_measure_are_an_error(self):
        done = run("analyze", "bert-base", "--gpu", A100, "--batch", "1048576", "--set-dim", "sequence=2147483647")
        self.assertIn(done.returncode, (1, 2))
        self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1))

    def test_a_full_disk_is_told(self):
        for words in ([], ["--json"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = run("analyze", "resnet18", "--gpu", A100, *words, stdout=full)
            self.check_refused(done, "No space left", status=1)
        for option in ("--csv", "--html", "--batches"):
            done = run("analyze", "resnet18", "--gpu", A100, "--max-batch", "4", option, "/dev/full")
            self.check_refused(done, "/dev/full", "No space", status=1)

    def test_names_cannot_steer_the_terminal(self):
        done = run("analyze", "\x1b[31m.onnx", "--gpu", A100)
        self.assertNotIn("\x1b", done.stderr)
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if not os.path.exists(PROGRAM):
        sys.exit(f"{PROGRAM} does not exist")
    unittest.main()
