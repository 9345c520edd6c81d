# SPDX-License-Identifier: MIT
"""Time and memory of a decision in large spaces, for bench/tuning_results.py.

The spaces are boxes of clocks, batch sizes and replicas with figures by formula: what they take is looked
at here, not what is found in them.
"""
import json
import os
import subprocess
import sys
import tempfile

from tuning_cells import ROOT

PROGRAM = "build/release/wattgov"
HEADER = "gpu_mhz,emc_mhz,batch,replicas,t,e\n"
SPACES = {5005: (13, 11, 5, 7, 41), 100000: (50, 20, 10, 10, 41)}
BOUNDS = {5005: 20, 100000: 200}  # ms
MEMORY_BOUND = 64 << 20


def write_grid(path, gpu, emc, batches, replicas):
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEADER)
        for g in range(1, gpu + 1):
            for m in range(1, emc + 1):
                for b in range(1, batches + 1):
                    for n in range(1, replicas + 1):
                        f, memory, batch = g / gpu, m / emc, 2 ** (b - 1)
                        compute, traffic = (batch + 0.5) / f / n ** 0.8, (0.4 + 0.5 * batch) / memory / n ** 0.8
                        t = 0.1 + (compute ** 3 + traffic ** 3) ** (1 / 3)
                        volt = max(0.6, 0.6 + 0.4 * (f - 0.4) / 0.6)
                        e = n * (0.2 + 0.6 * f * volt ** 2 * min(1, compute / t) + 0.2 * memory) * t / batch
                        file.write(f"{100 * g},{100 * m},{batch},{n},{t:.9g},{e:.9g}\n")


def run(path, policy, max_trials):
    """(decision_ms, largest resident size of the process)."""
    command = [os.path.join(ROOT, PROGRAM), "simulate", "tuning", "--grid", path, "--knob", "gpu_mhz:gpu_clock",
               "--knob", "emc_mhz:mem_clock", "--knob", "batch:batch", "--knob", "replicas:replicas", "--objective", "e",
               "--limit", "t<=3x", "--policy", policy, "--seeds", "1", "--processes", "1", "--json", "--stop-share",
               "1e-12", "--max-trials", str(max_trials)]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
        child = subprocess.Popen(command, stdout=out, stderr=sys.stderr)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            return None, None
        out.seek(0)
        return json.load(out)["policies"][0]["decision_ms"], usage.ru_maxrss * 1024


def measure(count):
    *shape, observations = SPACES[count]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "grid.csv")
        write_grid(path, *shape)
        _, usual = run(path, "random", observations)
        times, peak = run(path, "wattgov", observations)
    return {"count": count, "times": times, "peak": peak,
            "more": peak - usual if peak and usual else None}


def decide():
    """Processor time from the 41st answer to the next question, milliseconds: {configurations: (median, largest)}."""
    done = subprocess.run([os.path.join(ROOT, "build/release/bench/tuning_decision")], stdout=subprocess.PIPE, check=True)
    return {of["configurations"]: (of["decision_median_ms"], of["decision_largest_ms"])
            for of in json.loads(done.stdout)["results"] if of["policy"] == "wattgov"}


def kept_path():
    return os.path.join(ROOT, "build/results/tuning/load.json")


def is_kept():
    return os.path.exists(kept_path())


def show(report, results):
    lines = []
    for of in results:
        count, times = of["count"], of["times"] or {"p50": None, "p99": None}
        median, largest = of["at_40"]
        report.judge(4, f"decision among {count} configurations with 40 observations, median, ms", median, BOUNDS[count])
        report.judge(4, f"memory of {count} configurations, MiB", of["more"] / 2 ** 20 if of["more"] else None,
                     MEMORY_BOUND >> 20)
        text = [f"{value:.1f} ms" if value is not None else "-" for value in (median, largest, times["p50"], times["p99"])]
        sizes = [f"{of[key] / 2 ** 20:.0f} MiB" if of[key] else "-" for key in ("more", "peak")]
        lines.append([str(count), *text, *sizes])
    return lines


def rows(report):
    at_40 = decide()
    results = [{**measure(count), "at_40": at_40[count]} for count in SPACES]
    with open(kept_path(), "w", encoding="utf-8") as file:
        json.dump(results, file)
    return show(report, results)


def kept_rows(report):
    if not is_kept():
        return rows(report)
    with open(kept_path(), encoding="utf-8") as file:
        return show(report, json.load(file))
