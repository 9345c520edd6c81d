# SPDX-License-Identifier: MIT
"""What the tests of the Python binding share: a place to run programs, and a machine whose counter they turn.

Each test runs programs in processes of their own, with the binding and the library of the build folder. Devices
come from a folder that stands for /sys: one CPU package whose counter the test turns by hand.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = os.environ.get("WATTGOV_SOURCE_ROOT", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BUILD = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else None

# What the programs begin with. The package of CPU0 has used 1 J; `turn` adds millijoules, and returns when they were
# seen.
PRELUDE = """
import os, sys, time
import wattgov

ROOT = os.environ["FAKE_ROOT"]
COUNTER = os.path.join(ROOT, "sys/class/powercap/intel-rapl:0/energy_uj")

def counter_j():
    with open(COUNTER) as file:
        return int(file.read()) / 1e6

def turn(meter, millijoules):  # so little that no reader may doubt it, however soon it looks
    before = settle(meter)
    with open(COUNTER, "r+") as file:  # in place: the library holds the file open
        file.write(f"{round(counter_j() * 1e6 + millijoules * 1e3):020d}\\n")
    wait_for(lambda: meter.latest("cpu0")["energy_j"] >= before + millijoules * 0.999e-3)

def settle(meter):  # a sample from after this moment, so that a window that begins now has its edge
    now_ns = time.monotonic_ns()
    meter.wait_ready()
    wait_for(lambda: meter.latest("cpu0")["t_ns"] > now_ns)
    return meter.latest("cpu0")["energy_j"]

def wait_for(condition, seconds=20):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited too long"
        os.sched_yield()

def meter(**options):
    return wattgov.Meter(gpus="none", root=ROOT, period_ms=5, **options)
"""


def read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as file:
        return file.read()


def fake_sysfs(folder, zones=("package-0",)):
    for i, name in enumerate(zones):
        zone = os.path.join(folder, f"sys/class/powercap/intel-rapl:{i}")
        os.makedirs(zone)
        for file_name, text in (("name", name), ("energy_uj", f"{1000000:020d}"),
                                ("max_energy_range_uj", "262143328850")):
            with open(os.path.join(zone, file_name), "w", encoding="utf-8") as file:
                file.write(text + "\n")


class Binding(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.root = os.path.join(self.folder, "root")
        fake_sysfs(self.root)

    def environment(self, **more):
        environment = {key: text for key, text in os.environ.items() if not key.startswith("CUDA_")}
        environment.update(PYTHONPATH=os.path.join(BUILD, "bindings/python"), FAKE_ROOT=self.root,
                           WATTGOV_LIBRARY=os.path.join(BUILD, "src/libwattgov.so.0"), PYTHONWARNINGS="error")
        environment.update(more)
        return environment

    def run_python(self, code, status=0, prelude=PRELUDE, python=sys.executable, **environment):
        path = os.path.join(self.folder, "program.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(prelude + textwrap.dedent(code))
        done = subprocess.run([python, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                              check=False, env=self.environment(**environment))
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        if status == 0:
            self.assertEqual(done.stderr, "")
        return done

    def values(self, code, **kwargs):
        """What the program printed as JSON."""
        return json.loads(self.run_python("import json\n" + textwrap.dedent(code), **kwargs).stdout)


def main(usage):
    """Runs the tests of the script; status 77 where there is no binding."""
    if BUILD is None:
        sys.exit(usage)
    if not os.path.exists(os.path.join(BUILD, "bindings/python/wattgov/_abi.py")):
        print("skipped: the build has no Python binding, since /usr/bin/python3 has no cffi: install python3-cffi")
        sys.exit(77)
    with open(os.path.join(BUILD, "src/libwattgov.so.0"), "rb") as library:
        if b"wg_meter_open" not in library.read():
            print("skipped: the library has no meters yet")
            sys.exit(77)
    del sys.argv[1]
    unittest.main()
