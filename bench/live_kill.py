#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Kills governors, guards and trainers at random moments, and looks for what they leave behind.

    tools/build && bench/live_kill.py --runs 1000 --seed 1

Each run is `wattgov train` around a measured job on a virtual V100. At a random moment one of governor, guard and
trainer gets SIGKILL, or governor and guard both; in a third of the runs the driver meanwhile refuses or hangs its
calls. Afterwards the limit must be the original one: by itself, or, where governor and guard both died or the driver
would not have it, after the next wattgov command. Prints the counts and the seed; status 1 if anything was left.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
ORIGINAL_W = 250
PATIENCE_S = 30  # of a guard whose driver hangs
VICTIMS = ("governor", "guard", "trainer", "governor and guard", "nobody")
FAULTS = (None, None, None, None, "error", "hang")


class Machine:
    """A virtual V100 with a state directory of its own."""

    def __init__(self, build):
        self.build = build
        self.program = os.path.join(ROOT, build, "wattgov")
        self.folder = tempfile.TemporaryDirectory()
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("WATTGOV_VGPU", "LD_LIBRARY_PATH", "WATTGOV_PROGRESS")}
        environment.update(XDG_RUNTIME_DIR=self.folder.name, TMPDIR=self.folder.name)
        self.process = subprocess.Popen([self.tool("wattgov-vgpu"), "run", "--machine", "v100", "--anyone-may-set", "--",
                                         "sh", "-c", "echo $WATTGOV_VGPU; echo $LD_LIBRARY_PATH; exec cat"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.environment = dict(environment, WATTGOV_VGPU=self.process.stdout.readline().strip(),
                                LD_LIBRARY_PATH=self.process.stdout.readline().strip(),
                                WATTGOV_STATE_DIR=os.path.join(self.folder.name, "state"))

    def tool(self, name):
        return os.path.join(ROOT, self.build, "vgpu", name)

    def run(self, *command):
        return subprocess.run(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False)

    def limit_w(self):
        return json.loads(self.run(self.tool("wattgov-vgpu"), "show", "--json").stdout)["gpus"][0]["limit_w"]

    def journals(self):
        folder = os.path.join(self.folder.name, "state/journal")
        return [name for name in (os.listdir(folder) if os.path.isdir(folder) else []) if name != "lock"]

    def pids(self, word):
        """Our processes whose command line has the word."""
        found = []
        mark = os.fsencode(self.environment["WATTGOV_VGPU"])
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and word in open(f"/proc/{name}/cmdline", "rb").read().split(b"\0") and \
                        mark in open(f"/proc/{name}/environ", "rb").read():
                    found.append(int(name))
            except OSError:
                pass
        return found

    def kill_trainers(self, governor, word):
        for pid in self.pids(word):
            if pid != governor.pid:
                kill(pid)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


def kill(pid):
    """Kills, and waits until the process holds nothing more."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended meanwhile
    select.select([handle], [], [], PATIENCE_S)
    os.close(handle)


def inject(machine, kind, chance):
    call = chance.choice(("nvmlDeviceSetPowerManagementLimit", "nvmlDeviceGetPowerManagementLimit",
                          "nvmlDeviceGetFieldValues"))
    words = ["--function", call, "--from-call", str(chance.randint(1, 20)), "--calls", str(chance.randint(1, 5))]
    if kind == "error":
        words += ["--code", str(chance.choice((3, 4, 15, 999)))]
    done = machine.run(machine.tool("wattgov-vgpu"), "fault", kind, *words)
    if done.returncode != 0:
        raise SystemExit(f"live_kill.py: {done.stderr}")


def settle(machine, patience_s):
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if machine.limit_w() == ORIGINAL_W and not machine.journals():
            return True
        time.sleep(0.02)
    return False


def strike(machine, process, victim, fault, chance, trainer):
    """Kills the victim; a hanging driver comes back afterwards. The governor's own trainer dies with it."""
    if victim.startswith("governor"):
        kill(process.pid)
    if victim.endswith("guard"):
        for pid in machine.pids(b"guard"):
            kill(pid)
    if victim == "trainer":
        machine.kill_trainers(process, trainer)
    if fault == "hang":
        time.sleep(chance.uniform(0, 1))
        machine.run(machine.tool("wattgov-vgpu"), "fault", "clear")
    if victim.startswith("governor"):
        machine.kill_trainers(process, trainer)
    process.wait()
    machine.run(machine.tool("wattgov-vgpu"), "fault", "clear")


def find_left(machine, victim, fault):
    """What was left behind: None, or a text."""
    alone = victim != "governor and guard" and fault is None
    if alone and not settle(machine, PATIENCE_S):
        return f"{machine.limit_w()} W and journals {machine.journals()} by itself"
    machine.run(machine.program, "devices")
    if not settle(machine, PATIENCE_S):
        return f"{machine.limit_w()} W and journals {machine.journals()} after the next command"
    return None


def one_run(machine, seed, number):
    """(victim, fault, whether the limit had moved, what was left: None, or a text)"""
    chance = random.Random(f"{seed}/{number}")
    victim, fault = chance.choice(VICTIMS), chance.choice(FAULTS)
    if fault:
        inject(machine, fault, chance)
    process = subprocess.Popen([machine.program, "train", "--timeout", "300ms", "--profile", "warmup=50ms,measure=100ms", "--",
                                machine.tool("wattgov-vload"), "cifar100", "--gpu", "V100", "--epochs", "6",
                                "--time-scale", "20", "--print-every", "1000"],
                               env=machine.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(chance.uniform(0, 2.2))
    moved = machine.limit_w() != ORIGINAL_W
    strike(machine, process, victim, fault, chance, b"cifar100")
    return victim, fault or "none", moved, find_left(machine, victim, fault)


def parse_args(document):
    parser = argparse.ArgumentParser(description=document.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--parallel", type=int, default=6)
    parser.add_argument("--build", default="build/release")
    return parser.parse_args()


def each_run(args, make_machine, run):
    """What run(machine, seed, number) says, for each number; its last word is what is wrong. Side by side, each on a
    machine of its own."""
    local = threading.local()
    machines = []

    def work(number):
        if not hasattr(local, "machine"):
            local.machine = make_machine(args.build)
            machines.append(local.machine)
        result = run(local.machine, args.seed, number)
        if result[-1]:
            print(f"run {number}: {result}", file=sys.stderr, flush=True)
        return result

    with concurrent.futures.ThreadPoolExecutor(args.parallel) as pool:
        yield from pool.map(work, range(args.runs))
    for machine in machines:
        machine.close()


def main():
    args = parse_args(__doc__)
    counts, moved, left = collections.Counter(), 0, 0
    for victim, fault, has_moved, what in each_run(args, Machine, one_run):
        counts[f"{victim}, fault {fault}"] += 1
        moved += has_moved
        left += what is not None
    for name, count in sorted(counts.items()):
        print(f"{count:5} {name}")
    print(f"seed {args.seed}: {args.runs} runs, in {moved} the limit had been moved, {left} left something behind")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
