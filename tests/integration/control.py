#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Control that cannot be left behind, as users meet it: a governor dies, its guard or the next command restores.

    tests/integration/control.py build/release

The governor is control_driver.c on virtual GPUs; control_kill.py does the same at random moments.
"""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import vgpu_case
from vgpu_case import DEADLINE_S, wait_for

BUILD = None


def program(name="wattgov"):
    return os.path.join(BUILD, name)


class Case(vgpu_case.Case):
    machine = ["--machine", "a40", "--anyone-may-set"]

    def setUp(self):
        super().setUp()
        self.environment.pop("CUDA_VISIBLE_DEVICES", None)
        self.state = os.path.join(self.folder, "state")
        self.environment["WATTGOV_STATE_DIR"] = self.state
        _, self.environment = self.start(*self.machine)
        self.client_ = self.client(self.environment)

    def set_limit(self, watts):
        self.assertEqual(self.client_.call("nvmlDeviceSetPowerManagementLimit", 0, watts * 1000)["code"], 0)

    def settings(self):
        gpu = self.gpu(self.environment)
        return gpu["limit_w"], gpu["clock_lock_max_hz"], gpu["memory_clock_lock_hz"]

    def journals(self):
        folder = os.path.join(self.state, "journal")
        return [name for name in os.listdir(folder) if name.endswith(".journal")] if os.path.isdir(folder) else []

    def wattgov(self, *arguments, **kwargs):
        kwargs.setdefault("env", self.environment)
        return subprocess.run([program(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=DEADLINE_S, check=False, **kwargs)

    def governor(self, holder="test", mode="quiet"):
        """A governor that has taken all knobs and, if quiet, set each of them once."""
        process = subprocess.Popen([program("tests/integration/control_driver"), program(), "1", holder, mode],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.environment)

        def stop():
            if process.poll() is None:
                process.kill()
            process.wait(DEADLINE_S)
            for stream in (process.stdin, process.stdout, process.stderr):
                stream.close()
        self.stack.callback(stop)
        words = process.stdout.readline().split()
        self.assertEqual(words[0], "guard", words)
        process.guard = int(words[1])
        return process

    def set_governor(self, holder="test"):
        process = self.governor(holder)
        self.assertEqual(process.stdout.readline(), "taken\n")
        self.assertEqual(process.stdout.readline(), "set\n")
        return process

    def die(self, process, *others):
        """Guards first, so that they cannot restore."""
        for pid in others:
            os.kill(pid, signal.SIGKILL)
        process.kill()
        process.wait(DEADLINE_S)
        for pid in others:
            wait_for(lambda dying=pid: self.has_died(dying), "the death of the guard")

    @staticmethod
    def has_died(pid):
        """Its files are closed before it is a zombie."""
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                return file.read().rpartition(")")[2].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    def end(self, process):
        process.stdin.close()
        said = process.stdout.read()
        self.assertEqual(process.wait(DEADLINE_S), 0, process.stderr.read())
        return said


class Restoring(Case):
    def test_at_its_end_a_governor_gives_all_back_and_leaves_no_guard(self):
        self.set_limit(222)
        process = self.set_governor()
        self.assertNotEqual(self.settings(), (222, None, None))
        self.assertEqual(self.end(process), "left 0\n")
        self.assertEqual(self.settings(), (222, None, None))
        self.assertEqual(self.journals(), [])
        self.assertRaises(ProcessLookupError, os.kill, process.guard, 0)

    def test_a_governor_that_is_killed_leaves_nothing_set(self):
        self.set_limit(222)
        process = self.set_governor()
        self.die(process)
        wait_for(lambda: not self.journals(), "the end of the journal")
        self.assertEqual(self.settings(), (222, None, None))

    def test_where_the_guard_dies_too_the_next_command_restores_and_says_so(self):
        self.set_limit(222)
        process = self.set_governor("wattgov train: python a.py")
        left = self.settings()
        self.die(process, process.guard)
        for command in (["--help"], ["--version"], ["simulate", "--help"], ["devices", "--help"], ["guard"]):
            self.wattgov(*command)
            self.assertEqual(self.settings(), left, command)
        done = self.wattgov("devices", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        json.loads(done.stdout)
        self.assertIn("wattgov: gpu0: power_limit is back at 222 W", done.stderr)
        self.assertIn("wattgov: gpu0: gpu_clock is back at the driver's own choice (left by 'wattgov train: python "
                      "a.py')", done.stderr)
        self.assertEqual(self.settings(), (222, None, None))
        self.assertEqual(self.journals(), [])
        self.assertEqual(self.wattgov("devices").stderr, "")

    def test_the_guard_outlives_what_ends_programs(self):
        self.set_limit(222)
        process = self.set_governor()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            os.kill(process.guard, number)
        self.die(process)
        wait_for(lambda: not self.journals(), "the end of the journal")
        self.assertEqual(self.settings(), (222, None, None))

    def test_the_guard_outlives_a_driver_that_fails_and_one_that_hangs(self):
        for fault in (["error", "--code", "999", "--function", "nvmlDeviceSetPowerManagementLimit"],
                      ["hang", "--function", "nvmlDeviceResetGpuLockedClocks"],
                      ["lost", "--gpu", "0"]):
            with self.subTest(fault=fault):
                self.set_limit(222)
                process = self.set_governor()
                self.fault(self.environment, *fault)
                calls = self.calls(fault)
                self.die(process)
                wait_for(lambda c=calls, f=fault: self.calls(f) > c + 1, "a second try of the guard")
                self.assertEqual(len(self.journals()), 1)
                self.fault(self.environment, "clear")
                wait_for(lambda: not self.journals(), "the end of the journal")
                self.assertEqual(self.settings(), (222, None, None))

    def test_what_a_governor_could_not_give_back_at_its_end_its_guard_does(self):
        self.set_limit(222)
        process = self.set_governor()
        self.fault(self.environment, "error", "--code", "999", "--function", "nvmlDeviceSetPowerManagementLimit")
        self.assertEqual(self.end(process), "left 1\n")
        journal, = json.loads(self.wattgov("restore", "--json").stdout)["journals"]
        self.assertEqual((journal["state"], [knob["knob"] for knob in journal["knobs"]]),
                         ("restoring", ["power_limit"]))
        done = self.wattgov("restore")
        self.assertEqual(done.returncode, 1)
        self.assertIn("its guard, or another command, is at it: look again soon", done.stdout)
        self.assertEqual(self.wattgov("devices").stderr, "")  # it is the guard's
        self.fault(self.environment, "clear")
        wait_for(lambda: not self.journals(), "the end of the journal")
        self.assertEqual(self.settings(), (222, None, None))

    def calls(self, fault):
        """How often the guard has tried: a hang holds the call, so what is tried beside it counts."""
        name = fault[fault.index("--function") + 1] if fault[0] == "error" else "nvmlDeviceGetHandleByIndex_v2"
        if fault[0] == "hang":
            name = "nvmlDeviceGetPowerManagementLimit"
        shown = self.show(self.environment)
        return shown["calls"].get(name, 0) + sum(gpu["calls"].get(name, 0) for gpu in shown["gpus"])

    def test_what_somebody_else_has_set_since_is_left(self):
        process = self.set_governor()
        self.die(process, process.guard)
        self.set_limit(133)
        done = self.wattgov("restore")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("gpu0: power_limit is left at 133 W, which somebody else has set", done.stdout)
        self.assertEqual(self.settings(), (133, None, None))

    def test_a_second_governor_is_refused_with_the_name_of_the_first(self):
        first = self.set_governor("the first")
        second = self.governor("the second")
        self.assertEqual(second.stdout.readline(),
                         f"busy gpu0: power_limit is held by 'the first' (pid {first.pid})\n")
        self.assertEqual(second.wait(DEADLINE_S), 3)
        self.end(first)
        self.assertEqual(self.end(self.set_governor("the third")), "left 0\n")

    def test_a_governor_waits_for_what_a_guard_restores(self):
        self.set_limit(222)
        process = self.set_governor("the first")
        self.fault(self.environment, "delay", "--value", "0.3", "--function", "nvmlDeviceSetPowerManagementLimit",
                   "--calls", "1")
        self.die(process)
        self.assertEqual(self.end(self.set_governor("the second")), "left 0\n")
        self.assertEqual(self.settings(), (222, None, None))

    def test_a_driver_that_was_reloaded_has_nothing_to_restore(self):
        process = self.set_governor()
        self.fault(self.environment, "revert")
        self.die(process)
        wait_for(lambda: not self.journals(), "the end of the journal")
        self.assertEqual(self.settings(), (300, None, None))


class ByHand(Case):
    def test_it_lists_who_holds_what_and_restores_what_nobody_holds(self):
        self.set_limit(222)
        process = self.set_governor("the first")
        shown = json.loads(self.wattgov("restore", "--json").stdout)
        self.assertEqual((shown["schema"], shown["knobs"]), ("wattgov.restore/1", []))
        journal, = shown["journals"]
        self.assertEqual((journal["state"], journal["holder"], journal["pid"]), ("held", "the first", process.pid))
        self.assertIn(("gpu0", "power_limit", 222), [(knob["label"], knob["knob"], knob["original"])
                                                     for knob in journal["knobs"]])
        self.assertEqual(list(journal), ["path", "state", "holder", "pid", "knobs"])
        self.assertEqual({tuple(knob) for knob in journal["knobs"]},
                         {("device", "label", "knob", "original", "value")})
        text = self.wattgov("restore", "--list").stdout
        self.assertIn(f"held: the first (pid {process.pid}), ", text)
        self.assertIn(", before 222 W\n", text)
        self.die(process, process.guard)
        listed = json.loads(self.wattgov("restore", "--list", "--json").stdout)
        self.assertEqual(listed["journals"][0]["state"], "stale")
        self.assertNotEqual(self.settings()[0], 222)
        done = self.wattgov("restore", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        knobs = {knob["knob"]: knob for knob in json.loads(done.stdout)["knobs"]}
        self.assertEqual(list(knobs["gpu_clock"]),
                         ["device", "label", "knob", "original", "found", "outcome", "holder", "error"])
        self.assertEqual({knob["outcome"] for knob in knobs.values()}, {"restored"})
        self.assertEqual((knobs["gpu_clock"]["original"], knobs["gpu_clock"]["found"]), (None, None))
        self.assertEqual((knobs["power_limit"]["original"], knobs["power_limit"]["error"]), (222, None))
        self.assertEqual(self.settings(), (222, None, None))
        self.assertEqual(self.wattgov("restore").stdout, "nothing was left to restore\n")
        self.assertEqual(self.wattgov("restore", "--list").stdout, "no settings are noted\n")

    def test_what_does_not_come_back_is_its_exit_status_and_stays(self):
        self.set_limit(222)
        process = self.set_governor()
        self.die(process, process.guard)
        self.fault(self.environment, "error", "--code", "4", "--function", "nvmlDeviceSetPowerManagementLimit")
        done = self.wattgov("restore")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("gpu0: power_limit did not come back to 222 W: gpu0: nvmlDeviceSetPowerManagementLimit: error 4: "
                      "no permission", done.stdout)
        self.assertIn("gpu0: gpu_clock is back", done.stdout)
        self.assertIn("stale: test (pid", done.stdout)
        other = self.wattgov("devices")
        self.assertEqual(other.returncode, 0)  # it tells and goes on
        self.assertIn("did not come back", other.stderr)
        self.fault(self.environment, "clear")
        self.assertEqual(self.wattgov("restore").returncode, 0)
        self.assertEqual(self.settings(), (222, None, None))

    def test_a_driver_that_hangs_hangs_no_command_and_costs_only_its_own_setting(self):
        self.set_limit(222)
        process = self.set_governor()
        left = self.settings()
        self.die(process, process.guard)
        for function in ("nvmlInitWithFlags", "nvmlDeviceGetPowerManagementLimit", "nvmlDeviceSetPowerManagementLimit"):
            with self.subTest(function=function):
                self.fault(self.environment, "hang", "--function", function)
                done = self.wattgov("restore")
                self.assertEqual((done.returncode, done.stderr), (1, ""))
                self.assertIn("gpu0: power_limit did not come back to 222 W: ", done.stdout)
                self.assertIn(f"{function.removesuffix('WithFlags')} has not returned for", done.stdout)
                self.assertEqual(self.settings()[0], left[0])
                if function == "nvmlDeviceSetPowerManagementLimit":
                    self.assertEqual(self.settings()[1:], (None, None))
                    self.assertEqual(self.wattgov("devices").returncode, 0)
                self.fault(self.environment, "clear")
        self.assertEqual(self.wattgov("restore").returncode, 0)
        self.assertEqual(self.settings(), (222, None, None))

    def test_a_journal_that_cannot_be_read_is_told_and_kept(self):
        os.makedirs(os.path.join(self.state, "journal"))
        path = os.path.join(self.state, "journal", "1-1-1.journal")
        for text in ("nonsense\n", '{"wattgov_journal":99}\n'):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            done = self.wattgov("restore", "--json")
            self.assertEqual(done.returncode, 1)
            self.assertEqual(json.loads(done.stdout)["journals"][0]["state"], "unreadable")
            self.assertIn(path, self.wattgov("restore").stdout)
            other = self.wattgov("devices")
            self.assertEqual(other.returncode, 0)
            self.assertIn(path, other.stderr)
            self.assertTrue(os.path.exists(path))

    def test_the_folder_can_be_given_and_a_broken_one_is_told(self):
        self.set_limit(222)
        process = self.set_governor()
        self.die(process, process.guard)
        elsewhere = dict(self.environment, WATTGOV_STATE_DIR=os.path.join(self.folder, "other"))
        self.assertEqual(self.wattgov("restore", env=elsewhere).stdout, "nothing was left to restore\n")
        done = self.wattgov("restore", "--state-dir", self.state, env=elsewhere)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.settings(), (222, None, None))
        for wrong, said in ((os.path.join(self.folder, "typo"), "No such file"), ("/etc/passwd", "no folder")):
            done = self.wattgov("restore", "--state-dir", wrong)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr)
        broken = dict(self.environment, WATTGOV_STATE_DIR="state")
        done = self.wattgov("restore", env=broken)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("WATTGOV_STATE_DIR 'state' is not an absolute path", done.stderr)
        done = self.wattgov("devices", env=broken)
        self.assertEqual(done.returncode, 0)  # it tells and goes on
        self.assertIn("wattgov: whether an earlier wattgov has left settings: WATTGOV_STATE_DIR", done.stderr)

    def test_outside_its_virtual_machine_a_journal_is_left_alone(self):
        process = self.set_governor()
        self.die(process, process.guard)
        outside = {name: value for name, value in self.environment.items()
                   if name not in ("WATTGOV_VGPU", "LD_LIBRARY_PATH")}
        self.assertEqual(self.wattgov("devices", env=outside).stderr, "")
        shown = json.loads(self.wattgov("restore", "--list", "--json", env=outside).stdout)
        self.assertEqual(shown["journals"][0]["state"], "elsewhere")
        self.assertEqual(len(self.journals()), 1)
        self.assertEqual(self.wattgov("restore").returncode, 0)
        self.assertEqual(self.journals(), [])

    def test_files_of_the_kernel_come_back_below_the_root_that_the_journal_names(self):
        zone = os.path.join(self.folder, "tree/sys/class/powercap/intel-rapl:0")
        os.makedirs(zone)
        for name, text in (("name", "package-0"), ("energy_uj", "1"), ("max_energy_range_uj", "262143328850"),
                           ("constraint_0_power_limit_uw", "65000000"), ("constraint_0_max_power_uw", "150000000")):
            with open(os.path.join(zone, name), "w", encoding="utf-8") as file:
                file.write(text + "\n")
        os.makedirs(os.path.join(self.state, "journal"))
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
            boot = file.read().strip()
        lines = [{"wattgov_journal": 1, "pid": 1, "start": 1, "boot": boot, "holder": "test", "virtual_gpu":
                  self.environment["WATTGOV_VGPU"], "root": os.path.join(self.folder, "tree"), "timeout_ms": 5000},
                 {"take": "power_limit", "device": "rapl:package-0", "label": "cpu0", "original": 125, "step": 0.125},
                 {"set": "power_limit", "device": "rapl:package-0", "value": 65}]
        with open(os.path.join(self.state, "journal/1-1-1.journal"), "w", encoding="utf-8") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))
        done = self.wattgov("restore")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "cpu0: power_limit is back at 125 W, was 65 W (left by 'test')\n")
        with open(os.path.join(zone, "constraint_0_power_limit_uw"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "125000000")

    def test_nothing_to_restore_costs_next_to_nothing(self):
        begin = time.monotonic()
        self.assertEqual(self.wattgov("restore").returncode, 0)
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual(self.show(self.environment)["calls"].get("nvmlInit_v2", 0), 1)  # the test's own client
        self.assertFalse(os.path.exists(self.state))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BUILD = os.path.abspath(sys.argv.pop(1))
    vgpu_case.Case.programs = os.path.join(BUILD, "vgpu")
    unittest.main()
