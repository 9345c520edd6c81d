#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Sets `wattgov simulate training --policy zeus` beside Zeus's own simulator, both run here and now.

    bench/peers/setup_zeus.sh && bench/peers/compare_zeus.py            Markdown tables
    bench/peers/compare_zeus.py --json                                  the figures, and the tables
    bench/peers/compare_zeus.py --job squad --seeds 2 --check           status 1 where they differ

Both replay the same traces under the same rules, but draw different random numbers, so totals agree only
in distribution. Of each case (GPU, job) we compare the mean of cost, energy and time over the seeds.
`standard errors` divides their difference by s * sqrt(1/n + 1/m), where s is the deviation pooled over
both sides' seeds: if ours is faithful the two sides are samples of one distribution. A total agrees when
it is within 1.5 % or within --standard-errors (2) of them. The oracle is computed here a third time, from
the CSV files with the standard library alone: of all fixed (batch size, limit) the one with the least
expected cost per recurrence, where failed runs are paid and repeated; it pays nothing for learning.

Speed: both sides take turns case by case, --repeats times, each on one thread; the medians are compared.
Zeus's time is its simulate_one_job alone. Ours is the whole program, from start to JSON, divided by its
cases and seeds: reading the traces and computing default and oracle are in it. A busy machine slows
both sides alike, but a short burst may hit one of them: hence turns and medians.

