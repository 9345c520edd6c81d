# SPDX-License-Identifier: MIT
"""Running `wattgov simulate serving` for bench/serving_results.py and keeping what it said; intervals."""
import hashlib
import json
import math
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
PROGRAM = "build/release/wattgov"
NORMAL_95 = 1.959964
FIRST_SEED = 900001


class Scenario:
    """One of the paper's two: the profile, the promise, the load and the job, and what it prints."""

    def __init__(self, name, title, slo_s, rate, twitter_rate, job, seeds, printed):
        self.name, self.title, self.slo_s, self.rate, self.job = name, title, slo_s, rate, job
        self.twitter_rate = twitter_rate
        self.seeds, self.printed = seeds, printed
        self.profile = f"data/serving/{name}.yaml"


# twitter_rate: at which the minute of highest variance makes about as many late without fine-tuning as is printed.
# Printed: violations in percent without fine-tuning, greedy, adaptive, by arrival law (tables 5 and 6).
SCENARIOS = (
    Scenario("orin-efficientnet-b7", "Orin, EfficientNet B7", 0.7, 8, 6.5, (64, 10), 440,
             {"uniform": (0.4, 37.91, 2.08), "poisson": (1.67, 60.41, 5.42), "twitter": (3.8, 22.0, 5.8)}),
    Scenario("tx2-efficientnet-b4", "TX2, EfficientNet B4", 1.0, 4, 3.0, (8, 10), 880,
             {"uniform": (1, 16, 5.5), "poisson": (3.5, 35.4, 7.4), "twitter": (5.3, 35.0, 7.5)}),
)


class Figures:
    """What a profile's file says, as far as the document needs it."""

    def __init__(self, path):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            self.text = file.read()
        self.fixed_s, self.per_row_s = self.of("latency", "fixed_s"), self.of("latency", "per_row_s")
        self.step_fixed_s, self.step_per_row_s = self.of("finetune", "fixed_s"), self.of("finetune", "per_row_s")
        self.update_s, self.noise = self.of("finetune", "update_s"), self.of(None, "noise")

    def of(self, part, name):
        text, indent = (self.text, "") if part is None else (re.split(rf"^{part}:\n", self.text, flags=re.M)[1], "  ")
        return float(re.search(rf"^{indent}{name}: ([0-9.]+)", text, re.M).group(1))

    def work_s(self, scenario):
        """The whole job alone, an iteration as one step."""
        rows, iterations = scenario.job
        return iterations * (self.step_fixed_s + rows * self.step_per_row_s + self.update_s)

    def batch_s(self, rows):
        """At the fastest setting."""
        return self.fixed_s + self.per_row_s * rows


