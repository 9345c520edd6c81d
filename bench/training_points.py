# SPDX-License-Identifier: MIT
"""The measurements of bench/training_results.py: one function a point of docs/results/training.md.

Each returns the section's Markdown lines and adds its figures to the board. What is compared with what,
and each bound, stands here and nowhere else.
"""
import csv
import json
import math
import os
import statistics
import subprocess

from training_runs import (FIRST_SEED, PROGRAM, ROOT, TRACE, above_default, commands, excess, label,
                           mean_excess, mean_with_interval, of_policy, over_default, percent, table,
                           worst_case)

MARKS = (10, 20, 50, 100)
JOBS = ("librispeech", "squad", "sentiment140", "imagenet", "cifar100", "movielens-1m")
BOTH = ("--policy", "wattgov", "--policy", "zeus")
OTHER_TARGETS = {"librispeech": 50, "squad": 83.5, "sentiment140": 0.845, "imagenet": 0.60, "cifar100": 0.50,
                 "movielens-1m": 0.40}
QUANTITIES = (("cost", "cost_j", "cost_mj", 1e6), ("energy", "energy_j", "energy_mj", 1e6),
              ("time", "time_s", "time_h", 3600.0))
DRIFTS = (("easier", "easier target", 0.045), ("critical-double", "critical batch size doubled", 0.05),
          ("critical-half", "critical batch size halved", 0.02), ("slower", "epochs take twice the time", 0.01))


def seeded(seeds):
    return ("--seeds", seeds, "--seed", FIRST_SEED)


# --- 1: the baseline is faithful ---------------------------------------------------------------------------


def read_published():
    path = os.path.join(ROOT, "tests", "golden", "zeus_totals.csv")
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {(row["gpu"], row["job"]): row for row in rows}


def compare_totals(cases, published):
    """Per case and quantity: (published, ours, difference, standard errors, within)."""
    found = {}
    for case in cases:
        row = published[case["gpu"], case["job"]]
        for name, key, column, scale in QUANTITIES:
            theirs, ours = float(row[f"zeus_{column}"]), case[key]["mean"] / scale
            # The published runs scatter as ours do: their 20 seeds and our seeds both count.
            error = case[key]["sd"] / scale * math.sqrt(1 / 20 + 1 / case["seeds"])
            difference = ours / theirs - 1
            is_certain = error < 1e-6 * theirs
            errors = None if is_certain else (ours - theirs) / error
            within = abs(difference) <= 0.015 or (errors is not None and abs(errors) <= 2)
            found[case["gpu"], case["job"], name] = (theirs, ours, difference, errors, within)
    return found


def baseline(runner, board):
    twenty, first = runner.training("--policy", "zeus", "--seeds", 20)
    many, second = runner.training("--policy", "zeus", *seeded(200))
    published = read_published()
    few, lots = compare_totals(twenty["cases"], published), compare_totals(many["cases"], published)
    rows = []
    for case in many["cases"]:
        for name, _, column, _ in QUANTITIES:
            key = (case["gpu"], case["job"], name)
            theirs, ours, difference, errors, within = lots[key]
            rows.append([case["gpu"], case["job"], f"{name}, {column.split('_')[1].upper().replace('H', 'h')}",
                         f"{theirs:g}", f"{few[key][1]:.4g}", percent(few[key][2]), f"{ours:.4g}",
                         percent(difference), "certain" if errors is None else f"{errors:+.1f}",
                         "met" if within and few[key][4] else "**missed**"])
    for name, found, command in (("20 seeds", few, first), ("200 seeds", lots, second)):
        outside = [" ".join(key) for key, values in found.items() if not values[4]]
        board.holds(1, f"totals of zeus within 1.5 % or 2 standard errors of the published ones, {name}",
                    not outside, "all 36" if not outside else f"all but {', '.join(outside)}", "all 36", command)
    excess_rows = []
    for mark, here, all_gpus in ((20, 0.315, 0.319), (50, 0.134, 0.132), (100, 0.071, 0.068)):
        ours = mean_excess(many["cases"], mark)
        board.holds(1, f"mean excess of zeus after {mark} within a tenth of the published one",
                    abs(ours / here - 1) <= 0.1, percent(ours), f"{percent(here)} +- a tenth", second)
        excess_rows.append([str(mark), percent(here), percent(all_gpus), percent(mean_excess(twenty["cases"], mark)),
                            percent(ours)])
    lines = ["Totals over 100 recurrences, eta 0.5, beta 2. `published`: mean of 20 seeds of the simulator of Zeus "
             "v0.1.0 (github.com/ml-energy/zeus, Apache-2.0), kept in `tests/golden/zeus_totals.csv`. Standard errors "
             "of the difference are those of our deviation over both sides' seeds. Verdict: within 1.5 % or two "
             "standard errors, with 20 and with 200 seeds. Where every seed gives nearly the same total, the published one is "
             "known to fewer digits than it scatters by, and standard errors say nothing.", ""]
    lines += table(["GPU", "job", "total", "published", "ours, 20 seeds", "off by", "ours, 200 seeds", "off by",
                    "standard errors", "verdict"], rows)
    lines += ["", "Mean excess of the cumulative cost over the oracle:", ""]
    lines += table(["recurrences", "Zeus, these 12 cases", "Zeus, 24 cases on 4 GPU types", "ours, 20 seeds",
                    "ours, 200 seeds"], excess_rows)
    return lines + ["", *commands(first, second)]


