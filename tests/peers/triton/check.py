#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The harness itself: Triton serves each model as onnxruntime alone would, is reconfigured, dies and comes back.

    tests/peers/triton/check.py CACHE
"""
import json
import os
import subprocess
import sys
import time
import unittest
import urllib.error

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import install  # noqa: E402  pylint: disable=wrong-import-position
import perf  # noqa: E402  pylint: disable=wrong-import-position
from server import MODELS, Server, skip  # noqa: E402  pylint: disable=wrong-import-position

CACHE = "build/peers"

# Run by the interpreter that has onnxruntime: the answer to an input of equal numbers.
ORACLE = """
import json, sys
import numpy, onnxruntime
told = json.load(sys.stdin)
session = onnxruntime.InferenceSession(told["path"], providers=["CPUExecutionProvider"])
feed = {name: numpy.full([1 if size == -1 else size for size in entry["shape"]], entry["value"], dtype=entry["type"])
        for name, entry in told["feed"].items()}
source = next(entry.name for entry in session.get_inputs() if entry.name not in feed)
kind = {"TYPE_FP32": "float32", "TYPE_INT32": "int32"}[told["type"]]
feed[source] = numpy.full([1, *told["dims"]], told["value"], dtype=kind)
print(json.dumps(session.run(None, feed)[0].reshape(-1).tolist()))
"""


def request(name, value, count=1):
    """The body of an inference over `count` equal rows."""
    source, kind, dims = MODELS[name]["input"]
    size = count
    for length in dims:
        size *= length
    return {"inputs": [{"name": source, "shape": [count, *dims], "datatype": kind[len("TYPE_"):], "data": [value] * size}]}


class Harness(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(CACHE, supervise=True)
        cls.server.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)

    def answer(self, name, value, count=1):
        return self.server.ask(f"/v2/models/{name}/infer", request(name, value, count), timeout=30)["outputs"][0]

    def test_each_model_answers_as_onnxruntime_does(self):
        for name, model in MODELS.items():
            value = 3 if model["input"][1] == "TYPE_INT32" else 0.25
            told = {"path": os.path.join(self.server.packages, model["file"]), "feed": model.get("feed", {}),
                    "type": model["input"][1], "dims": model["input"][2], "value": value}
            done = subprocess.run([install.python(CACHE), "-c", ORACLE], input=json.dumps(told), text=True,
                                  stdout=subprocess.PIPE, check=True)
            expected = json.loads(done.stdout)
            output = self.answer(name, value, 2)
            self.assertEqual(output["shape"], [2, *model["output"][2]], name)
            self.assertEqual(len(output["data"]), 2 * len(expected), name)
            for actual, wanted in zip(output["data"], expected * 2):
                self.assertAlmostEqual(actual, wanted, delta=2e-3, msg=name)

    def test_any_number_is_a_valid_input_of_magika(self):
        for value in (-5, 0, 2**31 - 1):
            self.assertEqual(self.answer("magika", value)["shape"], [1, 214])

    def test_the_configuration_that_was_asked_for_is_served(self):
        self.server.load("voice", batch=4, delay_us=700, instances=2, threads=2)
        told = self.server.ask("/v2/models/voice/config")
        self.assertEqual(told["max_batch_size"], 4)
        self.assertEqual(int(told["dynamic_batching"]["max_queue_delay_microseconds"]), 700)
        self.assertEqual(told["instance_group"][0]["count"], 2)
        self.assertEqual(told["parameters"]["threads"]["string_value"], "2")
        self.assertEqual(self.answer("voice", 0.0, 4)["shape"], [4, 1])
        with self.assertRaises(urllib.error.HTTPError):
            self.answer("voice", 0.0, 5)

    def test_perf_analyzer_measures_it(self):
        try:
            install.perf_analyzer(CACHE)
        except install.Unavailable as unavailable:
            self.skipTest(str(unavailable))
        before = self.server.ask("/v2/models/classifier/stats")["model_stats"][0]["inference_count"]
        told = perf.analyze(CACHE, self.server, "classifier", interval_s=0.5)
        after = self.server.ask("/v2/models/classifier/stats")["model_stats"][0]["inference_count"]
        self.assertGreater(after, before)
        self.assertTrue(0 < told["p50_s"] <= told["p95_s"] <= told["p99_s"] < 10, told)
        # One at a time: the rate is what the mean latency lets through, which lies near the median at most times.
        self.assertTrue(0.2 < told["requests_per_s"] * told["p50_s"] < 2, told)

    def test_z_a_killed_server_comes_back(self):
        before = self.server.starts
        self.server.kill()
        deadline = time.monotonic() + 30
        while (self.server.starts == before or not self.server.is_ready()) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.server.starts, before + 1)
        self.assertEqual(self.answer("classifier", 0.5)["shape"], [1, 2])


if __name__ == "__main__":
    CACHE = sys.argv.pop(1)
    try:
        install.tritonserver(CACHE)
    except install.Unavailable as unavailable:
        skip(str(unavailable))
    unittest.main()