Only the standard library is used. Status 77: Zeus is not installed (bench/peers/setup_zeus.sh).
"""
import argparse
import csv
import json
import math
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
MARKS = (20, 50, 100)
QUANTITIES = (("cost_j", "C", "MJ", 1e6), ("energy_j", "E", "MJ", 1e6), ("time_s", "T", "h", 3600.0))
CLOSE_SHARE = 0.015


class Zeus:
    """The simulator of Zeus in its own interpreter, answering a line for a line."""

    def __init__(self, options):
        script = os.path.join(HERE, "zeus_simulator.py")
        command = [options.zeus_python, script, "--lines", "--trace", options.trace]
        command += ["--jobs", options.jobs] + shared_rules(options)
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.versions = self.answer()["versions"]

    def answer(self):
        line = self.child.stdout.readline()
        if not line:
            raise SystemExit("compare_zeus.py: Zeus's simulator ended early; its message is above")
        return json.loads(line)

    def run(self, gpu, job, seeds):
        self.child.stdin.write(json.dumps({"gpu": gpu, "job": job, "seeds": seeds}) + "\n")
        self.child.stdin.flush()
        return self.answer()

    def close(self):
        self.child.stdin.close()
        self.child.wait()


def shared_rules(options):
    rules = []
    for name in ("recurrences", "eta", "beta", "window"):
        rules += [f"--{name}", str(getattr(options, name))]
    return rules


def run_wattgov(options, gpus, jobs, seeds):
    """Runs our program on all combinations; its JSON and the seconds that it took."""
    command = [options.wattgov, "simulate", "training", "--trace", options.trace]
    command += ["--jobs", options.jobs]
    for gpu in gpus:
        command += ["--gpu", gpu]
    for job in jobs:
        command += ["--job", job]
    command += ["--policy", "zeus", "--seeds", str(seeds), "--threads", "1", "--json"]
    command += shared_rules(options)
    began = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd=ROOT, check=False)
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        raise SystemExit(f"compare_zeus.py: status {done.returncode} of: {' '.join(command)}")
    return json.loads(done.stdout), seconds


def oracle_cost_j(options, gpu, job):
    """Least expected cost of a recurrence at one fixed batch size and limit."""

    def rows(name):
        with open(os.path.join(options.trace, name), newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if all(row[key] == job[key] for key in ("dataset", "network", "optimizer")):
                    yield row

    epochs, reached, runs = {}, {}, {}
    longest = int(job["max_epochs"])
    for row in rows("summary_train.csv"):
        if float(row["target_metric"]) != float(job["target_metric"]):
            continue
        size, at = int(row["batch_size"]), float(row["target_epoch"])  # `nan`: never
        is_reached = at <= longest
        epochs[size] = epochs.get(size, 0) + (at if is_reached else longest)
        reached[size] = reached.get(size, 0) + is_reached
        runs[size] = runs.get(size, 0) + 1

    power_file = f"summary_power_{gpu.lower()}.csv"
    with open(os.path.join(options.trace, power_file), newline="", encoding="utf-8") as file:
        largest_w = max(float(row["power_limit"]) for row in csv.DictReader(file))
    costs = []
    for row in rows(power_file):
        size = int(row["batch_size"])
        if reached.get(size, 0) == 0:
            continue
        watts = options.eta * float(row["average_power"]) + (1 - options.eta) * largest_w
        # Mean epochs per attempt over the chance of an attempt to reach: (sum / n) / (reached / n).
        costs.append(watts * float(row["time_per_epoch"]) * epochs[size] / reached[size])
    return min(costs)


def spread(values):
    return {
        "mean": statistics.fmean(values),
        "sd": statistics.stdev(values) if len(values) > 1 else 0.0,
    }


def agree(theirs, ours, theirs_count, ours_count, most_errors):
    """How far two means are apart, as a share and in standard errors of the pooled deviation."""
    difference = ours["mean"] / theirs["mean"] - 1
    freedom = theirs_count + ours_count - 2
    squares = (theirs_count - 1) * theirs["sd"] ** 2 + (ours_count - 1) * ours["sd"] ** 2
    error = math.sqrt(squares / max(freedom, 1) * (1 / theirs_count + 1 / ours_count))
    # Where the outcome is certain both deviations are rounding, and errors mean nothing.
    is_certain = error < 1e-9 * theirs["mean"]
    errors = None if is_certain else (ours["mean"] - theirs["mean"]) / error
    return {
        "zeus": theirs,
        "wattgov": {"mean": ours["mean"], "sd": ours["sd"]},
        "difference": difference,
        "standard_errors": errors,
        "is_within": abs(difference) <= CLOSE_SHARE
        or (errors is not None and abs(errors) <= most_errors),
    }


def measure(options, zeus, cases):
    """Takes turns: each side's runs, and the seconds of each turn, by case."""
    turns = {case: {"runs": [], "zeus_s": [], "wattgov_s": []} for case in cases}
    seeds = list(range(1, options.seeds + 1))
    zeus.run(*cases[0], [0])  # first use compiles and fills caches: not counted
    run_wattgov(options, [cases[0][0]], [cases[0][1]], 1)
    for turn in range(options.repeats):
        for gpu, job in cases:
            share = seeds[turn :: options.repeats]
            runs = zeus.run(gpu, job, share) if share else []
            _, seconds = run_wattgov(options, [gpu], [job], options.seeds)
            record = turns[gpu, job]
            record["runs"] += runs
            record["zeus_s"] += [run["wall_s"] for run in runs]
            record["wattgov_s"].append(seconds / options.seeds)
    return turns


def compare_case(options, key, turn, ours, job):
    runs = turn["runs"]
    oracle = oracle_cost_j(options, key[0], job)
    totals = {}
    for name, _, _, _ in QUANTITIES:
        theirs = spread([run[f"cumulative_{name}"][-1] for run in runs])
        totals[name] = agree(theirs, ours[name], len(runs), ours["seeds"], options.standard_errors)
    marks = [mark for mark in MARKS if mark <= options.recurrences]
    excess = [
        {
            "recurrences": mark,
            "zeus": statistics.fmean(run["cumulative_cost_j"][mark - 1] for run in runs)
            / (mark * oracle)
            - 1,
            "wattgov": ours["cumulative_cost_j"][mark - 1] / (mark * oracle) - 1,
        }
        for mark in marks
    ]
    theirs_s, ours_s = statistics.median(turn["zeus_s"]), statistics.median(turn["wattgov_s"])
    return {
        "gpu": key[0],
        "job": key[1],
        "oracle_cost_j_per_recurrence": oracle,
        # The same from our program: its mean cost over its mean ratio to the oracle.
        "oracle_difference": ours["cost_j"]["mean"]
        / ours["cost_over_oracle"]["mean"]
        / (options.recurrences * oracle)
        - 1,
        "totals": totals,
        "excess_over_oracle": excess,
        "speed": {"zeus_s": theirs_s, "wattgov_s": ours_s, "ratio": theirs_s / ours_s},
    }


