#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures what the serving policies reach in the simulator and writes it down.

    tools/build && ninja -C build/release bench/serving_speed
    bench/serving_results.py --data DIR     all parts; DIR has the traces that cannot be shipped
    bench/serving_results.py --only paper   one part, to the terminal; no document is written
    bench/serving_results.py --kept         runs nothing, writes down what is kept
    bench/serving_results.py --quick        a tenth of the runs, to the terminal

DIR (or $WATTGOV_SERVING_DATA) has the folders that docs/results/serving.md names with their origins. Without it
those rows are left out, and the document says so. Raw results are kept in build/results/serving; what another
build of the program said is computed anew. The text of docs/results/serving-tried.md, written by people, is
appended when it is there.

All figures come from the program itself; seeds start at 900001. Only the standard library is used. Status 0
also when bounds are missed: the document says so.
"""
import argparse
import os
import re
import sys
import textwrap

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import serving_cells as cells  # noqa: E402
import serving_energy as energy  # noqa: E402
import serving_room as room  # noqa: E402
import serving_speed_results as speed  # noqa: E402
from serving_cells import SCENARIOS, finetune, number, percent, rate_text, table  # noqa: E402

POLICIES = ("none", "greedy", "polythrottle", "wattgov", "floor")
PARTS = ("paper", "backlog", "changes", "robust")
BURST = ",window=burstiest,by=count"
ASKED = 4


def laws_of(scenario):
    """Kind, title, options of a trace, rate. The first three stand beside the paper's; bounds hold for the first
    four."""
    rate, twitter_rate = scenario.rate, scenario.twitter_rate
    yield "uniform", "uniform", "", rate
    yield "poisson", "Poisson", "", rate
    yield "twitter", f"Twitter's minute at {twitter_rate:g}/s", BURST, twitter_rate
    yield "twitter", f"the same at {rate:g}/s", BURST, rate
    yield "twitter", "Twitter, eleven days", ",by=count", rate
    yield "azure", "Azure LLM, an hour", ",by=count", rate


BACKLOG_S, LONG_S = 600, 120


# -- 1. The paper's two scenarios ------------------------------------------------------------------------------


def judge_paper(report, where, of, standard, printed):
    none, poly = of.get("none"), of.get("polythrottle")
    for title, ours in (("wattgov", of.get("wattgov")), ("wattgov, standard drop,", standard.get("wattgov"))):
        what = f"{where}: {title} above none, points"
        if not (none and ours):
            report.judge("1a", what, None, 0.3, "-")
            continue
        gap, half = cells.difference(ours, none)
        report.judge("1a", what, 100 * gap, 0.3, f"{100 * gap:+.2f} ± {100 * half:.2f}", 100 * (gap + half))
    what = f"{where}: wattgov over polythrottle"
    if not (poly and of.get("wattgov")):
        report.judge("1b", what, None, 0.2, "-")
        return
    share, upper = cells.ratio(of["wattgov"], poly)
    floor, _ = cells.ratio(of["floor"], poly)
    text = number(share, 3) if share <= 0.2 else f"{number(share, 3)}; without fine-tuning {number(floor, 3)}"
    report.judge("1b", what, share, 0.2, text, upper)
    if printed and not where.count("Twitter"):  # that was another minute
        ours, adaptive = 100 * of["wattgov"]["violation_rate"], printed[2]
        report.judge("1b", f"{where}: wattgov over what the paper prints for adaptive", ours / adaptive, 0.2,
                     number(ours / adaptive, 3), (ours + 100 * cells.half_width(of["wattgov"])) / adaptive)


def job_text(cell):
    """When the job was done, of the runs in which it was."""
    share = finetune(cell, "finished_share")
    text = number(finetune(cell, "finished_s"), 1)
    return text if not share or share == 1 else f"{text} ({percent(share, 0)})"


def paper(report):
    rows, jobs = [], []
    for scenario in SCENARIOS:
        for place, (kind, title, extra, rate) in enumerate(laws_of(scenario)):
            law = report.law(scenario, kind, extra, rate)
            if law is None:
                continue
            seeds = scenario.seeds * scenario.rate / rate
            of = report.runs.ask(scenario, law, POLICIES, seeds)
            standard = report.runs.ask(scenario, law, ("wattgov", "floor"), seeds, extra=("--drop", "standard"))
            rows.append([scenario.title, title, *(rate_text(of.get(policy)) for policy in POLICIES),
                         rate_text(standard.get("wattgov"))])
            printed = scenario.printed[kind] if place < 3 else None
            if printed:
                rows.append(["", "*the paper*", *(f"*{value:g}*" for value in printed), "", "", ""])
            is_asked = place < ASKED
            if is_asked:
                judge_paper(report, f"{scenario.title}, {title}", of, standard, printed)
            jobs.append(finished(report, scenario, title, law, is_asked))
    return rows, jobs


def finished(report, scenario, title, law, is_asked):
    """When the job is done, in runs long enough to see it."""
    of = report.runs.ask(scenario, law, ("greedy", "polythrottle", "wattgov"), scenario.seeds / 2, duration_s=LONG_S)
    greedy, ours = of.get("greedy"), of.get("wattgov")
    row = [scenario.title, title, *(job_text(of.get(policy)) for policy in ("greedy", "polythrottle", "wattgov"))]
    where = f"{scenario.title}, {title}: job done, over greedy"
    if not ours or not finetune(greedy, "finished_s"):
        if is_asked:
            report.judge("1c", where, None, 1.5, "-")
        return [*row, "-", "-", "-"]
    value = (finetune(ours, "finished_s") or float("inf")) / finetune(greedy, "finished_s")
    earliest = room.earliest_s(cells.Figures(scenario.profile), scenario, law)
    bound_s = 1.5 * finetune(greedy, "finished_s")
    if is_asked and value > 1.5 and earliest > bound_s:
        report.bounds.append(("1c", where, number(value), "at most 1.5", f"no room: {number(earliest, 1)} s at best, "
                              f"{number(bound_s, 1)} s asked"))
    elif is_asked:
        report.judge("1c", where, value, 1.5, number(value))
    return [*row, number(value), number(bound_s, 1), number(earliest, 1)]


def backlog(report):
    rows = []
    for scenario in SCENARIOS:
        for kind, title, extra, rate in laws_of(scenario):
            law = report.law(scenario, kind, extra, rate)
            if law is None:
                continue
            of = report.runs.ask(scenario, law, POLICIES, scenario.seeds / 16, duration_s=BACKLOG_S, job="backlog")
            for policy in POLICIES:
                cell = of.get(policy)
                rows.append([scenario.title, title, policy, rate_text(cell), percent(finetune(cell, "gpu_share"), 1),
                             number(finetune(cell, "samples_per_s"), 1), number(cell["p99_s"], 3) if cell else "-"])
            if kind == "poisson":
                share = finetune(of.get("wattgov"), "gpu_share")
                report.judge("1d", f"{scenario.title}, {title}, backlog: share of the GPU", share, 0.30,
                             f"{number(share, 3)}, {rate_text(of.get('wattgov'))} % violations", is_at_most=False)
    return rows


# -- 2. SLO changes --------------------------------------------------------------------------------------------


def halves(whole, first):
    """Violations and requests of the second half: the first half of a run is, seed by seed, a run of half the
    length."""
    requests = whole["requests"] - first["requests"]
    return (cells.violations(whole) - cells.violations(first)) / requests, requests


def half_of_share(share, count):
    return cells.NORMAL_95 * (max(share * (1 - share), 1 / count) / count)**0.5


def changes(report):
    """The paper's appendix D: 250 ms for 30 s, then 700 ms; and the reverse."""
    rows, scenario = [], SCENARIOS[0]
    for rate in (2, 4, 8):
        for kind in ("uniform", "poisson"):
            law = report.law(scenario, kind, rate=rate)
            for before, after in ((0.25, 0.7), (0.7, 0.25)):
                def ask(duration_s, slo_s, extra=(), law=law):
                    return report.runs.ask(scenario, law, ("none", "wattgov"), 8 / rate * 440, duration_s=duration_s,
                                           job="backlog", slo_s=slo_s, extra=extra)

                changed = ask(60, before, ("--slo-change", f"30:{after:g}"))
                first, same, same_first = ask(30, before), ask(60, after), ask(30, after)
                for policy in ("none", "wattgov"):
                    if not all(of.get(policy) for of in (changed, first, same, same_first)):
                        rows.append([f"{rate}/s {kind}", f"{before:g} to {after:g} s", policy] + ["-"] * 5)
                        continue
                    now, count = halves(changed[policy], first[policy])
                    usual, _ = halves(same[policy], same_first[policy])
                    half = half_of_share(now, count) + half_of_share(usual, count)
                    shares = [finetune(first[policy], "gpu_share"), None]
                    if shares[0] is not None:
                        shares[1] = 2 * finetune(changed[policy], "gpu_share") - shares[0]
                    rows.append([f"{rate}/s {kind}", f"{before:g} to {after:g} s", policy, rate_text(first[policy]),
                                 f"{100 * now:.2f}", f"{100 * (now - usual):+.2f} ± {100 * half:.2f}",
                                 *(percent(share, 1) for share in shares)])
                    if policy == "wattgov" and before < after:
                        judge_change(report, f"{rate}/s {kind}, {before:g} to {after:g} s", now - usual, half, shares,
                                     rate == 8)
    return rows


