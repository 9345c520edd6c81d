#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How long `import wattgov` and the first window take, beside an empty program; prints JSON.

    bench/python_import.py [BUILD]     default: build/release; RUNS=20 in the environment

Each run is a fresh interpreter with compiled modules. `import_ms` is what -X importtime says of wattgov with all
that it brings in; `first_window_ms` is opening the default meter and one empty window, on this machine's devices.
"""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
FIRST_WINDOW = """
import time
import wattgov
begun = time.perf_counter()
with wattgov.window("first"):
    pass
print(time.perf_counter() - begun)
"""


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build/release"))
    runs = int(os.environ.get("RUNS", "20"))
    with tempfile.TemporaryDirectory() as cache:
        environment = dict(os.environ, PYTHONPATH=os.path.join(build, "bindings/python"), PYTHONPYCACHEPREFIX=cache,
                           PYTHONDONTWRITEBYTECODE="", WATTGOV_LIBRARY=os.path.join(build, "src/libwattgov.so.0"))

        def python(*arguments):
            return subprocess.run([sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, check=True, env=environment)

        python("-c", "import wattgov")  # compiles the modules
        imports, windows = [], []
        for _ in range(runs):
            log = python("-X", "importtime", "-c", "import wattgov").stderr
            imports.append(int(re.search(r"\| +(\d+) \| wattgov$", log, flags=re.MULTILINE).group(1)) / 1e3)
            windows.append(float(python("-c", FIRST_WINDOW).stdout) * 1e3)
    print(json.dumps({"schema": "wattgov.bench.python_import/1", "python": sys.version.split()[0], "runs": runs,
                      "import_ms": {"median": statistics.median(imports), "max": max(imports)},
                      "first_window_ms": {"median": statistics.median(windows), "max": max(windows)}}))


main()
