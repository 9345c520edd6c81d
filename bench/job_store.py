#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `wattgov job` costs on a job of many recurrences: time of each command, size of the store.

    bench/job_store.py build/release [--recurrences 10000] [--epochs 10] [--rounds 40] [--folder DIR]

The store is filled by bench/job_store; then `next` and `report` run as whole processes, each with its commit
on the disk of DIR. Prints one JSON object; times are medians in milliseconds.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--recurrences", type=int, default=10000)
    parser.add_argument("--epochs", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--folder", default=None)
    args = parser.parse_args()
    program = os.path.join(args.build, "wattgov")
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        store = os.path.join(folder, "jobs.db")
        filled = subprocess.run([os.path.join(args.build, "bench/job_store"), store, str(args.recurrences), str(args.epochs)],
                                stdout=subprocess.PIPE, check=True)
        times = {"next": [], "report": [], "epoch": []}

        def call(kind, *words):
            began = time.perf_counter()
            done = subprocess.run([program, "job", *words, "--store", store, "--json"], stdout=subprocess.PIPE, check=False)
            times[kind].append(1e3 * (time.perf_counter() - began))
            return json.loads(done.stdout)
        for _ in range(args.rounds):
            run = str(call("next", "next", "bench", "--gpu-name", "NVIDIA A40")["run"])
            call("epoch", "report", "bench", run, "--epoch", "1", "--metric", "0.1")
            call("report", "report", "bench", run, "--reached", "--epochs", "9", "--energy", "9000", "--time", "90")
        began = time.perf_counter()
        for _ in range(args.rounds):
            subprocess.run([program, "--version"], stdout=subprocess.DEVNULL, check=True)
        bare = 1e3 * (time.perf_counter() - began) / args.rounds
        size = sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))
    print(json.dumps({"schema": "wattgov.bench.job_store/1", **json.loads(filled.stdout), "epochs": args.epochs,
                      "store_mb": round(size / 1e6, 3), "process_alone_ms": round(bare, 3),
                      **{f"{kind}_ms": round(statistics.median(values), 3) for kind, values in times.items()}}))


if __name__ == "__main__":
    main()
