# SPDX-License-Identifier: MIT
"""The truth beside what a client says: `wattgov-vgpu show`, loads and faults."""
import contextlib
import json
import os
import subprocess
import time

DEADLINE_S = 60
VGPU = os.path.join(os.environ["WATTGOV_VGPU_PROGRAMS"], "wattgov-vgpu")


def show():
    """The machine as it is."""
    done = subprocess.run([VGPU, "show", "--json"], stdout=subprocess.PIPE, check=True, timeout=DEADLINE_S)
    return json.loads(done.stdout)


def gpus():
    return show()["gpus"]


def wait_for(condition, what):
    """Polls until the condition gives something true, and returns that."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.005)
    raise AssertionError(f"{what} did not come true")


@contextlib.contextmanager
def load(gpu, *arguments):
    """Work on a GPU; gives the process that holds it."""
    process = subprocess.Popen([VGPU, "load", "--gpu", str(gpu), *map(str, arguments)])
    try:
        wait_for(lambda: gpus()[gpu]["loads"], "the load")
        yield process
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


@contextlib.contextmanager
def fault(*arguments):
    subprocess.run([VGPU, "fault", *map(str, arguments)], check=True, timeout=DEADLINE_S)
    try:
        yield
    finally:
        subprocess.run([VGPU, "fault", "clear"], check=True, timeout=DEADLINE_S)


def energy_while(gpu, seconds, measure):
    """Calls measure() twice, `seconds` apart; the difference, and between which bounds the truth lies.

    The truth is looked at before and after each call, since no two processes look at the same moment.
    """
    before = gpus()[gpu]["energy_j"]
    first = measure()
    begun = gpus()[gpu]["energy_j"]
    end = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() >= end, "the time")
    ending = gpus()[gpu]["energy_j"]
    last = measure()
    after = gpus()[gpu]["energy_j"]
    return last - first, ending - begun, after - before
