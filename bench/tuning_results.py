#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures what `wattgov tune`'s policies reach on measured grids and writes it down.

    tools/build && ninja -C build/release bench/tuning_boards bench/tuning_decision
    bench/tuning_results.py --data DIR              all parts; DIR has the grids that cannot be shipped
    bench/tuning_results.py --only tx2              one part, to the terminal; no document is written
    bench/tuning_results.py --kept                  runs nothing, writes down what is kept
    bench/tuning_results.py --fresh wattgov         forgets what was kept of a policy that has changed

DIR (or $WATTGOV_TUNING_DATA) has the folders that docs/results/tuning.md names with their origins. Without
it those parts are left out, and the document says so. Raw results are kept in build/results/tuning, so a
part is computed once; docs/results/tuning.md is written from them. The text of docs/results/tuning-tried.md,
written by people, is appended when it is there.

All figures come from the program itself; seeds start at 900001. Only the standard library is used. Status 0
also when bounds are missed: the document says so.
"""
import argparse
import itertools
import os
import shlex
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tuning_cells as cells  # noqa: E402
import tuning_load as load  # noqa: E402
import tuning_sums as sums  # noqa: E402

SEEDS, FIRST_SEED = 100, 900001
MEASURED = ("tx2", "agx", "a100", "rtx4000", "rtx5000", "ada")
PARTS = MEASURED + ("training", "boards", "noise", "failures", "xi", "load")
AFTER = (3, 4, 6, 8, 10, 12, 16, 20, 30)

# What the plan asks of wattgov: trials to the first hit; trials, share right and share over the limit of
# what is returned, validation included.
BOUNDS = {"tx2": (8.5, 15, 0.81, 0.02), "agx": (2.2, 7.5, 0.97, 0.01), "a100": (2.5, 8.5, 0.97, 0.01),
          "rtx4000": (3.3, 7.5, 0.97, 0.01), "rtx5000": (3.3, 7.5, 0.97, 0.01), "ada": (2.4, 7.5, 0.97, 0.01),
          "training": (6, None, 0.85, None)}
# What independent prototypes of the baselines needed to the first hit (random: its exact law), 128 seeds.
KNOWN = {"tx2": (273.4, 51.4, 17.68), "agx": (19.83, 8.24, 4.09), "a100": (3.18, 2.96, 2.89),
         "rtx4000": (5.27, 4.47, 4.12), "rtx5000": (4.34, 3.93, 4.03), "ada": (4.23, 3.62, 2.30)}
# Figure 4 of PolyThrottle: trials of its search, saving (%), for the model of the fitted board (FP16, FP32).
PAPER = {"orin_b7 batch 1, 1.2x": ((8.1, 8.3), (13.2, 13.6)),
         "orin_b7 all batches, no limit": ((11.2, 11.7), (10.2, 10.4)),
         "tx2_b4 batch 1, 1.2x": ((8.2, 8.1), (14.8, 14.3)),
         "tx2_b4 all batches, no limit": ((12.8, 12.9), (19.0, 18.9))}
# Figure 2: what the cheapest point printed costs less than the default (highest clocks, batch 1).
PAPER_TOTAL = {"orin_b7": 1 - 1.845 / 3.173, "tx2_b4": 1 - 0.570 / 0.857}
FAILURES = ["--fail", "crash:0.1", "--fail", "hang:0.05", "--fail", "oom:0.33", "--fail", "restart:0.05"]
REFUSED = {"tx2": "refuse:emc_hz=1331200000", "agx": "refuse:gpu_khz=905250", "a100": "refuse:core_mhz=1200"}


def path(*parts):
    return os.path.join(cells.ROOT, *parts)


def percent(share, digits=1):
    return "-" if share is None else f"{100 * share:.{digits}f} %"


def with_half(pair, digits=1):
    mean, half = pair
    return "-" if mean is None else f"{mean:.{digits}f} ± {half:.{digits}f}"


def share_text(share):
    return "-" if share[0] is None else f"{100 * share[0]:.1f} ({100 * share[1]:.1f} to {100 * share[2]:.1f})"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


class Report:
    """The parts of the document, and the bounds that were judged on the way."""

    def __init__(self, runs, folder):
        self.runs, self.folder = runs, folder
        self.bounds, self.missing = [], []

    def family(self, name, policies=cells.POLICIES, extra=()):
        """The cells and their results by policy; None without the data."""
        of = cells.cells_of(name, self.folder)
        if of is None:
            if name not in self.missing:
                self.missing.append(name)
            return None, None
        return of, self.runs.family(of, policies, extra)

    def judge(self, point, what, value, bound, is_at_most=True, text=None):
        is_met = value is not None and (value <= bound if is_at_most else value >= bound)
        verdict = "not computed" if value is None else "met" if is_met else "**missed**"
        text = None if value is None else text
        self.bounds.append((str(point), what, text or (f"{value:.2f}" if value is not None else "-"),
                            f"{'at most' if is_at_most else 'at least'} {bound:g}", verdict))


# -- Parts ------------------------------------------------------------------------------------------------

def baseline_rows(report, name, results):
    random, poly, cbo = KNOWN[name]
    exact = sums.exact_hit(results["random"])
    rows = []
    for policy, known, value in (("random, exact", random, exact), ("polythrottle", poly, sums.first_hit(
            results["polythrottle"])[0]), ("cbo", cbo, sums.first_hit(results["cbo"])[0])):
        ratio = value / known if value else None
        rows.append([cells.FAMILIES[name][0], policy, f"{known:.2f}", f"{value:.2f}" if value else "-",
                     f"{ratio:.2f}" if ratio else "-"])
        report.judge(2, f"{cells.FAMILIES[name][0]}: {policy} over what is known of it, either way",
                     max(ratio, 1 / ratio) if ratio else None, 1.1)
    return rows


def family_rows(name, results, policies=cells.POLICIES):
    rows = []
    for policy in policies:
        of = results[policy]
        hit = sums.first_hit(of)
        exact = sums.exact_hit(of) if policy == "random" else None
        misses = [result["policy"]["first_hit"]["misses"] / result["seeds"] for result in of if result is not None]
        rows.append([cells.FAMILIES[name][0], policy,
                     with_half(hit, 2) + (f" (exact {exact:.1f})" if exact else ""),
                     percent(sum(misses) / len(misses), 0) if misses else "-", with_half(sums.trials(of)),
                     share_text(sums.pooled_share(of, "within_5pct")),
                     share_text(sums.pooled_share(of, "over_limit")), percent(sums.regret(of)[0]),
                     percent(sums.saving(of)[0])])
    return rows


FAMILY_HEADER = ["grids", "policy", "first hit, trials", "none", "returned after", "right, % (95 %)",
                 "over the limit, % (95 %)", "regret", "saved"]


def judge_family(report, name, results):
    hit, count, right, over = BOUNDS[name]
    title = cells.FAMILIES[name][0]
    ours = results["wattgov"]
    report.judge(2, f"{title}: first hit", sums.first_hit(ours)[0], hit)
    if count is not None:
        report.judge(2, f"{title}: trials until returned", sums.trials(ours)[0], count)
    share = sums.pooled_share(ours, "within_5pct")[0]
    report.judge(2, f"{title}: returned right", share, right, False, percent(share))
    if over is not None:
        share = sums.pooled_share(ours, "over_limit")[0]
        report.judge(2, f"{title}: returned over the limit", share, over, True, percent(share))


def measured(report):
    rows, known, budget, details = [], [], [], []
    for name in MEASURED:
        of, results = report.family(name)
        if of is None:
            continue
        rows += family_rows(name, results)
        known += baseline_rows(report, name, results)
        judge_family(report, name, results)
        budget += [[cells.FAMILIES[name][0], policy, *(percent(sums.after(results[policy], n), 0) for n in AFTER)]
                   for policy in cells.POLICIES]
        details.append(cell_table(name, of, results))
    return rows, known, budget, details


def cell_table(name, of, results):
    rows = []
    for index, cell in enumerate(of):
        ours, cbo = results["wattgov"][index], results["cbo"][index]
        row = [cell.name]
        grid = next((results[policy][index]["grid"] for policy in results if results[policy][index]), None)
        row += [f"{grid['feasible']} / {grid['near_optimal']}" if grid else "-", percent(grid["saving"]) if grid else "-"]
        for result in (results["polythrottle"][index], cbo, ours):
            row.append(f"{result['policy']['first_hit']['mean']:.1f}" if result else "-")
        if ours:
            hit, back = ours["policy"]["first_hit"], ours["policy"]["returned"]
            row += [f"{hit['sd']:.1f}; {hit['p95']:.0f}", f"{back['trials_mean']:.1f}", percent(back["within_5pct"], 0),
                    percent(back["over_limit"], 0), percent(back["regret_mean"])]
        else:
            row += ["-"] * 5
        rows.append(row)
    header = ["cell", "feasible / near", "optimum saves", "polythrottle", "cbo", "wattgov", "its sd; p95",
              "returned after", "right", "over", "regret"]
    return f"### {cells.FAMILIES[name][0]}\n\n" + table(header, rows)


def training(report):
    of, results = report.family("training")
    judge_family(report, "training", results)
    shares = [(result["policy"]["returned"]["within_5pct"] if result else None, cell.name)
              for result, cell in zip(results["wattgov"], of)]
    share, cell = (None, "-") if any(share is None for share, _ in shares) else min(shares)
    report.judge(2, f"V100 and A40, training batch x cap: right in the worst cell ({cell})", share, 0.5, False,
                 percent(share, 0))
    return family_rows("training", results), cell_table("training", of, results)


def boards(report):
    of, results = report.family("boards")
    rows, savings = [], []
    for index, cell in enumerate(of):
        printed, saved = PAPER[cell.name]
        row = [cell.name]
        for policy in cells.POLICIES:
            result = results[policy][index]
            row.append(with_half(sums.first_hit([result])) if result else "-")
        poly = results["polythrottle"][index]
        value = poly["policy"]["first_hit"]["mean"] if poly else None
        ratio = value / (sum(printed) / 2) if value else None
        row += [" and ".join(f"{p:g}" for p in printed), f"{ratio:.2f}" if ratio else "-"]
        rows.append(row)
        report.judge(1, f"{cell.name}: polythrottle over what the paper prints, either way",
                     max(ratio, 1 / ratio) if ratio else None, 1.5)
        grid = next((results[policy][index]["grid"] for policy in results if results[policy][index]), None)
        ours = results["wattgov"][index]
        back = ours["policy"]["returned"]["saving_mean"] if ours else None
        is_alone = "batch 1" in cell.name
        paper = " and ".join(f"{s:g} %" for s in saved) if is_alone else percent(PAPER_TOTAL[cell.name.split()[0]])
        savings.append([cell.name, paper, percent(grid["saving"]) if grid else "-", percent(back),
                        percent(poly["policy"]["returned"]["saving_mean"]) if poly else "-",
                        percent(ours["policy"]["returned"]["over_limit"]) if ours else "-"])
    return rows, savings


def published_xi(report):
    """The published search with and without its xi: part of what is gained over it is no more than that."""
    rows = []
    for name in ("tx2", "agx"):
        for title, extra in (("0.1, as published", ()), ("0", ("--xi", "0"))):
            _, results = report.family(name, ("polythrottle",), extra)
            if results is not None:
                of = results["polythrottle"]
                rows.append([cells.FAMILIES[name][0], title, with_half(sums.first_hit(of), 2),
                             share_text(sums.pooled_share(of, "within_5pct")),
                             share_text(sums.pooled_share(of, "over_limit"))])
    return rows


def noise(report):
    """5 % noise, and told so, beside 2 %."""
    rows = []
    for name in ("tx2", "agx"):
        if report.family(name, ("wattgov",))[0] is None:
            continue
        for title, extra in (("2 %", ()), ("5 %, told 5 %", ("--noise", "0.05")),
                             ("5 %, told 2 %", ("--noise", "0.05", "--told-noise", "0.02"))):
            _, results = report.family(name, ("wattgov",), extra)
            ours = results["wattgov"]
            over = sums.pooled_share(ours, "over_limit")
            rows.append([cells.FAMILIES[name][0], title, with_half(sums.first_hit(ours), 2), with_half(sums.trials(ours)),
                         share_text(sums.pooled_share(ours, "within_5pct")), share_text(over)])
            if title == "2 %":
                usual = over
            elif title == "5 %, told 5 %":
                report.judge(2, f"{cells.FAMILIES[name][0]}: over the limit at 5 % noise, told so, against the upper end "
                             "of the interval at 2 %", over[0], usual[2] or 0, True, percent(over[0]))
    return rows


def failures(report):
    """10 % crash, 5 % hang, 5 % meet a restart, a third is out of memory, a level is refused."""
    rows = []
    for name, refusal in REFUSED.items():
        of, results = report.family(name, ("wattgov", "cbo"))
        if of is None:
            continue
        extra = (*FAILURES, "--fail", refusal, "--max-trials", "60")
        _, hurt = report.family(name, ("wattgov", "cbo"), extra)
        possible = [result is not sums.IMPOSSIBLE for result in hurt["wattgov"]]
        for policy in ("cbo", "wattgov"):
            results[policy] = list(itertools.compress(results[policy], possible))
            hurt[policy] = list(itertools.compress(hurt[policy], possible))
            usual, now = sums.trials(results[policy])[0], sums.trials(hurt[policy])
            right = sums.pooled_share(hurt[policy], "within_10pct")
            failed = sums.pooled_mean(hurt[policy], lambda of: of["returned"]["failed_trials_mean"], lambda of: (0, 0))[0]
            rows.append([f"{cells.FAMILIES[name][0]} ({sum(possible)} of {len(of)} cells)", policy,
                         "-" if usual is None else f"{usual:.1f}",
                         with_half(now), "-" if failed is None else f"{failed:.1f}",
                         share_text(sums.pooled_share(results[policy], "within_10pct")),
                         share_text(right), share_text(sums.pooled_share(hurt[policy], "feasible"))])
            if policy == "wattgov":
                ratio = now[0] / usual if usual and now[0] else None
                report.judge(5, f"{cells.FAMILIES[name][0]}: trials with failures over those without", ratio, 2)
                share = sums.pooled_share(hurt[policy], "feasible")[0]
                report.judge(5, f"{cells.FAMILIES[name][0]}: feasible with failures", share, 0.97, False, percent(share))
                without = sums.pooled_share(results[policy], "within_10pct")[0]
                lost = right[0] - without if right[0] is not None and without is not None else None
                report.judge(5, f"{cells.FAMILIES[name][0]}: feasible and within 10 %, failures less without them",
                             lost, -0.05, False, "-" if lost is None else f"{100 * lost:+.1f} points")
    return rows


# -- Document -----------------------------------------------------------------------------------------------

INTRO = """# Tuning on measured grids

