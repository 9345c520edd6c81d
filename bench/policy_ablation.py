#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What each part of the wattgov policy is worth: it runs with one of its constants changed at a time.

    bench/policy_ablation.py [--jobs N] [--out FILE]

Runs bench/policy_constants for each variant of the list below on three sets of jobs (the 12 cases of the traces,
the same with other targets, and the synthetic jobs of bench/synthetic_jobs.py) and writes a table in Markdown.
Variants meet the luck of the policy as it is, seed by seed, so differences are judged by the spread of the pairs.
The seeds, of replays and of synthetic jobs, are for development: bench/training_results.py uses others.
"""
import argparse
import concurrent.futures
import json
import math
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

from training_runs import ROOT, commands, percent, table

PROGRAM = "build/release/bench/policy_constants"
FIRST_SEED = 600001
SYNTHETIC_SEED = 7
CLEAR = 3  # standard errors of the paired difference from which on it is marked
CHECKED = 20  # the point at which cases above their default are counted

OTHER_TARGETS = ("librispeech=50", "squad=83.5", "sentiment140=0.845", "imagenet=0.60", "cifar100=0.50",
                 "movielens-1m=0.40")

AS_IT_IS = "as it is"
VARIANTS = (
    (AS_IT_IS, ""),
    ("no stop by the learning curve", "curve_hurdle=1e9"),
    ("exploration never declines", "explore_later=1e6"),
    ("greedy after 20 recurrences", "explore_first=20 explore_later=0.001"),
    ("no guard", "debt_runs=1e9"),
    ("evidence at full weight", "evidence_power=1"),
    ("evidence at half weight", "evidence_power=0.5"),
    ("arms deviate a little more", "deviation_sd=0.1"),
    ("arms deviate much more", "deviation_sd=0.2"),
    ("one noise for all arms", "noise_arm_runs=1e9"),
    ("no money for surveys", "survey_share=0 late_survey_share=0"),
    ("much money for surveys", "survey_share=0.3"),
    ("surveys at the start alone", "late_survey_share=0"),
    ("earlier stops", "stop_floor=1"),
    ("later stops", "stop_floor=2"),
    ("dear draws stay dear", "cost_cap=3"),
    ("ties are broken by the draw", "tie_share=0"),
    ("ties go to the incumbent", "tie_share=0.08"),
    ("regret counts less", "ids_power=1.5"),
    ("regret counts more", "ids_power=3"),
    ("narrow priors of the knees", "upper_knee_sd=3 lower_knee_sd=2.5 lower_knee_mean=-5"),
)


class Sets:
    """The sets of jobs: name, what it is, and the options of bench/policy_constants."""

    def __init__(self, folder):
        targets = [word for target in OTHER_TARGETS for word in ("--target", target)]
        self.items = (
            ("12 cases", "the six jobs of the traces on both GPUs, 100 seeds", ["--seeds", "100"]),
            ("other targets", f"the same with {', '.join(OTHER_TARGETS)}, 50 seeds", ["--seeds", "50", *targets]),
            ("synthetic", f"`bench/synthetic_jobs.py --seed {SYNTHETIC_SEED}`: 120 jobs, 5 seeds",
             ["--seeds", "5", "--trace", folder, "--jobs", os.path.join(folder, "jobs.csv")]),
        )


def make_synthetic(folder):
    maker = os.path.join(ROOT, "bench", "synthetic_jobs.py")
    subprocess.run([sys.executable, maker, "--seed", str(SYNTHETIC_SEED), folder], check=True)


def measure(constants, options):
    """The parsed JSON of one variant on one set."""
    command = [PROGRAM, *constants.split(), "--seed", str(FIRST_SEED), "--each", *options]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"policy_ablation.py: status {done.returncode} of: {shlex.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)


def difference(result, base, point):
    """Mean excess of `result` above that of `base`, and its standard error from the pairs of equal luck."""
    mean = variance = 0.0
    cases = list(zip(result["excess_of_point_case_seed"][point], base["excess_of_point_case_seed"][point]))
    for of_case, of_base in cases:
        pairs = [a - b for a, b in zip(of_case, of_base)]
        mean += statistics.fmean(pairs) / len(cases)
        variance += statistics.variance(pairs) / len(pairs) / len(cases) ** 2
    return mean, math.sqrt(variance)


def mean_cell(result, base, point):
    """The mean excess: with its standard error for the policy as it is, else marked when clearly different."""
    of_point = result["points"][point]
    text = percent(of_point["mean_excess"])
    if result is base:
        return f"{text} ± {percent(of_point['standard_error'])[:-2]}"
    mean, error = difference(result, base, point)
    if abs(mean) <= CLEAR * error:
        return text
    return f"**{text}**" if mean > 0 else f"_{text}_"


def write_tables(results, sets):
    """`results[name of a set][name of a variant]`."""
    lines = []
    points = [point["recurrences"] for point in results[sets[0][0]][AS_IT_IS]["points"]]
    heads = ["variant", "constants"]
    heads += [f"{name}, N={n}" for name, _, _ in sets for n in points]
    rows = []
    for variant, constants in VARIANTS:
        row = [variant, f"`{constants}`" if constants else "-"]
        for name, _, _ in sets:
            of_set = results[name]
            row += [mean_cell(of_set[variant], of_set[AS_IT_IS], i) for i in range(len(points))]
        rows.append(row)
    lines += ["", "## Mean excess over the oracle", "", *table(heads, rows)]
    heads = ["variant"]
    for name, _, _ in sets:
        heads += [f"{name}, worst, N={CHECKED}", f"worst, N={points[-1]}", f"above default, N={CHECKED}"]
    rows = []
    for variant, _ in VARIANTS:
        row = [variant]
        for name, _, _ in sets:
            of_variant = results[name][variant]
            checked = of_variant["points"][points.index(CHECKED)]
            row += [percent(checked["worst_excess"]), percent(of_variant["points"][-1]["worst_excess"]),
                    f"{checked['cases_above_default']} of {of_variant['cases']}"]
        rows.append(row)
    return [*lines, "", "## The worst case, and cases dearer than their default", "", *table(heads, rows)]


def write_document(results, sets, path):
    lines = ["# What each part of the policy is worth", "",
             *commands("tools/build && ninja -C build/release bench/policy_constants", "bench/policy_ablation.py"), "",
             f"Written by that command; seeds from {FIRST_SEED} on. The policy `wattgov` with one thing changed in "
             "each row (the constants: [training-policy.md](../internals/training-policy.md)); cost above the "
             "expected cost of the oracle after N recurrences, mean over the cases of a set:", ""]
    lines += [f"- **{name}**: {what};" for name, what, _ in sets[:-1]]
    lines += [f"- **{name}**: {what}." for name, what, _ in sets[-1:]]
    lines += ["", f"**Bold**: worse than as it is by more than {CLEAR} standard errors of the paired difference; "
              "_slanted_: better by as much. The errors are those of the luck of the seeds: another set of jobs "
              "would move all numbers by more."]
    lines += write_tables(results, sets)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="runs side by side")
    parser.add_argument("--out", default=os.path.join(ROOT, "docs/results/training-ablation.md"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        make_synthetic(folder)
        sets = Sets(folder).items
        waiting = {(name, variant): pool.submit(measure, constants, options)
                   for variant, constants in VARIANTS for name, _, options in sets}
        results = {name: {} for name, _, _ in sets}
        for (name, variant), run in waiting.items():
            results[name][variant] = run.result()
            print(f"{variant}: {name}", file=sys.stderr)
    write_document(results, sets, args.out)


if __name__ == "__main__":
    main()