def peer(board, wants_new):
    """Zeus's own simulator run beside ours; it takes minutes, so an earlier result is kept and reused."""
    keep = os.path.join(ROOT, "build", "results", "compare_zeus.json")
    command = "bench/peers/compare_zeus.py --json > build/results/compare_zeus.json"
    if not os.access(os.path.join(ROOT, "build", "peers", "zeus", "bin", "python"), os.X_OK):
        return None, ["Zeus's own simulator is not installed here (`bench/peers/setup_zeus.sh`), so the two were "
                      "not run side by side."]
    if wants_new or not os.path.exists(keep):
        with open(keep + ".part", "w", encoding="utf-8") as file:
            subprocess.run(["/usr/bin/python3", "bench/peers/compare_zeus.py", "--json"], cwd=ROOT, stdout=file,
                           check=True)
        os.replace(keep + ".part", keep)
    with open(keep, encoding="utf-8") as file:
        result = json.load(file)
    count = 3 * len(result["cases"])
    board.holds(1, "totals that agree with Zeus's own simulator, run beside ours", not result["outside"],
                f"{count - len(result['outside'])} of {count}", f"{count} of {count}", command)
    lines = ["### Beside Zeus's own simulator", "", "Both programs run on one machine, on the same traces; kept from the run that made "
             "`build/results/compare_zeus.json` (`--peer` makes it anew).", ""]
    lines += [line for line in result["markdown"].splitlines()]
    return result, lines + ["", *commands("bench/peers/setup_zeus.sh", command)]


# --- 2: ours ------------------------------------------------------------------------------------------------