Written by `bench/tuning_results.py`; do not edit. Every figure comes from `wattgov simulate tuning`
(wattgov-simulate-tuning(1)), {seeds} seeds a cell from {first_seed} on, 2 % noise on each measured figure
unless said, by the rules of that command: every measurement is a trial, validation included; **first hit** is the
first trial of a feasible configuration within 5 % of the constrained optimum, counted in a run that does not stop (a
run without one in 100 trials or the whole grid counts one more: **none** is their share); **returned** is what the
policy's own rule returns, at the latest after 30 trials; **right** means feasible and within 5 %. Limits are 1.2, 1.5
and 2.5 times the least latency of a grid, pooled: all cells of a family weigh the same. Intervals are of 95 %.

These are replays of published measurements with simulated noise: no hardware was driven. Constants of the policies
were chosen on these very grids (other seeds), so `wattgov`'s figures here are on the optimistic side. The grids of
one family are not independent of each other.
"""

OUTSIDE = """## What cannot be shipped

The grids of the Jetson TX2 (`data/tuning/flexibo_tx2`), the training traces (`data/zeus`) and the fitted boards
(`data/tuning/boards`) are in this repository, and so are all their figures above. The figures of the other families
need data whose sources state no licence. They are public:

{origins}

`bench/tuning_results.py --data DIR` takes them from `DIR`, compiled into one CSV file each with the columns that the
commands name.
"""


def example_of(report, name, policy="wattgov", extra=()):
    of = cells.cells_of(name, report.folder)
    if not of:
        return ""
    command = report.runs.command(of[0], policy, extra)
    command = [word.replace(report.folder or "\0", "DIR") for word in command]
    return "    " + " ".join(shlex.quote(word) for word in command) + "\n"


def document(report):
    rows, known, budget, details = measured(report)
    board_rows, savings = boards(report)
    training_rows, training_cells = training(report)
    noise_rows, failure_rows, xi_rows = noise(report), failures(report), published_xi(report)
    load_rows = [] if report.runs.kept_only and not load.is_kept() else load.kept_rows(report)
    parts = [INTRO.format(seeds=report.runs.seeds, first_seed=report.runs.first_seed)]
    parts.append("## What was to be reached\n\n" + table(["point", "figure", "value", "bound", ""], report.bounds))
    parts.append("## 1. The published search where its paper says what it needs\n\n"
                 "Trials to the first hit on the boards that are fitted to the paper's points (`data/tuning/boards`), "
                 "beside the trials that the paper prints for that model (FP16, FP32). Its search began with five "
                 "random trials, as here.\n\n"
                 + table(["board", *cells.POLICIES, "the paper prints", "polythrottle over it"], board_rows)
                 + "\nWhat is saved against the default (highest clocks, batch 1) at the same constraint. The paper's "
                 "figures of batch 1 are those of its figure 4; with all batches, where its figure 4 compares with the "
                 "highest clocks at the same batch, the cheapest point of its figure 2.\n\n"
                 + table(["board", "the paper", "optimum here", "wattgov", "polythrottle", "wattgov over the limit"],
                         savings) + "\n" + example_of(report, "boards", "polythrottle"))
    parts.append("## 2. Measured grids\n\n" + table(FAMILY_HEADER, rows + training_rows)
                 + "\nsaved: against the default configuration, of what was returned and is feasible. The cost of the "
                 "TX2 grids is a proxy, no energy.\n\n" + example_of(report, "tx2"))
    parts.append("### The baselines\n\nFirst hits beside those of an independent prototype of each (128 seeds).\n\n"
                 + table(["grids", "policy", "prototype", "here", "ratio"], known))
    parts.append("An improvement counts for the published search only beyond xi times the default's cost; without "
                 "that it finds more.\n\n"
                 + table(["grids", "xi of polythrottle", "first hit", "right, %", "over the limit, %"], xi_rows))
    parts.append("### Noise\n\n" + table(["grids", "noise", "first hit", "returned after", "right, %",
                                          "over the limit, %"], noise_rows) + "\n"
                 + example_of(report, "tx2", extra=("--noise", "0.05")))
    parts.append("## 3. Regret and feasibility beside the trials used\n\nShare that would be right if it had to be "
                 "returned after so many trials.\n\n" + table(["grids", "policy", *(str(n) for n in AFTER)], budget))
    parts += [*details, training_cells]
    parts.append("## 4. Time and memory\n\n" + table(["configurations", "with 40 observations, median", "largest",
                                                      "with 0 to 40, median", "99 %",
                                                      "memory more than `random`", "whole process"], load_rows)
                 + "\nProcessor time of one thread from an answer to the next question; the very first one works the "
                 "boards out. With 40 observations: `ninja -C build/release bench/tuning_decision && "
                 "build/release/bench/tuning_decision`; on a machine that others use, too, it differs by half from run "
                 "to run.\n")
    parts.append("## 5. When things go wrong\n\n10 % of the measurements crash, 5 % hang, 5 % meet a restart of the "
                 "server (thrown away), a third of the configurations is out of memory, one level is refused; the "
                 "budget is 60 trials. The optimum is that of what works; cells where nothing that works meets the limit "
                 "are left out.\n\n"
                 + table(["grids", "policy", "trials without", "with failures", "of these failed",
                          "within 10 % without, %", "with failures, %", "feasible, %"], failure_rows) + "\n"
                 + example_of(report, "tx2", extra=(*FAILURES, "--fail", REFUSED["tx2"], "--max-trials", "60")))
    origins = "\n".join(f"- `{folder}`: {url}, commit {commit}" for folder, (url, commit) in cells.ORIGINS.items())
    parts.append(OUTSIDE.format(origins=origins))
    if report.runs.missing:
        parts.append(f"{report.runs.missing} results were not computed yet when this was written: `-`, above.\n")
    if report.missing:
        parts.append("Not there when this was written, so without figures above: "
                     + ", ".join(cells.FAMILIES[name][0] for name in report.missing) + ".\n")
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("WATTGOV_TUNING_DATA"), help="folder of the outside grids")
    parser.add_argument("--only", action="append", choices=PARTS, help="computes this part and writes no document")
    parser.add_argument("--fresh", action="append", default=[], choices=cells.POLICIES)
    parser.add_argument("--kept", action="store_true", help="runs nothing: writes down what is kept")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    args = parser.parse_args()
    report = Report(sums.Runs(args.seeds, FIRST_SEED, args.fresh, args.kept), args.data)
    if args.only:
        for part in args.only:
            done = {"noise": noise, "failures": failures, "boards": boards, "training": training,
                    "load": load.rows, "xi": published_xi}.get(part)
            print(done(report) if done else "\n".join(" | ".join(row) for row in family_rows(
                part, report.family(part)[1])))
        print(table(["point", "figure", "value", "bound", ""], report.bounds))
        return
    text = document(report)
    tried = path("docs/results/tuning-tried.md")
    if os.path.exists(tried):
        with open(tried, encoding="utf-8") as file:
            text += "\n" + file.read()
    os.makedirs(path("docs/results"), exist_ok=True)
    with open(path("docs/results/tuning.md.part"), "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path("docs/results/tuning.md.part"), path("docs/results/tuning.md"))


if __name__ == "__main__":
    main()
