#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Held-out errors, steps, cliffs and advice on tensor cores, for docs/results/wave.md.

    bench/wave_tensor.py --data DIR [--wattgov build/release/wattgov] [--folds 5] [--seed 1]
    bench/wave_tensor.py --data DIR --write     makes data/wave/calibration/*.json of them

DIR holds vidur/ and aiconfigurator/ (data/wave/calibration/README.md says where they come from). Each figure is of
shapes (n, k) that were in no fit; the interval is of 200 bootstraps over shapes.
"""
import argparse
import csv
import itertools
import json
import math
import pathlib
import random
import statistics
import subprocess
import tempfile

VIDUR = "vidur/gemm_fp16_token_sweeps.csv.gz"
AIC = "aiconfigurator/gemm_"
SETS = [  # name, file, GPU, options of calibrate and evaluate, built-in file
    ("A100 FP16", VIDUR, "a100-sxm4-80gb", ["--dtype=fp16"], "a100_fp16"),
    ("H100 FP16", VIDUR, "h100-sxm-80gb", ["--dtype=fp16"], "h100_fp16"),
    ("A100 BF16", AIC + "A100-SXM-80GB.csv", "a100-sxm4-80gb", [], "a100_bf16"),
    ("H100 BF16", AIC + "H100-SXM-80GB.csv.gz", "h100-sxm-80gb", ["--where=dtype=bfloat16"], None),
    ("H100 FP8", AIC + "H100-SXM-80GB.csv.gz", "h100-sxm-80gb", ["--where=dtype=fp8"], None),
    ("RTX PRO 6000 BF16", AIC + "RTX-PRO-6000-BSE.csv", "rtx-pro-6000-server", [], "rtx_pro_6000_bf16"),
]
BOTH = ("H100", AIC + "H100-SXM-80GB.csv.gz", "h100-sxm-80gb", [], "h100_bf16_fp8")


def interval(path, seed):
    """95 % of the mean error, over shapes drawn with replacement."""
    shapes = {}
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            wrong = abs(float(row["predicted_us"]) / float(row["measured_us"]) - 1)
            total = shapes.setdefault((row["n"], row["k"]), [0.0, 0])
            total[0] += wrong
            total[1] += 1
    totals = list(shapes.values())
    rng = random.Random(seed)
    means = []
    for _ in range(200):
        drawn = rng.choices(totals, k=len(totals))
        means.append(sum(total[0] for total in drawn) / sum(total[1] for total in drawn))
    means.sort()
    return means[4], means[195]


def knowable(path, seed):
    """Steps that one would find, and be right about, who knew each rise but not the noise of measuring it: the
    predicted rises stand for the true ones, noise is what one row more does on plateaus (80 -> 81, 112 -> 113)."""
    curves = {}
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            curves.setdefault((row["n"], row["k"]), []).append(
                (int(row["m"]), float(row["measured_us"]), float(row["predicted_us"])))
    noise, rises = [], []
    for curve in curves.values():
        curve.sort()
        for (m, time, told), (after, time_after, told_after) in itertools.pairwise(curve):
            if (m, after) in ((80, 81), (112, 113)):
                noise.append(math.log(time_after / time))
            if m >= 64 and m < after <= 1.25 * m:
                rises.append(math.log(told_after / told))
    if not noise:
        return None
    middle = statistics.median(noise)
    rng = random.Random(seed)
    shares = []
    for _ in range(5):
        is_step = [rise + rng.choice(noise) - middle > math.log(1.08) for rise in rises]
        told = sorted(range(len(rises)), key=lambda at: -rises[at])[:sum(is_step)]
        shares.append(sum(is_step[at] for at in told) / len(told))
    return statistics.fmean(shares)


def share(value, scale=100.0):
    return "-" if value is None else f"{scale * value:.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--wattgov", default="build/release/wattgov")
    parser.add_argument("--folds", default="5")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    if args.write:
        for _, file, gpu, options, built_in in SETS + [BOTH]:
            if built_in is not None:
                out = f"data/wave/calibration/{built_in}.json"
                subprocess.run([args.wattgov, "wave", "calibrate", args.data / file, "--gpu", gpu,
                                *options, "--no-points", "-o", out], check=True)
        return
    print("| data | rows | mean error % | 95 % | median % | roofline % | in range % | steps found % | true % "
          "| cliffs AUC | advice % | fixed multiple % |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        rows = pathlib.Path(folder) / "rows.csv"
        for name, file, gpu, options, _ in SETS:
            done = subprocess.run([args.wattgov, "wave", "evaluate", args.data / file, "--gpu", gpu, *options,
                                   "--folds", args.folds, "--seed", str(args.seed), "--json",
                                   "--predictions", rows], check=True, capture_output=True, text=True)
            found = json.loads(done.stdout)
            low, high = interval(rows, args.seed)
            auc = found["cliff_auc"]
            print(f"| {name} | {found['rows']} | {share(found['mape'])} | {share(low)} .. {share(high)} "
                  f"| {share(found['median_ape'])} | {share(found['baselines']['roofline']['mape'])} "
                  f"| {share(found['coverage'])} | {share(found['steps']['recall'])} "
                  f"| {share(found['steps']['precision'])} | {share(knowable(rows, args.seed))} "
                  f"| {'-' if auc is None else f'{auc:.3f}'} "
                  f"| {share(found['advice']['share_of_best'])} "
                  f"| {share(found['advice']['best_fixed_multiple'])} |", flush=True)


if __name__ == "__main__":
    main()
