#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What telling progress costs the training, from Python.

    bench/train_overhead.py build/release

A call of `wattgov.train.step()` and a turn of `for batch in wattgov.steps(...)`, with the turn of the bare loop taken
off, in nanoseconds: the median and the worst of the rounds. `none`: no governor runs. `file`: one does, as far as the
reporter can tell; nobody is woken, since that costs the same from C (bench/train_overhead.c). STEPS and ROUNDS in the
environment say how many steps (100000) and rounds (30). Prints one JSON object.
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "tests/integration"))
from progress_file import ProgressFile  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = """
import itertools, json, sys, time
import wattgov

STEPS, ROUNDS = int(sys.argv[1]), int(sys.argv[2])


def turns(batches):
    begin = time.perf_counter_ns()
    for _ in batches:
        pass
    return (time.perf_counter_ns() - begin) / STEPS


def calls(step):
    begin = time.perf_counter_ns()
    for _ in itertools.repeat(None, STEPS):
        step()
    return (time.perf_counter_ns() - begin) / STEPS


def summary(values):
    values.sort()
    return {"median": round(values[len(values) // 2], 1), "max": round(values[-1], 1)}


many = range(STEPS)
bare = sorted(turns(many) for _ in range(ROUNDS))[ROUNDS // 2]
print(json.dumps({"step_ns": summary([calls(wattgov.train.step) - bare for _ in range(ROUNDS)]),
                  "loop_ns": summary([max(0.1, turns(wattgov.steps(many)) - bare) for _ in range(ROUNDS)])}))
"""


def measure(build, **more):
    environment = dict(os.environ, PYTHONPATH=os.path.join(build, "bindings/python"),
                       WATTGOV_LIBRARY=os.path.join(build, "src/libwattgov.so.0"))
    environment.pop("WATTGOV_PROGRESS", None)
    environment.update(more)
    command = [sys.executable, "-c", PROGRAM, os.environ.get("STEPS", "100000"), os.environ.get("ROUNDS", "30")]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=environment).stdout)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = os.path.abspath(sys.argv[1])
    figures = {"schema": "wattgov.bench.train-overhead-python/1", "python": sys.version.split()[0],
               "none": measure(build)}
    with tempfile.TemporaryDirectory() as folder:
        governor = ProgressFile(os.path.join(folder, "progress"))
        figures["file"] = measure(build, WATTGOV_PROGRESS=governor.path)
        governor.close()
    print(json.dumps(figures, indent=2))


main()
