#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A served model under load: figures against servers whose law is known, and all that servers do wrong.

    load.py BUILD_FOLDER

load_driver (a program of these tests) does what the tuner does; fake_server.py is the server, and keeps a log of when
each request came and ended, which is the oracle of latencies: sleeping is not exact on a busy machine, a log is.
"""
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = sys.argv.pop(1) if len(sys.argv) > 1 else "build"
DRIVER = os.path.join(BUILD, "tests/integration/load_driver")
try:
    import grpc  # noqa: F401  pylint: disable=unused-import
    HAS_GRPC = True
except ImportError:
    HAS_GRPC = False


class Server:
    def __init__(self, *arguments, with_grpc=False):
        self.process = subprocess.Popen(
            ["/usr/bin/python3", os.path.join(HERE, "fake_server.py"), *arguments,
             *(["--grpc", "0"] if with_grpc else [])], stdout=subprocess.PIPE, text=True)
        ports = json.loads(self.process.stdout.readline())
        self.url = f"http://127.0.0.1:{ports['http']}"
        self.grpc = f"http://127.0.0.1:{ports['grpc']}"

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(self.url + path, data=data, timeout=10) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def log(self):
        """(came, begin, end, rows) of each request since the last call."""
        return self.ask("/fake/log")["log"]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def drive(*words, status=0):
    """What the driver told, one dict a step."""
    done = subprocess.run([DRIVER, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                          check=False)
    if done.returncode != status:
        raise AssertionError(f"load_driver {words}: status {done.returncode}: {done.stdout}{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def quantile(values, share):
    values = sorted(values)
    place = share * (len(values) - 1)
    below = int(place)
    return values[below] + (values[min(below + 1, len(values) - 1)] - values[below]) * (place - below)


class Case(unittest.TestCase):
    arguments = ()
    with_grpc = False

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.arguments, with_grpc=cls.with_grpc)
        cls.addClassCleanup(cls.server.close)

    def setUp(self):
        self.server.ask("/fake/mode", {"mode": ""})
        self.server.ask("/fake/restart", {})
        self.server.log()
        self.base = [f"url={self.server.url}", "model=m", "shape=x:2x3", "warm_up_s=0.1"]

    def expect(self, step, outcome):
        self.assertIsNone(step["error"], step)
        self.assertEqual(step["outcome"], outcome, step)

    def close_to(self, got, wanted, absolute, what=""):
        self.assertLessEqual(abs(got - wanted), absolute, f"{what}: {got}, expected {wanted}")


    def between(self, got, low, high, what=""):
        """A sleep is never too short; how much too long, and how long a wake-up takes, is the machine's load."""
        self.assertTrue(low <= got <= high, f"{what}: {got}, expected {low}..{high}")


