#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Makes the serving profiles that wattgov ships, and says what each number rests on.

    tools/build
    bench/serving_calibrate.py            calibrates with build/release/wattgov, writes data/serving/*.yaml
    bench/serving_calibrate.py --check    calibrates, compares with what is there; status 1 when it differs
    bench/serving_calibrate.py --own      calibrates with the small model below alone; needs no program

PolyThrottle (Yan, Wang, Venkataraman, arXiv 2310.19991) prints how many requests were late or dropped, not
how long a batch took. So the scale of time is found from what it prints: T1, a batch of one, such that its
row without fine-tuning comes out under Poisson arrivals; then the work of the fine-tuning job, such that its
greedy row under even arrivals does. Everything else is its figure 2 (shape over batch sizes, clocks) or an
assumption, and marked so in the file.

Both searches are bisections on cells of 4000 runs of 30 s by `wattgov simulate serving`. Apart from it, a model
of forty lines in this file that shares no code with it does the same on 400 runs; the two are printed. Only the
standard library is used. Two minutes.
"""
import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import textwrap

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
DURATION_S, SEEDS, OWN_SEEDS, NOISE, SLOWER, MAX_BATCH = 30, 4000, 400, 0.03, 2.0, 8
FIRST_SEED = 500001
STEP_FIXED_S, UPDATE_S, CHANGE_S = 0.004, 0.010, 0.020
RUNGS = 5
GPU_MHZ = (114.75, 216.75, 318.75, 420.75, 522.75, 624.75, 726.75, 828.75, 930.75, 1032.75, 1134.75, 1236.75,
           1300.5)

# What is known of each scenario. shape: a batch's time over that of one row, fixed + per_row * rows, from the
# least latency bounds of figure 2 at batch sizes 1, 2, 4 and 8. board: the parameters that
# build/release/bench/tuning_boards prints for the same figure.
SCENARIOS = {
    "orin-efficientnet-b7": {
        "title": "EfficientNet B7 on a Jetson AGX Orin", "figure": "1, 1.7, 2.7, 4.6",
        "shape": (0.48, 0.52), "slo_s": 0.7, "rate": 8, "late_none": 0.0167, "late_greedy": 0.3791,
        "t1": (0.08, 0.18), "work": (1.0, 20.0), "rows": 64, "iterations": 10, "table": 5,
        "iterations_from": "10 iterations: the paper's", "budget_w": 60, "busy_w": 40.0, "change_j": 0.1,
        "grid": "orin_b7.csv", "memory_mhz": (204, 665.6, 2133, 3199),
        "board": {"v0": 0.923125289996728, "thr": 0.57987232082977, "ps": 0.02, "ki": 0.3734970882785002,
                  "kg": 1.4999175023411806, "km": 0.3365639337986536, "km2": 0.24921488702462372,
                  "s": 0.07739466786589896, "w": 1.1899522545138406, "a": 0.7643087462037359,
                  "t0": 0.46606820856879255, "p": 11.491503618514807}},
    "tx2-efficientnet-b4": {
        "title": "EfficientNet B4 on a Jetson TX2", "figure": "1, 1.7, 3.2, 6.0",
        "shape": (0.285, 0.715), "slo_s": 1.0, "rate": 4, "late_none": 0.035, "late_greedy": 0.16,
        "t1": (0.12, 0.30), "work": (0.5, 12.0), "rows": 8, "iterations": 10, "table": 6,
        "iterations_from": "10 iterations: assumed, as on the Orin; the paper does not say", "budget_w": 15,
        "busy_w": 10.0, "change_j": 0.03,
        "grid": "tx2_b4.csv",
        "memory_mhz": (40.8, 68, 102, 204, 408, 665.6, 800, 1062.4, 1331.2, 1600, 1866),
        "board": {"v0": 0.7831405533205557, "thr": 0.8251301646704501, "ps": 0.36176000881879417,
                  "ki": 0.3906362410966404, "kg": 1.2576512164133444, "km": 0.5847438090165239,
                  "km2": 0.5328161682678147, "s": 0.0006492300182472092, "w": 0, "a": 0.6327366513888971,
                  "t0": 0.38246632739105324, "p": 3.354670916543518}},
}


# -- The board: the same formulas as src/simulate/tuning_board.h ---------------------------------------


def board_figures(board, gpu, memory, rows):
    """Time of a batch, power while it runs, power while nothing runs; in no unit."""
    voltage = board["v0"]
    if gpu > board["thr"]:
        voltage += (1 - board["v0"]) * (gpu - board["thr"]) / (1 - board["thr"])
    compute = (rows + board["s"]) / gpu
    traffic = (board["w"] + board["a"] * rows) / memory
    time = board["t0"] * (1 + 0.3 / gpu) + (compute**board["p"] + traffic**board["p"])**(1 / board["p"])
    occupied = 0.5 + 0.5 * rows / (rows + board["s"])
    idle = board["ps"] + board["ki"] * gpu * voltage**2 + board["km"] * memory
    busy = (idle + board["kg"] * gpu * voltage**2 * min(1, compute / time) * occupied +
            board["km2"] * memory * min(1, traffic / time))
    return time, busy, idle


def check_board(scenario):
    """The parameters above must give the grid that the product ships."""
    path = os.path.join(ROOT, "data/tuning/boards", scenario["grid"])
    one_time, one_busy, _ = board_figures(scenario["board"], 1, 1, 1)
    with open(path, encoding="utf-8") as file:
        next(file)
        for line in file:
            gpu, memory, rows, time, energy = map(float, line.split(","))
            at = board_figures(scenario["board"], gpu / GPU_MHZ[-1], memory / scenario["memory_mhz"][-1], rows)
            for ours, theirs in ((at[0] / one_time, time), (at[0] * at[1] / rows / one_time / one_busy, energy)):
                if abs(ours / theirs - 1) > 1e-5:
                    sys.exit(f"{path}: {line.strip()}: the board's parameters here give {ours:.6g}: run "
                             "bench/tuning_boards and take those that it prints")


def ladder(scenario):
    """Some settings of the Pareto front of time and energy of a request, each a mean over the batch sizes 1 to
    8 of what it is against the highest clocks: the fastest, the cheapest, and between them those that are
    nearest to even steps of the logarithm of time."""
    usual = [board_figures(scenario["board"], 1, 1, rows) for rows in range(1, MAX_BATCH + 1)]
    points = []
    for gpu_mhz in GPU_MHZ:
        for memory_mhz in scenario["memory_mhz"]:
            gpu, memory = gpu_mhz / GPU_MHZ[-1], memory_mhz / scenario["memory_mhz"][-1]
            here = [board_figures(scenario["board"], gpu, memory, rows) for rows in range(1, MAX_BATCH + 1)]
            slower = [a[0] / b[0] for a, b in zip(here, usual)]
            dearer = [a[0] * a[1] / b[0] / b[1] for a, b in zip(here, usual)]
            points.append({"name": f"{gpu_mhz:.0f}/{memory_mhz:.0f}", "gpu": gpu, "memory": memory,
                           "slower": slower, "mean_slower": sum(slower) / MAX_BATCH,
                           "mean_dearer": sum(dearer) / MAX_BATCH,
                           "busy": here[3][1] / usual[3][1], "idle": here[3][2] / usual[3][1],
                           "finetune": here[-1][1] / usual[3][1]})
    points.sort(key=lambda point: point["mean_slower"])
    front = []
    for point in points:
        if not front or point["mean_dearer"] < front[-1]["mean_dearer"]:
            front.append(point)
    chosen = []
    for i in range(RUNGS):
        aim = math.log(front[-1]["mean_slower"]) * i / (RUNGS - 1)
        point = min((p for p in front if p not in chosen), key=lambda p: abs(math.log(p["mean_slower"]) - aim))
        chosen.append(point)
    return sorted(chosen, key=lambda point: point["mean_slower"])


def shares(rungs):
    """Shares of a batch's time at the highest clocks that go with the GPU clock and the memory clock: least
    squares over the rungs at batch size 8 (what a fine-tuning step is most like), by trying all in steps of 1 %.
    Also the largest relative error at any rung."""
    best = None
    for gpu in range(101):
        for memory in range(101 - gpu):
            rest = 1 - (gpu + memory) / 100
            errors = [(rest + gpu / 100 / r["gpu"] + memory / 100 / r["memory"]) / r["slower"][-1] - 1 for r in rungs]
            total = sum(error**2 for error in errors)
            if best is None or total < best[0]:
                best = (total, gpu / 100, memory / 100, max(abs(error) for error in errors))
    return best[1:]


# -- A model of the server apart from the program's ------------------------------------------------------


def own_run(scenario, t1_s, work_s, law, seed):
    """One run of 30 s, whoever waits is taken, up to 8, at once; dropped when past its deadline. Returns the
    requests, those that were late or dropped, and when the job was done. work_s of fine-tuning run beside it
    from the beginning, both at half speed while a batch runs."""
    rng = random.Random(seed)
    arrivals, at = [], 0.0
    while True:
        at += 1 / scenario["rate"] if law == "uniform" else rng.expovariate(scenario["rate"])
        if at >= DURATION_S:
            break
        arrivals.append(at)
    shape, now, first, waiting, violations, done = 1 / NOISE**2, 0.0, 0, 0, 0, None
    fixed, per_row = scenario["shape"]
    while first < len(arrivals):
        if waiting == 0 and arrivals[first] > now:
            if 0 < work_s <= arrivals[first] - now:
                done, work_s = now + work_s, 0.0
            elif work_s > 0:
                work_s -= arrivals[first] - now
            now = arrivals[first]
        last = first
        while last < len(arrivals) and arrivals[last] <= now:
            last += 1
        while first < last and arrivals[first] + scenario["slo_s"] < now:
            violations, first = violations + 1, first + 1
        rows = min(MAX_BATCH, last - first)
        waiting = last - first - rows
        if rows == 0:
            continue
        batch_s = t1_s * (fixed + per_row * rows) * rng.gammavariate(shape, 1 / shape)
        if work_s <= 0:
            end = now + batch_s
        elif work_s <= batch_s:
            done, end, work_s = now + work_s * SLOWER, now + batch_s + work_s * (SLOWER - 1), 0.0
        else:
            end, work_s = now + batch_s * SLOWER, work_s - batch_s
        violations += sum(arrivals[i] + scenario["slo_s"] < end for i in range(first, first + rows))
        first, now = first + rows, end
    return len(arrivals), violations, done


def own_cell(scenario, t1_s, work_s, law):
    runs = [own_run(scenario, t1_s, work_s, law, FIRST_SEED + i) for i in range(OWN_SEEDS)]
    done = [run[2] for run in runs if run[2] is not None]
    return sum(run[1] for run in runs) / sum(run[0] for run in runs), sum(done) / len(done) if done else None


# -- The program's model ---------------------------------------------------------------------------------


def program_cell(program, scenario, name, t1_s, work_s, law):
    """The same cell by `wattgov simulate serving`."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(profile(name, scenario, t1_s, max(work_s, 0.5)))
        file.flush()
        job = f"batch={scenario['rows']},iterations={scenario['iterations']}" if work_s > 0 else "off"
        command = [program, "simulate", "serving", "--profile", file.name, "--arrivals", f"{law}:{scenario['rate']}",
                   "--slo", str(scenario["slo_s"]), "--finetune", job, "--policy", "greedy" if work_s > 0 else "none",
                   "--batcher", "triton", "--drop", "standard", "--duration", str(DURATION_S), "--seeds", str(SEEDS),
                   "--seed", str(FIRST_SEED), "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    cell = json.loads(done.stdout)["cells"][0]
    return cell["violation_rate"], cell["finetune"]["finished_s"] if work_s > 0 else None


# -- Calibration -----------------------------------------------------------------------------------------


def bisect(value_of, bounds, target):
    low, high = bounds
    for _ in range(16):
        middle = (low + high) / 2
        if value_of(middle) < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def calibrate(scenario, cell):
    """T1 and the job's work by `cell`, which is called with T1, work and law."""
    t1_s = bisect(lambda t1: cell(t1, 0.0, "poisson")[0], scenario["t1"], scenario["late_none"])
    work_s = bisect(lambda work: cell(t1_s, work, "uniform")[0], scenario["work"], scenario["late_greedy"])
    return t1_s, work_s


def step_of(scenario, work_s):
    """Seconds a row, so that an iteration takes what was calibrated."""
    return (work_s / scenario["iterations"] - STEP_FIXED_S - UPDATE_S) / scenario["rows"]


def comment(text):
    return textwrap.wrap(" ".join(text.split()), 100, initial_indent="# ", subsequent_indent="# ")


def profile(name, scenario, t1_s, work_s):
    rungs = ladder(scenario)
    gpu_share, memory_share, error = shares(rungs)
    fixed, per_row = scenario["shape"]
    iteration_s = work_s / scenario["iterations"]
    late_none, late_greedy = 100 * scenario["late_none"], 100 * scenario["late_greedy"]
    lines = ["# SPDX-License-Identifier: MIT"] + comment(
        f"""{scenario["title"]}, as PolyThrottle (arXiv 2310.19991) lets one guess it. Made by
        bench/serving_calibrate.py; do not edit. Nobody has measured these numbers: README.md says which are
        calibrated, which are read from figures, and which are assumed.""")
    lines += [f"name: {name}", "source: >-",
              f"  PolyThrottle figure 2 (shape, clocks) and table {scenario['table']} (scale of time, fine-tuning), by",
              "  bench/serving_calibrate.py; watts, overheads and noise are assumed",
              f"max_batch: {MAX_BATCH}", ""]
    lines += comment(
        f"""One row takes {t1_s:.4f} s: calibrated so that without fine-tuning {late_none:.2f} % are late or dropped
        ({scenario["rate"]:g}/s Poisson, {scenario["slo_s"]:g} s). Shape: figure 2, where batches of 1, 2, 4, 8 take
        {scenario["figure"]}.""")
    lines += ["latency:", f"  fixed_s: {fixed * t1_s:.5f}", f"  per_row_s: {per_row * t1_s:.5f}"]
    lines += comment(
        f"""Of a fine-tuning step; batches have a table in each rung. Fitted to the rungs at batch size 8,
        {100 * error:.1f} % off at most.""")
    lines += ["latency_share:", f"  gpu_clock: {gpu_share:.2f}", f"  mem_clock: {memory_share:.2f}",
              f"noise: {NOISE}  # assumed", ""]
    lines += comment(
        f"""An iteration of {scenario["rows"]} rows takes {iteration_s:.4f} s alone: calibrated so that greedy
        fine-tuning makes {late_greedy:.2f} % late or dropped under even arrivals. {scenario["iterations_from"]}.
        What a step costs besides its rows, and the update, are assumed.""")
    lines += ["finetune:", f"  fixed_s: {STEP_FIXED_S}", f"  per_row_s: {step_of(scenario, work_s):.6f}",
              f"  update_s: {UPDATE_S}", "", "# Half the GPU each when both run: assumed.", "interference:",
              f"  inference: {SLOWER:g}", f"  finetune: {SLOWER:g}", ""]
    lines += comment(
        f"""{RUNGS} settings of the front of time and energy (means over batches of 1 to 8) of the board that was
        fitted to figure 2 (data/tuning/boards), which also gives each rung's times and powers against the highest
        clocks'. The scale is assumed: {scenario["busy_w"]:g} W of the budget of {scenario["budget_w"]} W in a
        batch of 4. Idle power: the board's terms that need no work.""")
    lines += ["clocks:", f"  change_s: {CHANGE_S}", f"  change_j: {scenario['change_j']}", "  ladder:"]
    for i, rung in enumerate(rungs):
        watts = [scenario["busy_w"] * rung[key] for key in ("busy", "idle", "finetune")]
        lines.append(f"    - name: {rung['name']}")
        fields = ("gpu_clock", "mem_clock", "busy_w", "idle_w", "finetune_w")
        lines += [f"      {key}: {value:.4g}" for key, value in zip(fields, [rung["gpu"], rung["memory"]] + watts)]
        if i > 0:
            lines.append("      latency:")
            lines += [f"        - {{batch: {rows}, s: {t1_s * (fixed + per_row * rows) * slower:.5f}}}"
                      for rows, slower in enumerate(rung["slower"], 1)]
    return "\n".join(lines) + "\n"


def explain(name, scenario, t1_s, work_s, cell, other):
    """Prints what the calibrated profile gives where nothing was fitted too."""
    print(f"{name}: a batch of one {t1_s:.4f} s, the job {work_s:.3f} s alone ({work_s / scenario['iterations']:.4f} s "
          f"an iteration of {scenario['rows']} rows)")
    if other:
        print(f"  the model in this script finds {other[0]:.4f} s and {other[1]:.3f} s")
    for law in ("uniform", "poisson"):
        none, greedy = cell(t1_s, 0.0, law), cell(t1_s, work_s, law)
        print(f"  {law:8} none {100 * none[0]:6.2f} %, greedy {100 * greedy[0]:6.2f} %, job done after "
              f"{greedy[1]:.1f} s")
    for rung in ladder(scenario):
        print(f"  {rung['name']:>10} time x {rung['mean_slower']:.3f}, energy of a request x "
              f"{rung['mean_dearer']:.3f}, busy x {rung['busy']:.3f}, idle {rung['idle']:.3f} of busy at the highest "
              "clocks")


def main():
    parser = argparse.ArgumentParser(description="Makes data/serving/*.yaml.")
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/wattgov"))
    parser.add_argument("--own", action="store_true", help="calibrate with the small model of this script")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 when the files differ")
    args = parser.parse_args()
    differ = False
    for name, scenario in SCENARIOS.items():
        check_board(scenario)

        def own(t1_s, work_s, law, scenario=scenario):
            return own_cell(scenario, t1_s, work_s, law)

        def real(t1_s, work_s, law, scenario=scenario, name=name):
            return program_cell(args.program, scenario, name, t1_s, work_s, law)

        found = calibrate(scenario, own)
        other = None
        if not args.own:
            other, found = found, calibrate(scenario, real)
        explain(name, scenario, *found, own if args.own else real, other)
        text = profile(name, scenario, *found)
        path = os.path.join(ROOT, "data/serving", f"{name}.yaml")
        if args.check:
            with open(path, encoding="utf-8") as file:
                differ |= file.read() != text
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    if differ:
        sys.exit("the shipped profiles are not those that this calibration gives")


if __name__ == "__main__":
    main()