def main_cases(runner, board):
    """The 12 cases of the traces, each horizon run apart so that its interval is of that horizon."""
    at, lines, used = {}, [], []
    for mark in MARKS:
        result, command = runner.training(*BOTH, "--recurrences", mark, *seeded(200))
        at[mark] = result["cases"]
        used.append(command)
    rows = []
    bounds, stretch = (0.135, 0.078, 0.040, 0.023), (0.12, 0.068, 0.032, 0.018)
    worst_bounds = {20: 0.22, 50: 0.10, 100: 0.055}
    for mark, bound, further, command in zip(MARKS, bounds, stretch, used):
        ours, zeus = of_policy(at[mark], "wattgov"), of_policy(at[mark], "zeus")
        mean, half = mean_with_interval(ours)
        worst = worst_case(ours, mark)
        dearer = above_default(ours, mark)
        most = max(over_default(case, mark) for case in ours)
        board.at_most(2, f"mean excess after {mark}", mean, bound, command=command)
        board.at_most(2, f"stretch: mean excess after {mark}", mean, further, command=command, is_goal=False)
        if mark in worst_bounds:
            board.at_most(2, f"worst case after {mark} ({label(worst)})", excess(worst, mark), worst_bounds[mark],
                          command=command)
        if mark == 20:
            board.at_most(2, "cases dearer than default after 20, of 12", len(dearer), 1, "count", command)
            board.at_most(2, "the dearest case after 20, cost over default", most, 1.02, "times", command)
        rows.append([str(mark), f"{percent(mean)} +- {percent(half)}", percent(bound), percent(further),
                     "met" if mean <= bound else "**missed**", f"{percent(excess(worst, mark))} ({label(worst)})",
                     f"{len(dearer)} ({most:.3f} x)", percent(mean_excess(zeus, mark)),
                     percent(excess(worst_case(zeus, mark), mark)), str(len(above_default(zeus, mark)))])
    lines += ["Excess of the cumulative cost over the oracle, mean of 12 cases (V100 and A40, 6 jobs), 200 seeds from "
              f"{FIRST_SEED} on, +-: 95 % interval of the mean over the seeds. `dearer`: cases whose mean cost is "
              "above what the default is expected to cost, and the largest ratio.", ""]
    lines += table(["recurrences", "wattgov", "bound", "stretch", "verdict", "worst case", "dearer", "zeus",
                    "zeus, worst case", "zeus, dearer"], rows)
    lines += ["", "Per case: excess after 10 / 20 / 50 / 100 recurrences, that of the worst of 200 seeds after 20 and "
              "100, and cost over the default's after 20 and 100.", ""]
    lines += case_table(at)
    return lines + ["", *commands(*used)], at[100]


def case_table(at):
    rows = []
    for index, case in enumerate(at[100]):
        same = {mark: at[mark][index] for mark in MARKS}
        cells = [case["gpu"], case["job"], case["policy"]]
        cells += [percent(excess(same[mark], mark)) for mark in MARKS]
        cells += [percent(same[mark]["cost_over_oracle"]["worst"] - 1) for mark in (20, 100)]
        cells += [f"{over_default(same[mark], mark):.3f}" for mark in (20, 100)]
        rows.append(cells)
    return table(["GPU", "job", "policy", "10", "20", "50", "100", "worst seed, 20", "worst seed, 100",
                  "over default, 20", "over default, 100"], rows)


def other_targets(runner):
    cases, used = [], []
    for job, target in OTHER_TARGETS.items():
        result, command = runner.training("--job", job, "--target", target, *BOTH, *seeded(200))
        cases += result["cases"]
        used.append(command)
    return cases, used


def steady_defaults(gpu):
    """(job, batch size): all runs reach the target, the cost is at most 5 times the oracle's, not the table's."""

    def rows(name):
        with open(os.path.join(ROOT, name), newline="", encoding="utf-8") as file:
            yield from csv.DictReader(file)

    power_file = f"{TRACE}/summary_power_{gpu}.csv"
    largest_w = max(float(row["power_limit"]) for row in rows(power_file))
    for job in rows("data/training_jobs.csv"):
        def is_job(row, job=job):
            return all(row[key] == job[key] for key in ("dataset", "network", "optimizer"))

        longest, epochs, prices = int(job["max_epochs"]), {}, {}
        for row in rows(f"{TRACE}/summary_train.csv"):
            if is_job(row) and float(row["target_metric"]) == float(job["target_metric"]):
                epochs.setdefault(int(row["batch_size"]), []).append(float(row["target_epoch"]))
        for row in rows(power_file):
            if is_job(row):
                price = 0.5 * (float(row["average_power"]) + largest_w) * float(row["time_per_epoch"])
                prices.setdefault(int(row["batch_size"]), {})[float(row["power_limit"])] = price
        both = sorted(set(epochs) & set(prices))
        expected = {}
        for size in both:
            good = [epoch for epoch in epochs[size] if epoch <= longest]
            paid = sum(good) + longest * (len(epochs[size]) - len(good))
            expected[size] = paid / len(good) if good else math.inf
        oracle = min(expected[size] * min(prices[size].values()) for size in both)
        own = min(int(job["default_batch_size"]), both[-1])
        for size in both:
            is_steady = all(epoch <= longest for epoch in epochs[size])
            cost = expected[size] * prices[size][max(prices[size])]
            if is_steady and size != own and cost <= 5 * oracle:
                yield job["job"], size