def compare(options):
    with open(options.jobs, newline="", encoding="utf-8") as file:
        jobs = {row["job"]: row for row in csv.DictReader(file)}
    names = options.job or list(jobs)
    cases = [(gpu.lower(), job) for gpu in options.gpu for job in names]
    zeus = Zeus(options)
    turns = measure(options, zeus, cases)
    zeus.close()

    # All cases at once: what a user of the command waits for.
    together_s = [
        run_wattgov(options, options.gpu, names, options.seeds)[1] for _ in range(options.repeats)
    ]
    ours, _ = run_wattgov(options, options.gpu, names, options.our_seeds)
    ours = {(case["gpu"].lower(), case["job"]): case for case in ours["cases"]}

    results = [compare_case(options, key, turns[key], ours[key], jobs[key[1]]) for key in cases]
    zeus_s = options.seeds * sum(statistics.fmean(turns[key]["zeus_s"]) for key in cases)
    all_s = statistics.median(together_s)
    return {
        "schema": "wattgov.peers.compare_zeus/1",
        "versions": zeus.versions,
        "recurrences": options.recurrences,
        "eta": options.eta,
        "beta": options.beta,
        "zeus_seeds": options.seeds,
        "wattgov_seeds": options.our_seeds,
        "standard_errors_allowed": options.standard_errors,
        "cases": results,
        "mean_excess_over_oracle": [
            {
                "recurrences": mark,
                "zeus": statistics.fmean(c["excess_over_oracle"][i]["zeus"] for c in results),
                "wattgov": statistics.fmean(c["excess_over_oracle"][i]["wattgov"] for c in results),
            }
            for i, mark in enumerate(m for m in MARKS if m <= options.recurrences)
        ],
        "speed_all_cases": {"zeus_s": zeus_s, "wattgov_s": all_s, "ratio": zeus_s / all_s},
        "largest_oracle_difference": max(abs(c["oracle_difference"]) for c in results),
        "outside": [
            f"{c['gpu']} {c['job']} {name}"
            for c in results
            for name, total in c["totals"].items()
            if not total["is_within"]
        ],
    }


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def totals_table(result):
    rows = []
    for case in result["cases"]:
        for name, letter, unit, scale in QUANTITIES:
            total = case["totals"][name]
            errors = total["standard_errors"]
            cells = [case["gpu"], case["job"], f"{letter} ({unit})"]
            for side in ("zeus", "wattgov"):
                mean, sd = total[side]["mean"] / scale, total[side]["sd"] / scale
                cells.append(f"{mean:.4g} (sd {sd:.2g})")
            cells.append(f"{100 * total['difference']:+.2f} %")
            cells.append("certain" if errors is None else f"{errors:+.1f}")
            cells.append("yes" if total["is_within"] else "**no**")
            rows.append(cells)
    heads = ("GPU", "job", "total", "Zeus's own", "wattgov `zeus`")
    return table(heads + ("difference", "standard errors", "agrees"), rows)


def excess_table(result):
    named = [(c["gpu"], c["job"], c["excess_over_oracle"]) for c in result["cases"]]
    named.append(("all", "mean", result["mean_excess_over_oracle"]))
    marks = [str(mark["recurrences"]) for mark in named[0][2]]
    rows = [
        [gpu, job]
        + [f"{100 * mark['zeus']:.1f} / {100 * mark['wattgov']:.1f} %" for mark in excess]
        for gpu, job, excess in named
    ]
    return table(["GPU", "job"] + [f"after {mark}" for mark in marks], rows)


