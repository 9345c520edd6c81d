#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`wattgov wave import` as its users call it: profiles and graphs are shown, and become measurements.

    wave_import.py PROGRAM
"""
import csv
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.environ.get("WATTGOV_SOURCE_ROOT", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
PROFILES = os.path.join(ROOT, "tests/golden/profiles")
FP16 = os.path.join(PROFILES, "tensorrt-fp16.graph.json.gz")
NCU = os.path.join(PROFILES, "ncu.log.gz")
PROGRAM = None


def run(*arguments):
    return subprocess.run([PROGRAM, "wave", "import", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=100, check=False)


class Import(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, *arguments):
        done = run(*arguments, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        document = json.loads(done.stdout)
        self.assertEqual(document["schema"], "wattgov.wave.import/1")
        return document["files"]

    def fails(self, status, *arguments):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("wattgov wave import: "), done.stderr)
        return done.stderr

    def test_what_is_in_no_layer_is_told(self):
        loop = os.path.join(ROOT, "tests/fuzz/corpus/onnx/loop")
        [graph] = self.read(loop)
        self.assertEqual((graph["nodes_left_out"], graph["layers"]), (3, []))
        self.assertIn("note: 3 nodes are in no layer and no total", run(loop).stdout)
        [whole] = self.read("resnet18")
        self.assertEqual(whole["nodes_left_out"], 0)
        self.assertNotIn("note:", run("resnet18").stdout)

    def test_an_engine_shows_its_grids_and_times(self):
        [engine] = self.read(FP16)
        self.assertEqual((engine["kind"], engine["device"], engine["sms"]), ("tensorrt", "NVIDIA A100 80GB PCIe", 108))
        self.assertEqual(engine["batch"], 32)
        layers = {layer["name"]: layer for layer in engine["layers"]}
        for name, blocks in (("Conv_3 + Relu_4", 392), ("Conv_15", 98), ("Conv_16 + Add_17 + Relu_18", 196),
                             ("Conv_26", 100)):
            layer = layers[name]
            self.assertEqual(layer["blocks"], blocks)
            self.assertAlmostEqual(layer["blocks_per_sm"], blocks / 108, places=12)
            rounds = -(-blocks // 108)
            self.assertAlmostEqual(layer["tail_share"], 1 - blocks / 108 / rounds, places=12)
            self.assertGreater(layer["time_s"], 0)
        self.assertIsNone(layers["MaxPool_2"]["m"])
        self.assertEqual(layers["Conv_26"]["conv"]["C"], 256)
        text = run(FP16).stdout
        self.assertIn("108 SMs, batch 32, 25 layers, 1.017 ms", text)
        self.assertRegex(text, r"Conv_15 +fp16 +1 +25088 +128 +1152 +256x128 +98 +0\.91 +- +9 % +0\.0410\n")

    def test_several_files_are_shown_one_after_the_other(self):
        engine, kernel = self.read(FP16, NCU)
        self.assertEqual((engine["kind"], kernel["kind"]), ("tensorrt", "ncu"))
        [layer] = kernel["layers"]
        self.assertEqual((layer["grid"], layer["blocks"], layer["waves"]), ([9, 32, 1], 288, 1.89))
        self.assertEqual(run(FP16, NCU).stdout, run(FP16).stdout + "\n" + run(NCU).stdout)

    def test_measurements_have_what_was_measured_and_is_known(self):
        done = run(FP16, NCU, "-o", self.path("m.csv"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(self.path("m.csv"), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        # The convolutions, the same ones as one; what ncu saw is no known product.
        self.assertEqual(sum(int(row["runs"]) for row in rows), 21)
        self.assertLess(len(rows), 21)
        # All 25 layers and ncu's kernel have a time; what was not written is said.
        self.assertEqual(done.stdout.splitlines()[-1], f"Written to {self.path('m.csv')}: {len(rows)} measurements of "
                         "21 layers; 5 measured ones multiply nothing that is known")
        told = json.loads(run(FP16, NCU, "-o", self.path("m.csv"), "--json").stdout)["output"]
        self.assertEqual(told, {"file": self.path("m.csv"), "rows": len(rows), "layers": 21, "left_out": 5})
        self.assertIsNone(json.loads(run(FP16, "--json").stdout)["output"])
        self.assertEqual({row["gpu"] for row in rows}, {"NVIDIA A100 80GB PCIe"})
        self.assertEqual({row["op"] for row in rows}, {"conv"})
        first = rows[1]
        self.assertEqual([first[key] for key in ("dtype", "N", "C", "K", "R", "S", "H", "W", "stride_h", "pad_w", "ms")],
                         ["fp16", "32", "64", "64", "3", "3", "56", "56", "1", "1", "0.053248"])  # the median of 4
        self.assertIn("no layer was measured", self.fails(1, NCU, "-o", self.path("n.csv")))
        self.assertFalse(os.path.exists(self.path("n.csv")))

    def test_the_gpu_of_a_profile_is_not_another_one(self):
        self.assertIn("132 SMs", self.fails(2, FP16, "--gpu", "h100-sxm-80gb"))
        [engine] = self.read(FP16, "--gpu", "a100-pcie-80gb")
        self.assertEqual(engine["device"], "a100-pcie-80gb")

    def test_built_in_networks_have_their_published_sizes(self):
        for name, parameters, products in (("vgg16", 138357544, 15.47e9), ("resnet18", 11689512, 1.814e9),
                                           ("resnet50", 25557032, 4.089e9), ("mobilenet-v2", 3504872, 0.3008e9),
                                           ("resnet56-cifar", 855770, 0.1257e9), ("vgg16-cifar", 14987722, 0.3135e9)):
            [network] = self.read(name, "--batch", "2")
            self.assertEqual(network["batch"], 2)
            self.assertEqual(sum(layer["parameters"] for layer in network["layers"]), parameters, name)
            flops = sum(layer["flops"] or 0 for layer in network["layers"])
            self.assertAlmostEqual(flops / (4 * products), 1, delta=0.001, msg=name)

    def test_berts_products_are_those_of_its_paper(self):
        [bert] = self.read("bert-base", "--set-dim", "sequence=128")
        layers = bert["layers"]
        self.assertEqual(sum(layer["parameters"] for layer in layers), 109482240)
        # A layer: 4 projections and 2 halves of the MLP for each token, and two products of attention.
        a_layer = 2 * 128 * (4 * 768 * 768 + 2 * 768 * 3072) + 2 * 2 * 128 * 128 * 768
        self.assertEqual(sum(layer["flops"] or 0 for layer in layers), 12 * a_layer + 2 * 768 * 768)
        self.assertIn("sequence", self.fails(1, "bert-base"))

    def test_shapes_of_a_graph_are_shown(self):
        [network] = self.read("resnet18", "--shapes", "--batch", "8")
        shapes = {tensor["name"]: tensor["shape"] for tensor in network["tensors"]}
        self.assertEqual(shapes["input"], [8, 3, 224, 224])
        self.assertEqual(shapes["layer4.1.conv2_out"], [8, 512, 7, 7])
        self.assertEqual(shapes["fc_out"], [8, 1000])
        text = run("bert-base", "--shapes").stdout  # layers would need the length; shapes need not
        self.assertRegex(text, r"embeddings\.LayerNorm_out +LayerNormalization +FLOAT +1 x sequence x 768\n")
        self.assertIn("--shapes", self.fails(2, NCU, "--shapes"))

    def test_profiles_are_read_from_pipes(self):
        """A named one, which a look at its beginning would use up, and one that a shell made."""
        with gzip.open(FP16) as file:
            text = file.read()
        os.mkfifo(self.path("pipe"))
        with open(self.path("alone.json"), "wb") as file:  # no times beside it
            file.write(text)
        whole = json.loads(run(self.path("alone.json"), "--json").stdout)["files"][0]["layers"]
        with subprocess.Popen([PROGRAM, "wave", "import", self.path("pipe"), "--json"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            with open(self.path("pipe"), "wb") as pipe:
                pipe.write(text)
            out, error = process.communicate(timeout=60)
        self.assertEqual((process.returncode, error), (0, b""))
        self.assertEqual(json.loads(out)["files"][0]["layers"], whole)
        done = subprocess.run([PROGRAM, "wave", "import", "/dev/stdin", "--json"], input=text, stdout=subprocess.PIPE,
                              timeout=60, check=True)
        self.assertEqual(json.loads(done.stdout)["files"][0]["layers"], whole)

    def test_own_measurements_are_counted(self):
        with open(self.path("m.csv"), "w", encoding="utf-8") as file:
            file.write("gpu,n,k,m,median_ms\na100,768,4096,1,0.008\na100,768,4096,2,0.012\n")
        [read] = self.read(self.path("m.csv"), "--precision", "fp16")
        self.assertEqual((read["kind"], read["rows"], read["unmeasured"]), ("measurements", 2, 0))
        [group] = read["groups"]
        self.assertEqual((group["gpu"], group["dtype"], group["rows"]), ("a100", "fp16", 2))
        self.assertAlmostEqual(group["best_flops_per_s"], 2 * 2 * 768 * 4096 / 12e-6, delta=1)
        self.assertIn("no column dtype", self.fails(1, self.path("m.csv")))

    def test_what_is_wrong_is_said_in_a_line(self):
        self.assertIn("which file?", self.fails(2))
        self.assertIn("'' is no file", self.fails(2, ""))
        self.assertIn("'' is no file", self.fails(2, FP16, ""))
        for header, part in (("m,n,us,dtype", "no column 'k'"), ("m,n,k,dtype", "no column with a time"),
                             ("m,n,k,us", "no column dtype; --precision says of which")):
            with open(self.path("own.csv"), "w", encoding="utf-8") as file:
                file.write(header + "\n1,2,3,4\n")
            self.assertIn("own.csv:1: " + part, self.fails(1, self.path("own.csv")))
        self.assertIn("resnet50", self.fails(1, "resnet5"))
        self.assertIn("No such file", self.fails(1, self.path("none.json")))
        with open(self.path("x.json"), "w", encoding="utf-8") as file:
            file.write('{"Layers": [{"Name": "a"}]}')
        self.assertIn("x.json: layer 1: no text \"LayerType\"", self.fails(1, self.path("x.json")))
        self.assertIn("--top", self.fails(2, FP16, "--top", "many"))

    def test_the_layers_with_the_most_time_come_first(self):
        lines = run(FP16, "--top", "2").stdout.splitlines()
        self.assertTrue(lines[4].startswith("Conv_0 + Relu_1"), lines)
        self.assertEqual(lines[6], "... and 23 more, of less time.")


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if not os.path.exists(PROGRAM):
        sys.exit(f"{PROGRAM} does not exist")
    unittest.main()