def other_defaults(runner):
    cases, used = [], []
    for gpu in ("v100", "a40"):
        for job, size in steady_defaults(gpu):
            result, _ = runner.training("--gpu", gpu, "--job", job, "--default", size, *BOTH, *seeded(100))
            cases += result["cases"]
    used.append(f"{PROGRAM} simulate training --trace {TRACE} --json --gpu GPU --job JOB --default BATCH "
                f"{' '.join(BOTH)} --seeds 100 --seed {FIRST_SEED}   # for each of them")
    return cases, used


def synthetic(runner, worst_default):
    folder = f"build/results/synthetic-{worst_default}"
    make = ["bench/synthetic_jobs.py", "--seed", "2026", "--jobs", "120", "--worst-default", str(worst_default),
            folder]
    subprocess.run(make, cwd=ROOT, check=True)
    result, command = runner.training(*BOTH, *seeded(100), trace=folder)
    return result["cases"], [" ".join(make), command]


def other_jobs(runner, board):
    sets = (("other targets", "the same runs trained to other targets (librispeech 50, squad 83.5, sentiment140 "
             "0.845, imagenet 0.60, cifar100 0.50, movielens-1m 0.40)", other_targets(runner)),
            ("other defaults", "every other default batch size whose runs all reach the target and that, at the "
             "largest limit, costs at most 5 times the oracle", other_defaults(runner)),
            ("synthetic", "120 generated jobs, seed 2026; their defaults cost at most 3 times the best choice",
             synthetic(runner, 3)),
            ("synthetic, harder", "the same generator and seed, defaults cost at most 5 times the best choice",
             synthetic(runner, 5)))
    rows, notes, used = [], [], []
    for name, what, (cases, of_set) in sets:
        used += [f"# {name}", *of_set]
        ours, zeus = of_policy(cases, "wattgov"), of_policy(cases, "zeus")
        notes.append(f"- **{name}**, {len(ours)} cases of {ours[0]['seeds']} seeds: {what}.")
        for mark, bound in ((20, 0.09), (50, 0.05), (100, 0.03)):
            board.at_most(2, f"{name}: mean excess after {mark}", mean_excess(ours, mark), bound,
                          command=of_set[-1])
        for policy, of in (("wattgov", ours), ("zeus", zeus)):
            worst = {mark: worst_case(of, mark) for mark in (20, 100)}
            dearer = above_default(of, 20)
            most = max(over_default(case, 20) for case in of)
            rows.append([name, policy] + [percent(mean_excess(of, mark)) for mark in MARKS]
                        + [f"{percent(excess(worst[mark], mark))} ({label(worst[mark])})" for mark in (20, 100)]
                        + [f"{len(dearer)} of {len(of)} ({most:.3f} x)"])
    lines = ["### Jobs that the traces do not hold", "", *notes, "",
             "The seed of the synthetic jobs was fixed before tuning, and so was the rule of 5 times. While the "
             "constants were tuned, the generator changed twice: a job's runs now share the bend of their learning "
             "curve, which also changes what is drawn after it, and its usual rule became 3 times. So no synthetic "
             "set here is quite the one that was fixed; both are held to the bounds.", "",
             "Mean excess after 10 / 20 / 50 / 100 recurrences; the bounds are 9 / 5 / 3 % at 20 / 50 / 100.", ""]
    lines += table(["set", "policy", "10", "20", "50", "100", "worst case, 20", "worst case, 100",
                    "dearer than default, 20"], rows)
    return lines + ["", *commands(*used)]


# --- 3: energy and time --------------------------------------------------------------------------------------