def judge_change(report, where, caused, half, shares, is_paper):
    """Of changes to a longer SLO, as the paper's."""
    report.judge("2", f"{where}: violations that the change causes, points", 100 * caused, 0.3,
                 f"{100 * caused:+.2f} ± {100 * half:.2f}", 100 * (caused + half))
    if is_paper:
        report.judge("2", f"{where}: fine-tuning's share of the GPU in the first half", shares[0], 0.005,
                     percent(shares[0]))


# -- 5. Robustness ---------------------------------------------------------------------------------------------


def with_step(scenario, fixed_s):
    """The profile with steps that cost so much besides their rows; an iteration as one step takes what it took."""
    old = cells.Figures(scenario.profile)
    per_row_s = old.step_per_row_s + (old.step_fixed_s - fixed_s) / scenario.job[0]
    head, tail = old.text.split("finetune:\n", 1)
    tail = re.sub(r"^  fixed_s: .*$", f"  fixed_s: {fixed_s}", tail, count=1, flags=re.M)
    return head + "finetune:\n" + re.sub(r"^  per_row_s: .*$", f"  per_row_s: {per_row_s:.6f}", tail, count=1,
                                         flags=re.M)


def variants(report, scenario):
    """What is changed: title, profile, options."""
    text, make = cells.Figures(scenario.profile).text, report.runs.variant
    yield "as calibrated", scenario.profile, ()
    for fixed_ms in (0, 5, 15):
        yield (f"{fixed_ms} ms a step besides its rows", make(f"{scenario.name}-step-{fixed_ms}",
                                                              with_step(scenario, fixed_ms / 1000)), ())
    yield "10 % noise", make(f"{scenario.name}-noise", re.sub(r"^noise: .*$", "noise: 0.1", text, flags=re.M)), ()
    for factor in (0.7, 1.3):
        yield f"believed {100 * (factor - 1):+.0f} % wrong", scenario.profile, ("--believe", f"{factor:g}")


