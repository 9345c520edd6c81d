#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures how exact and how cheap windows are, on virtual GPUs, and writes it down.

    tools/build && bench/measure_results.py        some 5 minutes; keep the machine quiet meanwhile
    bench/measure_results.py --seconds 20          shorter runs, to the terminal, nothing is written

Writes docs/results/measure.md (every figure beside its bound, with the command that makes it) and
build/results/measure.json (the same for programs). Truth is the virtual GPU's own energy; what a real GPU's
sensor adds (a gain error of about 5 %) is not in these figures. Only the standard library is used. Status 0
also when bounds are missed: the document says so.
"""
import argparse
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from training_limits import machine  # noqa: E402
from training_runs import ROOT, Board, percent, table  # noqa: E402

BUILD = "build/release"
VGPU = f"{BUILD}/vgpu/wattgov-vgpu"
ACCURACY = f"{BUILD}/bench/measure_accuracy"
OVERHEAD = f"{BUILD}/bench/measure_overhead"
PROGRAM = f"{BUILD}/wattgov"
MACHINES = ("v100", "a100", "h100", "a40", "t4")
BOUNDS = {0.05: 0.05, 0.1: 0.02, 0.5: 0.005}  # mean error with a 20 ms counter
ZEUS = {0.05: "17 %", 0.1: "6 %", 0.5: "1.3 %"}  # what its users see, as the issue quotes it


def path(*parts):
    return os.path.join(ROOT, *parts)


def run(*command):
    """The JSON that a command prints, and the command as one types it."""
    text = " ".join(command)
    print(text, file=sys.stderr)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"measure_results.py: status {done.returncode} of: {text}")
    return json.loads(done.stdout), text


def accuracy(board, seconds):
    lines, kept = [], {}
    for name in MACHINES:
        found, command = run(VGPU, "run", "--machine", name, "--", ACCURACY, str(seconds))
        kept[name] = found
        rows = []
        for length in found["lengths"]:
            ours, counter = length["wattgov"], length["counter_difference"]
            rows.append([f"{length['length_s']:g} s", percent(ours["mean"]), percent(ours["median"]),
                         percent(ours["p95"]), percent(counter["mean"]), percent(counter["p95"]),
                         percent(length["covered_share"], 0), percent(length["flagged_share"], 0)])
        period = found["counter_period_s"]
        lines += [f"### {name}: counter of {1000 * period:.0f} ms, {found['reads_per_s']:.1f} reads a second", "",
                  f"`{command}`", "",
                  *table(["window", "mean", "median", "p95", "counter difference: mean", "p95", "covered", "flagged"],
                         rows), ""]
        if name == "v100":
            for length in found["lengths"]:
                if length["length_s"] in BOUNDS:
                    size = length["length_s"]
                    board.at_most(1, f"v100, mean error of {1000 * size:.0f} ms windows (Zeus: {ZEUS[size]})",
                                  length["wattgov"]["mean"], BOUNDS[size], command=command)
        else:
            missed = sum(length["unflagged_below_resolution"] for length in found["lengths"])
            board.holds(1, f"{name}, windows below resolution that are not flagged", missed == 0, str(missed), "0",
                        command)
        board.at_most(1, f"{name}, a constant 100 W for 3 s: worst of {found['constant']['windows']}",
                      found["constant"]["worst_error"], 0.005, command=command)
    return lines, kept


def overhead(board):
    found, command = run(OVERHEAD)
    rows = []
    for edges in found["edges"]:
        count = edges["devices"]
        for way in ("working", "slept", "quiet", "burst"):
            rows.append([str(count), way] + [f"{edges[way][key]:.1f} us" for key in ("median_us", "mean_us", "p99_us")])
        board.at_most(2, f"begin + end over {count} device{'s' if count > 1 else ''}, 10 windows a second (median)",
                      edges["working"]["median_us"], 5 if count == 1 else 15, "us", command)
    grown = 1024 * (found["resident_kb_after_all"] - found["resident_kb_after_1000"])
    board.at_most(2, "resident memory gained from sample 1000 to 1e6", grown, 65536, "bytes", command)
    lines = [f"`{command}`", "",
             "Ways to call: `working` and `slept` are 10 windows a second by a program that computes, or sleeps, between "
             "them; `quiet` is the first window after 4 s without any, which wakes the sampling threads; `burst` is one "
             "window after the other.", "",
             *table(["devices", "way", "median", "mean", "p99"], rows), ""]
    sampled, command = run(VGPU, "run", "--machine", "8xh100", "--", OVERHEAD, "sampling", "20")
    board.at_most(2, "8 H100 sampled at 10 Hz: share of one core", sampled["core_share"], 0.005, command=command)
    board.at_most(2, "from opening the machine to the first sample", sampled["open_to_first_sample_s"], 0.05, "s", command)
    lines += [f"`{command}`: {sampled['reads_per_device_per_s']:.1f} reads a device and second, "
              f"{sampled['resident_kb'] / 1024:.1f} MiB resident.", ""]
    return lines, {"edges": found, "sampling": sampled}


def program(board):
    """The command, where this build has it: `wattgov measure`."""
    has = subprocess.run([PROGRAM, "measure", "--help"], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         check=False).returncode == 0
    command = [VGPU, "run", "--machine", "8xh100", "--", PROGRAM, "measure", "--", "/bin/sleep", "2"]
    if not has:
        board.note(2, "resident memory of wattgov measure", "not measured: this build lacks the command")
        return
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most, until = 0, time.monotonic() + 1.5
    while time.monotonic() < until:
        most = max(most, resident_of("wattgov"))
        time.sleep(0.05)
    process.wait()
    board.at_most(2, "resident memory of wattgov measure over 8 H100", most, 8e6, "bytes", " ".join(command))


def resident_of(name):
    """The resident bytes of the program `name` that measures; 0: not there."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if os.path.basename(words[0]) == name.encode() and b"measure" in words[1:2]:
                with open(f"/proc/{pid}/statm", encoding="ascii") as file:
                    return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError):
            continue
    return 0