class Runs:
    """Results by options; asked for once, then read from the folder of raw results. What another program than
    the present one said is computed anew, unless `kept_only`."""

    def __init__(self, folder=None, kept_only=False, seeds_factor=1.0, program=PROGRAM):
        self.data, self.kept_only, self.seeds_factor, self.program = folder, kept_only, seeds_factor, program
        self.missing = 0
        self.hashes = {}
        self.folder = os.path.join(ROOT, "build/results/serving")
        os.makedirs(os.path.join(self.folder, "profiles"), exist_ok=True)

    def hash_of(self, path):
        if path not in self.hashes:
            with open(os.path.join(ROOT, path), "rb") as file:
                self.hashes[path] = hashlib.sha256(file.read()).hexdigest()
        return self.hashes[path]

    def variant(self, name, text):
        """The path of a profile made for one part of the document."""
        path = os.path.join("build/results/serving/profiles", f"{name}.yaml")
        with open(os.path.join(ROOT, path), "w", encoding="utf-8") as file:
            file.write(text)
        self.hashes.pop(path, None)
        return path

    def law(self, scenario, kind, rate=None, extra=""):
        """The text of an arrival law; None where the data is not there."""
        rate = scenario.rate if rate is None else rate
        if kind in ("uniform", "poisson"):
            return f"{kind}:{rate:g}"
        file = {"twitter": "twitter_nasa_persec/twitter_2021-08_per_second.txt.gz",
                "azure": "azure_llm_2023/AzureLLMInferenceTrace_conv.csv"}[kind]
        if self.data is None or not os.path.exists(os.path.join(self.data, "arrivals", file)):
            return None
        return f"trace:{os.path.join(self.data, 'arrivals', file)},rate={rate:g}{extra}"

    def command(self, scenario, law, policies, seeds, duration_s=30, job="job", slo_s=None, profile=None, extra=()):
        rows, iterations = scenario.job
        job = {"job": f"batch={rows},iterations={iterations}", "backlog": f"backlog,batch={rows}"}.get(job, job)
        words = [PROGRAM, "simulate", "serving", "--profile", profile or scenario.profile, "--arrivals", law, "--slo",
                 f"{slo_s or scenario.slo_s:g}", "--finetune", job]
        for policy in policies:
            words += ["--policy", policy]
        return [*words, "--duration", f"{duration_s:g}", "--seeds", str(max(2, round(seeds * self.seeds_factor))),
                "--seed", str(FIRST_SEED), *extra]

    def words_of(self, command):
        """A command wherever the data lie."""
        return [word.replace(self.data, "DIR") if self.data else word for word in command]

    def text_of(self, command):
        """A command for the document."""
        return "    " + " ".join(shlex.quote(word) for word in self.words_of(command)) + "\n"

    def cells(self, command):
        """{policy: cell} of a command of one law; {} when it failed or is not kept."""
        profile = command[command.index("--profile") + 1]
        words = self.words_of(command)
        key = hashlib.sha256(json.dumps([words, self.hash_of(profile)]).encode()).hexdigest()[:16]
        path = os.path.join(self.folder, f"{key}.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                kept = json.load(file)
            if self.kept_only or kept["program"] == self.hash_of(self.program):
                return {cell["policy"]: cell for cell in kept["result"]["cells"]}
        if self.kept_only:
            self.missing += 1
            return {}
        print(" ".join(words[1:]), file=sys.stderr)
        done = subprocess.run([self.program, *command[1:], "--json"], cwd=ROOT, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.stderr.write(done.stderr)
            self.missing += 1
            return {}
        result = json.loads(done.stdout)
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump({"command": words, "program": self.hash_of(self.program), "result": result}, file)
        os.replace(path + ".part", path)
        return {cell["policy"]: cell for cell in result["cells"]}

    def ask(self, *args, **options):
        return self.cells(self.command(*args, **options))


# -- What a cell says ---------------------------------------------------------------------------------------


def half_width(cell):
    """Of the violation rate's 95 % interval: the wider one of Wilson's and that over the runs, which knows that
    the requests of one run are not independent."""
    return max((high - low) / 2 for low, high in (cell["wilson95"], cell["seeds95"]) if low is not None)


def violations(cell):
    return cell["violation_rate"] * cell["requests"]


def percent(share, digits=2):
    return "-" if share is None else f"{100 * share:.{digits}f} %"


def rate_text(cell):
    """Violations in percent with their interval."""
    if cell is None or cell["violation_rate"] is None:
        return "-"
    return f"{100 * cell['violation_rate']:.2f} ± {100 * half_width(cell):.2f}"


def difference(cell, other):
    """Of two violation rates, with the half width of its interval as if the cells were independent (they meet the
    same arrivals, so it is narrower)."""
    return cell["violation_rate"] - other["violation_rate"], math.hypot(half_width(cell), half_width(other))


def ratio(cell, other):
    """Of two violation rates, and the upper end of its interval; None where the other one has none."""
    if other["violation_rate"] <= 0:
        return (0.0, 0.0) if cell["violation_rate"] == 0 else (math.inf, math.inf)
    low = max(1e-12, other["violation_rate"] - half_width(other))
    return cell["violation_rate"] / other["violation_rate"], (cell["violation_rate"] + half_width(cell)) / low


def finetune(cell, key):
    job = cell.get("finetune") if cell else None
    return job.get(key) if job else None


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


class Report:
    """What the parts of the document are made with; judges bounds on the way."""

    def __init__(self, runs):
        self.runs, self.bounds, self.no_data = runs, [], False

    def judge(self, point, what, value, bound, text, certain=None, is_at_most=True):
        """certain: the worst end of the value's interval."""
        def holds(number_of):
            return number_of <= bound if is_at_most else number_of >= bound

        if value is None:
            verdict = "not computed"
        else:
            verdict = "met" if holds(value) else "**missed**"
            if certain is not None and holds(value) != holds(certain):
                verdict += ", within its interval"
        self.bounds.append((point, what, text, f"{'at most' if is_at_most else 'at least'} {bound:g}", verdict))

    def law(self, scenario, kind, extra="", rate=None):
        """The text of a law; None, and noted, where its data is not there."""
        text = self.runs.law(scenario, kind, rate, extra)
        self.no_data |= text is None
        return text

    def table_of_bounds(self):
        return table(["point", "figure", "value", "bound", ""], self.bounds)
