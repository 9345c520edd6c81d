# SPDX-License-Identifier: MIT
"""What the tests of the Python binding share: a place to run programs, and machines to measure.

Each test runs programs in processes of their own, with the binding and the library of the build folder. CPU packages
come from a folder that stands for /sys, GPUs from the virtual GPU: what is measured does not depend on the machine.
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

# What the programs begin with. On the virtual V100, which idles at 33 W, `spend` takes a while, and `is_33_w` tells
# whether a result is what an idle V100 draws: within 3 %, and what 2 ms more or less would be.
PRELUDE = """
import os, sys, time
import wattgov

ROOT = os.environ["FAKE_ROOT"]

def wait_for(condition, seconds=20):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited too long"
        os.sched_yield()

def spend(seconds):
    until = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() > until)

def is_33_w(result):
    return result.energy_j is not None and abs(result.energy_j / 33 - result.time_s) < 0.03 * result.time_s + 0.002

def meter(**options):
    m = wattgov.Meter(**{"root": ROOT, "period_ms": 20, **options})
    m.wait_ready()
    return m
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

    def run_python(self, code, status=0, prelude=PRELUDE, python=sys.executable, machine=None, **environment):
        """Runs a program; on a virtual machine, if one is named."""
        path = os.path.join(self.folder, "program.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(prelude + textwrap.dedent(code))
        command = [python, path]
        if machine is not None:
            command = [os.path.join(BUILD, "vgpu/wattgov-vgpu"), "run", "--machine", machine, "--", *command]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
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
    del sys.argv[1]
    unittest.main()
