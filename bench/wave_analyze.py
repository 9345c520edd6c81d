#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long `wattgov wave analyze` takes as a whole process: start, drawing or reading the model, shapes, prediction.

    bench/wave_analyze.py build/release/wattgov [--runs 41] [MODEL...]

JSON on stdout: for each model the median, the least and the 95th percentile in milliseconds, and the peak of memory.
Models are those that are built in, or files.
"""
import argparse
import json
import os
import statistics
import sys
import time

WORDS = {"bert-base": ["--set-dim", "sequence=128"]}
NETWORKS = ["vgg16", "resnet18", "resnet50", "resnet56-cifar", "mobilenet-v2", "bert-base"]


def once(command):
    """Seconds, and KiB of memory at most."""
    start = time.perf_counter()
    child = os.posix_spawn(command[0], command, os.environ,
                           file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(child, 0)
    taken = time.perf_counter() - start
    if status != 0:
        sys.exit(f"{' '.join(command)}: status {os.waitstatus_to_exitcode(status)}")
    return taken, usage.ru_maxrss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("models", nargs="*", default=NETWORKS)
    parser.add_argument("--runs", type=int, default=41)
    parser.add_argument("--gpu", default="a100-sxm4-80gb")
    parser.add_argument("--batch", default="32")
    args = parser.parse_intermixed_args()
    results = []
    for model in args.models:
        command = [os.path.abspath(args.program), "wave", "analyze", model, "--gpu", args.gpu, "--batch", args.batch,
                   "--json", *WORDS.get(model, [])]
        once(command)  # the program is in memory from now on
        runs = [once(command) for _ in range(args.runs)]
        times = sorted(1e3 * taken for taken, _ in runs)
        results.append({"model": model, "median_ms": round(statistics.median(times), 2), "least_ms": round(times[0], 2),
                        "p95_ms": round(times[int(0.95 * (len(times) - 1))], 2),
                        "peak_kib": max(peak for _, peak in runs)})
    print(json.dumps({"command": "bench/wave_analyze.py", "gpu": args.gpu, "batch_size": int(args.batch),
                      "runs": args.runs, "results": results}, indent=1))


if __name__ == "__main__":
    main()