class Latencies(Case):
    arguments = ("--batch-base-ms", "10")

    def test_a_closed_loop_sees_what_the_server_did(self):
        told = drive(*self.base, "concurrency=3", "--", "set", "batch=1", "warm", "measure", "min_s=1", "max_s=1")
        self.expect(told[-1], "ok")
        figures = told[-1]["figures"]
        stays = [end - came for came, _, end, _ in self.server.log()][-int(figures["samples"]):]
        # What HTTP and Python add to the server's own account.
        median, mean = quantile(stays, 0.5), sum(stays) / len(stays)
        self.between(figures["p50_s"], median - 0.001, median + 0.01, "p50")
        self.between(figures["mean_s"], mean - 0.001, mean + 0.01, "mean")
        # One thread of 10 ms: Little's law ties the rate to the mean.
        self.close_to(figures["requests_per_s"] * figures["mean_s"], 3, 0.15, "Little")
        self.assertEqual(figures["errors"], 0)
        self.assertEqual(figures["outstanding_peak"], 3)
        self.between(figures["service_s"], 0.0099, 0.03, "service")
        self.assertEqual(figures["batch_mean"], 1)
        self.assertEqual(told[-1]["marks"], 11)

    def test_an_open_loop_waits_as_queueing_theory_says(self):
        told = drive(*self.base, "arrivals=poisson:50", "seed=5", "--", "set", "batch=1", "warm", "measure",
                     "min_s=4", "max_s=4")
        self.expect(told[-1], "ok")
        figures = told[-1]["figures"]
        log = self.server.log()[-int(figures["samples"]):]
        # Lindley: the stay of each request from the log's arrivals and services, first come first served.
        free, stays = 0.0, []
        for came, begin, end, _ in sorted(log):
            free = max(came, free) + end - begin
            stays.append(free - came)
        mean, late = sum(stays) / len(stays), quantile(stays, 0.9)
        self.between(figures["mean_s"], mean - 0.002, mean + 0.015, "mean by Lindley")
        self.between(figures["p90_s"], late - 0.004, late + 0.03, "p90 by Lindley")
        # Pollaczek and Khinchine, M/D/1: the mean stay at the mean service that the log tells.
        service = sum(end - begin for _, begin, end, _ in log) / len(log)
        busy = 50 * service
        expected = service + busy * service / (2 * (1 - busy))
        self.close_to(figures["mean_s"], expected, 0.6 * expected, "mean by Pollaczek-Khinchine")
        self.close_to(figures["requests_per_s"], 50, 4 * math.sqrt(50 * 4) / 4, "rate")
        self.assertLess(figures["send_lag_p99_s"], 0.05)

    def test_an_open_loop_counts_from_the_meant_moment(self):
        # 200 a second on one slot of 10 ms: half of them cannot be sent in time, and wait longer and longer.
        told = drive(*self.base, "arrivals=uniform:200", "max_outstanding=1", "--", "set", "batch=1", "measure",
                     "min_s=1", "max_s=1")
        figures = told[-1]["figures"]
        self.assertGreater(figures["p90_s"], 0.2)
        self.assertGreater(figures["send_lag_p99_s"], 0.2)
        stays = [end - came for came, _, end, _ in self.server.log()]
        self.assertLess(quantile(stays, 0.9), 0.05)  # the server itself saw nothing of it
        self.assertGreater(figures["unanswered"], 0)

    def test_a_window_ends_when_it_is_precise(self):
        told = drive(*self.base, "concurrency=2", "--", "set", "batch=1", "warm", "measure", "min_s=0.3", "max_s=20",
                     "relative_error=0.05", "precise=mean_s,p50_s")
        self.expect(told[-1], "ok")
        self.assertLess(told[-1]["time_s"], 15)
        for name in ("mean_s", "p50_s"):  # those under way at its end came in later
            self.assertLess(told[-1]["errors"][name], 0.065)

    def test_a_hopeless_window_is_cut(self):
        told = drive(*self.base, "concurrency=4", "--", "set", "batch=1", "measure", "min_s=4", "max_s=8",
                     "cut_name=p99_s", "cut_above=0.005")
        self.expect(told[-1], "cut")
        self.assertLess(told[-1]["time_s"], 3)
        self.assertGreater(told[-1]["figures"]["p99_s"], 0.005)
        told = drive(*self.base, "concurrency=1", "--", "set", "batch=1", "measure", "min_s=1", "max_s=1",
                     "cut_name=p99_s", "cut_above=2")
        self.expect(told[-1], "ok")

    def test_it_can_be_interrupted(self):
        told = drive(*self.base, "--", "set", "batch=1", "measure", "min_s=30", "max_s=30", "stop_s=0.3")
        self.expect(told[-1], "interrupted")


