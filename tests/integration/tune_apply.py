#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`wattgov tune apply`, and what `wattgov tune` reads: results, configuration files and flags.

    tests/integration/tune_apply.py build/release/vgpu
"""
import json
import os
import re
import signal
import subprocess
import sys

import vgpu_case
from tune import BATCHES, Case, QUICK, SCRIPT
from tune_server import Served
from vgpu_case import tool, wait_for


class Applying(Case):
    def write(self, text):
        with open(self.path("r.yaml"), "w", encoding="utf-8") as file:
            file.write("schema: wattgov.tune.result/1\nknobs:\n" + text)
        return self.path("r.yaml")

    def test_holds_while_the_command_runs_and_gives_back(self):
        path = self.write("  - {name: power_limit, role: power_limit, is_device: true, value: 225}\n"
                          "  - {name: batch, role: batch, value: 8}\n"
                          "  - {name: precision, role: category, value: fp16}\n")
        show = f"{tool('wattgov-vgpu')} show --json > {self.path('seen')}"
        done = self.tune("apply", path, "--", *self.script(
            show + "; echo {batch} {precision} $WATTGOV_TUNE_BATCH $WATTGOV_TUNE_PRECISION ${HOME:+home}; exit 5"))
        self.assertEqual((done.returncode, done.stdout), (5, "8 fp16 8 fp16 home\n"), done.stderr)
        with open(self.path("seen"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["gpus"][0]["limit_w"], 225)
        self.expect_nothing_left()

    def test_takes_what_tune_has_written(self):
        self.result("--knob", "power_limit=200,400", "--knob", "batch=1,8:batch", *QUICK, "-o", self.path("made.yaml"), "--",
                    *self.script(SCRIPT))
        done = self.tune("apply", "-q", self.path("made.yaml"), "--", "echo", "{batch}")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "8\n", ""))
        self.expect_nothing_left()

    def test_sets_the_gpus_that_were_tuned_and_no_others(self):
        _, machine = self.start("--machine", "8xh100")
        made = self.path("made.yaml")
        self.result("--gpu", 1, "--gpu", 3, "--knob", "power_limit=300W", *QUICK, "--seed", 7, "--slo", "p99<=9s", "-o", made,
                    "--", *self.script(SCRIPT.replace("{batch}", "8")), env=machine)
        with open(made, encoding="utf-8") as file:
            text = file.read()
        uuids = re.findall(r"- \{index: [13], uuid: '(GPU-[-0-9a-f]+)', name: 'NVIDIA H100", text)
        self.assertEqual(len(uuids), 2, text)
        self.assertRegex(text, r"\ndate: '20\d\d-\d\d-\d\dT[0-9:]{8}Z'\nversion: '\d+\.\d+.*'\npolicy: wattgov\nseed: 7\n")
        self.assertRegex(text, r"slo: 'p99<=9s'\n")
        self.assertIn("value: 300} # 300 W\n", text)
        show = self.script(f"{tool('wattgov-vgpu')} show --json > {self.path('seen')}")

        def limits(*arguments):
            done = self.tune("apply", made, *arguments, "--", *show, env=machine)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(self.path("seen"), encoding="utf-8") as file:
                return [gpu["limit_w"] for gpu in json.load(file)["gpus"]], done.stderr
        self.assertEqual(limits(), ([700, 300, 700, 300, 700, 700, 700, 700], "wattgov tune apply: holding power_limit 300 W on gpu1, gpu3\n"))
        self.assertEqual(limits("--gpu", "2")[0], [700, 700, 300, 700, 700, 700, 700, 700])
        # Another machine, and GPUs that are hidden from us.
        for env in (self.machine, {**machine, "CUDA_VISIBLE_DEVICES": "0,1"}):
            done = self.tune("apply", made, "--", "echo", "ran", env=env)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, r"it was tuned on GPU [13], NVIDIA H100.* \(GPU-.*--gpu")

    def test_a_limit_out_of_range_stops_no_best_effort(self):
        path = self.write("  - {name: power_limit, role: power_limit, is_device: true, value: 900}\n")
        done = self.tune("apply", path, "--best-effort", "--", "echo", "ran")
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)
        self.assertIn("nothing is set", done.stderr)
        done = self.tune("apply", path, "--", "echo", "ran")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(self.tune("apply", path, "--best-effort", "--gpu", "x", "--", "true").returncode, 2)

    def test_what_cannot_be_set_is_said_and_only_a_best_effort_goes_on(self):
        path = self.write("  - {name: power_limit, role: power_limit, is_device: true, value: 225}\n")
        done = self.tune("apply", path, "--gpu", "none", "--", "echo", "ran")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("there is no device with a power_limit here", done.stderr)
        done = self.tune("apply", path, "--best-effort", "--gpu", "none", "--", "echo", "ran")
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"))
        self.assertIn("nothing is set", done.stderr)

    def test_a_device_s_knob_is_known_by_its_name_and_doubts_are_told(self):
        for is_device in ("", "is_device: True, ", "is_device: 'TRUE', "):
            path = self.write("  - {name: power_limit, role: power_limit, " + is_device + "value: 225}\n"
                              "  - {name: batch, role: batch, value: 8}\nis_feasible: false\n")
            done = self.tune("apply", path, "--", *self.script(f"{tool('wattgov-vgpu')} show --json"))
            self.assertEqual(json.loads(done.stdout)["gpus"][0]["limit_w"], 225, done.stderr)
            self.assertIn("not known to keep its limits", done.stderr)
            self.assertIn("{batch} stands nowhere in the command: it must read $WATTGOV_TUNE_BATCH of", done.stderr)
            self.assertNotIn("{power_limit}", done.stderr)

    def test_a_knob_of_another_command_is_told(self):
        path = self.write("  - {name: batch, role: batch, value: 8}\n")
        done = self.tune("apply", path, "--", "echo", "{batch} {precision} ${threads} {print} {\"engine\": 1}")
        self.assertEqual((done.returncode, done.stdout), (0, "8 {precision} ${threads} {print} {\"engine\": 1}\n"))
        self.assertEqual(done.stderr.count("the result has no such knob"), 1, done.stderr)
        self.assertIn("{precision} stays as it is", done.stderr)

    def test_refuses_files_that_are_no_results(self):
        for text, message in (("  - {name: x}\n", "r.yaml:3: expected {name: ..., role: ..., value: ...}"),
                              ("  - {name: x, role: y, value: 1}\n", "r.yaml:3: x: 'y' is no role"),
                              ("  - {name: x, role: batch, value: z}\n", "r.yaml:3: x: 'z' is not a number"),
                              ("  - {name: power_limit, role: power_limit, is_device: yes, value: 1}\n", "expected true or false"),
                              ("  - {name: power_limit, role: power_limit, is_device: False, value: 1}\n",
                               "power_limit is a knob of a device: expected role: power_limit, is_device: true"),
                              ("  - {name: power_limit, role: gpu_clock, is_device: true, value: 1}\n", "expected role: power_limit"),
                              ("  - {name: batch, role: batch, is_device: true, value: 1}\n", "'batch' is no knob of a device"),
                              ("  - {name: x, role: batch, value: 1}\n" * 2, "r.yaml:4: knob 'x' is given twice"),
                              ("  - {name: x, role: batch, value: 1}\ngpus: [{index: 1}]\n", "r.yaml:4: expected {index: ")):
            done = self.tune("apply", self.write(text), "--", "true")
            self.assertEqual(done.returncode, 1)
            self.assertIn(message, done.stderr)


class ApplyingToAServer(Served):
    def write(self, batch=2, url=None, name="r.yaml"):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(f"schema: wattgov.tune.result/1\nserver: {{url: '{url or self.url}', protocol: kserve_http, model: m}}\nknobs:\n"
                       f"  - {{name: batch, role: batch, value: {batch}, path: max_batch_size}}\n"
                       "  - {name: delay, role: delay, value: 0.002, path: dynamic_batching.max_queue_delay_microseconds}\n"
                       "  - {name: clients, role: category, value: many, path: client.concurrency, scale: 1}\n")
        return self.path(name)

    def seen(self):
        with open(self.path("seen"), encoding="utf-8") as file:
            return json.load(file)

    def asking(self, then="exit 5"):
        ask = f"import urllib.request; print(urllib.request.urlopen('{self.url}/v2/models/m/config').read().decode())"
        return self.script(f'/usr/bin/python3 -c "{ask}" > {self.path("seen")}; {then}')

    def test_a_model_is_as_it_was_tuned_while_the_command_runs(self):
        before = self.configuration()
        made = self.path("made.yaml")
        found = self.result("--server", self.url, *self.MODEL, *self.BRIEFLY, "--knob", "batch=2,3:batch", "--knob",
                            "delay=1ms,2ms:delay", "--max-trials", 2, "-o", made)["returned"]["settings"]
        done = self.tune("apply", made, "--", *self.asking())
        self.assertEqual(done.returncode, 5, done.stderr)
        seen, delay_us = self.seen(), round(found["delay"] * 1e6)
        self.assertEqual((seen["max_batch_size"], seen["dynamic_batching"]["max_queue_delay_microseconds"]), (found["batch"], delay_us))
        self.assertEqual(self.configuration(), before)
        self.assertIn(f"model m at {self.url} is loaded with max_batch_size {found['batch']}, "
                      f"dynamic_batching.max_queue_delay_microseconds {delay_us}\n", done.stderr)
        self.assertIn("has the configuration that it had before again", done.stderr)
        self.assertNotIn("stands nowhere in the command", done.stderr)
        self.assertEqual(self.tune("apply", "-q", made, "--", "true").stderr, "")

    def test_a_server_that_does_not_run_is_left_to_the_command(self):
        done = self.tune("apply", self.write(url="http://127.0.0.1:9"), "--", "sh", "-c", "exit 5")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("no server answers at http://127.0.0.1:9: not set: max_batch_size 2, "
                      "dynamic_batching.max_queue_delay_microseconds 2000 of model m", done.stderr)
        self.assertIn("{clients} stands nowhere in the command: it must read $WATTGOV_TUNE_CLIENTS of", done.stderr)

    def test_what_a_server_refuses_stops_all_but_a_best_effort(self):
        before = self.configuration()
        done = self.tune("apply", self.write(batch=13), "--", "echo", "ran")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("plan 13 is not built", done.stderr)
        self.assertEqual(self.configuration(), before)
        done = self.tune("apply", "--best-effort", self.write(batch=13), "--", "echo", "ran")
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)
        self.assertIn("the server is not set: ", done.stderr)
        self.assertEqual(self.configuration(), before)

    def test_who_is_killed_leaves_it_to_the_next(self):
        before = self.configuration()
        process = self.in_background("apply", self.write(), "--", *self.asking("exec tail -f --pid=$PPID /dev/null"))
        wait_for(lambda: os.path.exists(self.path("seen")) and self.configuration()["max_batch_size"] == 2, "the model's load")
        process.kill()
        process.wait()
        self.assertEqual(self.configuration()["max_batch_size"], 2)
        self.assertEqual(self.tune("apply", self.write(1, name="other.yaml"), "--", *self.asking()).returncode, 5)
        self.assertEqual((self.seen()["max_batch_size"], self.configuration()), (1, before))

    def test_what_the_owner_loads_meanwhile_stays(self):
        process = self.in_background("apply", self.write(), "--", *self.asking("read line"), stdin=subprocess.PIPE)
        wait_for(lambda: os.path.exists(self.path("seen")) and self.configuration()["max_batch_size"] == 2, "the model's load")
        theirs = self.load_by_hand()
        _, err = process.communicate("\n")
        self.assertIn(f"m at {self.url} was loaded with something else meanwhile: that stays", err)
        self.assertEqual(self.configuration(), theirs)
        self.assertEqual([name for name in os.listdir(self.path("state/servers")) if name.endswith(".json")], [])

    def test_a_server_that_is_busy_for_a_moment_gets_its_own_back(self):
        before = self.load_by_hand()
        self.plan("/v2/repository/models/m/load", (0, ""), (503, ""), (503, ""))
        done = self.tune("apply", self.write(), "--", "true")
        self.assertEqual((done.returncode, self.configuration()), (0, before), done.stderr)

    def test_a_signal_is_heard_while_the_server_does_not_answer(self):
        before = self.configuration()
        self.plan("/v2/repository/models/m/load", (-1, ""))
        process = self.in_background("apply", self.write(), "--", "echo", "ran")
        wait_for(lambda: self.ask("/fake/plan/left") == 0, "the request that is not answered")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate()
        self.assertEqual((process.returncode, out, self.configuration()), (128 + signal.SIGTERM, "", before))

    def test_one_at_a_time_holds_a_model(self):
        before = self.configuration()
        process = self.in_background("apply", self.write(), "--", *self.asking("read line"), stdin=subprocess.PIPE)
        wait_for(lambda: os.path.exists(self.path("seen")) and self.configuration()["max_batch_size"] == 2, "the model's load")
        other = self.write(1, name="other.yaml")
        done = self.tune("apply", other, "--", "echo", "ran")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"is set by another wattgov (pid {process.pid})", done.stderr)
        done = self.tune("apply", "--best-effort", other, "--", "echo", "ran")
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)
        self.assertEqual(self.configuration()["max_batch_size"], 2)
        process.communicate("\n")
        self.assertEqual(self.configuration(), before)

    def test_a_server_that_cannot_be_is_told(self):
        path = self.write()
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for old, new, message in (("kserve_http", "http", "r.yaml:2: server: expected {url: "),
                                  ("protocol:", "model_version: " + "1" * 64 + ", protocol:", "server: model_version is longer than"),
                                  ("path: max_batch_size", "path: max_batch_size, scale: 0", "r.yaml:4: batch: scale is '0'"),
                                  ("path: max_batch_size", "path: " + "x" * 256, "batch: path is longer than 255 bytes"),
                                  ("path: max_batch_size", "path: max_batch_size.x", "has no place 'max_batch_size.x'")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(old, new))
            done = self.tune("apply", path, "--", "echo", "ran")
            self.assertEqual((done.returncode in (1, 2), done.stdout), (True, ""), done.stderr)
            self.assertIn(message, done.stderr)


class Configuring(Case):
    def config(self, text):
        with open(self.path("t.yaml"), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path("t.yaml")

    def test_a_file_says_what_flags_say_and_flags_win(self):
        path = self.config("knobs:\n  batch: {levels: [2, 4, 8], role: batch, default: 4}\n  precision: [fp16, fp32]\n"
                           "  power_limit:\nforbid: precision==fp32 && batch>=8\nlimits: [p99_s<=1]\nseed: 9\n"
                           "energy: command\nno_warm_up: true\nmax_trials: 3\ncommand: [echo, '{batch}']\n")
        done = self.tune("--config", path, "--dry-run", "--limit", "p99_s<=2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("batch (batch): 2, 4 (default), 8\n", done.stdout)
        self.assertIn("precision (category): fp16 (default), fp32\n", done.stdout)
        self.assertIn("limit: p99_s <= 2\n", done.stdout)
        self.assertNotIn("limit: p99_s <= 1\n", done.stdout)

    def test_each_mistake_is_named_with_its_line(self):
        for text, message in (
                ("seed: 1\nmax_trails: 3\n", "t.yaml:2: unknown key 'max_trails'; did you mean 'max_trials'?"),
                ("seed: 1\n\nmax_trials: many\n", "t.yaml:3: --max-trials: 'many' is not"),
                ("explain: perhaps\n", "t.yaml:1: 'explain' is 'perhaps': expected true or false"),
                ("knobs:\n  batch: {level: [1]}\n", "t.yaml:2: --knob: 'level' is not a key of a knob (levels, role, default, switch_s); did you mean"),
                ("config: u.yaml\n", "t.yaml:1: 'config': one file names no other"),
                ("confg: u.yaml\n", "t.yaml:1: unknown key 'confg'"),
                ("seed: 1\nseed: 2\n", "t.yaml:2: 'seed' is given twice"),
                ("seed: [1, 2]\n", "t.yaml:1: seed: expected one value"),
                ("- seed\n", "t.yaml:1: expected KEY: VALUE lines"),
                ("seed: {\n", "t.yaml:2: "),
                ("policy: best\n", "t.yaml:1: --policy: 'best' is not")):
            done = self.tune("--config", self.config(text), "--", "true")
            self.expect_usage(done, message)

    def test_each_mistake_of_a_flag_is_named(self):
        knob = ("--knob", BATCHES)
        for arguments, message in (
                ((), "nothing to tune"),
                (("--knob", "rows=1,2"), "expected a role behind the levels"),
                (("--knob", "batch=1,x"), "expected numbers above 0"),
                (("--knob", "batch=1,2:bach"), "'bach' is no role"),
                (("--knob", "batch=1,1:batch"), "expected each level once"),
                (("--knob", "precision=a,b:default=c"), "expected default= to name one of its levels"),
                ((*knob, *knob), "knob 'batch' is given twice"),
                (("--knob", "gpu_clock=9GHz,1GHz"), "is outside"),
                ((*knob, "--forbid", "bach>1"), "'bach' is no knob"),
                ((*knob, "--limit", "p99_s"), "expected EXPRESSION<=BOUND"),
                ((*knob, "--limit", "p99_s<=fast"), "'fast' is no bound"),
                ((*knob, "--slo", "p98<=1"), "--slo: 'p98<=1' is not PERCENTILE<=TIME"),
                ((*knob, "--energy", "sun"), "--energy: 'sun' is no source"),
                ((*knob, "--arrivals", "sometimes"), "--arrivals: "),
                ((*knob, "--objective", "a +"), "objective 'a +'"),
                ((*knob, "--stop-share", 1), "--stop-share: '1' is not a number in 0 .. 0.999"),
                ((*knob, "--resume"), "--resume: from what?")):
            self.expect_usage(self.tune(*arguments, "--", "true"), message)
        self.expect_usage(self.tune(*knob), "what to measure?")

    def test_a_knob_of_a_device_that_is_not_here_is_told_why(self):
        os.mkdir(self.path("nothing"))
        done = self.tune("--knob", "cpu_clock", "--root", self.path("nothing"), "--", "true")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^wattgov tune: knob 'cpu_clock': there is no processor among the devices here "
                                      r"\(wattgov devices\); no RAPL: [^\n]*\n$")
        done = self.tune("--knob", "gpu_clock", "--gpu", "none", "--", "true")
        self.assertRegex(done.stderr, r"^wattgov tune: knob 'gpu_clock': there is no GPU among the devices here[^\n]*\n$")

    def test_options_about_a_server_need_one(self):
        for arguments in (("--protocol", "openai"), ("--model", "m"), ("--shape", "x:1"), ("--body", "b.json"), ("--chat",),
                          ("--max-tokens", "8"), ("--concurrency", "4"), ("--warm-up", "5s"), ("--knob-path", "a=b"),
                          ("--statistics", "triton"), ("--leave", "returned"), ("--foreign-load",), ("--server-log", "l")):
            self.expect_usage(self.tune("--knob", BATCHES, *arguments, "--", "true"),
                              f"{arguments[0]} is about a server: which one? (--server URL)")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    vgpu_case.main(__doc__)