def robust(report):
    rows = []
    for scenario in SCENARIOS:
        for kind in ("uniform", "poisson"):
            law = report.law(scenario, kind)
            for title, profile, extra in variants(report, scenario):
                of = report.runs.ask(scenario, law, ("none", "wattgov", "floor"), scenario.seeds / 16,
                                     duration_s=BACKLOG_S, job="backlog", profile=profile, extra=extra)
                ours = of.get("wattgov")
                rows.append([scenario.title, kind, title, *(rate_text(of.get(p)) for p in ("none", "floor", "wattgov")),
                             percent(finetune(ours, "gpu_share"), 1), number(finetune(ours, "samples_per_s"), 1)])
    return rows


# -- Document --------------------------------------------------------------------------------------------------

INTRO = """# Serving and fine-tuning on one GPU

Written by `bench/serving_results.py`; do not edit. Every figure comes from `wattgov simulate serving`
(wattgov-simulate-serving(1)), seeds from {seed} on. A **violation** is a request that was answered behind its
deadline or dropped; all shares are of all requests. Intervals are of 95 %: the wider one of Wilson's, for which
requests are independent, and Student's over the runs, which knows of bursts.

No hardware was driven. The two profiles are guesses from what PolyThrottle prints (`data/serving/README.md`): its
rows without fine-tuning under Poisson arrivals and with greedy fine-tuning under even arrivals were calibrated to,
all others are not. `none`, `greedy` and `polythrottle` take whoever waits at once and drop what is past its deadline,
as the paper says; `wattgov` batches to deadlines and drops what cannot be met; **floor** is `wattgov` without
fine-tuning: what is gained by batching alone. Much of what `wattgov` gains over `none` is that.
"""

