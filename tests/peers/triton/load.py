#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Our load and our reconfiguration beside the real Triton, by HTTP and by gRPC.

    tests/peers/triton/load.py CACHE BUILD

The oracle is Triton itself: its own counts of the window, the configuration that it tells afterwards.
"""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import install  # noqa: E402  pylint: disable=wrong-import-position
from server import MODELS, Server, skip  # noqa: E402  pylint: disable=wrong-import-position

CACHE = sys.argv[1] if len(sys.argv) > 1 else "build/peers"
BUILD = sys.argv[2] if len(sys.argv) > 2 else "build/release"
DRIVER = os.path.join(BUILD, "tests/integration/load_driver")
WINDOW = ("measure", "min_s=0.6", "max_s=0.6", "hung_s=20")


class Load(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(CACHE, supervise=True)
        cls.server.__enter__()
        cls.ways = {"http": [f"url=http://{cls.server.http}"],
                    "grpc": [f"url=http://{cls.server.grpc}", "protocol=kserve_grpc",
                             f"control_url=http://{cls.server.http}"]}

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)

    def drive(self, *words, may_fail=False):
        done = subprocess.run([DRIVER, *words], stdout=subprocess.PIPE, text=True, timeout=120, check=not may_fail)
        told = [json.loads(line) for line in done.stdout.splitlines()]
        for step in told:
            self.assertTrue(may_fail or step["error"] is None, step)
        return told

    def counts(self, model):
        return self.server.ask(f"/v2/models/{model}/stats")["model_stats"][0]

    def test_each_model_takes_our_requests(self):
        for name in MODELS:
            for way in self.ways.values():
                told = self.drive(*way, f"model={name}", "concurrency=2", "warm_up_s=0.2", "--", "set", *WINDOW)
                self.assertEqual(told[-1]["outcome"], "ok", told[-1])
                self.assertEqual(told[-1]["figures"]["errors"], 0)
                self.assertGreater(told[-1]["figures"]["requests"], 3)

    def test_what_we_count_is_what_triton_counts(self):
        for way in self.ways.values():
            self.drive(*way, "model=voice", "--", "set", "batch=4", "delay=0")
            before = self.counts("voice")
            told = self.drive(*way, "model=voice", "concurrency=4", "warm_up_s=0.2", "--", "set", "batch=4", "delay=0.002",
                              *WINDOW)[-1]
            after = self.counts("voice")  # the load was new, so its counts began at nothing
            self.assertEqual(before["inference_count"], 0)
            self.assertEqual(after["inference_stats"]["fail"]["count"], 0)
            figures = told["figures"]
            self.assertGreaterEqual(after["inference_count"], figures["requests"])
            self.assertLessEqual(figures["executions"], after["execution_count"])
            # Ours are of the window alone: at each of its ends at most the requests in flight are counted by one
            # side only. Triton's are of the warm-up and the drain too, whose batches are alike.
            self.assertAlmostEqual(figures["executions"] * figures["batch_mean"], figures["requests"], delta=2 * 4)
            overall = after["inference_count"] / after["execution_count"]
            self.assertAlmostEqual(figures["batch_mean"], overall, delta=0.1 * overall)
            # What Triton saw of a request is within what we saw of it.
            seen_s = after["inference_stats"]["success"]["ns"] * 1e-9 / after["inference_stats"]["success"]["count"]
            self.assertLess(seen_s, figures["mean_s"] * 1.2)
            self.assertGreater(seen_s, figures["mean_s"] * 0.3)

    def test_knobs_are_what_it_tells_afterwards(self):
        for way in self.ways.values():
            told = self.drive(*way, "model=voice", "--", "set", "batch=3", "delay=0.0007", "instances=2", "threads=2",
                              "set", "batch=16", "delay=0", "instances=1", "threads=1", *WINDOW)
            for step in told:
                self.assertEqual(step["outcome"], "ok", step)
            self.assertGreater(told[2]["switch_s"], 0)
            config = self.server.ask("/v2/models/voice/config")
            self.assertEqual(config["max_batch_size"], 16)
            self.assertEqual(config["instance_group"][0]["count"], 1)
            self.assertEqual(config["parameters"]["threads"]["string_value"], "1")
            self.assertEqual(config["dynamic_batching"]["max_queue_delay_microseconds"], 0)

    def test_a_load_that_it_refuses_is_an_outcome(self):
        told = self.drive(*self.ways["http"], "model=voice", "path=kind:backend", "--", "set", "kind=nonsense")
        self.assertEqual(told[1]["outcome"], "crashed")
        self.assertIn("voice", told[1]["why"])

    def test_a_model_that_it_does_not_have_is_a_wrong_set_up_and_no_data(self):
        told = self.drive(*self.ways["http"], "model=nobody", "--", "set", "batch=2", may_fail=True)
        self.assertIn("is the model's name right? It has: " + ", ".join(sorted(MODELS)), told[-1]["error"])

    def test_after_a_kill_the_configuration_is_set_again(self):
        for way in self.ways.values():
            knobs = ["batch=5", "delay=0.0003"]
            driver = subprocess.Popen([DRIVER, *way, "model=voice", "timeout_s=5", "--", "set", *knobs, *WINDOW, "wait",
                                       *WINDOW, "recover", "set", *knobs, *WINDOW],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(3):
                self.assertIsNone(json.loads(driver.stdout.readline())["error"])
            self.server.kill()
            told, _ = driver.communicate("\n", timeout=120)
            steps = [json.loads(line) for line in told.splitlines()]
            self.assertIn(steps[0]["outcome"], ("crashed", "ok"))  # ok: it was there again in time
            for step in steps[1:]:
                self.assertEqual((step["error"], step["outcome"]), (None, "ok"), step)
            config = self.server.ask("/v2/models/voice/config")
            self.assertEqual(config["max_batch_size"], 5)
            self.assertEqual(config["dynamic_batching"]["max_queue_delay_microseconds"], 300)


if __name__ == "__main__":
    try:
        install.tritonserver(CACHE)
    except install.Unavailable as unavailable:
        skip(str(unavailable))
    unittest.main(argv=sys.argv[:1])
