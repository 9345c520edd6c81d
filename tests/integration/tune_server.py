#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`wattgov tune --server`: a served model, tuned under our own load and under that of others.

    tests/integration/tune_server.py build/release/vgpu

The server is fake_server.py, whose law is known; tests/peers/triton has the real one.
"""
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

import vgpu_case
from tune import Case
from vgpu_case import ROOT, wait_for


class Served(Case):
    """A server whose law is known (fake_server.py)."""

    def setUp(self):
        super().setUp()
        self.url = self.serve()

    def serve(self, *arguments):
        server = subprocess.Popen(["/usr/bin/python3", os.path.join(ROOT, "tests/integration/fake_server.py"),
                                   "--batch-base-ms", "5", "--memory-rows", "16", *arguments], stdout=subprocess.PIPE, text=True)
        self.stack.callback(server.stdout.close)
        self.stack.callback(server.wait)
        self.stack.callback(server.kill)
        return f"http://127.0.0.1:{json.loads(server.stdout.readline())['http']}"

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(self.url + path, data, timeout=10) as answer:
            return json.loads(answer.read() or b"null")

    def plan(self, path, *answers):
        self.ask("/fake/plan", {"path": path, "answers": answers})

    def load_by_hand(self):
        """What the repository does not have; the configuration then."""
        config = self.configuration()
        config["parameters"]["threads"]["string_value"] = "9"
        self.ask("/v2/repository/models/m/load", {"parameters": {"config": json.dumps(config)}})
        return config

    MODEL = ("--model", "m", "--shape", "x:1x3", "--energy", "model:busy=60,idle=20", "--warm-up", "100ms")
    BRIEFLY = ("--min-window", "100ms", "--max-window", "100ms", "--min-windows", "1", "--max-windows", "1", "--precision",
               "0.2")
    ONE_SECOND = ("--min-window", "1s", "--max-window", "1s", "--min-windows", "1", "--max-windows", "1")

    def configuration(self):
        return self.ask("/v2/models/m/config")


class Serving(Served):
    """Under our own load."""

    def test_finds_the_batch_that_serves_the_load(self):
        # 5 ms a batch of any size: 400 requests a second are more than batches of one can serve.
        found = self.result("--server", self.url, "--model", "m", "--shape", "x:1x3", "--knob",
                            "batch=1,4,8,32:batch:default=1", "--arrivals", "poisson:400", "--slo", "p99<=50ms", "--energy", "model:busy=60,idle=20",
                            "--min-window", "300ms", "--max-window", "500ms", "--precision", "0.1", "--warm-up", "100ms",
                            "--max-trials", "5")
        outcomes = {trial["settings"]["batch"]: trial["outcome"] for trial in found["trials"]}
        # The default is measured whole, however bad it is: all else is compared with it.
        self.assertEqual((found["trials"][0]["settings"]["batch"], outcomes[1]), (1, "measured"))
        self.assertGreater(found["trials"][0]["limits"][0], 0.05)
        self.assertIn(found["returned"]["settings"]["batch"], (4, 8))
        if 32 in outcomes:
            self.assertEqual(outcomes[32], "out_of_memory")
        self.assertIn("stated model", found["energy"]["text"])
        served = [trial for trial in found["trials"] if trial["outcome"] == "measured" and trial["limits"][0] <= 0.05][0]["figures"]
        self.assertAlmostEqual(served["requests_per_s"], 400, delta=80)

    def test_idle_time_costs_idle_power_and_the_load_is_the_same_for_all(self):
        found = self.result("--server", self.url, *self.MODEL, *self.ONE_SECOND, "--knob", "batch=1,2:batch", "--arrivals",
                            "poisson:20", "--max-trials", "2")
        for trial in found["trials"]:
            figures = trial["figures"]
            # 20 requests of 5 ms: a tenth of the second, and what a busy machine adds.
            self.assertTrue(0.03 < figures["busy_s"] < 0.5, figures)
            self.assertAlmostEqual(figures["energy_j"], 60 * figures["busy_s"] + 20 * (figures["time_s"] - figures["busy_s"]),
                                   delta=0.01)
            self.assertAlmostEqual(figures["energy_per_request_j"], figures["energy_j"] / (20 * figures["time_s"]), delta=1e-3)
            # Joules, answers and executions are of the same stretch: one at either end may be half in it.
            self.assertAlmostEqual(figures["executions"] * figures["batch_mean"], figures["requests"], delta=2)
        came = [trial["figures"]["samples"] for trial in found["trials"]]
        self.assertLessEqual(abs(came[0] - came[1]), 2, came)

    def test_a_stated_model_needs_to_know_how_long_the_server_works(self):
        url = self.serve("--no-statistics")
        words = ("--server", url, *self.MODEL, *self.ONE_SECOND, "--knob", "batch=1,2:batch", "--max-trials", "2")
        done = self.tune(*words, "--arrivals", "poisson:20")
        self.assertEqual(done.returncode, 1)
        self.assertIn("how long the server works", done.stderr)
        # In a closed loop it never rests.
        figures = self.result(*words)["trials"][0]["figures"]
        self.assertAlmostEqual(figures["busy_s"], figures["time_s"], delta=0.01)

    def test_counts_that_get_lost_are_a_crash_of_the_server(self):
        # Whenever it happens: what is told needs them, and they were there before. (A default that crashed is tried again.)
        told = 0
        for lost in range(2, 9):
            with self.subTest(lost=lost):
                done = self.tune("--json", "--server", self.serve("--lost-statistics", str(lost)), *self.MODEL, *self.BRIEFLY,
                                 "--knob", "batch=1,2:batch", "--max-trials", "3", "--objective", "energy:service_s / batch_mean")
                self.assertEqual(done.returncode, 0, done.stderr)
                trials = json.loads(done.stdout)["trials"]
                self.assertIn("measured", [trial["outcome"] for trial in trials])
                for trial in trials:
                    self.assertEqual("service_s" in trial["figures"], trial["outcome"] == "measured", trial)
                told += "crashed" in done.stderr and "has no available versions" in done.stderr
        self.assertGreaterEqual(told, 3)

    def test_the_model_has_its_own_configuration_at_the_end(self):
        before = self.configuration()
        words = ("--server", self.url, *self.MODEL, *self.BRIEFLY, "--knob", "batch=1,2:batch", "--max-trials", "2")
        found = self.result(*words)
        self.assertEqual(self.configuration(), before)
        self.assertIn("has the configuration that it had before again", found["workload_end"])
        # A hopeless goal, an interruption.
        self.assertEqual(self.tune(*words, "--objective", "nonsense_j").returncode, 1)
        self.assertEqual(self.configuration(), before)
        process = self.in_background(*words, "-o", self.path("r.yaml"))
        wait_for(lambda: self.configuration() != before, "another configuration")
        process.send_signal(signal.SIGINT)
        self.assertIn("again", process.communicate()[1])
        self.assertEqual(self.configuration(), before)

    def test_a_configuration_that_cannot_be_read_is_not_lost(self):
        before = self.load_by_hand()
        words = ("--server", self.url, *self.MODEL, *self.BRIEFLY, "--knob", "batch=1,2:batch", "--max-trials", "2")
        for at, wrong in ((0, (503, "")), (1, (503, "")), (1, (200, "{}")), (1, (200, "[]")), (2, (200, "{"))):
            with self.subTest(wrong=wrong, at=at):
                self.plan("/v2/models/m/config", *[(0, "")] * at, wrong)
                done = self.tune(*words)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.configuration(), before)

    def test_it_can_be_left_with_what_is_returned(self):
        words = ("--server", self.url, *self.MODEL, *self.BRIEFLY, "--knob", "batch=1,2:batch", "--max-trials", "2")
        found = self.result(*words, "--leave", "returned")
        left = self.configuration()
        self.assertEqual(left["max_batch_size"], found["returned"]["settings"]["batch"])
        # From then on that is the model's own: nobody was killed, and the next run gives it back.
        self.assertIn("that it had before again", self.result(*words)["workload_end"])
        self.assertEqual(self.configuration(), left)

    def test_who_is_killed_leaves_it_to_the_next_run(self):
        before = self.configuration()
        words = ("--server", self.url, *self.MODEL, *self.BRIEFLY, "--knob", "batch=1,2:batch", "--max-trials", "2")
        process = self.in_background(*words)
        wait_for(lambda: self.configuration() != before, "another configuration")
        process.kill()
        process.communicate()
        self.assertNotEqual(self.configuration(), before)
        done = self.tune(*words, "-o", self.path("r.yaml"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("that it had before an earlier run again", done.stderr)
        self.assertEqual(self.configuration(), before)
        self.assertEqual([name for name in os.listdir(self.path("state/servers")) if name.endswith(".json")], [])

    def test_a_signal_is_heard_while_the_server_does_not_answer(self):
        before = self.load_by_hand()
        load, words = "/v2/repository/models/m/load", ("--knob", "batch=1,2:batch", "--max-trials", "2", "--ready-timeout", "40s")
        for path, answers in ((load, ((0, ""), (-1, ""))), ("/v2/models/m", ((-1, ""),)), ("/v2/models/m/stats", ((0, ""), (-1, "")))):
            with self.subTest(path=path):
                self.plan(path, *answers)
                process = self.in_background("--server", self.url, *self.MODEL, *self.BRIEFLY, *words)
                wait_for(lambda: self.ask("/fake/plan/left") == 0, "the request that is not answered")
                begin = time.monotonic()
                process.send_signal(signal.SIGTERM)
                self.assertIn("again", process.communicate()[1])
                self.assertLess(time.monotonic() - begin, 10)
                self.assertEqual((process.returncode, self.configuration()), (128 + signal.SIGTERM, before))
        # What it had cannot be given back either: a second signal leaves that to the next run.
        self.plan(load, (0, ""), (-1, ""), (-1, ""))
        process = self.in_background("--server", self.url, *self.MODEL, *self.BRIEFLY, *words)
        for left in (1, 0):
            wait_for(lambda left=left: self.ask("/fake/plan/left") == left, "the request that is not answered")
            process.send_signal(signal.SIGTERM)
        self.assertIn("the next tune or tune apply of it gives it back", process.communicate()[1])
        self.assertEqual(self.tune("--server", self.url, *self.MODEL, *self.BRIEFLY, *words).returncode, 0)
        self.assertEqual(self.configuration(), before)

    def test_a_signal_is_heard_while_a_server_starts(self):
        process = self.in_background("--server", "http://127.0.0.1:9", *self.MODEL, *self.BRIEFLY, "--knob", "batch=1,2:batch", "-v",
                                     "--", "sh", "-c", f"touch {self.path('began')}; exec tail -f --pid=$PPID /dev/null")
        wait_for(lambda: os.path.exists(self.path("began")), "the server's start")
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.communicate()
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertLess(time.monotonic() - begin, 10)

    def test_one_at_a_time_sets_a_model(self):
        before = self.configuration()
        words = ("--server", self.url, *self.MODEL, *self.BRIEFLY, "--knob", "batch=1,2:batch", "--max-trials", "2")
        process = self.in_background(*words)
        wait_for(lambda: self.configuration() != before, "another configuration")
        process.send_signal(signal.SIGSTOP)
        done = self.tune(*words)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"model m at {self.url} is set by another wattgov (pid {process.pid})", done.stderr)
        process.communicate()
        self.assertEqual((process.returncode, self.configuration()), (0, before))

    def test_a_wrong_set_up_is_no_data(self):
        # Without a repository the model is not found (404); Triton tries to load what there is not (500).
        for arguments in ((), ("--explicit",)):
            for knob in ("batch=1,2:batch", "concurrency=1,2:batch"):
                done = self.tune("--server", self.serve(*arguments), "--model", "nope", *self.MODEL[2:], *self.BRIEFLY,
                                 "--knob", knob)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("is the model's name right? It has: m, other", done.stderr)
                self.assertNotIn("crashed", done.stderr)

    def test_a_knob_without_a_place_is_told_before_anything_is_asked(self):
        nowhere = ("--server", "http://127.0.0.1:9", "--model", "m", "--energy", "model:busy=60,idle=20")
        for more in ((), ("--dry-run",)):
            done = self.tune(*nowhere, "--knob", "foo=1,2:batch", *more)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn("knob 'foo': tell its place", done.stderr)
            done = self.tune(*nowhere, "--protocol", "openai", "--knob", "batch=1,2:batch", *more)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn("which an OpenAI server does not have", done.stderr)
        done = self.tune(*nowhere, "--knob", "batch=1,2:batch", "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("a dry run asks no server: what the model has is the default instead", done.stdout)
        done = self.tune(*nowhere, "--knob", "batch=1,2:batch", "--dry-run", "--", "serve", "{batch}")
        self.assertNotIn("asks no server", done.stdout)

    def test_what_the_server_has_is_the_default_where_it_is_a_level(self):
        # It has max_batch_size 4, no delay and one instance.
        words = ("--server", self.url, *self.MODEL, *self.BRIEFLY, "--max-trials", "1", "--knob", "batch=1,2,4:batch")
        done = self.tune("--json", *words, "--knob", "delay=1ms,0s:delay", "--knob", "instances=2,3")
        first = json.loads(done.stdout)["trials"][0]["settings"]
        self.assertEqual((first["batch"], first["delay"], first["instances"]), (4, 0, 2))
        self.assertIn("the default that all is compared with is what the server has: batch 4, delay 0 ms\n", done.stderr)
        self.assertIn("is not what the server has, which is no level: instances 2\n", done.stderr)
        # Whoever says another one gets that, and a configuration that is forbidden is none.
        done = self.tune("--json", *words[:-1], words[-1] + ":default=2")
        self.assertEqual(json.loads(done.stdout)["trials"][0]["settings"], {"batch": 2})
        self.assertNotIn("what the server has", done.stderr)
        done = self.tune("--json", *words, "--knob", "delay=1ms,0s:delay", "--forbid", "batch==4 && delay==0")
        self.assertEqual(json.loads(done.stdout)["trials"][0]["settings"], {"batch": 1, "delay": 0.001})
        self.assertIn("is forbidden, and no default", done.stderr)

    def test_numbers_of_a_category_are_what_they_say(self):
        found = self.result("--server", self.url, "--protocol", "openai", "--energy", "model:busy=60,idle=20", "--warm-up",
                            "100ms", *self.BRIEFLY, "--knob", "max_tokens=2,4:category", "--max-trials", "2")
        self.assertEqual([trial["outcome"] for trial in found["trials"]][0], "measured")
        figures = found["trials"][0]["figures"]
        self.assertAlmostEqual(figures["energy_per_token_j"] * figures["tokens"], figures["energy_j"], delta=1e-6)

    def test_the_counts_of_a_server_are_of_batches(self):
        found = self.result("--server", self.url, *self.MODEL, *self.BRIEFLY, "--knob", "batch=1,4:batch", "--statistics",
                            "triton", "--max-trials", "2")
        means = {trial["settings"]["batch"]: trial["figures"]["batch_mean"] for trial in found["trials"]}
        self.assertGreater(means[4], 1.5)
        done = self.tune("--server", self.url, *self.MODEL, *self.BRIEFLY, "--knob", "batch=4:batch", "--statistics", "triton",
                         "--concurrency", "1")
        self.assertIn("no batch above 1 was seen", done.stderr)

    def test_what_a_server_says_is_printed_without_its_control_characters(self):
        self.plan("/v2/models/m/infer", *[(500, json.dumps({"error": "a\u009b31m\u001b[31m\u00e4"}))] * 99)
        done = self.tune("--server", self.url, *self.MODEL, *self.BRIEFLY, "--knob", "batch=1:batch")
        self.assertEqual(done.returncode, 1)
        self.assertIn("crashed: HTTP status 500: a??31m [31m\u00e4\n", done.stderr)

    def test_answers_without_an_answer_are_none(self):
        words = ("--server", self.url, "--protocol", "openai", *self.MODEL[4:], *self.BRIEFLY, "--knob", "concurrency=1:cores")
        for stream, text, why in ((("--stream",), "data: [DONE]\n\n", "the stream holds nothing but its end"),
                                  ((), '{"choices": []}', "the answer's list 'choices' is empty")):
            self.plan("/v1/completions", *[(200, text)] * 99)
            done = self.tune(*words, *stream)
            self.assertEqual(done.returncode, 1)
            self.assertIn("crashed: " + why, done.stderr)

    def test_a_load_of_others_that_does_not_come_is_told(self):
        done = self.tune("--server", self.url, *self.MODEL, *self.BRIEFLY, "--statistics", "triton", "--foreign-load", "--knob",
                         "batch=1:batch")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nobody has sent a request for 0.1", done.stderr)

    def test_a_server_that_is_not_there_is_told(self):
        done = self.tune("--server", "http://127.0.0.1:9", "--model", "m", "--knob", "batch=1,2:batch", "--energy",
                         "model:busy=60,idle=20")
        self.assertEqual(done.returncode, 1)
        self.assertIn("127.0.0.1:9", done.stderr)

    def test_joules_that_nobody_tells_are_missed_before_anything_runs(self):
        done = self.tune("--server", self.url, *self.MODEL[:4], "--knob", "batch=1,2:batch", "--energy", "command", "--dry-run")
        self.assertEqual(done.returncode, 2)
        self.assertIn("a server tells no joules", done.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    vgpu_case.main(__doc__)
