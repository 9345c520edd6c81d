# SPDX-License-Identifier: MIT
"""Running `wattgov simulate tuning` for bench/tuning_results.py, keeping what it said, and pooling cells.

A pooled mean is the mean over the cells, which weigh the same, with a 95 % interval from the spread of the
seeds within each cell; a pooled share has Wilson's interval for all runs together.
"""
import hashlib
import json
import math
import os
import subprocess
import sys
import time

from tuning_cells import POLICIES, ROOT

PROGRAM = "build/release/wattgov"
NORMAL_95 = 1.959964
IMPOSSIBLE = object()
NOTHING_FEASIBLE = ": no configuration of "


class Runs:
    """Results by cell, policy and options; asked for once and then read from the folder of raw results."""

    def __init__(self, seeds, first_seed, fresh=(), kept_only=False):
        self.seeds, self.first_seed, self.fresh, self.kept_only = seeds, first_seed, set(fresh), kept_only
        self.missing, self.grids = 0, {}
        self.start_s = time.time()
        self.folder = os.path.join(ROOT, "build/results/tuning")
        os.makedirs(self.folder, exist_ok=True)

    def command(self, cell, policy, extra=()):
        seeds = ["--seeds", str(self.seeds), "--seed", str(self.first_seed)]
        return [PROGRAM, "simulate", "tuning", "--grid", cell.file, *cell.options, "--policy", policy, *seeds, *extra]

    def result(self, cell, policy, extra=()):
        """{"grid":, "policy":} of one policy; None when it failed (the reason goes to stderr) or is not kept;
        IMPOSSIBLE where failures leave nothing that meets the limit."""
        command = self.command(cell, policy, extra)
        words = [word for word in command if word != cell.file]
        key = hashlib.sha256(json.dumps(words).encode() + self.grid(cell.file)).hexdigest()[:12]
        path = os.path.join(self.folder, f"{cell.slug()}_{policy}_{key}.json")
        is_stale = policy in self.fresh and os.path.exists(path) and os.path.getmtime(path) < self.start_s
        if os.path.exists(path) and not is_stale:
            with open(path, encoding="utf-8") as file:
                kept = json.load(file)
            return IMPOSSIBLE if kept == "impossible" else kept
        if self.kept_only:
            self.missing += 1
            return None
        print(" ".join(command[1:]), file=sys.stderr)
        done = subprocess.run([*command, "--json"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False)
        result = "impossible"
        if done.returncode == 0:
            parsed = json.loads(done.stdout)
            result = {"grid": parsed["grid"], "policy": parsed["policies"][0], "seeds": self.seeds,
                      "max_trials": parsed["max_trials"]}
        elif NOTHING_FEASIBLE not in done.stderr:
            sys.stderr.write(done.stderr)
            self.missing += 1
            return None
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump(result, file)
        os.replace(path + ".part", path)
        return IMPOSSIBLE if result == "impossible" else result

    def grid(self, file):
        """What the file holds: results of another grid are of no use."""
        if file not in self.grids:
            with open(os.path.join(ROOT, file), "rb") as content:
                self.grids[file] = hashlib.sha256(content.read()).digest()
        return self.grids[file]

    def family(self, cells, policies=POLICIES, extra=()):
        """{policy: [result of each cell]}; cells that a policy refused are None."""
        return {policy: [self.result(cell, policy, extra) for cell in cells] for policy in policies}


def wilson(hits, count):
    share, z2 = hits / count, NORMAL_95 ** 2
    center = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = NORMAL_95 * math.sqrt(share * (1 - share) / count + z2 / (4 * count * count)) / (1 + z2 / count)
    return share, max(0.0, center - half), min(1.0, center + half)


def pooled_mean(results, figure, interval):
    """Mean over the cells of figure(policy), and its half-width; interval(policy) is that of each cell."""
    if None in results:
        return None, None
    kept = [result["policy"] for result in results if figure(result["policy"]) is not None]
    if not kept:
        return None, None
    halves = [(interval(of)[1] - interval(of)[0]) / 2 for of in kept
              if interval(of)[0] is not None and interval(of)[1] is not None]
    return sum(figure(of) for of in kept) / len(kept), math.sqrt(sum(half * half for half in halves)) / len(kept)


def pooled_share(results, key):
    """A share of what was returned, with Wilson's interval."""
    if None in results:
        return None, None, None
    hits = sum(round(result["policy"]["returned"][key] * result["seeds"]) for result in results)
    return wilson(hits, sum(result["seeds"] for result in results))


def first_hit(results):
    return pooled_mean(results, lambda of: of["first_hit"]["mean"], lambda of: of["first_hit"]["interval"])


def exact_hit(results):
    """Of random: without a cap, no sampling."""
    exact = [result["policy"]["first_hit"]["exact_mean"] if result is not None else None for result in results]
    return sum(exact) / len(exact) if exact and None not in exact else None


def trials(results):
    return pooled_mean(results, lambda of: of["returned"]["trials_mean"], lambda of: of["returned"]["trials_interval"])


def regret(results):
    return pooled_mean(results, lambda of: of["returned"]["regret_mean"], lambda of: of["returned"]["regret_interval"])


def saving(results):
    return pooled_mean(results, lambda of: of["returned"]["saving_mean"], lambda of: of["returned"]["saving_interval"])


def after(results, trial):
    """The share that would be returned rightly after so many trials (its last value for small grids)."""
    if None in results:
        return None
    curves = [result["policy"]["after"]["within_5pct"] for result in results]
    return sum(curve[min(trial, len(curve)) - 1] for curve in curves) / len(curves)