def energy(runner, board):
    shorter, first = runner.training(*BOTH, "--recurrences", 95, *seeded(200))
    longer, second = runner.training(*BOTH, "--recurrences", 100, *seeded(200))
    rows, saved = [], {"wattgov": [], "zeus": []}
    for index, case in enumerate(longer["cases"]):
        if case["policy"] != "wattgov":
            continue
        cells = [case["gpu"], case["job"]]
        default = case["default"]
        for offset, policy in ((0, "wattgov"), (1, "zeus")):
            early, late = shorter["cases"][index + offset], longer["cases"][index + offset]
            for key in ("energy_j", "time_s"):
                last = 1 - (late[key]["mean"] - early[key]["mean"]) / (default[key] * 5 / 100)
                whole = 1 - late[key]["mean"] / default[key]
                cells += [percent(last, 1), percent(whole, 1)]
                if key == "energy_j":
                    saved[policy].append(last)
        oracle = case["oracle"]
        cells += [percent(1 - oracle["energy_j"] / default["energy_j"], 1),
                  percent(1 - oracle["time_s"] / default["time_s"], 1)]
        rows.append(cells)
    least, most = min(saved["wattgov"]), max(saved["wattgov"])
    for gpu in ("v100", "a40"):
        of_gpu = [value for value, row in zip(saved["wattgov"], rows) if row[0] == gpu]
        board.note(3, f"energy saved in the last 5 recurrences, {gpu} (the paper: 15.3 .. 75.8 %)",
                   f"{percent(min(of_gpu), 1)} .. {percent(max(of_gpu), 1)}", second)
    lines = ["Saved against always running the default batch size at the largest limit (expected value): over the "
             "last 5 of 100 recurrences / over all 100, the learning included. Negative time: it took longer. The "
             "paper (Zeus, NSDI'23, abstract) reports 15.3-75.8 % of energy over its workloads. oracle: the fixed choice "
             "of least expected cost at eta 0.5, which is not always that of least energy.", ""]
    heads = ["GPU", "job"]
    heads += [f"{policy} {what}, {when}" for policy in ("wattgov", "zeus") for what in ("energy", "time")
              for when in ("last 5", "all")]
    lines += table(heads + ["oracle energy", "oracle time"], rows)
    lines += ["", f"Energy saved by wattgov in the last 5 recurrences: {percent(least, 1)} to {percent(most, 1)}.", ""]
    return lines + commands(first, second)


# --- 4: in flight, drift, another GPU -------------------------------------------------------------------------


def in_flight(runner, board):
    result, command = runner.training(*BOTH, "--concurrency", 4, *seeded(200))
    ours, zeus = of_policy(result["cases"], "wattgov"), of_policy(result["cases"], "zeus")
    for mark, bound in ((20, 0.25), (100, 0.06)):
        board.at_most(4, f"four in flight: mean excess after {mark}", mean_excess(ours, mark), bound, command=command)
    rows = [[policy] + [percent(mean_excess(of, mark)) for mark in MARKS]
            + [f"{percent(excess(worst_case(of, mark), mark))} ({label(worst_case(of, mark))})" for mark in (20, 100)]
            for policy, of in (("wattgov", ours), ("zeus", zeus))]
    lines = ["### Four runs in flight", "", "Recurrences arrive as a Poisson process, four in flight on average; mean "
             "excess of the cost of the first 10 / 20 / 50 / 100 recurrences. Bounds: 25 % at 20, 6 % at 100.", ""]
    lines += table(["policy", "10", "20", "50", "100", "worst case, 20", "worst case, 100"], rows)
    return lines + ["", *commands(command)]