OUTSIDE = """## What cannot be shipped

The counts of Twitter state no licence: github.com/reconfigurable-ml-pipeline/web-service-datasets, commit
7404ad664360, `dataset/twitter_trace/workload.tbz2`, one count a second. Azure's trace is public (CC BY 4.0):
github.com/Azure/AzurePublicDataset, `AzureLLMInferenceTrace_conv.csv`. `--data DIR` takes them from
`DIR/arrivals/twitter_nasa_persec/twitter_2021-08_per_second.txt.gz` and
`DIR/arrivals/azure_llm_2023/AzureLLMInferenceTrace_conv.csv`.
"""

PAPER_HEADER = ["scenario", "arrivals", *POLICIES, "wattgov, standard drop"]
BACKLOG_HEADER = ["scenario", "arrivals", "policy", "violations, %", "share of the GPU", "rows/s fine-tuned", "p99, s"]
CHANGE_HEADER = ["arrivals", "SLO", "policy", "violations first half, %", "second half, %",
                 "caused by the change, points", "fine-tuning's share first half", "second half"]
ROBUST_HEADER = ["scenario", "arrivals", "what", "none, %", "floor, %", "wattgov, %", "fine-tuning's share", "rows/s"]


PAPER_TEXT = """## 1. The paper's two scenarios

Violations in percent, runs of 30 s, at least 100,000 requests a cell. *The paper* printed one run of 240 or 120
requests a cell; its `polythrottle` column is what it calls adaptive, whose rule it does not tell in full. Of
Twitter's counts that we have, the minute of highest variance falls from 250/s to 50/s; at the rate of the other rows
its first half is more than the GPU can serve, so there is a row at a lower rate too, where `none` comes near what
the paper prints.

"""

JOBS_TEXT = """
When the job was done, in seconds, in runs of {long_s} s (and in how many of them it was); 1.5 times greedy's time;
and the time in which it could be done at best beside requests that are all in time (`bench/serving_room.py`: even
arrivals, steps that cost nothing but their rows). Where that is later, the load leaves no room for what was asked.

"""

CHANGES_TEXT = """## 2. The SLO changes

Runs of 60 s with a backlog of fine-tuning; the SLO changes after 30 s: from 250 to 700 ms, as in the paper's
appendix D, and the reverse. The second half is the whole run less one of half the length (the same seeds, so the
same first half). What the change causes is the difference to the second half of runs under the later SLO all the
time. 250 ms hold a batch of two, no more: at 8/s that serves few Poisson arrivals in time, and leaves nothing. At
lower rates a short step fits before a lone request. Nobody is told of a shorter SLO in advance, so what runs then delays
the first requests under it.

"""

ROBUST_TEXT = """## 5. What is not as believed

Runs of {backlog_s} s with a backlog. What a step costs besides its rows is assumed: an iteration as one step takes
the same in all rows. Wrong beliefs: the scheduler's first fit is of times that are all too short or too long; it
learns while it serves.

"""


def example(report, *args, **options):
    return "\n" + report.runs.text_of(report.runs.command(*args, **options))