class Requests(Case):
    arguments = ("--batch-base-ms", "2", "--batch-row-ms", "2")

    def test_requests_are_what_metadata_and_shapes_say(self):
        for is_json in (0, 1):
            drive(*self.base, f"json={is_json}", "batch_by=client", "--", "set", "batch=3", "measure", "min_s=0.2",
                  "max_s=0.2")
            last = self.server.ask("/fake/log")["last"]
            self.assertEqual(last["path"], "/v2/models/m/infer")
            tensor = last["json"]["inputs"][0]
            self.assertEqual((tensor["name"], tensor["datatype"], tensor["shape"]), ("x", "FP32", [3, 2, 3]))
            if is_json:
                self.assertEqual(len(tensor["data"]), 18)
                self.assertTrue(all(0 <= value < 1 for value in tensor["data"]))
            else:
                self.assertEqual((last["binary"], tensor["parameters"]["binary_data_size"]), (72, 72))

    def test_the_batch_is_the_servers_or_the_clients(self):
        told = drive(*self.base, "concurrency=8", "batch_by=client", "--", "set", "batch=4", "warm", "measure",
                     "min_s=0.4", "max_s=0.4")
        self.assertEqual(told[-1]["figures"]["batch_mean"], 4)
        told = drive(*self.base, "concurrency=8", "--", "set", "batch=2", "delay=0.05", "warm", "measure", "min_s=0.4",
                     "max_s=0.4", "set", "batch=4", "delay=0.05", "warm", "measure", "min_s=0.4", "max_s=0.4")
        self.assertGreater(told[3]["figures"]["batch_2_share"], 0.9)
        self.assertGreater(told[6]["figures"]["batch_mean"], 3.5)
        # 2 + 2 ms a row
        self.between(told[6]["figures"]["batch_4_service_s"], 0.0099, 0.03, "service")
        self.assertGreater(told[1]["switch_s"], 0)
        config = self.server.ask("/v2/models/m/config")
        self.assertEqual(config["max_batch_size"], 4)
        self.assertEqual(config["dynamic_batching"]["max_queue_delay_microseconds"], 50000)

    def test_knobs_go_where_their_paths_say(self):
        told = drive(*self.base, "path=n:instance_group[0].count", "path=mode:parameters.mode.string_value", "--",
                     "set", "n=2", "threads=3", "mode=fast", "set", "n=2", "threads=3", "mode=fast")
        self.expect(told[1], "ok")
        self.assertEqual(told[2]["switch_s"], 0)  # nothing new
        config = self.server.ask("/v2/models/m/config")
        self.assertEqual(config["instance_group"][0]["count"], 2)
        self.assertEqual(config["parameters"], {"threads": {"string_value": "3"}, "mode": {"string_value": "fast"}})
        told = drive(*self.base, "--", "set", "volume=3")
        self.assertIn("volume", told[1]["error"])

    def test_bodies_come_from_files(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as body:
            json.dump({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1, 3], "data": [7, 8, 9]}]}, body)
            body.flush()
            told = drive(*self.base, f"file={body.name}", "--", "set", "measure", "min_s=0.2", "max_s=0.2")
        self.expect(told[-1], "ok")
        self.assertEqual(self.server.ask("/fake/log")["last"]["json"]["inputs"][0]["data"], [7, 8, 9])

    def test_tritons_counts_are_figures_by_themselves(self):
        told = drive(*self.base, "concurrency=2", "statistics=triton", "--", "set", "batch=1", "measure", "min_s=0.4",
                     "max_s=0.4")
        self.expect(told[-1], "ok")
        log = [end - came for came, _, end, _ in self.server.log()]
        self.close_to(told[-1]["figures"]["mean_s"], sum(log) / len(log), 0.001, "mean")
        # Somebody else's load.
        load = subprocess.Popen([DRIVER, *self.base, "concurrency=2", "--", "set", "measure", "min_s=3", "max_s=3"],
                                stdout=subprocess.DEVNULL)
        try:
            told = drive(*self.base, "statistics=triton", "foreign=1", "--", "set", "measure", "min_s=1", "max_s=1")
        finally:
            load.terminate()
            load.wait()
        self.expect(told[-1], "ok")
        self.assertGreater(told[-1]["figures"]["requests_per_s"], 50)
        told = drive(*self.base, "statistics=triton", "foreign=1", "--", "set", "measure", "min_s=1", "max_s=1",
                     "hung_s=0.3")
        self.expect(told[-1], "hung")