def drift(runner, board):
    rows, used, refusals = [], [], []
    for key, what, bound in DRIFTS:
        ours, zeus = [], []
        for job in JOBS:
            shared = ["--jobs", "bench/drift_jobs.csv", "--job", job, "--drift", f"{job}-{key}@30",
                      "--recurrences", 80, *seeded(100)]
            result, command = runner.training(*shared, "--policy", "wattgov", refusals=refusals)
            ours += result["cases"]
            result, of_zeus = runner.training(*shared, "--policy", "zeus", "--window", 10, refusals=[])
            zeus += result["cases"]
            if job == "cifar100":
                used += [command, of_zeus]
        mean = mean_excess(ours, 80, 30)
        board.at_most(4, f"drift, {what}: mean excess over the next 50, {len(ours)} of 12 cases", mean, bound,
                      command=used[-2])
        is_met = mean <= bound and len(ours) == 12
        board.figures[-1]["is_met"] = is_met
        worst = max(ours, key=lambda case: excess(case, 80, 30))
        rows.append([what, str(len(ours))] + [percent(mean_excess(ours, end, 30)) for end in (40, 50, 80)]
                    + [percent(bound), "met" if is_met else "**missed**",
                       f"{percent(excess(worst, 80, 30))} ({label(worst)})"]
                    + [percent(mean_excess(zeus, end, 30)) for end in (40, 50, 80)]
                    + [str(sum(case["gave_up"] for case in zeus))])
    lines = ["### Drift", "", "After 30 recurrences each job turns into a variant of itself (`bench/drift_jobs.csv`); "
             "excess over the new oracle over the next 10 / 20 / 50 recurrences, mean of the cases, 100 seeds. zeus has a "
             "window of 10. `gave up`: recurrences of all its replays in which 20 attempts did not reach the target, so "
             "that the default had to finish them: its early stop is twice the least cost ever seen, which a job that "
             "became dearer no longer reaches.", ""]
    lines += table(["drift", "cases", "wattgov, 10", "20", "50", "bound at 50", "verdict", "worst case, 50", "zeus, 10", "20",
                    "50", "zeus gave up"], rows)
    lines += [line for refusal in refusals for line in ("", f"Not replayed, and so counted as missed: `{refusal}`.")]
    return lines + ["", *commands("# the same for each of the six jobs", *used)]


def warm_start(runner, board):
    ours, cold, used = [], [], []
    for source, target in (("v100", "a40"), ("a40", "v100")):
        result, command = runner.training("--warm-start", source, "--gpu", target, "--policy", "wattgov", *seeded(200))
        ours += result["cases"]
        used.append(command)
        result, _ = runner.training("--gpu", target, "--policy", "wattgov", *seeded(200))
        cold += result["cases"]
    for mark, bound in ((10, 0.06), (20, 0.035), (100, 0.012)):
        board.at_most(4, f"warm start: mean excess after {mark}", mean_excess(ours, mark), bound, command=used[0])
    rows = [[f"{case['gpu']} {case['job']}"] + [percent(excess(case, mark)) for mark in MARKS] for case in ours]
    rows.append(["**mean**"] + [percent(mean_excess(ours, mark)) for mark in MARKS])
    rows.append(["mean without a warm start"] + [percent(mean_excess(cold, mark)) for mark in MARKS])
    lines = ["### Warm start from another GPU type", "", "100 recurrences on the other GPU first, then excess after "
             "10 / 20 / 50 / 100 recurrences on this one. Bounds: 6 / 3.5 / 1.2 % at 10 / 20 / 100.", ""]
    lines += table(["GPU and job", "10", "20", "50", "100"], rows)
    return lines + ["", *commands(*used)]


def readme_summary(cases):
    """The table of README.md: cumulative excess over the oracle, and what was saved after 100 recurrences."""
    rows = []
    default = of_policy(cases, "wattgov")
    always = statistics.fmean(case["cumulative_default_j"][-1] / case["cumulative_oracle_j"][-1] - 1
                              for case in default)
    rows.append(["always the default", *[percent(always, 1)] * len(MARKS), "-", "-"])
    for policy in ("zeus", "wattgov"):
        of = of_policy(cases, policy)
        saved = [1 - math.exp(statistics.fmean(math.log(case[key]["mean"] / case["default"][key]) for case in of))
                 for key in ("energy_j", "time_s")]
        rows.append([policy] + [percent(mean_excess(of, mark), 1) for mark in MARKS]
                    + [percent(value, 1) for value in saved])
    return table(["policy", "after 10", "20", "50", "100 recurrences", "energy saved", "time saved"], rows)