def paper_text(report):
    rows, jobs = paper(report)
    orin = SCENARIOS[0]
    header = ["scenario", "arrivals", "greedy", "polythrottle", "wattgov", "wattgov over greedy", "asked", "at best"]
    return (PAPER_TEXT + table(PAPER_HEADER, rows) + example(report, orin, "poisson:8", POLICIES, orin.seeds)
            + JOBS_TEXT.format(long_s=LONG_S) + table(header, jobs)
            + example(report, orin, "poisson:8", ("greedy", "polythrottle", "wattgov"), orin.seeds / 2,
                      duration_s=LONG_S))


def backlog_text(report):
    orin = SCENARIOS[0]
    return (f"\n### A backlog of fine-tuning\n\nRuns of {BACKLOG_S} s in which there is always more to do.\n\n"
            + table(BACKLOG_HEADER, backlog(report))
            + example(report, orin, "poisson:8", POLICIES, orin.seeds / 16, duration_s=BACKLOG_S, job="backlog"))


def changes_text(report):
    orin = SCENARIOS[0]
    return (CHANGES_TEXT + table(CHANGE_HEADER, changes(report))
            + example(report, orin, "poisson:8", ("none", "wattgov"), 440, duration_s=60, job="backlog", slo_s=0.25,
                      extra=("--slo-change", "30:0.7")))


def robust_text(report):
    orin = SCENARIOS[0]
    return (ROBUST_TEXT.format(backlog_s=BACKLOG_S) + table(ROBUST_HEADER, robust(report))
            + example(report, orin, "poisson:8", ("none", "wattgov", "floor"), orin.seeds / 16, duration_s=BACKLOG_S,
                      job="backlog", extra=("--believe", "0.7")))


def wrapped(text):
    """Paragraphs broken into lines; tables, headings and commands as they are."""
    lines = []
    for line in text.split("\n"):
        is_prose = line and line[0] not in "|# -"
        lines += textwrap.wrap(line, 118, break_long_words=False, break_on_hyphens=False) if is_prose else [line]
    return "\n".join(lines)


def document(report):
    parts = [paper_text(report), backlog_text(report), changes_text(report)]
    parts += [f"## 3. Energy\n\n{energy.section(report)}", f"## 4. Speed\n\n{speed.section(report)}"]
    parts.append(robust_text(report))
    parts.append(OUTSIDE)
    if report.runs.missing:
        parts.append(f"{report.runs.missing} commands gave no result when this was written: `-`, above.\n")
    if report.no_data:
        parts.append("The traces were not all there when this was written, so their rows are missing.\n")
    parts = [wrapped(part) for part in parts]
    head = INTRO.format(seed=cells.FIRST_SEED) + "\n## What was to be reached\n\n"
    head += report.table_of_bounds()
    return "\n".join([head, *parts])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("WATTGOV_SERVING_DATA"), help="folder of the traces")
    parser.add_argument("--only", action="append", choices=PARTS, help="computes this part and writes no document")
    parser.add_argument("--kept", action="store_true", help="runs nothing: writes down what is kept")
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs; writes no document")
    parser.add_argument("--program", default=cells.PROGRAM)
    args = parser.parse_args()
    report = cells.Report(cells.Runs(args.data, args.kept, 0.1 if args.quick else 1.0, args.program))
    if args.only:
        makers = {"paper": paper_text, "backlog": backlog_text, "changes": changes_text, "robust": robust_text}
        for part in args.only:
            print(makers[part](report))
        print(report.table_of_bounds())
        return
    text = document(report)
    if args.quick:
        print(text)
        return
    folder = os.path.join(cells.ROOT, "docs/results")
    tried = os.path.join(folder, "serving-tried.md")
    if os.path.exists(tried):
        with open(tried, encoding="utf-8") as file:
            text += "\n" + file.read()
    with open(os.path.join(folder, "serving.md.part"), "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(os.path.join(folder, "serving.md.part"), os.path.join(folder, "serving.md"))


if __name__ == "__main__":
    main()