def speed_table(result):
    def cells(gpu, job, speed, scale):
        times = [f"{scale * speed[side]:.3g}" for side in ("zeus_s", "wattgov_s")]
        return [gpu, job] + times + [f"{speed['ratio']:,.0f}"]

    rows = [cells(case["gpu"], case["job"], case["speed"], 1e3) for case in result["cases"]]
    count = len(result["cases"]) * result["zeus_seeds"]
    every = {
        side: result["speed_all_cases"][side] / count for side in ("zeus_s", "wattgov_s")
    } | {"ratio": result["speed_all_cases"]["ratio"]}
    rows.append(cells("all", "one call", every, 1e3))
    return table(["GPU", "job", "Zeus's own (ms)", "wattgov (ms)", "times faster"], rows)


def markdown(result):
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    every = result["speed_all_cases"]
    lines = [
        f"Totals over {result['recurrences']} recurrences: Zeus's own simulator, run here ({versions};"
        f" {result['zeus_seeds']} seeds), and `wattgov simulate training --policy zeus`"
        f" ({result['wattgov_seeds']} seeds); eta {result['eta']:g}, beta {result['beta']:g}. Agrees:"
        f" within {100 * CLOSE_SHARE:g} % or {result['standard_errors_allowed']:g} standard errors.",
        "",
        *totals_table(result),
        "",
        f"{len(result['outside'])} of {len(result['cases']) * len(QUANTITIES)} totals differ"
        + (f": {', '.join(result['outside'])}." if result["outside"] else "."),
        "",
        "Excess of the cumulative cost over the oracle (Zeus's own / wattgov `zeus`); the oracle that our"
        f" program uses differs by at most {result['largest_oracle_difference']:.1e} from the one computed"
        " apart from both:",
        "",
        *excess_table(result),
        "",
        "Time per case and seed, medians of interleaved runs, one thread each; ours with start and"
        " reading:",
        "",
        *speed_table(result),
        "",
        f"All {len(result['cases'])} cases x {result['zeus_seeds']} seeds: Zeus's own {every['zeus_s']:.1f} s,"
        f" wattgov {every['wattgov_s']:.3f} s, {every['ratio']:,.0f} times faster.",
    ]
    return "\n".join(lines)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wattgov", default=os.path.join(ROOT, "build", "release", "wattgov"))
    parser.add_argument(
        "--zeus-python", default=os.path.join(ROOT, "build", "peers", "zeus", "bin", "python")
    )
    parser.add_argument("--trace", default=os.path.join(ROOT, "data", "zeus", "trace"))
    parser.add_argument("--jobs", default=os.path.join(ROOT, "data", "training_jobs.csv"))
    parser.add_argument("--gpu", action="append", help="default: v100 and a40")
    parser.add_argument("--job", action="append", help="default: all of the table")
    parser.add_argument("--recurrences", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=20, help="of Zeus's simulator: 0.5 s each")
    parser.add_argument("--our-seeds", type=int, default=200, help="of ours, for its means")
    parser.add_argument("--eta", type=float, default=0.5)
    parser.add_argument("--beta", type=float, default=2.0)
    parser.add_argument("--window", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=4, help="turns of the two sides")
    parser.add_argument("--standard-errors", type=float, default=2.0)
    parser.add_argument("--json", action="store_true", help="with the tables as `markdown`")
    parser.add_argument("--check", action="store_true", help="status 1 if a total differs")
    options = parser.parse_args()
    options.gpu = options.gpu or ["v100", "a40"]
    options.repeats = max(1, min(options.repeats, options.seeds))
    return options


def main():
    options = read_options()
    if not os.access(options.zeus_python, os.X_OK):
        print("skipped: Zeus is not installed; bench/peers/setup_zeus.sh installs it")
        return 77
    if not os.access(options.wattgov, os.X_OK):
        raise SystemExit(f"compare_zeus.py: no program {options.wattgov}: run tools/build")
    result = compare(options)
    result["markdown"] = markdown(result)
    print(json.dumps(result, indent=1) if options.json else result["markdown"])
    for name in result["outside"] if options.check else []:
        print(f"differs: {name}", file=sys.stderr)
    return 1 if options.check and result["outside"] else 0


if __name__ == "__main__":
    sys.exit(main())
