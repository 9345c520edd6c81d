#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs Zeus's own trace-driven simulator, as published, and prints what it measured as JSON.

    build/peers/zeus/bin/python bench/peers/zeus_simulator.py --gpu v100 --job squad --seeds 20
    ... zeus_simulator.py --lines       reads {"gpu", "job", "seeds": [..]} a line, answers a line each

Zeus (You, Chung, Chowdhury, NSDI'23) ships the simulator of its paper in its package as zeus._legacy;
bench/peers/setup_zeus.sh installs that package unmodified. Here stands only what a user of it writes:
the job, the two optimizers of the paper (PruningGTSBatchSizeOptimizer, JITPowerLimitOptimizer), one seed
for both the bandit and the replay as Zeus's own examples do, and the sums.

Zeus returns one entry an attempt; a recurrence is the attempts up to the one that reached the target.
An attempt that could not afford one epoch is in no entry and costs nothing, in Zeus and here.
Cost is eta * energy + (1 - eta) * largest limit * time. Zeus caps the default batch size at the largest
one in the GPU's power trace, and so do we.

`wall_s` and `cpu_s` are of simulate_one_job alone: reading the traces and joining them (`setup_s`) is
left out, which favours Zeus.
"""
import argparse
import contextlib
import csv
import io
import json
import os
import platform
import sys
import time

import numpy as np
import pandas as pd
import zeus
from zeus._legacy.job import Job
from zeus._legacy.policy import JITPowerLimitOptimizer, PruningGTSBatchSizeOptimizer
from zeus._legacy.simulate import Simulator

# With Debian's bottleneck pandas hands out plain integers, on which Zeus calls `.item()`.
pd.set_option("compute.use_bottleneck", False)


class Replays:
    """The traces of one folder and the jobs of one table, read once."""

    def __init__(self, options):
        self.options = options
        self.train = pd.read_csv(os.path.join(options.trace, "summary_train.csv"))
        self.power = {}
        with open(options.jobs, newline="", encoding="utf-8") as table:
            self.rows = {row["job"]: row for row in csv.DictReader(table)}

    def gpu(self, name):
        name = name.lower()
        if name not in self.power:
            path = os.path.join(self.options.trace, f"summary_power_{name}.csv")
            self.power[name] = pd.read_csv(path)
        return self.power[name]

    def job(self, name, power):
        row = self.rows[name]
        is_job = (
            (power.dataset == row["dataset"])
            & (power.network == row["network"])
            & (power.optimizer == row["optimizer"])
        )
        largest = int(power.batch_size[is_job].max())
        return Job(
            dataset=row["dataset"],
            network=row["network"],
            optimizer=row["optimizer"],
            target_metric=float(row["target_metric"]),
            max_epochs=int(row["max_epochs"]),
            default_bs=min(int(row["default_batch_size"]), largest),
        )

    def run(self, gpu, job_name, seed):
        """One case under one seed: running totals after each recurrence."""
        options = self.options
        power = self.gpu(gpu)
        job = self.job(job_name, power)
        began = time.perf_counter()
        simulator = Simulator(
            self.train,
            power,
            PruningGTSBatchSizeOptimizer(seed=seed, window_size=options.window, verbose=False),
            JITPowerLimitOptimizer(verbose=False),
            seed=seed,
            verbose=False,
        )
        ready, cpu = time.perf_counter(), time.process_time()
        # It prints even when not verbose, and divides by the variance of an arm that has none.
        with contextlib.redirect_stdout(io.StringIO()), np.errstate(divide="ignore"):
            try:
                history = simulator.simulate_one_job(
                    job, options.recurrences, options.beta, options.eta
                )
            except (RuntimeError, ValueError) as error:  # 20 tries failed; no batch size is left
                raise SystemExit(f"Zeus gives up: {gpu} {job_name}, seed {seed}: {error}") from None
        done, cpu = time.perf_counter(), time.process_time() - cpu

        max_power_w = float(simulator.df.power_limit.max())
        totals = {"energy_j": [], "time_s": [], "cost_j": []}
        energy_j = time_s = 0.0
        for attempt in history:
            energy_j += float(attempt.energy)
            time_s += float(attempt.time)
            if attempt.reached:
                totals["energy_j"].append(energy_j)
                totals["time_s"].append(time_s)
                totals["cost_j"].append(
                    options.eta * energy_j + (1 - options.eta) * max_power_w * time_s
                )
        if len(totals["cost_j"]) != options.recurrences:
            raise RuntimeError(f"{gpu} {job_name}: {len(totals['cost_j'])} recurrences reached")
        last = history[-1]
        return {
            "gpu": gpu.lower(),
            "job": job_name,
            "seed": seed,
            "default_batch_size": job.default_bs,
            "attempts": len(history),
            "final": {"batch_size": int(last.bs), "power_limit_w": int(last.pl)},
            "cumulative_energy_j": totals["energy_j"],
            "cumulative_time_s": totals["time_s"],
            "cumulative_cost_j": totals["cost_j"],
            "setup_s": ready - began,
            "wall_s": done - ready,
            "cpu_s": cpu,
        }


def versions():
    return {
        "python": platform.python_version(),
        "zeus": zeus.__version__,
        "numpy": np.__version__,
        "pandas": pd.__version__,
    }


def read_options():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", default=os.path.join(root, "data", "zeus", "trace"))
    parser.add_argument("--jobs", default=os.path.join(root, "data", "training_jobs.csv"))
    parser.add_argument("--gpu", action="append", help="default: v100 and a40")
    parser.add_argument("--job", action="append", help="default: all of the table")
    parser.add_argument("--recurrences", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--eta", type=float, default=0.5)
    parser.add_argument("--beta", type=float, default=2.0)
    parser.add_argument("--window", type=int, default=0)
    parser.add_argument("--lines", action="store_true", help="requests on standard input")
    return parser.parse_args()


def main():
    options = read_options()
    replays = Replays(options)
    if options.lines:
        print(json.dumps({"schema": "wattgov.peers.zeus/1", "versions": versions()}), flush=True)
        for line in sys.stdin:
            wanted = json.loads(line)
            runs = [replays.run(wanted["gpu"], wanted["job"], seed) for seed in wanted["seeds"]]
            print(json.dumps(runs), flush=True)
        return
    runs = [
        replays.run(gpu, job, seed)
        for gpu in options.gpu or ["v100", "a40"]
        for job in options.job or replays.rows
        for seed in range(options.first_seed, options.first_seed + options.seeds)
    ]
    json.dump({"schema": "wattgov.peers.zeus/1", "versions": versions(), "runs": runs}, sys.stdout)
    print()


if __name__ == "__main__":
    main()
