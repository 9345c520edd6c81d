#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kills a governor, its guard, or both, at random moments, and looks whether anything stays set.

    tests/integration/control_kill.py build/release [--runs 1000] [--seed 1]

Each run sets a virtual GPU to some power limit, starts a governor that changes limit and clocks as fast as it can
(control_driver.c), perhaps makes the driver fail, hang or dawdle, and kills. When nobody holds a journal any more the
GPU must be as it was; where the guard was killed too, after the next wattgov command. Counts and seed are printed;
status 1 when anything was left behind.
"""
import argparse
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import vgpu_case

DEADLINE_S = 60
SETTERS = ["nvmlDeviceSetPowerManagementLimit", "nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks",
           "nvmlDeviceResetMemoryLockedClocks", "nvmlDeviceGetPowerManagementLimit"]
VICTIMS = ["governor", "governor", "guard", "both", "both", "governor, then its guard"]
TROUBLES = ["none", "none", "none", "error", "hang", "delay"]


class Machine:
    """One virtual machine that lives for the whole test."""

    def __init__(self, build, folder, name):
        self.build = build
        self.environment = {key: value for key, value in os.environ.items()
                            if key not in ("WATTGOV_VGPU", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")}
        self.environment.update(XDG_RUNTIME_DIR=folder, TMPDIR=folder)
        self.process = subprocess.Popen(
            [self.tool("wattgov-vgpu"), "run", "--machine", name, "--anyone-may-set", "--", "sh", "-c",
             "echo $WATTGOV_VGPU; echo $LD_LIBRARY_PATH; exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment)
        self.environment["WATTGOV_VGPU"] = self.process.stdout.readline().strip()
        self.environment["LD_LIBRARY_PATH"] = self.process.stdout.readline().strip()
        self.client = vgpu_case.Client(self.environment)

    def tool(self, name):
        return os.path.join(self.build, "vgpu", name)

    def set_limit(self, watts):
        code = self.client.call("nvmlDeviceSetPowerManagementLimit", 0, watts * 1000)["code"]
        assert code == 0, f"the limit was not taken: {code}"

    def state(self):
        done = subprocess.run([self.tool("wattgov-vgpu"), "show", "--json"], env=self.environment, check=True,
                              stdout=subprocess.PIPE, timeout=DEADLINE_S)
        gpu = json.loads(done.stdout)["gpus"][0]
        return gpu["limit_w"], gpu["clock_lock_max_hz"], gpu["memory_clock_lock_hz"]

    def fault(self, *arguments):
        subprocess.run([self.tool("wattgov-vgpu"), "fault", *arguments], env=self.environment, check=True,
                       timeout=DEADLINE_S)

    def close(self):
        self.client.close()
        self.process.stdin.close()
        self.process.wait(DEADLINE_S)
        self.process.stdout.close()


def journals(state):
    try:
        names = os.listdir(os.path.join(state, "journal"))
    except FileNotFoundError:
        return []
    return [os.path.join(state, "journal", name) for name in names if name.endswith(".journal")]


def is_held(path):
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Run:
    def __init__(self, machine, chance, number):
        self.machine = machine
        self.chance = chance
        self.number = number
        self.state = tempfile.mkdtemp(dir=machine.environment["TMPDIR"])
        self.environment = dict(machine.environment, WATTGOV_STATE_DIR=self.state)
        self.victim = chance.choice(VICTIMS)
        self.trouble = chance.choice(TROUBLES)
        # From the first instruction to well into the setting.
        self.moment_s = chance.choice([chance.uniform(0, 0.02), chance.uniform(0, 0.25)])
        self.original = chance.randrange(110, 250)
        self.was_command = False  # the next command had something to restore

    def __str__(self):
        return (f"run {self.number}: {self.victim} killed after {1000 * self.moment_s:.1f} ms, trouble {self.trouble}, "
                f"limit {self.original} W")

    def make_trouble(self):
        name = self.chance.choice(SETTERS)
        if self.trouble == "error":
            self.machine.fault("error", "--code", str(self.chance.choice([999, 3, 15])), "--function", name,
                               "--calls", str(self.chance.randrange(1, 12)))  # the guard tries ever more slowly
        elif self.trouble == "hang":
            self.machine.fault("hang", "--function", name)
        elif self.trouble == "delay":
            self.machine.fault("delay", "--value", "0.05", "--function", name, "--calls", "30")

    def kill(self, process):
        """The governor says who its guard is, once there is one."""
        waits = self.chance.random() < 0.7
        guard = None
        if waits:
            words = process.stdout.readline().split()
            guard = int(words[1]) if words and words[0] == "guard" else None
        if self.chance.random() < 0.5:
            self.make_trouble()
        else:
            self.trouble = "none"
        time.sleep(self.moment_s)  # the moment is what is tried, nothing is waited for
        if self.victim == "guard" and guard is not None:
            kill(guard)
            return False
        if self.victim == "both" and guard is not None and self.chance.random() < 0.5:
            kill(guard)
        kill(process.pid)
        if self.victim == "both" and guard is not None:
            kill(guard)
        if self.victim == "governor, then its guard" and guard is not None:
            time.sleep(self.chance.uniform(0, 0.03))
            kill(guard)
        return self.victim == "governor" or guard is None

    def go(self):
        self.machine.set_limit(self.original)
        build = self.machine.build
        process = subprocess.Popen([os.path.join(build, "tests/integration/control_driver"),
                                    os.path.join(build, "wattgov"), str(self.number), f"run {self.number}"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True, env=self.environment)
        has_guard = self.kill(process)
        if self.trouble == "hang":
            time.sleep(self.chance.uniform(0, 0.8))  # while the guard runs into it
            self.machine.fault("clear")
        if self.victim == "guard":
            process.stdin.close()  # the governor gives all back by itself
        process.wait(DEADLINE_S)
        process.stdout.close()
        if not process.stdin.closed:
            process.stdin.close()
        end = time.monotonic() + DEADLINE_S
        while any(is_held(path) for path in journals(self.state)):
            if time.monotonic() > end:
                return "somebody holds a journal for ever"
            time.sleep(0.002)
        self.machine.fault("clear")
        if has_guard and self.machine.state() != (self.original, None, None):
            return f"the guard has left {self.machine.state()}"
        done = subprocess.run([os.path.join(self.machine.build, "wattgov"), "devices"], env=self.environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S,
                              check=False)
        if done.returncode != 0:
            return f"wattgov devices has failed: {done.stderr}"
        self.was_command = "is back" in done.stderr
        if self.machine.state() != (self.original, None, None):
            return f"left behind: {self.machine.state()}: {done.stderr}"
        if journals(self.state):
            return f"a journal stays: {done.stderr}"
        shutil.rmtree(self.state)
        return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--machine", default="a40")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    bad = 0
    by_command = 0
    count = {}
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(os.path.abspath(options.build), folder, options.machine)
        for number in range(options.runs):
            run = Run(machine, chance, number)
            problem = run.go()
            count[run.victim] = count.get(run.victim, 0) + 1
            by_command += run.was_command
            if problem:
                bad += 1
                print(f"{run}: {problem}")
                machine.fault("clear")
                for function in ("nvmlDeviceResetGpuLockedClocks", "nvmlDeviceResetMemoryLockedClocks"):
                    machine.client.call(function, 0)
        machine.close()
    kinds = ", ".join(f"{name} {number}" for name, number in sorted(count.items()))
    print(f"{options.runs} runs with seed {options.seed} in {time.monotonic() - begin:.1f} s ({kinds}; {by_command} "
          f"restored by the next command): {bad} have left something behind")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
