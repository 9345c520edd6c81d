#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures `wattgov train` on every bundled job of the virtual V100 and A40, and writes it down.

    tools/build && bench/live_training.py          about half an hour
    bench/live_training.py --seconds 120 --job cifar100     shorter, to the terminal, nothing is written

Truth is the trace: what an epoch costs at each power limit. For each job, ten minutes of training run under the
governor, told of its steps, and once more with nothing but the period of its power to go by. Regret is the cost of
a step at the limit that was found, over the least one's. The overhead is what the whole run took in time and in
energy (the virtual GPU's own, true joules) beyond what its steps take at that limit. Jobs run side by side, each on a
machine of its own. Writes docs/results/live-training.md and build/results/live-training.json. Only the standard
library is used. Status 0 also when bounds are missed: the document says so.
"""
import argparse
import concurrent.futures
import csv
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from training_limits import machine  # noqa: E402
from training_runs import ROOT, Board, percent, table  # noqa: E402

BUILD = "build/release"
VGPU = f"{BUILD}/vgpu/wattgov-vgpu"
VLOAD = f"{BUILD}/vgpu/wattgov-vload"
PROGRAM = f"{BUILD}/wattgov"
ETA = 0.5
STEP_S = 0.5  # of a job at its largest limit; how many steps an epoch has is not measured
MODES = ("told", "period")
BOUNDS = {"told": 0.01, "period": 0.03}


def path(*parts):
    return os.path.join(ROOT, *parts)


def jobs():
    with open(path("data/training_jobs.csv"), encoding="utf-8") as file:
        return {row["job"]: row for row in csv.DictReader(file)}


def limits(gpu, job):
    """{limit_w: (seconds, watts) of an epoch} at the job's default batch size."""
    found = {}
    with open(path(f"data/zeus/trace/summary_power_{gpu}.csv"), encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if (row["dataset"], row["network"], row["optimizer"]) == (job["dataset"], job["network"], job["optimizer"]) \
                    and float(row["batch_size"]) == float(job["default_batch_size"]):
                found[float(row["power_limit"])] = (float(row["time_per_epoch"]), float(row["average_power"]))
    return found


def epoch_cost(limit, largest_w):
    seconds, watts = limit
    return (ETA * watts + (1 - ETA) * largest_w) * seconds


def machine_file(folder, gpu):
    name = os.path.join(folder, f"{gpu}.yaml")
    if not os.path.exists(name):
        with open(name, "w", encoding="utf-8") as file:
            file.write(f"id: bench-{gpu}\ndriver: 550.54.15\ncuda_version: 12.4\nanyone_may_set: true\n"
                       f"gpus:\n  - like: {gpu}\n")
    return name


def govern(folder, gpu, name, job, mode, seconds, extra=()):
    """One run; None where it has no result."""
    curve = limits(gpu, job)
    epoch_s = curve[max(curve)][0]
    steps = max(1, round(epoch_s / STEP_S))
    tag = os.path.join(folder, f"{gpu}-{name}-{mode}")
    command = [VGPU, "run", "--machine", machine_file(folder, gpu), "--", PROGRAM, "train", "--json", "--quiet",
               "--output", tag + ".json", *extra]
    if mode == "printed":
        command += ["--step-regex", r"^step \d+/\d+ epoch"]
    silence = ["env", "-u", "WATTGOV_PROGRESS"] if mode != "told" else []
    command += ["--no-cache", "--", *silence, VLOAD, name, "--gpu", gpu.upper(), "--epochs", "100000",
                "--steps-per-epoch", str(steps)]
    environment = dict(os.environ, WATTGOV_STATE_DIR=tag + ".state")
    with open(tag + ".out", "wb") as out:
        with subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, env=environment,
                              start_new_session=True) as process:
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGTERM)  # a background job may ignore SIGINT
                process.wait(60)
    with open(tag + ".out", encoding="utf-8") as file:
        text = file.read()
    done = re.search(r"^done epochs .* time_s ([\d.]+) energy_j ([\d.]+)", text, flags=re.MULTILINE)
    if not os.path.exists(tag + ".json") or done is None:
        raise SystemExit(f"live_training.py: no result of: {' '.join(command)}\n{text[-2000:]}")
    with open(tag + ".json", encoding="utf-8") as file:
        report = json.load(file)
    return judge(report, curve, steps, float(done[1]), float(done[2]), " ".join(command))


