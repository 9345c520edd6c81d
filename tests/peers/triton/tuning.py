# SPDX-License-Identifier: MIT
"""`wattgov tune` on the real Triton, and perf_analyzer's opinion of what it returned.

Energy is RAPL's where this machine lets us read it. Elsewhere it follows from a stated model: IDLE_W always, and INSTANCE_W
more for each instance while it computes, by Triton's own counts. It doesn't see threads; so the processor time per request
that the server's processes used under perf_analyzer is told beside it.
"""
import glob
import json
import os
import subprocess

import perf

IDLE_W, INSTANCE_W = 20.0, 15.0

# What a model is tuned over: rows in a batch, seconds that a request may wait, instances, threads within an operator.
KNOBS = {"batch": [1, 2, 4, 8, 16], "delay": [0, 0.001, 0.004], "instances": [1, 2], "threads": [1, 2]}
ROLES = {"batch": "batch", "delay": "delay", "instances": "replicas", "threads": "cores"}


def has_rapl():
    counters = glob.glob("/sys/class/powercap/*/energy_uj")
    return bool(counters) and all(os.access(counter, os.R_OK) for counter in counters)


def energy_words():
    """Where the joules come from, for reports."""
    if has_rapl():
        return "RAPL: processors and memory"
    return f"a stated model: {IDLE_W:g} W, and {INSTANCE_W:g} W more for each instance while it computes"


def energy_arguments(rate):
    """What tells `wattgov tune` that: the share of a request in the idle watts is known, since the load is."""
    if has_rapl():
        return ["--energy", "cpu"]
    return ["--objective", f"energy:{IDLE_W:g} / {rate:g} + {INSTANCE_W:g} * service_s / batch_mean"]


def arguments(server, model, rate, p99_s, knobs=None, max_trials=0, min_window_s=1.0, max_window_s=4.0, seed=1,
              protocol="kserve_http"):
    """What `wattgov tune` is given, without the program."""
    url = {"kserve_http": server.http, "kserve_grpc": server.grpc}[protocol]
    told = ["--server", f"http://{url}", "--protocol", protocol, "--control-url", f"http://{server.http}", "--model", model,
            "--arrivals", f"poisson:{rate:g}", "--slo", f"p99<={1000 * p99_s:g}ms", *energy_arguments(rate)]
    for name, levels in (knobs or KNOBS).items():
        text = ",".join(f"{1000 * level:g}ms" if name == "delay" and level else f"{level:g}" for level in levels)
        told += ["--knob", f"{name}={text}:{ROLES[name]}:default={text.split(',')[0]}"]
    return told + ["--max-trials", str(max_trials), "--min-window", f"{min_window_s:g}s", "--max-window",
                   f"{max_window_s:g}s", "--max-windows", "4", "--min-windows", "1", "--seed", str(seed), "--precision",
                   "0.05", "--hung-after", "20s", "--warm-up", "0.5s"]


def tune(wattgov, told, timeout_s=600):
    """The result's JSON, and what was said on stderr."""
    done = subprocess.run([wattgov, "tune", *told, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False, timeout=timeout_s)
    if done.returncode != 0:
        raise RuntimeError(f"wattgov tune ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout), done.stderr


def knobs_of(settings):
    """Settings as Server.load takes them."""
    return {"batch": int(settings["batch"]), "delay_us": round(1e6 * settings["delay"]),
            "instances": int(settings["instances"]), "threads": int(settings.get("threads", 1))}


def processor_s(server):
    """Processor time of the server and its backends so far: they share a session."""
    ticks = 0
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as text:
                fields = text.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == server.process.pid:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def inferences(server, model):
    return server.ask(f"/v2/models/{model}/stats")["model_stats"][0]["inference_count"]


def confirm(cache, server, model, configurations, rate, rounds=3, interval_s=2.0):
    """perf_analyzer on each configuration in turn, and again, at Poisson arrivals: medians over the rounds. In turn,
    because machines are shared: what disturbs one round disturbs all that it compares."""
    figures = {name: [] for name in configurations}
    for _ in range(rounds):
        for name, settings in configurations.items():
            server.load(model, **knobs_of(settings))
            perf.analyze(cache, server, model, rate=rate, interval_s=0.5)  # warm
            used_s, served = processor_s(server), inferences(server, model)
            row = perf.analyze(cache, server, model, rate=rate, interval_s=interval_s)
            row["processor_s"] = (processor_s(server) - used_s) / (inferences(server, model) - served)
            figures[name].append(row)
    medians = {}
    for name, rows in figures.items():
        medians[name] = {key: sorted(row[key] for row in rows)[len(rows) // 2] for key in rows[0]}
    return medians
