#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Energy of clocks that are governed online, against fixed ones: section 3 of docs/results/serving.md.

    bench/serving_energy.py             the section, to the terminal
    bench/serving_energy.py --quick     a tenth of the runs

bench/serving_results.py includes what section() makes. Only the standard library is used.
"""
import argparse
import math
import os
import random
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import serving_cells as cells  # noqa: E402

POLICY = "floor"
LOADS = (0.25, 0.5, 0.85)
REQUESTS = 1e5
RUN_S, DAY_S = 600, 1800
CAPACITY_VIOLATIONS = 0.01
# A fixed setting may violate this much more than the default clocks and still count as keeping the promise.
ALLOWED = 0.001


class Ladder:
    """Runs of one scenario without fine-tuning: one result a rung, and the governed one."""

    def __init__(self, report, scenario):
        self.report, self.scenario = report, scenario
        text = cells.Figures(scenario.profile).text
        self.rungs = re.findall(r"^    - name: (.*)$", text, flags=re.M)

    def options(self, rate, clocks, duration_s):
        return {"seeds": math.ceil(REQUESTS / rate / duration_s), "duration_s": duration_s, "job": "off",
                "extra": ("--clocks", clocks)}

    def ask(self, law, rate, clocks, duration_s=RUN_S):
        return self.report.runs.ask(self.scenario, law, (POLICY,), **self.options(rate, clocks, duration_s)).get(POLICY)

    def capacity(self):
        """The Poisson rate at which the default clocks violate 1 %, to a hundredth of the highest rate possible."""
        figures = cells.Figures(self.scenario.profile)
        highest = 8 / (figures.fixed_s + 8 * figures.per_row_s)
        low, high = 0, 100
        while high - low > 1:
            middle = (low + high) // 2
            rate = float(f"{highest * middle / 100:.4g}")
            cell = self.ask(f"poisson:{rate:g}", rate, self.rungs[0])
            if cell is None:
                return None
            if cell["violation_rate"] <= CAPACITY_VIOLATIONS:
                low = middle
            else:
                high = middle
        return highest * low / 100


def day(name, most):
    """The path of a trace of a day and a night in half an hour: counts a second whose mean goes from a tenth of
    `most` to all of it and back, along a sine; Poisson around it."""
    luck = random.Random(4)
    lines = ["count"]
    for second in range(DAY_S):
        mean = most * (0.55 - 0.45 * math.cos(2 * math.pi * second / DAY_S))
        count, left = 0, luck.expovariate(1)
        while left < mean:
            count, left = count + 1, left + luck.expovariate(1)
        lines.append(str(count))
    path = os.path.join("build/results/serving", f"day-{name}.csv")
    with open(os.path.join(cells.ROOT, path), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path, sum(map(int, lines[1:])) / DAY_S


def loads(ladder, capacity):
    """Title, law, mean rate, length of a run, whether the rate changes."""
    for share in LOADS:
        rate = float(f"{share * capacity:.3g}")
        yield f"{100 * share:.0f} %: Poisson, {rate:g}/s", f"poisson:{rate:g}", rate, RUN_S, False
    rate = float(f"{0.5 * capacity:.3g}")
    yield f"50 %: even, {rate:g}/s", f"uniform:{rate:g}", rate, RUN_S, False
    path, mean = day(ladder.scenario.name, 0.85 * capacity)
    yield f"day and night, 8 to 85 %: {mean:.2f}/s", f"trace:{path}", mean, DAY_S, True
    rate = float(f"{0.25 * capacity:.3g}")
    law = ladder.report.law(ladder.scenario, "twitter", ",by=count", rate)
    if law is not None:
        yield f"25 %: Twitter, eleven days, {rate:g}/s", law, rate, RUN_S, True


def cell_text(cell):
    return f"{cell['energy_per_request_j']:.2f} J, {cells.percent(cell['violation_rate'])}" if cell else "-"


def compare(ladder, load):
    """The row of a load; judges the governed clocks."""
    title, law, rate, duration_s, is_changing = load
    fixed = {name: ladder.ask(law, rate, name, duration_s) for name in ladder.rungs}
    governed = ladder.ask(law, rate, "governed", duration_s)
    default = fixed[ladder.rungs[0]]
    if governed is None or None in fixed.values():
        return [ladder.scenario.title, title] + ["-"] * 6
    keeping = [name for name, cell in fixed.items()
               if cell["violation_rate"] <= default["violation_rate"] + ALLOWED]
    best_name = min(keeping, key=lambda name: fixed[name]["energy_per_request_j"])
    best = fixed[best_name]
    to_best, to_default = (governed["energy_per_request_j"] / cell["energy_per_request_j"] for cell in (best, default))
    where = f"{ladder.scenario.title}, {title}"
    more = governed["violation_rate"] - default["violation_rate"]
    ladder.report.judge("3", f"{where}: J per request, governed over the best fixed clocks", to_best,
                        1.0 if is_changing else 1.05, cells.number(to_best, 3))
    ladder.report.judge("3", f"{where}: violations, governed above default, points", 100 * more, 100 * ALLOWED,
                        f"{100 * more:+.3f}")
    minutes = governed["requests"] / rate / 60
    return [ladder.scenario.title, title, cell_text(default), f"{cell_text(best)} ({best_name})", cell_text(governed),
            f"{100 * (to_best - 1):+.1f} %", f"{100 * (to_default - 1):+.1f} %",
            f"{governed['clock_changes'] / minutes:.1f}"]


def backlog(ladder, capacity):
    """Rows for default and governed clocks beside fine-tuning without end, at half the load."""
    rate = float(f"{0.5 * capacity:.3g}")
    for clocks in (ladder.rungs[0], "governed"):
        options = {**ladder.options(rate, clocks, RUN_S), "job": "backlog"}
        cell = ladder.report.runs.ask(ladder.scenario, f"poisson:{rate:g}", ("wattgov",), **options).get("wattgov")
        if cell is None:
            yield [ladder.scenario.title, clocks] + ["-"] * 5
            continue
        seconds, per_s = cell["requests"] / rate, cells.finetune(cell, "samples_per_s")
        joules = cell["energy_j"]
        yield [ladder.scenario.title, clocks, cells.percent(cell["violation_rate"]), cells.number(per_s, 1),
               f"{sum(joules.values()) / seconds:.2f}", f"{joules['inference'] / cell['requests']:.2f}",
               f"{joules['finetune'] / seconds / per_s:.3f}"]


def section(report):
    rows, beside, example, capacities = [], [], "", []
    for scenario in cells.SCENARIOS:
        ladder = Ladder(report, scenario)
        capacity = ladder.capacity()
        if capacity is None:
            rows.append([scenario.title] + ["-"] * 7)
            continue
        capacities.append(f"{scenario.title}: {capacity:.3g}/s")
        rows += [compare(ladder, load) for load in loads(ladder, capacity)]
        beside += backlog(ladder, capacity)
        if not example:
            rate = float(f"{0.5 * capacity:.3g}")
            example = report.runs.text_of(report.runs.command(scenario, f"poisson:{rate:g}", (POLICY,),
                                                              **ladder.options(rate, "governed", RUN_S)))
    header = ["scenario", "load", "default clocks", "best fixed clocks", "governed", "governed to best fixed",
              "to default", "changes a minute"]
    return ("Joules per served request, idle power counted, and violations, without fine-tuning; batching and dropping are "
            "wattgov's in all columns. Loads are shares of what the default clocks serve with 1 % violations under Poisson "
            f"arrivals ({'; '.join(capacities) or '-'}). **Best fixed** is the setting of the ladder with the least joules "
            f"among those that violate at most {100 * ALLOWED:g} points more than the default clocks: somebody who knows "
            "the load beforehand would take it. The governor knows nothing beforehand, and is told each batch's time "
            "only. A day and a night last half an hour, the rate a sine with Poisson counts around it. All columns of a row "
            "meet the same requests.\n\n"
            + cells.table(header, rows)
            + "\nA change of the clocks acts after 20 ms and costs joules (the profiles say how many); both are counted. "
              "Powers are assumed but for their ratios (`data/serving/README.md`), so percentages say more than joules."
              "\n\n" + example
            + "\nBeside a backlog of fine-tuning (`wattgov`, Poisson arrivals at 50 %) slower clocks also slow what fills "
              "the gaps. The governor looks for the least watts: each row that is tuned costs about what it did, and there "
              "are fewer of them.\n\n"
            + cells.table(["scenario", "clocks", "violations", "rows/s fine-tuned", "W, mean", "J per request",
                           "J per fine-tuned row"], beside))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("WATTGOV_SERVING_DATA"), help="folder of the traces")
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    args = parser.parse_args()
    report = cells.Report(cells.Runs(args.data, False, 0.1 if args.quick else 1.0))
    print(section(report))
    print(report.table_of_bounds())


if __name__ == "__main__":
    main()
