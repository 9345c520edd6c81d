# SPDX-License-Identifier: MIT
"""Points 5 and 6 of bench/training_results.py: speed and memory, and what bad input is answered with."""
import json
import os
import shutil
import subprocess
import tempfile

from training_runs import (PROGRAM, ROOT, TRACE, commands, excess, over_default, peak_bytes, show, table,
                           timed)

ZEUS_S = 0.57  # Zeus's own simulator per case and seed, as published for a 2-core machine
CASES_AND_SEEDS = 12 * 20


def speed(runner, board, peer):
    ours, decide = runner.training("--policy", "wattgov", "--threads", 1)
    decision = ours["decision_us"]
    of_zeus = [PROGRAM, "simulate", "training", "--trace", TRACE, "--policy", "zeus", "--json"]
    seconds, _ = timed(of_zeus, 7)
    demo_s, _ = timed(["tools/demo"])
    whole = [PROGRAM, "simulate", "training", "--trace", TRACE, "--html", "build/results/training.html"]
    peak, how = peak_bytes(whole)
    times = ZEUS_S * CASES_AND_SEEDS / seconds
    board.at_most(5, "one decision of wattgov, median", decision["p50"], 100, "us", decide)
    board.at_most(5, "zeus, 100 recurrences x 12 cases x 20 seeds, whole program", seconds,
                  ZEUS_S * CASES_AND_SEEDS / 200, "s", " ".join(of_zeus))
    board.at_most(5, "tools/demo, once built", demo_s, 20, "s", "tools/demo")
    board.at_most(5, "peak memory", peak, 64e6, "bytes", " ".join(whole))
    rows = [["one decision of wattgov, median", show(decision["p50"], "us"), "100 us"],
            ["one decision of wattgov, 99 %", show(decision["p99"], "us"), "-"],
            ["zeus: 12 cases x 20 seeds x 100 recurrences, whole program, median of 7", show(seconds, "s"),
             show(ZEUS_S * CASES_AND_SEEDS / 200, "s")],
            [f"the same, beside {ZEUS_S} s per case and seed of Zeus's own simulator", f"{times:,.0f} times faster",
             "200 times"]]
    if peer:
        every = peer["speed_all_cases"]
        rows.append(["the same, beside Zeus's own simulator run on this machine "
                     f"({every['zeus_s']:.1f} s, one thread each)", f"{every['ratio']:,.0f} times faster", "200 times"])
        board.holds(5, "zeus, beside Zeus's own simulator on this machine", every["ratio"] >= 200,
                    f"{every['ratio']:,.0f} times faster", "200 times", "bench/peers/compare_zeus.py")
    rows += [["tools/demo, once built", show(demo_s, "s"), "20 s"],
             [f"peak memory of the demo's command ({how})", show(peak, "bytes"), "64 MB"]]
    lines = ["Measured on this machine while the script ran; other work on it makes every time longer. A decision is "
             "`ask` to the choice, surveys included, and telling the outcome.", ""]
    lines += table(["what", "measured", "bound"], rows)
    return lines + ["", *commands(decide, " ".join(of_zeus), "tools/demo", " ".join(whole))]


def copy_trace(folder, name, change):
    """A copy of the tiny trace of the tests in which one file's text is changed; None: removed."""
    made = os.path.join(folder, "bad")
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(os.path.join(ROOT, "tests", "golden", "tiny_trace"), made)
    path = os.path.join(made, name)
    if change is None:
        os.remove(path)
        return
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(change(text))