def document(board, curves, costs, wall_s, seconds):
    judged = [figure for figure in board.figures if figure["at_most"] is not None]
    met = sum(figure["is_met"] for figure in judged)
    return "\n".join([
        "# Windows: how exact and how cheap", "",
        "<!-- Written by bench/measure_results.py; edit that. -->", "",
        f"`tools/build && bench/measure_results.py` wrote this in {wall_s:.0f} s on {machine()}. Errors are |energy - "
        "truth| / truth; truth is the energy of the virtual GPU, whose counters and sensors tick as those of the boards "
        "do ([energy.md](../internals/energy.md)). A real sensor's gain error, about 5 %, comes on top.", "",
        f"**{met} of {len(judged)} bounds are met.**", "", *board.table(), "",
        "## 1. Error by length of the window", "",
        f"The load changes each 50 to 500 ms between about idle and about full; windows begin at random moments and "
        f"overlap, 20 edges a second, {seconds:g} s a machine. `counter difference` is what a tool gets that reads the "
        "energy counter at both edges and subtracts. `covered` is how often the truth lies within the half width that "
        "the result claims, `flagged` how often it says `below resolution`.", "", *curves,
        "## 2. Cost", "", *costs]).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=40, help="of changing load, a machine")
    options = parser.parse_args()
    subprocess.run(["ninja", "--quiet", "-C", BUILD, "bench/measure_accuracy", "bench/measure_overhead"], cwd=ROOT, check=True)
    began, board = time.perf_counter(), Board()
    costs, cost_json = overhead(board)
    program(board)
    curves, curve_json = accuracy(board, options.seconds)
    board.figures.sort(key=lambda figure: figure["point"])
    wall_s = time.perf_counter() - began
    text = document(board, curves, costs, wall_s, options.seconds)
    if options.seconds != parser.get_default("seconds"):
        print(text)
        return
    os.makedirs(path("build", "results"), exist_ok=True)
    with open(path("build", "results", "measure.json"), "w", encoding="utf-8") as file:
        json.dump({"schema": "wattgov.results.measure/1", "machine": machine(), "wall_s": wall_s,
                   "figures": board.figures, "accuracy": curve_json, "cost": cost_json}, file, indent=1)
        file.write("\n")
    with open(path("docs", "results", "measure.md.part"), "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path("docs", "results", "measure.md.part"), path("docs", "results", "measure.md"))
    missed = [figure["name"] for figure in board.figures if not figure["is_met"]]
    print(f"docs/results/measure.md: {len(missed)} bounds missed" + "".join(f"\n  {name}" for name in missed))


if __name__ == "__main__":
    main()
