# SPDX-License-Identifier: MIT
"""What bench/training_results.py stands on: running the program, judging figures, writing Markdown.

A figure is one number with the bound that it must keep and the point of the plan that it belongs to.
All figures are fractions, seconds or bytes in JSON and are shown in per cent or with units in Markdown.
"""
import json
import math
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
PROGRAM = "build/release/wattgov"
TRACE = "data/zeus/trace"
FIRST_SEED = 900001  # no constant was tuned on these seeds
NORMAL_95 = 1.959964


class Runner:
    """Runs the program from the root of the checkout, and keeps what it said of each command."""

    def __init__(self, quiet=False):
        self.quiet = quiet
        self.count = 0

    def training(self, *arguments, trace=TRACE, refusals=None):
        """The parsed JSON of one replay, and its command as one types it.

        A refusal ends the script, unless it is to be added to the list `refusals`: then there are no cases.
        """
        command = [PROGRAM, "simulate", "training", "--trace", trace, "--json"]
        command += [str(argument) for argument in arguments]
        self.count += 1
        if not self.quiet:
            print(f"[{self.count}] {' '.join(command[1:])}", file=sys.stderr)
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False)
        if done.returncode == 1 and refusals is not None:
            refusals.append(done.stderr.strip())
            return {"cases": []}, " ".join(command)
        if done.returncode != 0:
            sys.stderr.write(done.stderr)
            raise SystemExit(f"training_results.py: status {done.returncode} of: {' '.join(command)}")
        return json.loads(done.stdout), " ".join(command)


class Board:
    """The figures and whether they keep their bounds."""

    def __init__(self):
        self.figures = []

    def at_most(self, point, name, value, bound, unit="share", command=None, is_goal=True):
        """A figure that must not exceed its bound; `is_goal` False: a stretch, missed without shame."""
        is_met = value is not None and value <= bound
        self.figures.append({"point": point, "name": name, "value": value, "at_most": bound, "unit": unit,
                             "is_met": is_met, "is_goal": is_goal, "command": command})
        return is_met

    def holds(self, point, name, is_met, value, bound, command=None):
        """A figure that is a statement; `value` and `bound` are texts."""
        self.figures.append({"point": point, "name": name, "value": value, "at_most": bound, "unit": "text",
                             "is_met": bool(is_met), "is_goal": True, "command": command})
        return bool(is_met)

    def note(self, point, name, value, command=None):
        """A text that no bound is set for."""
        self.figures.append({"point": point, "name": name, "value": value, "at_most": None, "unit": "text",
                             "is_met": True, "is_goal": False, "command": command})

    def table(self):
        rows = []
        for figure in self.figures:
            if figure["at_most"] is None:
                rows.append([str(figure["point"]), figure["name"], figure["value"], "-", "-"])
                continue
            verdict = "met" if figure["is_met"] else ("**missed**" if figure["is_goal"] else "not reached")
            rows.append([str(figure["point"]), figure["name"], show(figure["value"], figure["unit"]),
                         show(figure["at_most"], figure["unit"]), verdict])
        return table(["point", "figure", "measured", "bound", "verdict"], rows)


def show(value, unit):
    """A number with its unit, for people."""
    if value is None:
        return "not measured"
    if unit == "text":
        return value
    if unit == "share":
        return percent(value)
    if unit == "bytes":
        return f"{value / 1e6:.1f} MB"
    if unit == "s":
        return f"{value:.2f} s"
    if unit == "us":
        return f"{value:.1f} us"
    if unit == "times":
        return f"{value:.3f} x"
    return f"{value:g}"


def percent(share, decimals=None):
    """0.0123 -> '1.23 %'; large ones with fewer digits."""
    if share is None or not math.isfinite(share):
        return "-"
    value = 100 * share
    if decimals is None:
        decimals = 2 if abs(value) < 9.995 else 1 if abs(value) < 999.95 else 0
    text = f"{value:.{decimals}f}"
    return ("0" + text[2:] if text.startswith("-0") and float(text) == 0 else text) + " %"


def table(heads, rows):
    """A Markdown table; the first column is left, numbers are right."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def commands(*lines):
    """A block that can be copied into a shell."""
    return ["```sh", *lines, "```"]


def curve(case):
    return case["cumulative_cost_j"], case["cumulative_oracle_j"]


def excess(case, recurrences, after=0):
    """Cost above the expected cost of the oracle, as a share of it, over recurrences after..recurrences."""
    cost, oracle = curve(case)
    paid, least = cost[recurrences - 1], oracle[recurrences - 1]
    if after > 0:
        paid, least = paid - cost[after - 1], least - oracle[after - 1]
    return paid / least - 1


def over_default(case, recurrences):
    return case["cumulative_cost_j"][recurrences - 1] / case["cumulative_default_j"][recurrences - 1]


def of_policy(cases, policy):
    return [case for case in cases if case["policy"] == policy]


def mean_excess(cases, recurrences, after=0):
    return statistics.fmean(excess(case, recurrences, after) for case in cases)


def worst_case(cases, recurrences):
    """The case furthest above the oracle."""
    return max(cases, key=lambda case: excess(case, recurrences))


def above_default(cases, recurrences):
    """The cases that are dearer than their default is expected to be."""
    return [case for case in cases if over_default(case, recurrences) > 1 + 1e-9]


def label(case):
    return f"{case['gpu']} {case['job']}"


def mean_with_interval(cases):
    """Mean excess over the cases at their last recurrence and the half width of its 95 % interval.

    Cases draw independent luck, so the variance of the mean of the cases is the sum of each case's
    variance of its mean over the seeds, divided by the squared number of cases.
    """
    variance = 0.0
    for case in cases:
        oracle = case["cumulative_oracle_j"][-1]
        variance += (case["cost_j"]["sd"] / oracle) ** 2 / case["seeds"]
    mean = statistics.fmean(excess(case, case["recurrences"]) for case in cases)
    return mean, NORMAL_95 * math.sqrt(variance) / len(cases)


def timed(command, repeats=1):
    """Median wall time of a command in seconds, and its output."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        seconds.append(time.perf_counter() - began)
        if done.returncode != 0:
            sys.stderr.buffer.write(done.stderr)
            raise SystemExit(f"training_results.py: status {done.returncode} of: {' '.join(command)}")
    return statistics.median(seconds), done.stdout


PEAK_HELPER = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""


def peak_bytes(command):
    """Peak resident memory of a command, measured by a parent that is itself small.

    A child's peak includes what its parent had resident when it started it, so the parent is GNU time
    (about 2 MB) or, where that is missing, a bare interpreter (about 11 MB, a lower limit of the result).
    """
    if os.access("/usr/bin/time", os.X_OK):
        done = subprocess.run(["/usr/bin/time", "-f", "%M", *command], cwd=ROOT, check=True, text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        return 1024 * int(done.stderr.split()[-1]), "/usr/bin/time -f %M"
    done = subprocess.run([sys.executable, "-S", "-E", "-c", PEAK_HELPER, *command], cwd=ROOT, check=True,
                          text=True, stdout=subprocess.PIPE)
    return 1024 * int(done.stdout.split()[-1]), "getrusage"