class Trouble(Case):
    arguments = ("--batch-base-ms", "2")

    def wrong(self, mode, share=1.0):
        self.server.ask("/fake/mode", {"mode": mode, "share": share})

    def measure(self, *more):
        return drive(*self.base, "concurrency=4", "timeout_s=0.3", "--", "set", "measure", "min_s=0.4", "max_s=0.4",
                     "hung_s=1", *more)[-1]

    def test_what_servers_do_wrong_is_an_outcome(self):
        for mode, outcome, why in (("error", "crashed", "failed on purpose"), ("close", "crashed", ""),
                                   ("cut", "crashed", ""), ("garbage", "crashed", "JSON"),
                                   ("oom", "out_of_memory", "out of memory"), ("hang", "hung", "")):
            with self.subTest(mode):
                self.wrong(mode)
                told = self.measure()
                self.expect(told, outcome)
                self.assertIn(why, told["why"])
                self.wrong("")

    def test_some_errors_are_counted(self):
        self.wrong("error", 0.1)
        told = self.measure()
        self.expect(told, "ok")
        figures = told["figures"]
        self.close_to(figures["errors"] / (figures["errors"] + figures["requests"]), 0.1, 0.08, "share")

    def test_a_configuration_that_does_not_fit_is_told(self):
        told = drive(*self.base, "--", "set", "batch=64", "instances=2", "set", "batch=13", "set", "batch=8", "measure",
                     "min_s=0.2", "max_s=0.2")
        self.expect(told[1], "out_of_memory")
        self.expect(told[2], "crashed")
        self.assertIn("plan 13 is not built", told[2]["why"])
        self.expect(told[3], "ok")
        self.expect(told[4], "ok")

    def test_a_server_that_was_started_anew_is_set_again(self):
        for is_unloaded in (False, True):
            with self.subTest(is_unloaded):
                driver = subprocess.Popen(
                    [DRIVER, *self.base, "concurrency=2", "--", "set", "batch=2", "delay=0.003",
                     "warm", "measure", "min_s=0.2", "max_s=0.2", "wait", "measure", "min_s=0.2", "max_s=0.2"],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                for _ in range(4):
                    self.assertIsNone(json.loads(driver.stdout.readline())["error"])
                self.server.ask("/fake/restart", {"unloaded": is_unloaded})
                told, _ = driver.communicate("\n", timeout=30)
                self.expect(json.loads(told), "ok")
                config = self.server.ask("/v2/models/m/config")
                self.assertEqual(config["max_batch_size"], 2)
                self.assertEqual(config["dynamic_batching"]["max_queue_delay_microseconds"], 3000)

    def test_a_model_that_is_gone_is_loaded_again(self):
        driver = subprocess.Popen([DRIVER, *self.base, "--", "set", "measure", "min_s=0.2", "max_s=0.2", "wait",
                                   "measure", "min_s=0.2", "max_s=0.2", "wait", "set", "concurrency=2"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3):
            self.expect(json.loads(driver.stdout.readline()), "ok")
        for _ in range(2):
            self.server.ask("/fake/restart", {"unloaded": True})
            driver.stdin.write("\n")
            driver.stdin.flush()
            self.expect(json.loads(driver.stdout.readline()), "ok")
        driver.communicate(timeout=30)

    def test_a_dead_server_is_an_outcome_and_recovery_is_bounded(self):
        server = Server()
        server.close()
        told = drive(f"url={server.url}", *self.base[1:], "--", status=1)
        self.assertIn(server.url, told[0]["error"])
        server = Server()
        driver = subprocess.Popen([DRIVER, f"url={server.url}", *self.base[1:], "ready_s=1", "--", "set", "wait",
                                   "measure", "recover"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        driver.stdout.readline()
        self.expect(json.loads(driver.stdout.readline()), "ok")
        server.close()
        told, _ = driver.communicate("\n", timeout=30)
        measured, recovered = [json.loads(line) for line in told.splitlines()]
        self.expect(measured, "crashed")
        self.assertIn("not ready within 1 s", recovered["error"])

    def test_models_and_shapes_that_cannot_be_are_told(self):
        told = drive(f"url={self.server.url}", "model=m", "--", "set")
        self.assertIn("dimension 2 is open", told[1]["error"])
        told = drive(f"url={self.server.url}", "model=m", "shape=x:2x4", "--", "set")
        self.assertIn("dimension 3 is 3", told[1]["error"])
        # What was never there is a wrong set-up and ends the tuning: it is no configuration that fails.
        told = drive(f"url={self.server.url}", "model=n", "--", "set", "batch=2")
        self.assertIn("not found", told[1]["error"])
        self.assertIn("is the model's name right?", told[1]["error"])
        for url, models in ((self.server.url, " It has: m, other"), ("http://127.0.0.1:9", "")):
            told = drive(f"url={url}", "--", status=1)
            self.assertEqual(told[0]["error"], f"{url}: which model? (--model NAME){models}")


class OwnServer(Case):
    def setUp(self):
        # The port of a server that has just gone is free.
        server = Server()
        server.close()
        self.base = [f"url={server.url}", "model=m", "shape=x:2x3", "warm_up_s=0.1"]

    def test_a_command_is_started_and_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            port = int(self.base[0].rsplit(":", 1)[1])
            pids = os.path.join(folder, "pids")
            command = (f"echo $$ >>{pids}; exec /usr/bin/python3 {HERE}/fake_server.py --http {port} "
                       "--batch-base-ms {base}")
            told = drive(*self.base, f"command={command}", "ready_s=20", "--", "set", "base=5", "measure", "min_s=0.3",
                         "max_s=0.3", "set", "base=5", "set", "base=15", "measure", "min_s=0.3", "max_s=0.3")
            for step in told[1:]:
                self.expect(step, "ok")
            self.assertGreater(told[1]["switch_s"], 0.05)
            self.assertEqual(told[3]["switch_s"], 0)
            self.assertGreater(told[4]["switch_s"], 0.05)
            self.assertGreater(told[5]["figures"]["p50_s"], 0.0149)
            self.assertLess(told[2]["figures"]["p50_s"], 0.0149)
            with open(pids, encoding="utf-8") as source:
                started = [int(line) for line in source]
            self.assertEqual(len(started), 2)
            for pid in started:
                with self.assertRaises(ProcessLookupError):
                    os.kill(pid, 0)

    def test_a_command_that_dies_says_why(self):
        for words, outcome in (("no such engine", "crashed"), ("torch: CUDA out of memory", "out_of_memory")):
            command = f"echo '{words}' >&2; exit 3"
            told = drive(*self.base, f"command={command}", "--", "set", "set")
            for step in told[1:]:
                self.expect(step, outcome)
                self.assertIn("status 3", step["why"])
                self.assertIn(words, step["why"])

    def test_a_server_that_is_there_already_is_not_taken_for_ours(self):
        told = drive(f"url={self.server.url}", *self.base[1:], "command=exec tail -f /dev/null", "--", "set")
        self.assertIn("another server answers there", told[1]["error"])

    def test_a_command_that_never_gets_ready_hangs(self):
        told = drive(*self.base, "command=exec tail -f /dev/null", "ready_s=0.5", "--", "set")
        self.expect(told[1], "hung")


class OpenAi(Case):
    def setUp(self):
        super().setUp()
        self.base = [self.base[0], "protocol=openai", "max_tokens=8", "warm_up_s=0.1", "concurrency=2"]

    def test_tokens_have_times(self):
        for is_chat in (0, 1):
            told = drive(*self.base, "stream=1", f"chat={is_chat}", "--", "set", "measure", "min_s=0.8", "max_s=0.8")
            self.expect(told[-1], "ok")
            figures = told[-1]["figures"]
            self.between(figures["ttft_p50_s"], 0.0195, 0.05, "first token")
            self.between(figures["tpot_p50_s"], 0.0035, 0.012, "each token")
            self.between(figures["p50_s"], 0.054, 0.13, "whole")
            self.close_to(figures["output_tokens_per_s"], 8 * figures["requests_per_s"], 1e-6, "tokens")
            last = self.server.ask("/fake/log")["last"]
            self.assertEqual(last["path"], "/v1/chat/completions" if is_chat else "/v1/completions")
            self.assertEqual((last["json"]["model"], last["json"]["max_tokens"]), ("llm", 8))

    def test_answers_at_once_count_their_tokens(self):
        told = drive(*self.base, "--", "set", "max_tokens=4", "concurrency=3", "measure", "min_s=0.4", "max_s=0.4")
        self.expect(told[-1], "ok")
        self.assertEqual(told[-1]["figures"]["outstanding_peak"], 3)
        self.close_to(told[-1]["figures"]["output_tokens_per_s"], 4 * told[-1]["figures"]["requests_per_s"], 1e-6)

    def test_broken_streams_are_errors(self):
        for mode, why in (("cut", ""), ("garbage", "JSON"), ("error", "overloaded on purpose")):
            self.server.ask("/fake/mode", {"mode": mode})
            told = drive(*self.base, "stream=1", "--", "set", "measure", "min_s=0.4", "max_s=0.4")
            self.expect(told[-1], "crashed")
            self.assertIn(why, told[-1]["why"])


@unittest.skipUnless(HAS_GRPC, "grpcio is missing: install the Debian package python3-grpcio")
class Grpc(Case):
    arguments = ("--batch-base-ms", "2")
    with_grpc = True

    def setUp(self):
        super().setUp()
        self.base = [f"url={self.server.grpc}", "protocol=kserve_grpc", *self.base[1:]]

    def test_it_infers_and_counts(self):
        told = drive(*self.base, "concurrency=4", "batch_by=client", "--", "set", "batch=2", "warm", "measure",
                     "min_s=1", "max_s=1")
        self.expect(told[-1], "ok")
        figures = told[-1]["figures"]
        self.assertEqual(figures["errors"], 0)
        # Two requests of two rows fit into a batch of four.
        self.assertTrue(2 <= figures["batch_mean"] <= 4, figures)
        self.assertEqual(figures["outstanding_peak"], 4)
        self.between(figures["service_s"], 0.0019, 0.02, "service")

    def test_it_configures_over_http_or_from_a_file(self):
        told = drive(*self.base, "--", "set", "batch=2")
        self.assertIn("HTTP only", told[1]["error"])
        told = drive(*self.base, f"control_url={self.server.url}", "--", "set", "batch=2", "delay=0.001", "measure",
                     "min_s=0.2", "max_s=0.2")
        self.expect(told[-1], "ok")
        with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
            json.dump(self.server.ask("/v2/models/m/config"), config)
            config.flush()
            told = drive(*self.base, f"config_file={config.name}", "--", "set", "batch=3", "set", "batch=64",
                         "instances=4")
        self.expect(told[1], "ok")
        self.expect(told[2], "out_of_memory")
        self.assertEqual(self.server.ask("/v2/models/m/config")["max_batch_size"], 3)

    def test_what_goes_wrong_is_an_outcome(self):
        for mode, outcome, why in (("error", "crashed", "UNAVAILABLE: 100% on purpose: \u00e4"),
                                   ("oom", "out_of_memory", "RESOURCE_EXHAUSTED"),
                                   ("garbage", "crashed", "ModelInferResponse"), ("hang", "hung", "")):
            with self.subTest(mode):
                self.server.ask("/fake/mode", {"mode": mode})
                told = drive(*self.base, "concurrency=2", "timeout_s=0.4", "--", "set", "measure", "min_s=0.5",
                             "max_s=0.5", "hung_s=1.2")
                self.expect(told[-1], outcome)
                self.assertIn(why, told[-1]["why"])
        self.server.ask("/fake/mode", {"mode": ""})
        told = drive(*self.base, "--", "set", "measure", "min_s=0.2", "max_s=0.2")
        self.expect(told[-1], "ok")

    def test_what_is_no_grpc_is_told(self):
        told = drive(f"url={self.server.url}", "protocol=kserve_grpc", "model=m", "--", status=1)
        self.assertIsNotNone(told[0]["error"])


if __name__ == "__main__":
    begin = time.monotonic()
    program = unittest.main(exit=False, verbosity=1)
    print(f"{time.monotonic() - begin:.1f} s")
    sys.exit(not program.result.wasSuccessful())
