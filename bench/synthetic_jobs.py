#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Makes a folder of traces of synthetic recurring jobs, in the format of docs/traces.md.

    bench/synthetic_jobs.py --seed 2026 --jobs 120 OUT_DIR

The jobs are not drawn from the family of curves that the wattgov policy assumes, so that they test it
rather than repeat it. Each job has 5 to 14 batch sizes; epochs to target over log2 b are flat between two
knees with a random sharpness, with slopes 0.7..1.2 above and 0.5..3 below per octave, an own deviation of
every batch size (sd up to 0.1 octaves) and 5 to 10 recorded runs around it (sd 0.03..0.25 octaves, whole
epochs); beyond the knees runs fail with a chance that grows. Time per epoch saturates in the batch size,
power follows the utilisation, and a limit below the demand slows down by a random power law. The default
is a batch size whose runs all reach the target and that costs at most 3 times the best one (--worst-default;
those of the six jobs of the traces cost 1.04 to 2.8 times the best).

Only the standard library is used, whose generator is the same everywhere.
"""
import argparse
import math
import os
import random

LIMITS_W = range(100, 251, 25)
MAX_POWER_W = 250
IDLE_W = 60


def soft_knee(distance, sharpness):
    """log2(1 + 2^(s d)) / s: 0 below the knee, rising by one octave per octave above it."""
    return math.log2(1 + 2 ** min(sharpness * distance, 60)) / sharpness


def make_batch_sizes(rng):
    count = rng.randint(5, 14)
    smallest = 2 ** rng.randint(2, 6)
    sizes, size = [], smallest
    while len(sizes) < count:
        sizes.append(size)
        if rng.random() < 0.25 and size % 2 == 0:
            sizes.append(size * 3 // 2)
        size *= 2
    return sizes[:count]


def make_job(rng):
    """Epochs per run and power rows per batch size, and the job's default and maximum epochs."""
    sizes = make_batch_sizes(rng)
    xs = [math.log2(b) for b in sizes]
    upper = rng.uniform(xs[0] + 1, xs[-1] + 2)
    lower = rng.uniform(xs[0] - 4, upper - 2)
    up, down = rng.uniform(0.7, 1.2), rng.uniform(0.5, 3)
    sharpness = rng.uniform(0.7, 2)
    level = rng.uniform(1.6, 6)
    own_sd, run_sd = rng.uniform(0, 0.1), rng.uniform(0.03, 0.25)
    means = [level + up * soft_knee(x - upper, sharpness) + down * soft_knee(lower - x, sharpness)
             + rng.gauss(0, own_sd) for x in xs]
    runs = []
    for x, mean in zip(xs, means):
        fails = max(0, x - upper - 2.5) * 0.4 + max(0, lower - 1.5 - x) * 0.4
        runs.append([None if rng.random() < fails else max(1, round(2 ** rng.gauss(mean, run_sd)))
                     for _ in range(rng.randint(5, 10))])
    half = rng.uniform(xs[0] - 2, xs[-1] - 1)
    full_time_s, peak_w = 2 ** rng.uniform(4, 11), rng.uniform(140, MAX_POWER_W)
    slow, power_law = rng.uniform(0.3, 1.2), rng.uniform(1, 2)
    rows = []
    for x in xs:
        use = 1 / (1 + 2 ** (half - x))
        demand_w = IDLE_W + (peak_w - IDLE_W) * (0.3 + 0.7 * use)
        row = []
        for limit in LIMITS_W:
            lack = max(0, demand_w - limit) / (demand_w - IDLE_W)
            time_s = full_time_s / use * (1 + slow * lack ** power_law) * rng.gauss(1, 0.01)
            row.append((limit, time_s, min(demand_w, limit) * rng.gauss(1, 0.01)))
        rows.append(row)
    return sizes, runs, rows


def price(runs, row, max_epochs):
    """Least expected cost (eta = 0.5) of one recurrence over the limits; infinite if it never ends."""
    good = [e for e in runs if e and e <= max_epochs]
    if not good:
        return math.inf
    paid = sum(e if e and e <= max_epochs else max_epochs for e in runs) / len(good)
    return paid * min(0.5 * (power + MAX_POWER_W) * time for _, time, power in row)


def choose_default(rng, sizes, runs, rows, worst):
    """A default that always converges and is not too dear beside the best; else None."""
    steady = [i for i, r in enumerate(runs) if all(r)]
    rng.shuffle(steady)
    for i in steady:
        max_epochs = math.ceil(max(runs[i]) * rng.uniform(1.5, 6))
        costs = [price(r, row, max_epochs) for r, row in zip(runs, rows)]
        if costs[i] <= worst * min(costs):
            return sizes[i], max_epochs
    return None


def milestones(rng, bend_of_job, epochs, max_epochs):
    """A coarse learning curve: metric thresholds 0.1..1.0 (the target) and when they were reached."""
    bend = bend_of_job * 2 ** rng.gauss(0, 0.2)
    total = epochs if epochs else max_epochs * rng.uniform(1.1, 3)
    for step in range(1, 11):
        epoch = max(1, math.ceil(total * (step / 10) ** bend))
        if step == 10:
            epoch = epochs
        yield step / 10, epoch if epoch and epoch <= 2 * max_epochs else "nan"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--jobs", type=int, default=120)
    parser.add_argument("--worst-default", type=float, default=3)
    parser.add_argument("out")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    os.makedirs(args.out, exist_ok=True)
    train = ["dataset,network,batch_size,optimizer,run,target_metric,target_epoch"]
    power = ["dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power"]
    jobs = ["job,dataset,network,optimizer,metric,direction,target_metric,max_epochs,"
            "default_batch_size"]
    made = 0
    while made < args.jobs:
        sizes, runs, rows = make_job(rng)
        default = choose_default(rng, sizes, runs, rows, args.worst_default)
        if default is None:
            continue
        made += 1
        key = f"synthetic{made:03d}"
        jobs.append(f"{key},{key},net,sgd,score,higher,1.0,{default[1]},{default[0]}")
        bend = rng.uniform(0.6, 2.0)
        for size, of_size, row in zip(sizes, runs, rows):
            for number, epochs in enumerate(of_size, 1):
                train += [f"{key},net,{size},sgd,{number},{metric},{epoch}"
                          for metric, epoch in milestones(rng, bend, epochs, default[1])]
            power += [f"{key},net,{size},sgd,{limit},{time:.6g},{watts:.6g}"
                      for limit, time, watts in row]
    for name, lines in (("summary_train.csv", train), ("summary_power_synthetic.csv", power),
                        ("jobs.csv", jobs)):
        with open(os.path.join(args.out, name), "w", encoding="ascii") as out:
            out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
