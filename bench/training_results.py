#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures what wattgov reaches on recurring training jobs and writes it down.

    tools/build && bench/training_results.py           all points; under 4 minutes on 2 cores
    bench/training_results.py --peer                   runs Zeus's own simulator anew as well (minutes more)
    bench/training_results.py --only 2 --only 4        some points, to the terminal, nothing is written

Writes docs/results/training.md (every figure beside its bound, with the command that makes it),
build/results/training.json (the same for programs), docs/images/training.svg and the table of README.md.
The text of docs/results/training-tried.md, written by people, is appended to the first.

All figures come from the program itself and the CSV files; seeds start at 900001, on which nothing was
tuned. Only the standard library is used. Status 0 also when bounds are missed: the document says so.
"""
import argparse
import os
import re
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import training_limits as limits  # noqa: E402
import training_points as points  # noqa: E402
from training_plot import draw  # noqa: E402
from training_runs import PROGRAM, ROOT, Board, Runner, mean_excess, of_policy  # noqa: E402

MARKS = ("<!-- results of bench/training_results.py: begin -->", "<!-- results of bench/training_results.py: end -->")


def path(*parts):
    return os.path.join(ROOT, *parts)


def read(name):
    with open(path(name), encoding="utf-8") as file:
        return file.read()


def write(name, text):
    os.makedirs(os.path.dirname(path(name)), exist_ok=True)
    with open(path(name) + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path(name) + ".part", path(name))


def write_plot(cases):
    count = cases[0]["recurrences"]
    ours = of_policy(cases, "wattgov")
    curves = {"default": [sum(case["cumulative_default_j"][i] / case["cumulative_oracle_j"][i] - 1 for case in ours)
                          / len(ours) for i in range(count)]}
    for policy in ("zeus", "wattgov"):
        curves[policy] = [mean_excess(of_policy(cases, policy), i + 1) for i in range(count)]
    subtitle = (f"all runs so far, mean of {len(ours)} measured cases (V100 and A40, six jobs), "
                f"{cases[0]['seeds']} seeds")
    write("docs/images/training.svg", draw(curves, "Cost above the best fixed choice", subtitle))


def update_readme(cases):
    """Puts the table between the marks of README.md."""
    text = read("README.md")
    inner = "\n".join([MARKS[0], "", *points.readme_summary(cases), "", MARKS[1]])
    pattern = re.escape(MARKS[0]) + ".*?" + re.escape(MARKS[1])
    text, count = re.subn(pattern, lambda match: inner, text, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"training_results.py: README.md lacks the line {MARKS[0]} or {MARKS[1]}")
    write("README.md", text)


def measure(options, board):
    """Runs the points that are wanted; (title, lines) of each, and the cases of the plot."""
    wanted = options.only or [1, 2, 3, 4, 5, 6]
    runner = Runner(quiet=options.quiet)
    sections, cases, peer = [], None, None
    if 1 in wanted:
        lines = points.baseline(runner, board)
        peer, beside = points.peer(board, options.peer)
        sections.append(("1. The baseline is faithful", lines + ["", *beside]))
    if 2 in wanted:
        lines, cases = points.main_cases(runner, board)
        sections.append(("2. wattgov", lines + ["", *points.other_jobs(runner, board)]))
    if 3 in wanted:
        sections.append(("3. Energy saved, and the time it cost or won", points.energy(runner, board)))
    if 4 in wanted:
        lines = points.in_flight(runner, board) + [""] + points.drift(runner, board)
        sections.append(("4. Runs in flight, drift, another GPU", lines + ["", *points.warm_start(runner, board)]))
    if 5 in wanted:
        sections.append(("5. Speed and memory", limits.speed(runner, board, peer)))
    if 6 in wanted:
        sections.append(("6. Bad input", limits.bad_input(board)))
    return sections, cases


def document(sections, board, wall_s):
    goals = [figure for figure in board.figures if figure["is_goal"] and figure["at_most"] is not None]
    met = sum(figure["is_met"] for figure in goals)
    lines = ["# Recurring training jobs: what was measured", "",
             "<!-- Written by bench/training_results.py; edit that, or docs/results/training-tried.md. -->", "",
             f"`tools/build && bench/training_results.py` wrote this in {wall_s:.0f} s on {limits.machine()}. Replays of "
             "measured energy and time under the rules of Zeus's trace-driven simulator "
             "([replay.md](../internals/replay.md)). Cost is 0.5 energy + 0.5 x largest limit x time; the oracle is the "
             "fixed batch size and power limit of least expected cost; excess is the cumulative cost above the "
             "oracle's.", "", f"**{met} of {len(goals)} bounds are met.** A stretch goal is no bound; one that is missed says "
             "`not reached`.", "", *board.table()]
    for title, of_section in sections:
        lines += ["", f"## {title}", "", *of_section]
    lines += ["", "## What was tried", "", read("docs/results/training-tried.md").strip()]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, action="append", choices=range(1, 7), help="a point; repeatable")
    parser.add_argument("--peer", action="store_true", help="run Zeus's own simulator anew")
    parser.add_argument("--quiet", action="store_true", help="do not print the commands as they run")
    options = parser.parse_args()
    if not os.access(path(PROGRAM), os.X_OK):
        raise SystemExit(f"training_results.py: no program {PROGRAM}: run tools/build")
    os.makedirs(path("build", "results"), exist_ok=True)
    began, board = time.perf_counter(), Board()
    sections, cases = measure(options, board)
    wall_s = time.perf_counter() - began
    if options.only:
        for title, lines in sections:
            print(f"## {title}\n\n" + "\n".join(lines) + "\n")
        print("\n".join(board.table()))
        return
    limits.write_json(path("build", "results", "training.json"), board, cases, wall_s)
    write("docs/results/training.md", document(sections, board, wall_s))
    write_plot(cases)
    update_readme(cases)
    missed = [figure["name"] for figure in board.figures if figure["is_goal"] and not figure["is_met"]]
    print(f"docs/results/training.md: {len(missed)} bounds missed" + "".join(f"\n  {name}" for name in missed))


if __name__ == "__main__":
    main()
