#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`wattgov tune` on the real Triton: it finds a configuration, serves it, and perf_analyzer agrees; and it survives the
death of the server. Small, for every run of the tests: bench/tune_triton.py is the whole thing.

    tests/peers/triton/tune_triton.py WATTGOV CACHE
"""
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import install  # noqa: E402  pylint: disable=wrong-import-position
import tuning  # noqa: E402  pylint: disable=wrong-import-position
from server import Server, skip  # noqa: E402  pylint: disable=wrong-import-position

WATTGOV, CACHE = "build/release/wattgov", "build/peers"
RATE, LIMIT_S = 40, 0.5
KNOBS = {"batch": [1, 4, 8], "delay": [0, 0.002], "instances": [1, 2]}


class TuneTriton(unittest.TestCase):
    def check_result(self, result, trials):
        self.assertEqual(result["schema"], "wattgov.tune/1")
        self.assertEqual(result["configurations"], 12)
        first = result["trials"][0]["settings"]
        self.assertEqual((first["batch"], first["delay"], first["instances"]), (1, 0, 1), "the default comes first")
        self.assertLessEqual(len(result["trials"]), trials)
        measured = [trial for trial in result["trials"] if trial["outcome"] == "measured"]
        self.assertGreaterEqual(len(measured), 1)
        for trial in measured:
            self.assertGreater(trial["figures"]["requests"], 10)
            self.assertLess(trial["figures"]["p50_s"], trial["figures"]["p99_s"])
            # What was asked for is what was served: no batch is larger than allowed.
            self.assertLessEqual(trial["figures"]["batch_mean"], trial["settings"]["batch"])
        self.assertTrue(result["is_feasible"], result["why"])
        return measured

    def test_it_finds_one_that_perf_analyzer_confirms(self):
        with Server(CACHE, ["detector"]) as server:
            told = tuning.arguments(server, "detector", RATE, LIMIT_S, KNOBS, max_trials=3, max_window_s=2)
            result, said = tuning.tune(WATTGOV, told, 120)
            measured = self.check_result(result, 3)
            returned = result["returned"]["settings"]
            try:
                install.perf_analyzer(CACHE)
            except install.Unavailable as unavailable:
                print(f"perf_analyzer is left out: {unavailable}")
                return
            medians = tuning.confirm(CACHE, server, "detector", {"returned": returned}, RATE, rounds=1, interval_s=1.5)
        # It offers the same rate, some 60 to 120 requests: 5 standard deviations. Latencies of a shared machine: within 4 times.
        self.assertAlmostEqual(medians["returned"]["requests_per_s"], RATE, delta=RATE * 0.65, msg=said)
        ours = [trial["figures"]["p50_s"] for trial in measured if trial["settings"] == returned]
        self.assertTrue(min(ours) / 4 < medians["returned"]["p50_s"] < 4 * max(ours), (ours, medians))
        self.assertLess(medians["returned"]["p50_s"], LIMIT_S)

    def test_it_survives_the_death_of_the_server(self):
        with Server(CACHE, ["voice"], supervise=True) as server:
            told = tuning.arguments(server, "voice", RATE, LIMIT_S, KNOBS, max_trials=4, max_window_s=2)
            killers = [threading.Timer(after_s, server.kill) for after_s in (4, 10)]
            for killer in killers:
                killer.start()
            try:
                result, said = tuning.tune(WATTGOV, told, 180)
            finally:
                for killer in killers:
                    killer.cancel()
            self.assertGreaterEqual(server.starts, 2, "it was killed while the tuning ran: " + said)
        self.check_result(result, 4)


if __name__ == "__main__":
    WATTGOV, CACHE = os.path.abspath(sys.argv.pop(1)), sys.argv.pop(1)
    try:
        install.tritonserver(CACHE)
    except install.Unavailable as unavailable:
        skip(str(unavailable))
    unittest.main()
