#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Speed of the serving simulator and of a decision: section 4 of docs/results/serving.md.

    tools/build && ninja -C build/release bench/serving_speed
    bench/serving_speed_results.py      the section, to the terminal

bench/serving_results.py includes what section() makes. Only the standard library is used.
"""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import serving_cells as cells  # noqa: E402

PROGRAM = "build/release/bench/serving_speed"
KEPT = "build/results/serving/speed.json"
# Policy: requests a second and core.
BOUNDS = {"none": 1e6, "wattgov, backlog": 3e5}


def measure(kept_only):
    """What the program says; {} when it isn't there."""
    kept, program = (os.path.join(cells.ROOT, name) for name in (KEPT, PROGRAM))
    if not kept_only and os.path.exists(program):
        done = subprocess.run([program], cwd=cells.ROOT, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode == 0:
            os.makedirs(os.path.dirname(kept), exist_ok=True)
            with open(kept, "w", encoding="utf-8") as file:
                file.write(done.stdout)
    if not os.path.exists(kept):
        return {}
    with open(kept, encoding="utf-8") as file:
        return json.load(file)


def section(report):
    result = measure(report.runs.kept_only)
    if not result:
        return f"`{PROGRAM}` was not built when this was written.\n"
    rows = []
    for row in result["results"]:
        name = row["policy"]
        rows.append([name, f"{row['requests_per_s'] / 1e6:.2f}", f"{row['simulated_event_cpu_ns'] / 1000:.2f}",
                     f"{row['event_ns_p50'] / 1000:.2f}", f"{row['event_ns_p99'] / 1000:.2f}",
                     f"{row['resident_mb']:.1f}", f"{row['resident_growth_mb']:.1f}"])
        if name in BOUNDS:
            report.judge("4", f"{name}: simulated requests a second and core, millions", row["requests_per_s"] / 1e6,
                         BOUNDS[name] / 1e6, f"{row['requests_per_s'] / 1e6:.2f}", is_at_most=False)
        report.judge("4", f"{name}: a decision, median, microseconds", row["event_ns_p50"] / 1000, 2,
                     f"{row['event_ns_p50'] / 1000:.2f}")
        report.judge("4", f"{name}: growth of resident memory from 200,000 to 2 million requests, MB",
                     row["resident_growth_mb"], 1, f"{row['resident_growth_mb']:.1f}")
    header = ["policy", "requests a second, millions", "processor time an event, us", "decision, median, us",
              "99th percentile, us", "resident, MB", "growth, MB"]
    return (f"One process, 2 million Poisson requests ({result['rate']:g}/s) on {result['profile']}. **Processor time an "
            "event** holds the simulated world, too. A **decision** is a tell and all asks that follow, by the monotonic "
            "clock, less what reading that takes; its percentiles hold what else the machine did. **Growth**: of resident "
            "memory, from a tenth of the requests to all.\n\n"
            + cells.table(header, rows) + f"\n    {PROGRAM}\n")


def main():
    report = cells.Report(cells.Runs())
    print(section(report))
    print(report.table_of_bounds())


if __name__ == "__main__":
    main()