def judge(report, curve, steps, time_s, energy_j, command):
    largest_w = max(curve)
    stage = report["stages"][0] if report["stages"] else {}
    result = {"command": command, "progress": report["progress"], "limit_w": stage.get("best"),
              "search_s": stage.get("search_s"), "probes": len(stage.get("profile", [])), "steps": report["steps"],
              "saved": report["saving"]["energy_share"], "saved_error": report["saving"]["energy_share_error"]}
    least = min(epoch_cost(limit, largest_w) for limit in curve.values())
    result["best_w"] = min(curve, key=lambda w: epoch_cost(curve[w], largest_w))
    if stage.get("best") is None or report["progress"] == "none":
        return result
    held = curve[min(curve, key=lambda w: abs(w - stage["best"]))]
    result["regret"] = epoch_cost(held, largest_w) / least - 1
    if report["steps"] and report["progress"] == "told":  # a period may be a multiple of a step
        epochs = report["steps"] / steps
        result["time_overhead"] = time_s / (epochs * held[0]) - 1
        result["energy_overhead"] = energy_j / (epochs * held[0] * held[1]) - 1
    return result


def show(value, digits=2):
    return "-" if value is None else percent(value, digits)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--job", action="append")
    parser.add_argument("--gpu", action="append", choices=("v100", "a40"))
    parser.add_argument("--mode", action="append", choices=("told", "printed", "period"))
    parser.add_argument("--parallel", type=int, default=12)
    parser.add_argument("--write", action="store_true", help="write the document although it is a shorter study")
    args = parser.parse_args()
    is_whole = not (args.job or args.gpu or args.mode) and args.seconds == 600
    table_of_jobs = jobs()
    cases = [(gpu, name, mode) for mode in args.mode or MODES for gpu in args.gpu or ("v100", "a40")
             for name in args.job or table_of_jobs if limits(gpu, table_of_jobs[name])]
    kept = {}
    with tempfile.TemporaryDirectory() as folder:
        for gpu in ("v100", "a40"):
            machine_file(folder, gpu)
        with concurrent.futures.ThreadPoolExecutor(args.parallel) as pool:
            tasks = {case: pool.submit(govern, folder, case[0], case[1], table_of_jobs[case[1]], case[2], args.seconds)
                     for case in cases}
            for case, task in tasks.items():
                kept[case] = task.result()
                print(*case, {k: v for k, v in kept[case].items() if k != "command"}, file=sys.stderr)
    report(args, kept, is_whole or args.write)


def report(args, kept, writes):
    board = Board()
    lines = []
    for mode in dict.fromkeys(case[2] for case in kept):
        of_mode = {case: found for case, found in kept.items() if case[2] == mode}
        rows = [[gpu.upper(), name, found["progress"], f"{found['best_w']:g} W",
                 "-" if found["limit_w"] is None else f"{found['limit_w']:g} W", show(found.get("regret")),
                 str(found["probes"]), "-" if found["search_s"] is None else f"{found['search_s']:.0f} s",
                 show(found.get("time_overhead")), show(found.get("energy_overhead")), show(found["saved"], 1)]
                for (gpu, name, _), found in of_mode.items()]
        lines += [f"## {mode.capitalize()}", "",
                  *table(["GPU", "job", "steps", "optimum", "found", "regret", "limits measured", "search",
                         "time overhead", "energy overhead", "saved"], rows), ""]
        bound = BOUNDS.get(mode, 0.01)
        known = [found for found in of_mode.values() if found.get("regret") is not None]
        refused = [f"{gpu.upper()} {name}" for (gpu, name, _), found in of_mode.items() if found["progress"] == "none"]
        command = f"bench/live_training.py --seconds {args.seconds:g} --mode {mode}"
        board.at_most(1, f"{mode}: worst regret of {len(known)} of {len(of_mode)} jobs",
                      max((found["regret"] for found in known), default=None), bound, command=command)
        if mode == "period":
            board.note(1, "period: jobs in whose power none was found (they are left at the largest limit)",
                       ", ".join(refused) or "none", command=command)
        else:
            for key in ("time_overhead", "energy_overhead"):
                board.at_most(1, f"{mode}: worst {key.replace('_', ' ')} of {args.seconds:g} s",
                              max((found[key] for found in known if key in found), default=None), 0.02, command=command)
    text = "\n".join(["# Live training", "",
                      f"By `tools/build && bench/live_training.py` on {machine()}, {time.strftime('%Y-%m-%d')}. Each "
                      "job runs at its default batch size on a virtual GPU with the power and speed that were measured "
                      "on the real one; objective cost:0.5. What a step costs the job itself: "
                      "`build/release/bench/train_overhead` (C), `bench/train_overhead.py` (Python). What kills leave "
                      "behind: [live-kills.md](live-kills.md). Recurring jobs: [live-jobs.md](live-jobs.md).", "", *board.table(), "", *lines])
    print(text)
    if not writes:
        return
    os.makedirs(path("build/results"), exist_ok=True)
    with open(path("build/results/live-training.json"), "w", encoding="utf-8") as file:
        json.dump({" ".join(case): found for case, found in kept.items()}, file, indent=1)
    with open(path("docs/results/live-training.md"), "w", encoding="utf-8") as file:
        file.write(text + "\n")


if __name__ == "__main__":
    main()
