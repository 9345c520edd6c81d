#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`wattgov measure`, `record` and `devices` as their users call them.

    tests/integration/measure.py build/release

Machines without any device, fake powercap trees whose counters a thread drives, recordings, and virtual GPUs.
Commands under measurement are small Python programs that say when they are ready, so nothing here waits by guess.
Length: all classes stand on one Case and its commands.
"""
import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

DEADLINE_S = 60
BUILD = None

# Says "ready", then waits for signals and says which came; SIGUSR1 ends it with what it has seen.
LISTENER = r"""
import os, signal, sys
seen = []
def note(number, frame):
    seen.append(signal.Signals(number).name)
    os.write(1, (seen[-1] + "\n").encode())
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR2):
    signal.signal(number, note)
signal.signal(signal.SIGUSR1, lambda number, frame: (os.write(1, f"seen {len(seen)}\n".encode()), sys.exit(3)))
os.write(1, b"ready\n")
while True:
    signal.pause()
"""


def program(name="wattgov"):
    return os.path.join(BUILD, name)


def wait_for(condition, what):
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.005)
    raise AssertionError(f"{what} did not come true")


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.tree = self.path("tree")
        os.mkdir(self.tree)
        self.environment = {name: value for name, value in os.environ.items()
                            if name not in ("CUDA_VISIBLE_DEVICES", "WATTGOV_VGPU", "LD_LIBRARY_PATH")}
        self.environment["XDG_RUNTIME_DIR"] = self.folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def devices(self):
        """Options for the machine of this test: no GPUs, and the tree's sensors."""
        return ["--gpu", "none", "--root", self.tree]

    def arguments(self, command, *arguments):
        return [program(), command, *self.devices(), *arguments]

    def run_it(self, command, *arguments, **kwargs):
        kwargs.setdefault("stdout", subprocess.PIPE)
        kwargs.setdefault("stderr", subprocess.PIPE)
        kwargs.setdefault("env", self.environment)
        return subprocess.run(self.arguments(command, *arguments), text=True, timeout=DEADLINE_S, check=False,
                              **kwargs)

    def measure(self, *arguments, **kwargs):
        return self.run_it("measure", *arguments, **kwargs)

    def measure_json(self, *arguments, status=0):
        done = self.measure("--json", "--output", self.path("result.json"), *arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(self.read("result.json"), parse_constant=lambda name: 1 / 0)

    def start(self, *arguments, **kwargs):
        kwargs.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen(self.arguments(*arguments), stdout=subprocess.PIPE, text=True,
                                   env=self.environment, **kwargs)

        def stop():
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        self.addCleanup(stop)
        return process


class WithoutDevices(Case):
    def test_a_machine_without_anything_has_the_time_and_the_reasons(self):
        done = self.measure("--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"energy of true\n")
        self.assertRegex(done.stderr, r"\ntotal +n/a ")
        self.assertRegex(done.stderr, r"\n\d+\.\d{3} s; processor \d")
        self.assertRegex(done.stderr, r"\nrapl: n/a: .*powercap")
        self.assertRegex(done.stderr, r"\nnvml(, \w+)*: n/a: no GPU of this kind is chosen")
        self.assertNotRegex(done.stderr, r"\b0(\.0+)? J")

    def test_json_has_null_for_what_is_unknown(self):
        result = self.measure_json("--", "true")
        self.assertEqual(result["schema"], "wattgov.measure/1")
        self.assertEqual((result["command"], result["exit_status"]), (["true"], 0))
        self.assertEqual(list(result), ["schema", "command", "exit_status", "repeats", "summary", "backends"])
        run = result["repeats"][0]
        self.assertEqual(list(run), ["time_s", "exit_status", "user_s", "system_s", "peak_memory_bytes", "devices",
                                     "total"])
        self.assertIsNone(run["total"]["energy_j"])
        self.assertIsNone(run["total"]["power_mean_w"])
        self.assertEqual(run["total"]["source"], "none")
        self.assertEqual(run["devices"], [])
        self.assertTrue(0 < run["time_s"] < 30)
        self.assertGreater(run["peak_memory_bytes"], 100000)
        self.assertIn("powercap", {backend["name"]: backend["text"] for backend in result["backends"]}["rapl"])

    def test_devices_says_why_there_is_nothing_and_succeeds(self):
        done = self.run_it("devices")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("Nothing on this machine can be measured:", done.stdout)
        result = json.loads(self.run_it("devices", "--json").stdout)
        self.assertEqual((result["schema"], result["devices"]), ("wattgov.devices/1", []))
        self.assertTrue({"nvml", "rapl"} <= {backend["name"] for backend in result["backends"]})

    def test_the_command_keeps_its_streams(self):
        done = self.measure("--", "cat", input="a line\n")
        self.assertEqual(done.stdout, "a line\n")
        done = self.measure("--output", self.path("report"), "--", "sh", "-c", "echo out; echo err >&2")
        self.assertEqual((done.stdout, done.stderr), ("out\n", "err\n"))
        self.assertIn("energy of sh -c", self.read("report"))

    def test_without_a_command_the_report_is_on_stdout(self):
        done = self.measure("--duration", "50ms")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("energy of this machine", done.stdout)
        time_s = self.measure_json("--duration", "200ms")["repeats"][0]["time_s"]
        self.assertTrue(0.2 <= time_s < 10, time_s)

    def test_the_exit_status_is_that_of_the_command(self):
        for script, status in (("exit 0", 0), ("exit 7", 7), ("exit 77", 77), ("kill -KILL $$", 137)):
            done = self.measure("--", "sh", "-c", script)
            self.assertEqual(done.returncode, status, script)
            self.assertIn("energy of", done.stderr)
        self.assertIn("'sh' was ended by SIGKILL", done.stderr)
        self.assertEqual(self.measure_json("--", "sh", "-c", "exit 7", status=7)["exit_status"], 7)

    def test_what_cannot_be_run_is_126_or_127(self):
        done = self.measure("--", "no-such-program-anywhere")
        self.assertEqual(done.returncode, 127)
        self.assertEqual(done.stderr, "wattgov measure: cannot run 'no-such-program-anywhere': No such file or "
                                      "directory\n")
        done = self.measure("--", self.folder)
        self.assertEqual(done.returncode, 126)
        self.assertIn("Permission denied", done.stderr)

    def test_a_script_that_names_no_interpreter_is_run_by_the_shell(self):
        path = self.path("script")
        with open(path, "w", encoding="utf-8") as file:
            file.write('echo "$1"; exit 4\n')
        os.chmod(path, 0o755)
        done = self.measure("--", path, "two words")
        self.assertEqual((done.returncode, done.stdout), (4, "two words\n"), done.stderr)

    def test_the_words_of_the_command_are_its_own(self):
        done = self.measure("--", "printf", "%s|", "--help", "--", "--json", "")
        self.assertEqual(done.stdout, "--help|--|--json||")


class Signals(Case):
    def test_signals_sent_to_wattgov_reach_the_command(self):
        process = self.start("measure", "--", sys.executable, "-c", LISTENER)
        self.assertEqual(process.stdout.readline(), "ready\n")
        for name in ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2", "SIGINT"):
            os.kill(process.pid, getattr(signal, name))
            self.assertEqual(process.stdout.readline(), name + "\n")
        os.kill(process.pid, signal.SIGUSR1)
        self.assertEqual(process.stdout.readline(), "seen 5\n")
        _, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 3, err)
        self.assertIn("energy of", err)

    def test_signals_sent_to_the_group_reach_the_command_once(self):
        """As timeout(1), a shell's kill %1 and service managers send them."""
        for words, description in (([], "in the group"), (["setsid"], "in a group of its own")):
            process = self.start("measure", "--", *words, sys.executable, "-c", LISTENER, start_new_session=True)
            self.assertEqual(process.stdout.readline(), "ready\n")
            for name in ("SIGTERM", "SIGINT"):
                os.killpg(process.pid, getattr(signal, name))
                self.assertEqual(process.stdout.readline(), name + "\n", description)
            # Passed on in order: what had come twice would have come before.
            os.kill(process.pid, signal.SIGUSR1)
            self.assertEqual(process.stdout.readline(), "seen 2\n", description)
            _, err = process.communicate(timeout=DEADLINE_S)
            self.assertEqual(process.returncode, 3, err)

    def test_a_message_ends_a_measurement_without_a_command_and_prints(self):
        process = self.start("measure", "--csv", self.path("rows"))
        wait_for(lambda: os.path.exists(self.path("rows")), "the measurement")
        os.kill(process.pid, signal.SIGUSR1)
        out, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertIn("energy of this machine", out)

    def test_a_command_that_a_signal_ends_gives_128_and_its_number_with_a_report(self):
        process = self.start("measure", "--", "sh", "-c", f"echo ready; exec sleep {DEADLINE_S}")
        self.assertEqual(process.stdout.readline(), "ready\n")
        os.kill(process.pid, signal.SIGTERM)
        _, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, err)
        self.assertIn("was ended by SIGTERM", err)

    def test_a_signal_begins_no_further_run(self):
        process = self.start("measure", "--repeat", "1000", "--", sys.executable, "-c",
                             "import signal; signal.signal(15, lambda *a: exit(0)); print('ready', flush=True); "
                             "signal.pause()")
        self.assertEqual(process.stdout.readline(), "ready\n")
        os.kill(process.pid, signal.SIGTERM)
        out, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual((process.returncode, out), (0, ""), err)

    def test_ctrl_c_of_the_terminal_reaches_the_command_once(self):
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        process = subprocess.Popen(self.arguments("measure", "--", sys.executable, "-c", LISTENER), stdin=slave,
                                   stdout=slave, stderr=slave, env=self.environment, start_new_session=True,
                                   preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)))
        os.close(slave)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        seen = self.read_until(master, "ready")
        os.write(master, b"\x03")
        seen += self.read_until(master, "SIGINT")
        # Sent after it and passed on in order: whatever wattgov had passed on would have come before.
        os.kill(process.pid, signal.SIGUSR1)
        self.assertIn("seen 1", seen + self.read_until(master, "seen "))
        self.read_until(master, "energy of")
        self.assertEqual(process.wait(DEADLINE_S), 3)

    def read_until(self, master, text):
        seen = ""
        end = time.monotonic() + DEADLINE_S
        while text not in seen or not seen.endswith("\n"):
            ready, _, _ = select.select([master], [], [], max(0, end - time.monotonic()))
            self.assertTrue(ready, f"no {text!r} in {seen!r}")
            seen += os.read(master, 4096).decode()
        return seen

    def test_ctrl_c_without_a_command_ends_and_prints(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start("measure", "--csv", self.path(f"rows-{number}"))
            # The signals are taken before the rows are begun.
            wait_for(lambda n=number: os.path.exists(self.path(f"rows-{n}")), "the measurement")
            os.kill(process.pid, number)
            out, err = process.communicate(timeout=DEADLINE_S)
            self.assertEqual((process.returncode, err), (0, ""))
            self.assertIn("energy of this machine", out)

    def test_what_nohup_ignores_stays_ignored(self):
        done = self.measure("--", sys.executable, "-c", "import signal; print(signal.getsignal(1) == signal.SIG_IGN)",
                            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertEqual(done.stdout, "True\n")


class Repeats(Case):
    def test_runs_so_often_and_shows_the_spread(self):
        result = self.measure_json("--repeat", "4", "--", "sh", "-c", f"echo x >> {self.path('count')}")
        self.assertEqual(self.read("count"), "x\n" * 4)
        self.assertEqual(len(result["repeats"]), 4)
        times = [run["time_s"] for run in result["repeats"]]
        summary = result["summary"]
        self.assertEqual((summary["run_count"], summary["runs_wanted"]), (4, 4))
        self.assertAlmostEqual(summary["time_s"]["mean"], sum(times) / 4, delta=1e-12)
        self.assertEqual((summary["time_s"]["min"], summary["time_s"]["max"]), (min(times), max(times)))
        self.assertEqual(summary["energy_j"], {"count": 0, "mean": None, "sd": None, "relative_sd": None,
                                               "min": None, "max": None})

    def test_stops_when_a_run_fails_and_says_which(self):
        path = self.path("count")
        script = f"echo x >> {path}; test $(wc -l < {path}) -lt 3"
        done = self.measure("--repeat", "5", "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 1)
        self.assertIn("run 3 of 5: 'sh' ended with exit status 1; the other 2 were not begun", done.stderr)
        self.assertIn("2 of 5 runs: ", done.stderr)
        self.assertEqual(self.read("count"), "x\n" * 3)


class Outputs(Case):
    def test_a_full_disk_is_a_failure_but_the_commands_status_wins(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = self.measure("--json", "--", "true", stdout=full)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr, "wattgov measure: cannot write the results: No space left on device\n")
            self.assertEqual(self.measure("--json", "--", "sh", "-c", "exit 7", stdout=full).returncode, 7)
            self.assertEqual(self.measure("--", "true", stderr=full).returncode, 1)
        done = self.measure("--output", "/dev/full", "--", "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/dev/full: cannot write: No space left on device", done.stderr)

    def test_rows_that_cannot_be_written_are_known_before_the_command_runs(self):
        for path in ("/dev/full", "/nowhere/at/all.csv"):
            done = self.measure("--csv", path, "--", "touch", self.path("ran"))
            self.assertEqual(done.returncode, 1)
            self.assertIn(path, done.stderr)
            self.assertFalse(os.path.exists(self.path("ran")))

    def test_closed_streams_are_no_crash(self):
        done = self.measure("--json", "--", "true", stdout=None, preexec_fn=lambda: os.close(1))
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write the results", done.stderr)
        done = self.measure("--", "true", stdout=None, preexec_fn=lambda: os.close(1))
        self.assertEqual(done.returncode, 0)

    def test_a_reader_who_left_is_a_failure_and_no_signal(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = self.measure("--duration", "10ms", stdout=writer)
        os.close(writer)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Broken pipe", done.stderr)

    def test_an_output_file_appears_only_whole(self):
        done = self.measure("--output", self.path("report"), "--", "no-such-program-anywhere")
        self.assertEqual(done.returncode, 127)
        self.assertFalse(os.path.exists(self.path("report")))


class Usage(Case):
    def check_rejects(self, arguments, *parts, command="measure"):
        done = self.run_it(command, *arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_wrong_use_names_the_option_and_what_it_takes(self):
        self.check_rejects(["--interval", "100"], "--interval", "1ms .. 1m, with its unit")
        self.check_rejects(["--interval", "0s"], "--interval")
        self.check_rejects(["--repeat", "2"], "--repeat needs a command")
        self.check_rejects(["--duration", "1s", "--", "true"], "--duration is for measuring without a command")
        self.check_rejects(["--output", "-"], "/dev/stdout")
        self.check_rejects(["--csv", self.path("a"), "--output", self.path("a")], "same file")
        self.check_rejects(["true"], "a command stands behind --: 'wattgov measure -- true'")
        self.check_rejects(["--gpu", "0"], "'none' stands beside others")
        self.check_rejects(["--device", "sim"], "replay:FILE")
        self.check_rejects(["--"], "there is no command behind --")
        self.check_rejects(["--gpu", ""], "--gpu: the value is empty", "index, range, UUID")
        self.check_rejects(["--root", "/dev/null"], "--root: '/dev/null' is not a folder")
        self.check_rejects([], "--output FILE is required", command="record")
        self.check_rejects([], "must be a terminal", command="top")

    def test_a_root_that_is_not_there_is_a_failure(self):
        for command in ("measure", "devices"):
            done = subprocess.run([program(), command, "--root", self.path("nowhere")], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=DEADLINE_S, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
            self.assertIn(f"--root: '{self.path('nowhere')}': No such file or directory", done.stderr)


class Powercap(Case):
    """One package at a constant power, driven by a thread; RAPL's energy_uj counts microjoules."""
    RANGE_UJ = 65532610987
    POWER_W = 100

    def setUp(self):
        super().setUp()
        self.zone = os.path.join(self.tree, "sys/class/powercap/intel-rapl:0")
        os.makedirs(self.zone)
        self.put("name", "package-0")
        self.put("max_energy_range_uj", self.RANGE_UJ)
        self.put("energy_uj", 0)
        self.ends = threading.Event()

    def put(self, name, value):
        with open(os.path.join(self.zone, name), "w", encoding="ascii") as file:
            file.write(f"{value:020}\n" if name == "energy_uj" else f"{value}\n")

    def drive(self, start_uj):
        start = time.monotonic()
        # In place, by one write of constant length: readers keep the file open and never see half a number.
        descriptor = os.open(os.path.join(self.zone, "energy_uj"), os.O_WRONLY)
        while not self.ends.wait(0.001):
            uj = start_uj + int((time.monotonic() - start) * self.POWER_W * 1e6)
            os.pwrite(descriptor, f"{uj % self.RANGE_UJ:020}\n".encode(), 0)
        os.close(descriptor)

    def measured(self, start_uj, *arguments):
        self.put("energy_uj", start_uj)
        thread = threading.Thread(target=self.drive, args=(start_uj,))
        thread.start()
        try:
            return self.measure_json(*arguments)["repeats"][0]
        finally:
            self.ends.set()
            thread.join()

    def check_power(self, run):
        self.assertEqual([device["label"] for device in run["devices"]], ["cpu0"])
        self.assertEqual(run["devices"][0]["source"], "counter")
        expected = self.POWER_W * run["time_s"]
        self.assertAlmostEqual(run["total"]["energy_j"], expected, delta=0.03 * expected + 1)

    def test_a_known_power_gives_known_joules(self):
        self.check_power(self.measured(0, "--duration", "1s"))

    def test_a_counter_that_wraps_counts_on(self):
        """Field report 2."""
        self.check_power(self.measured(self.RANGE_UJ - 50_000_000, "--duration", "1s"))

    def test_what_only_root_may_read_is_not_nought_but_says_so(self):
        """Field report 63."""
        if os.geteuid() == 0:
            path = os.path.join(self.zone, "energy_uj")
            os.chmod(path, 0o400)
            os.chmod(self.folder, 0o755)
            if not os.access(program(), os.X_OK) or self.cannot_run_as_nobody():
                self.skipTest("another user cannot reach the program")
            done = self.measure("--", "true", user=65534, group=65534, extra_groups=[])
        else:
            os.chmod(os.path.join(self.zone, "energy_uj"), 0)
            done = self.measure("--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"\ncpu0 +n/a")
        self.assertRegex(done.stderr, r"\ncpu0: energy n/a: .*energy_uj.*Permission denied; .*root")

    def cannot_run_as_nobody(self):
        try:
            return subprocess.run([program(), "--version"], user=65534, group=65534, extra_groups=[],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=DEADLINE_S,
                                  check=False).returncode != 0
        except PermissionError:
            return True

    def test_rows_come_while_it_runs(self):
        thread = threading.Thread(target=self.drive, args=(0,))
        thread.start()
        try:
            process = self.start("measure", "--interval", "20ms", "--csv", self.path("rows.csv"), "--", "cat",
                                 stdin=subprocess.PIPE)
            wait_for(lambda: os.path.exists(self.path("rows.csv")) and self.read("rows.csv").count("\n") > 5, "rows")
            process.stdin.close()
            self.assertEqual(process.wait(DEADLINE_S), 0)
        finally:
            self.ends.set()
            thread.join()
        rows = [line.split(",") for line in self.read("rows.csv").splitlines()]
        header, rows = rows[0], rows[1:]
        self.assertEqual(header[:3], ["run", "t_s", "device"])
        energies = [float(row[header.index("energy_j")]) for row in rows]
        times = [float(row[1]) for row in rows]
        self.assertEqual((energies, times), (sorted(energies), sorted(times)))
        self.assertEqual(len(set(times)), len(times))
        self.assertEqual({(row[0], row[2]) for row in rows}, {("1", "cpu0")})

    def test_a_recording_replays_what_was_measured(self):
        thread = threading.Thread(target=self.drive, args=(0,))
        thread.start()
        try:
            done = self.run_it("record", "-o", self.path("machine.trace"), "--duration", "1s", "--interval", "20ms")
        finally:
            self.ends.set()
            thread.join()
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertRegex(done.stderr, r"machine\.trace: \d+ answers of 1 device in 1\.\d s")
        replay = ["--device", "replay:" + self.path("machine.trace")]
        shown = json.loads(subprocess.run([program(), "devices", "--json", *replay], stdout=subprocess.PIPE,
                                          timeout=DEADLINE_S, check=True).stdout)
        self.assertEqual([device["label"] for device in shown["devices"]], ["cpu0"])
        self.assertTrue(shown["devices"][0]["meters"]["energy_j"]["present"])
        done = subprocess.run([program(), "measure", "--json", *replay, "--duration", "500ms"],
                              stdout=subprocess.PIPE, timeout=DEADLINE_S, check=True)
        run = json.loads(done.stdout)["repeats"][0]
        self.assertAlmostEqual(run["total"]["energy_j"], 50, delta=5)


class Recordings(Case):
    def test_ctrl_c_ends_a_recording_whole(self):
        process = self.start("record", "-o", self.path("machine.trace"))
        wait_for(lambda: os.path.exists(self.path("machine.trace")), "the recording")
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 0, err)
        lines = [json.loads(line) for line in self.read("machine.trace").splitlines()]
        self.assertEqual(lines[0]["schema"], "wattgov.machine/1")
        self.assertIs(lines[-1]["end"], True)

    def test_a_recording_around_a_command_has_its_exit_status(self):
        done = self.run_it("record", "-o", self.path("machine.trace"), "--", "sh", "-c", "echo out; exit 7")
        self.assertEqual((done.returncode, done.stdout), (7, "out\n"), done.stderr)
        done = self.run_it("record", "-o", self.path("machine.trace"), "--", "no-such-program-anywhere")
        self.assertEqual(done.returncode, 127)

    def test_a_recording_that_cannot_be_written_fails(self):
        for path in ("/dev/full", "/nowhere/at/all"):
            done = self.run_it("record", "-o", path, "--duration", "10ms")
            self.assertEqual(done.returncode, 1)
            self.assertIn(path, done.stderr)

    def test_what_is_no_recording_names_file_and_line(self):
        with open(self.path("bad.trace"), "w", encoding="utf-8") as file:
            file.write("{}\n")
        done = subprocess.run([program(), "measure", "--device", "replay:" + self.path("bad.trace"), "--", "true"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S,
                              check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("bad.trace:1", done.stderr)


class VirtualGpus(Case):
    def devices(self):
        return ["--root", self.tree]

    def on(self, machine, *words):
        """Runs words on a virtual machine; returns the completed process."""
        return subprocess.run([program("vgpu/wattgov-vgpu"), "run", "--machine", machine, "--", *words],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment,
                              timeout=DEADLINE_S, check=False)

    def measured(self, machine, script, *options):
        """What wattgov measures of a shell script on a machine; "vgpu" is the tool there."""
        shell = f"vgpu() {{ {program('vgpu/wattgov-vgpu')} \"$@\"; }}; {script}"
        done = self.on(machine, *self.arguments("measure", "--json", "--output", self.path("result.json"), *options,
                                                "--", "sh", "-c", shell))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(self.read("result.json"))["repeats"][0]

    def test_a_constant_load_gives_the_joules_of_the_model(self):
        # h100: 70 W idle; half the load of 720 W adds half of the rest, 325 W for two seconds. What a busy
        # machine takes to start and end the command, before and after, is idle and costs 70 W; half a second
        # of it at the end, so that the counter's last tick, up to 100 ms old, misses nothing of the load.
        run = self.measured("h100", "vgpu load --utilization 0.5 --seconds 2; vgpu load --utilization 0 --seconds 0.5")
        gpu = run["devices"][0]
        self.assertEqual((gpu["label"], gpu["source"]), ("gpu0", "counter"))
        self.assertAlmostEqual(gpu["energy_j"] - 70 * gpu["time_s"], 325 * 2, delta=325 * 2 * 0.03)
        self.assertAlmostEqual(gpu["energy_j"], gpu["power_mean_w"] * gpu["time_s"], delta=1)
        self.assertLess(gpu["idle_share"], 0.5)
        self.assertEqual(run["total"]["energy_j"], gpu["energy_j"])

    def test_only_the_gpus_that_were_chosen_are_measured(self):
        run = self.measured("8xh100", "vgpu load --gpu 2 --utilization 1 --seconds 1", "--gpu", "1-2")
        self.assertEqual([device["label"] for device in run["devices"]], ["gpu1", "gpu2"])
        self.assertGreater(run["devices"][1]["energy_j"], 5 * run["devices"][0]["energy_j"])
        self.assertAlmostEqual(run["total"]["energy_j"], sum(device["energy_j"] for device in run["devices"]),
                               delta=1e-6)

    def test_a_gpu_that_is_lost_in_the_middle_is_named_and_the_others_go_on(self):
        """Field reports 34, 36."""
        run = self.measured("8xh100", "vgpu load --gpu 1 --seconds 0.6; vgpu fault lost --gpu 0; "
                                      "vgpu load --gpu 1 --seconds 0.6", "--gpu", "0,1")
        lost, other = run["devices"]
        self.assertIn("lost", lost["flags"])
        self.assertIn("gpu0", lost["trouble"])
        self.assertRegex(lost["trouble"], r"nvml\w+")
        self.assertNotIn("lost", other["flags"])
        self.assertIsNone(other["trouble"])
        self.assertGreater(other["energy_j"], 300)

    def test_a_gpu_that_hangs_costs_its_own_answers_only(self):
        """Field reports 35, 55."""
        start = time.monotonic()
        run = self.measured("8xh100", "vgpu load --gpu 1 --seconds 0.6; vgpu fault hang --gpu 0; "
                                      "vgpu load --gpu 1 --seconds 2", "--gpu", "0,1", "--timeout", "500ms")
        self.assertLess(time.monotonic() - start, 30)
        hung, other = run["devices"]
        self.assertIn("hung", hung["flags"])
        self.assertIn("gpu0", hung["trouble"])
        self.assertEqual([flag for flag in other["flags"] if flag in ("hung", "lost", "gap")], [])

    def test_the_devices_of_a_machine_are_listed_with_their_ranges(self):
        done = self.on("8xh100", *self.arguments("devices", "--json"))
        devices = json.loads(done.stdout)["devices"]
        self.assertEqual([device["label"] for device in devices], [f"gpu{i}" for i in range(8)])
        self.assertEqual(len({device["uuid"] for device in devices}), 8)
        limit = devices[3]["knobs"]["power_limit"]
        self.assertEqual((limit["min"], limit["max"], limit["current"], limit["preset"]), (200, 700, 700, 700))
        text = self.on("8xh100", *self.arguments("devices")).stdout
        self.assertEqual(text.count("NVIDIA H100 80GB HBM3"), 8)

    def test_processes_are_listed_on_request(self):
        shell = f"""{program('vgpu/wattgov-vgpu')} load --gpu 0 --memory 2048 & load=$!
            until {program()} devices --processes --json > {self.path('list')} && grep -q '"pid"' {self.path('list')}
            do :; done
            kill $load; echo $load"""
        done = self.on("h100", "sh", "-c", shell)
        processes = json.loads(self.read("list"))["devices"][0]["processes"]
        self.assertEqual([str(process["pid"]) for process in processes], done.stdout.split())
        self.assertEqual(processes[0]["memory_bytes"], 2048 << 20)
        self.assertIn("wattgov-vgpu", processes[0]["name"])


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main()
