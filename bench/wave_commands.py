#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How long `wattgov wave` takes as a whole process: start, drawing or reading the model, shapes, prediction, printing.

    ninja -C build/release wattgov bench/wave_speed
    bench/wave_commands.py build/release/wattgov [--runs 41] [--gpu GPU] [--only WORD] [MODEL.onnx...]

For each command the median and the least of processor time (user and system) and the median and 95th percentile of
elapsed time, in milliseconds, and the peak of memory; `wattgov --version` shows what starting alone costs. Files of
models are analysed besides the built-in networks. What the parts cost inside a process, bench/wave_speed beside the
program tells; its JSON is under "parts". JSON on stdout, a table on stderr.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

NETWORKS = ["vgg16", "resnet18", "resnet50", "resnet56-cifar", "mobilenet-v2", "bert-base"]
SWEEP = ["--axis", "filters", "--from", "1", "--to", "4096", "--step", "1"]


def commands(gpu, files):
    """Pairs of a name and what follows `wattgov`."""
    yield "--version", ["--version"]
    wave = ["--gpu", gpu]
    for model in NETWORKS + files:
        more = ["--set-dim", "sequence=128"] if model == "bert-base" else []
        yield f"analyze {model}", ["wave", "analyze", model, *wave, "--batch", "32", "--json", *more]
    for precision in "fp16", "fp32", "tf32":
        yield f"sweep of 4096 filters {precision}", ["wave", "sweep", "--gemm", "4096,4096,4096", *wave, *SWEEP,
                                                     "--precision", precision]
    for precision in "fp16", "fp32":
        for more in [], ["--batch", "1", "--align", "1"]:
            yield (" ".join(["plan resnet50", precision, *more]),
                   ["wave", "plan", "resnet50", *wave, "--batch", "32", "--precision", precision, *more])


def once(command):
    """Seconds of processor, seconds elapsed, and KiB of memory at most."""
    start = time.perf_counter()
    child = os.posix_spawn(command[0], command, os.environ,
                           file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(child, 0)
    taken = time.perf_counter() - start
    if status != 0:
        sys.exit(f"{' '.join(command)}: status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, taken, usage.ru_maxrss


def measure(program, name, arguments, runs):
    command = [program, *arguments]
    once(command)  # the program is in memory from now on
    seen = [once(command) for _ in range(runs)]
    processor = sorted(1e3 * run[0] for run in seen)
    elapsed = sorted(1e3 * run[1] for run in seen)
    result = {"name": name, "processor_median_ms": round(statistics.median(processor), 2),
              "processor_least_ms": round(processor[0], 2), "median_ms": round(statistics.median(elapsed), 2),
              "p95_ms": round(elapsed[int(0.95 * (runs - 1))], 2), "peak_kib": max(run[2] for run in seen)}
    print(f"{name:40} {result['processor_median_ms']:8.2f} {result['processor_least_ms']:8.2f} "
          f"{result['median_ms']:8.2f} {result['p95_ms']:8.2f}", file=sys.stderr)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--runs", type=int, default=41)
    parser.add_argument("--gpu", default="a100-sxm4-80gb")
    parser.add_argument("--only", default="", help="commands whose name holds this")
    args = parser.parse_intermixed_args()
    program = os.path.abspath(args.program)
    print(f"{'ms':40} {'median':>8} {'least':>8} {'median':>8} {'p95':>8}\n"
          f"{'':40} {'of processor':>17} {'elapsed':>17}", file=sys.stderr)
    results = [measure(program, name, arguments, args.runs) for name, arguments in commands(args.gpu, args.models)
               if args.only in name]
    parts = os.path.join(os.path.dirname(program), "bench", "wave_speed")
    inside = None
    if os.path.exists(parts):
        inside = json.loads(subprocess.run([parts, args.gpu], check=True, capture_output=True).stdout)
    print(json.dumps({"command": "bench/wave_commands.py", "gpu": args.gpu, "runs": args.runs,
                      "load": os.getloadavg()[0], "results": results, "parts": inside}, indent=1))


if __name__ == "__main__":
    main()
