#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tunes four real ONNX models on the real Triton server, live, and writes down what came out.

    tools/build && bench/tune_triton.py            some 12 minutes; keep the machine quiet meanwhile
    bench/tune_triton.py --part kills              only that part anew; the other is kept from the last run
    bench/tune_triton.py --model voice --rounds 1  one model, to the terminal, nothing is written

Each model is tuned by `wattgov tune` over batch, delay, instances and threads (60 configurations) under a limit on p99 at
Poisson arrivals; then perf_analyzer measures default and returned configuration in turn, at the same arrivals. In the
second part the server is killed again and again while it is tuned, and started anew by whoever watches it. Writes
docs/results/tuning-live.md and build/results/tuning-live.json. The first run installs Triton and perf_analyzer into
build/peers (tests/peers/triton/install.py).
"""
import argparse
import json
import os
import shlex
import sys
import threading
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench"))
sys.path.insert(0, os.path.join(ROOT, "tests/peers/triton"))
import install  # noqa: E402
import tuning  # noqa: E402
from server import Server, skip  # noqa: E402
from training_limits import machine  # noqa: E402
from training_runs import table  # noqa: E402

# Requests per second, some third of what the default configuration serves on two cores, and the limit on p99.
LOADS = {"classifier": (60, 0.1), "detector": (60, 0.1), "magika": (15, 0.3), "voice": (300, 0.05)}
WHAT = {"classifier": "RapidOCR's text direction, 586 kB", "detector": "RapidOCR's text detector at 64 x 64, 4.7 MB",
        "magika": "file types from 2048 bytes, 3.2 MB", "voice": "Silero's voice detector, 1.3 MB"}


def milliseconds(value):
    return "not measured" if value is None else f"{1000 * value:.3g} ms"


def joules(value):
    return "not measured" if value is None else f"{value:.3g} J"


def words(settings):
    return f"batch {settings['batch']:g}, delay {1000 * settings['delay']:g} ms, instances {settings['instances']:g}, " \
           f"threads {settings['threads']:g}"


def measure(program, cache, model, rounds, trials, seed):
    rate, limit_s = LOADS[model]
    with Server(cache, [model]) as server:
        told = tuning.arguments(server, model, rate, limit_s, max_trials=trials, max_window_s=6, seed=seed)
        begin = time.monotonic()
        result, said = tuning.tune(program, told, 1200)
        tuned_s = time.monotonic() - begin
        configurations = {"default": result["default"]["settings"], "returned": result["returned"]["settings"]}
        medians = tuning.confirm(cache, server, model, configurations, rate, rounds, 2.0)
        command = shlex.join(["wattgov", "tune", *told]).replace(server.http, "HOST:PORT").replace(server.grpc, "HOST:PORT")
    return {"model": model, "rate": rate, "limit_s": limit_s, "result": result, "said": said, "time_s": tuned_s,
            "perf": medians, "command": command}


def kill_while_tuning(program, cache, protocol, every_s, trials=10, model="voice"):
    """The server dies by SIGKILL every `every_s` seconds while it is tuned."""
    rate, limit_s = LOADS[model]
    done = threading.Event()
    kills = []

    def killer(server):
        while not done.wait(every_s):
            kills.append(time.monotonic() - begin)
            server.kill()

    with Server(cache, [model], supervise=True) as server:
        told = tuning.arguments(server, model, rate, limit_s, max_trials=trials, max_window_s=2, protocol=protocol)
        begin = time.monotonic()
        thread = threading.Thread(target=killer, args=(server,))
        thread.start()
        try:
            result, said = tuning.tune(program, told, 600)
        finally:
            done.set()
            thread.join()
    return {"protocol": protocol, "every_s": every_s, "kills": kills, "time_s": time.monotonic() - begin, "result": result,
            "said": said}


def kill_row(run):
    result = run["result"]
    measured = sum(trial["outcome"] == "measured" for trial in result["trials"])
    failed = len(result["trials"]) - measured
    return [run["protocol"], f"{run['every_s']} s", str(len(run["kills"])), str(measured), str(failed), f"{run['time_s']:.0f} s",
            words(result["returned"]["settings"]), "yes" if result["is_feasible"] else "no", result["why"]]


def row_of(run):
    result, perf = run["result"], run["perf"]
    default, returned = result["default"], result["returned"]
    return [run["model"], f"{run['rate']} /s", milliseconds(run["limit_s"]), str(len(result["trials"])), f"{run['time_s']:.0f} s",
            words(returned["settings"]), joules(default["objective"]), joules(returned["objective"]),
            "unknown" if result["saving"] is None else f"{100 * result['saving']:.0f} %",
            milliseconds((returned["limits"] or [None])[0]), milliseconds(perf["returned"]["p99_s"])]


def perf_rows(run):
    rows = []
    for name in ("default", "returned"):
        perf, ours = run["perf"][name], run["result"][name]
        trials = [trial for trial in run["result"]["trials"]
                  if trial["settings"] == ours["settings"] and trial["outcome"] == "measured"]
        p50_s, served = (sorted(trial["figures"][name] for trial in trials)[len(trials) // 2] if trials else None
                         for name in ("p50_s", "requests_per_s"))
        rows.append([run["model"], name, words(ours["settings"]), milliseconds(p50_s), milliseconds(perf["p50_s"]),
                     f"{p50_s / perf['p50_s']:.2f}" if trials else "-", milliseconds((ours["limits"] or [None])[0]), milliseconds(perf["p99_s"]),
                     f"{served:.0f} /s" if trials else "-", f"{perf['requests_per_s']:.0f} /s", milliseconds(perf["processor_s"])])
    return rows


def document(told):
    runs, trials, rounds, spent_s = told["runs"], told["trials"], told["rounds"], told["spent_s"]
    text = ["# `wattgov tune` on the real Triton", "", "<!-- Written by bench/tune_triton.py; edit that. -->", "",
            f"`tools/build && bench/tune_triton.py --trials {trials} --rounds {rounds}` wrote this in {spent_s:.0f} s on {machine()}, "
            f"load average {told['load']:.0f} (server, load generator and whatever else ran). Triton 2.51 (nvidia-pytriton "
            "0.7.0, its server run directly) with onnxruntime 1.32 in the python backend, on the CPU; each model over batch "
            "1, 2, 4, 8, 16, delay 0, 1, 4 ms, instances 1, 2 and threads 1, 2: 60 configurations, loaded through the "
            f"repository API. At most {trials} trials; Poisson arrivals; default is batch 1, no delay, one instance, one thread.",
            "", f"Energy: {tuning.energy_words()}.", "", "## What was found", ""]
    text += table(["model", "load", "p99 limit", "trials", "time", "returned", "default costs", "returned costs", "saving",
                   "p99 of returned", "p99, perf_analyzer"], [row_of(run) for run in runs])
    text += ["", "Costs are joules per request, idle power included. Not measured: the window was cut, since the limit seemed out of reach, or the trial failed.", "", "## perf_analyzer's opinion", "",
             f"perf_analyzer 2.60 at the same arrivals, default and returned in turn, {rounds} times three windows of 2 s, medians. Processor "
             "time is what the server's processes used per request meanwhile: no model, but the load of this machine's "
             "neighbours is in it (caches, clocks).", ""]
    text += table(["model", "configuration", "", "p50 of tune", "p50 of perf_analyzer", "ratio", "p99 of tune",
                   "p99 of perf_analyzer", "served in tune", "served in perf_analyzer", "processor time"],
                  [row for run in runs for row in perf_rows(run)])
    if told.get("kills"):
        text += ["", "## The server is killed meanwhile", "",
                 "voice, kill -9 at a fixed interval, started anew at once by whoever watches it; 10 trials. A trial that the "
                 "server did not survive counts as crashed; only the default is tried once more.", ""]
        text += table(["protocol", "killed every", "kills", "trials measured", "crashed", "time", "returned", "feasible", "why it ended"],
                      [kill_row(run) for run in told["kills"]])
    text += ["", "## The commands", "",
             "After each the model has its own configuration again.", ""]
    for run in runs:
        text += [f"{run['model']}: {WHAT[run['model']]}. Why it ended: {run['result']['why']}", "", "```", run["command"], "```", ""]
    return "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wattgov", default="build/release/wattgov")
    parser.add_argument("--cache", default="build/peers")
    parser.add_argument("--model", action="append", choices=sorted(LOADS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", choices=("tune", "kills"), help="the other one is kept from the last run")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    begin = time.monotonic()
    told = {}
    if arguments.part:
        with open("build/results/tuning-live.json", encoding="utf-8") as file:
            told = json.load(file)
    try:
        install.perf_analyzer(arguments.cache)
        if arguments.part != "kills":
            runs = [measure(arguments.wattgov, arguments.cache, model, arguments.rounds, arguments.trials, arguments.seed)
                    for model in arguments.model or LOADS]
            told.update({"runs": runs, "trials": arguments.trials, "rounds": arguments.rounds,
                         "spent_s": time.monotonic() - begin, "load": os.getloadavg()[2]})
        if arguments.part != "tune" and not arguments.model:
            told["kills"] = [kill_while_tuning(arguments.wattgov, arguments.cache, protocol, every_s)
                             for protocol, every_s in (("kserve_http", 15), ("kserve_grpc", 8))]
    except install.Unavailable as unavailable:
        skip(str(unavailable))
    if arguments.model:
        print(document(told))
        return
    os.makedirs("build/results", exist_ok=True)
    with open("build/results/tuning-live.json", "w", encoding="utf-8") as file:
        json.dump(told, file, indent=1)  # first: what was measured is not lost when words fail
    with open("docs/results/tuning-live.md", "w", encoding="utf-8") as file:
        file.write(document(told))


if __name__ == "__main__":
    main()