RUNS, POWER, TABLE = "summary_train.csv", "summary_power_toy.csv", "jobs.csv"
TOY = ["--gpu", "toy", "--job", "toy"]
BAD_TRACES = (
    ("a missing file", RUNS, None, TOY),
    ("an empty CSV", RUNS, lambda text: "", TOY),
    ("a header without rows", POWER, lambda text: text.splitlines()[0] + "\n", TOY),
    ("a batch size without power rows", TABLE, lambda text: text.replace("profiled", "all"), TOY),
    ("a batch size without one of the limits", POWER, lambda text: text.replace("d,n,16,sgd,100,9,90\n", ""), TOY),
    ("a target never reached", TABLE, lambda text: text.replace("0.5,10,8", "0.5,3,8", 1), TOY),
    ("a target that no run lists", RUNS, lambda text: text, [*TOY, "--target", "0.123"]),
    ("a NaN in a cell", POWER, lambda text: text.replace("d,n,16,sgd,100,9,90", "d,n,16,sgd,100,nan,90"), TOY),
    ("a cell that is no number", RUNS, lambda text: text.replace(",0.5,3\n", ",0.5,three\n", 1), TOY),
)
BAD_OPTIONS = (
    ("eta outside 0..1", ["--eta", "1.5"]),
    ("eta that is NaN", ["--eta", "nan"]),
    ("zero recurrences", ["--recurrences", "0"]),
    ("an unknown GPU", ["--gpu", "h100"]),
    ("an unknown job", ["--job", "squat"]),
    ("a GPU and a job that the trace does not join", ["--gpu", "tiny", "--job", "hopeless"]),
)


def bad_input(board):
    program = os.path.join(ROOT, PROGRAM)
    rows, failures = [], []
    with tempfile.TemporaryDirectory() as folder:
        def ask(what, arguments, trace="bad"):
            outputs = ["--html", "report.html", "--csv", "curve.csv"]
            done = subprocess.run([program, "simulate", "training", "--trace", trace, *arguments, *outputs],
                                  cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
            left = [name for name in os.listdir(folder) if name != "bad"]
            is_good = (done.returncode in (1, 2) and not done.stdout and len(done.stderr.splitlines()) == 1
                       and not left)
            if not is_good:
                failures.append(what)
            shown = done.stderr.strip().replace("wattgov simulate training: ", "", 1).replace("|", "\\|")
            rows.append([what, f"`{' '.join(arguments) or '-'}`", str(done.returncode), f"`{shown}`",
                         "met" if is_good else "**missed**"])

        for what, name, change, arguments in BAD_TRACES:
            copy_trace(folder, name, change)
            ask(what, arguments)
        copy_trace(folder, TABLE, lambda text: text)
        for what, arguments in BAD_OPTIONS:
            ask(what, arguments)
        ask("a folder that is not there", [], trace="nowhere")
        ask("a table of jobs that is not there", ["--jobs", "nowhere.csv"])
    board.holds(6, "bad inputs answered with one line, status 1 or 2, and nothing written", not failures,
                f"{len(rows) - len(failures)} of {len(rows)}", f"{len(rows)} of {len(rows)}")
    lines = ["Each with `--html report.html --csv curve.csv`; `bad` is a copy of `tests/golden/tiny_trace` with one "
             "thing spoilt. The program's one line is shown without its leading `wattgov simulate training: `. "
             "tests/integration/cli.py holds these and more.", ""]
    return lines + table(["what", "options", "status", "answer", "verdict"], rows)


def machine():
    """The machine, in words: what speed figures depend on."""
    model = "unknown processor"
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        model = names[0] if names else model
    except OSError:
        pass
    return f"{len(os.sched_getaffinity(0))} processors ({model})"


def write_json(path, board, cases, wall_s):
    """The figures, and the 12 cases with their mean excess after each recurrence."""
    curves = [{"gpu": case["gpu"], "job": case["job"], "policy": case["policy"], "seeds": case["seeds"],
               "excess_over_oracle": [excess(case, i + 1) for i in range(case["recurrences"])],
               "cost_over_default": [over_default(case, i + 1) for i in range(case["recurrences"])]}
              for case in cases]
    result = {"schema": "wattgov.results.training/1", "machine": machine(), "wall_s": wall_s,
              "figures": board.figures, "cases": curves}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
