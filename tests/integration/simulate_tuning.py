#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`wattgov simulate tuning` as its users call it, on the measured grid that is shipped.

What the grid holds (rows, feasible and near-optimal configurations, the optimum, bounds relative to the
best) is computed here again from the file, and so are figures that follow from single runs.

    simulate_tuning.py PROGRAM
"""
import csv
import gzip
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.environ.get("WATTGOV_SOURCE_ROOT", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
GRID = os.path.join(ROOT, "data/tuning/flexibo_tx2/tx2_4knob_grid.csv.gz")
KNOBS = [("n_cores", "cores"), ("cpu_khz", "cpu_clock"), ("gpu_hz", "gpu_clock"), ("emc_hz", "mem_clock")]
PROGRAM = None

# What stood in the first release of the schema; other keys may be added, these stay, and what they hold.
NUMBER = (int, float)
PROMISED = {
    "schema": str,
    "grid": {"rows": int, "feasible": int, "near_optimal": int, "optimum": {}},
    "policies": [{"policy": str,
                  "first_hit": {"mean": NUMBER, "sd": NUMBER, "p95": NUMBER},
                  "returned": {"trials_mean": NUMBER, "within_5pct": NUMBER, "feasible": NUMBER,
                               "regret_mean": NUMBER},
                  "decision_ms": {"p50": NUMBER, "p99": NUMBER}}]}


def run(*arguments, **kwargs):
    kwargs.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([PROGRAM, "simulate", "tuning", *arguments], stderr=subprocess.PIPE, text=True,
                          timeout=100, check=False, **kwargs)


def knob_options(knobs=None):
    return [word for column, role in knobs or KNOBS for word in ("--knob", f"{column}:{role}")]


def tuning(*arguments, grid=GRID, where="model=inceptionv3,image_px=400", knobs=None, objective="ina_sum_mw",
           limit="inference_time_s<=1.5x", **kwargs):
    options = ["--grid", grid, "--objective", objective, *knob_options(knobs)]
    options += ["--where", where] if where else []
    options += ["--limit", limit] if limit else []
    return run(*options, *arguments, **kwargs)


def replay(*arguments, policy="random", **kwargs):
    """The parsed JSON, the times of decisions left out."""
    done = tuning("--json", "--policy", policy, *arguments, **kwargs)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    for of in result["policies"]:
        assert of["decision_ms"].keys() == {"p50", "p99"}
        of["decision_ms"] = None
    return result


def rows_of(model, image_px):
    with gzip.open(GRID, "rt", encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["model"] == model and row["image_px"] == image_px]


def key_of(row):
    return tuple(float(row[column]) for column, _ in KNOBS)


class Scratch(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)


class Grid(Scratch):
    def test_counts_and_optimum_are_those_of_the_file(self):
        for model, image_px in (("inceptionv3", "200"), ("inceptionv3", "600"), ("xception", "400")):
            for factor in (1.2, 1.5, 2.5):
                rows = rows_of(model, image_px)
                bound = factor * min(float(row["inference_time_s"]) for row in rows)
                feasible = [row for row in rows if float(row["inference_time_s"]) <= bound]
                best = min(feasible, key=lambda row: float(row["ina_sum_mw"]))
                least = float(best["ina_sum_mw"])
                near = sum(float(row["ina_sum_mw"]) <= 1.05 * least for row in feasible)
                grid = replay("--seeds", "2", where=f"model={model},image_px={image_px}",
                              limit=f"inference_time_s<={factor}x")["grid"]
                self.assertEqual((grid["rows"], grid["configurations"], grid["feasible"], grid["near_optimal"]),
                                 (768, 768, len(feasible), near))
                self.assertAlmostEqual(grid["limits"][0]["bound"], bound, places=12)
                self.assertEqual(tuple(grid["optimum"]["levels"].values()), key_of(best))
                self.assertAlmostEqual(grid["optimum"]["objective"], least, places=9)
                self.assertEqual(grid["default"]["levels"],
                                 {"n_cores": 4, "cpu_khz": 2035200, "gpu_hz": 1300500000, "emc_hz": 1866000000})

    def test_replicates_are_averaged_and_numbers_compared_as_numbers(self):
        path = self.write("grid.csv", "gpu,cap_w,tokens_per_s\na,30.0,2\na,30,4\nb,30.0,1\na,40.0,8\na,50,8\n")
        grid = replay("--seeds", "1", grid=path, where="gpu=a", knobs=[("cap_w", "power_limit")],
                      objective="cap_w", limit="1/tokens_per_s<=0.375")["grid"]
        self.assertEqual((grid["rows"], grid["configurations"], grid["feasible"]), (4, 3, 3))
        self.assertEqual(grid["optimum"]["figures"], [(1 / 2 + 1 / 4) / 2])
        self.assertIsNone(grid["differing"])
        every = tuning("--seeds", "1", "--policy", "random", where=None, limit=None)
        self.assertIn("5 rows a configuration, which differ in model, image_px: their means count.", every.stdout)
        grid = replay("--seeds", "1", grid=path, where="gpu=*,cap_w=30", knobs=[("gpu", "category")],
                      objective="tokens_per_s", limit=None)["grid"]
        self.assertEqual(grid["optimum"], {"levels": {"gpu": "b"}, "objective": 1, "figures": []})
        self.assertEqual(grid["default"]["levels"], {"gpu": "a"})

    def test_floors_kinds_and_several_limits(self):
        path = self.write("grid.csv", "b,t,e,acc\n1,1,9,0.9\n2,2,5,0.8\n4,4,3,0.7\n8,8,2,0.5\n")
        result = replay("--seeds", "3", "--limit", "acc>=0.75x", "--limit", "other:e <= 8", grid=path, where=None,
                        knobs=[("b", "batch")], objective="energy:e", limit="t<=5x")
        grid = result["grid"]
        self.assertEqual([(of["figure"], of["kind"], of["sense"], of["bound"]) for of in grid["limits"]],
                         [("t", "time", "<=", 5), ("acc", "other", ">=", 0.75 * 0.9), ("e", "other", "<=", 8)])
        self.assertEqual(grid["feasible"], 2)
        self.assertEqual(grid["optimum"]["levels"], {"b": 4})
        self.assertEqual(grid["default"]["levels"], {"b": 1})
        grid = replay("--seeds", "1", "--default", "b=8", grid=path, where=None, knobs=[("b", "batch")],
                      objective="e", limit=None)["grid"]
        self.assertEqual(grid["default"]["levels"], {"b": 8})


class Study(Scratch):
    def check_holds(self, promised, found, where):
        if isinstance(promised, dict):
            self.assertIsInstance(found, dict, where)
            for key, inner in promised.items():
                self.assertIn(key, found, where)
                self.check_holds(inner, found[key], f"{where}.{key}")
        elif isinstance(promised, list):
            self.assertIsInstance(found, list, where)
            for i, inner in enumerate(found):
                self.check_holds(promised[0], inner, f"{where}[{i}]")
        else:
            self.assertIsInstance(found, promised, where)

    def test_the_json_holds_what_its_schema_promised(self):
        done = tuning("--json", "--seeds", "2", "--max-trials", "6")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.check_holds(PROMISED, result, "result")
        self.assertEqual(result["schema"], "wattgov.simulate.tuning/1")
        self.assertEqual([of["policy"] for of in result["policies"]],
                         ["random", "polythrottle", "cbo", "wattgov"])
        for of in result["policies"]:  # shares are fractions
            self.assertTrue(0 <= of["returned"]["within_5pct"] <= of["returned"]["feasible"] <= 1)

    def test_random_follows_its_exact_law(self):
        result = replay("--seeds", "1500", limit="inference_time_s<=2.5x", where="model=xception,image_px=200")
        grid, of = result["grid"], result["policies"][0]
        k, n = grid["near_optimal"], 768
        self.assertAlmostEqual(of["first_hit"]["exact_mean"], (n + 1) / (k + 1), places=9)
        # Without replacement, the chance of no hit in j trials is C(n - k, j) / C(n, j).
        missed = [math.comb(n - k, j) / math.comb(n, j) for j in range(101)]
        mean, share = sum(missed), missed[100]
        self.assertAlmostEqual(of["first_hit"]["mean"], mean, delta=4 * of["first_hit"]["sd"] / 1500 ** .5)
        self.assertAlmostEqual(of["first_hit"]["misses"] / 1500, share, delta=4 * (share * (1 - share) / 1500) ** .5)
        self.assertEqual(of["returned"]["trials_mean"], 30)
        self.assertEqual(of["returned"]["ends"], {"budget": 1500})

    def test_sums_are_those_of_the_runs(self):
        path = self.path("runs.csv")
        result = replay("--seeds", "60", "--csv", path)
        with open(path, encoding="utf-8", newline="") as file:
            runs = list(csv.DictReader(file))
        self.assertEqual([int(of["seed"]) for of in runs], list(range(1, 61)))
        truth = {key_of(row): row for row in rows_of("inceptionv3", "400")}
        bound, least = result["grid"]["limits"][0]["bound"], result["grid"]["optimum"]["objective"]
        regrets, right, over = [], 0, 0
        for of in runs:
            row = truth[key_of(of)]
            self.assertEqual(float(of["objective"]), float(row["ina_sum_mw"]))
            is_feasible = float(row["inference_time_s"]) <= bound
            regret = float(row["ina_sum_mw"]) / least - 1
            self.assertEqual((int(of["is_feasible"]), int(of["is_within_5pct"])),
                             (is_feasible, is_feasible and regret <= 0.05))
            regrets += [regret] if is_feasible else []
            right += is_feasible and regret <= 0.05
            over += not is_feasible
        returned, hits = result["policies"][0]["returned"], [int(of["first_hit"] or 101) for of in runs]
        self.assertAlmostEqual(returned["within_5pct"], right / 60)
        self.assertAlmostEqual(returned["over_limit"], over / 60)
        self.assertAlmostEqual(returned["regret_mean"], sum(regrets) / len(regrets))
        self.assertAlmostEqual(result["policies"][0]["first_hit"]["mean"], sum(hits) / 60)
        self.assertEqual(result["policies"][0]["first_hit"]["misses"], sum(of["first_hit"] == "" for of in runs))
        z, n = 1.959963984540054, 60  # Wilson's interval
        center = (over / n + z * z / 2 / n) / (1 + z * z / n)
        half = z * math.sqrt(over / n * (1 - over / n) / n + z * z / 4 / n / n) / (1 + z * z / n)
        self.assertAlmostEqual(returned["over_limit_interval"][0], center - half if over else 0)
        self.assertAlmostEqual(returned["over_limit_interval"][1], center + half)

    def test_results_do_not_depend_on_threads_and_seeds_are_their_own(self):
        one = replay("--seeds", "12", "--processes", "1", "--fail", "crash:0.2")
        self.assertEqual(replay("--seeds", "12", "--processes", "5", "--fail", "crash:0.2"), one)
        first, second = self.path("a.csv"), self.path("b.csv")
        replay("--seeds", "4", "--csv", first)
        replay("--seeds", "2", "--seed", "3", "--csv", second)
        with open(first, encoding="utf-8") as file:
            all_runs = file.read().splitlines()
        with open(second, encoding="utf-8") as file:
            self.assertEqual(file.read().splitlines()[1:], all_runs[3:])

    def test_without_noise_a_whole_grid_gives_the_optimum(self):
        path = self.write("grid.csv", "b,t,e\n" + "".join(f"{b},{b / 10},{5 + (b - 7) ** 2}\n" for b in range(1, 13)))
        result = replay("--seeds", "20", "--noise", "0", grid=path, where=None, knobs=[("b", "batch")],
                        objective="e", limit="t<=1")
        of = result["policies"][0]
        self.assertEqual((of["returned"]["within_5pct"], of["returned"]["regret_mean"]), (1, 0))
        self.assertEqual(result["max_trials"], 12)
        self.assertEqual(of["after"]["within_5pct"][-1], 1)

    def test_one_run_is_shown_trial_by_trial(self):
        result = replay("--seeds", "1", "--trials-of", "random:7", "--max-trials", "9")
        trials = result["run"]["trials"]
        self.assertEqual([of["trial"] for of in trials], list(range(1, 10)))
        truth = {key_of(row): row for row in rows_of("inceptionv3", "400")}
        for of in trials:
            row = truth[tuple(of["configuration"]["levels"].values())]
            self.assertEqual(of["outcome"], "measured")
            self.assertLess(abs(math.log(of["objective"] / float(row["ina_sum_mw"]))), 6 * 0.02)
            self.assertLess(abs(math.log(of["figures"][0] / float(row["inference_time_s"]))), 6 * 0.02)
            self.assertNotEqual(of["why"], "")
        again = replay("--seeds", "7", "--max-trials", "9", "--csv", self.path("runs.csv"))
        with open(self.path("runs.csv"), encoding="utf-8", newline="") as file:
            last = list(csv.DictReader(file))[6]
        self.assertEqual(float(last["objective"]), result["run"]["returned"]["objective"])
        self.assertEqual(again["seeds"], 7)
        done = tuning("--policy", "random", "--seeds", "1", "--trials-of", "random:7")
        self.assertIn("trial by trial", done.stdout)

    def test_the_report_is_one_page(self):
        path = self.path("report.html")
        done = tuning("--policy", "random", "--seeds", "5", "--html", path, "--trials-of", "random:1")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, encoding="utf-8") as file:
            page = file.read()
        self.assertEqual(page.count("<svg"), 5)  # three curves, the grid wide and for a phone
        self.assertIn("wattgov simulate tuning --grid", page)
        self.assertNotIn("http://", page.replace("http://www.w3.org", ""))
        self.assertNotIn("nan", page.lower().replace("governance", ""))


class Failures(Scratch):
    GRID = "b,r,t,e\n" + "".join(f"{b},{r},{b / 10 / r + .1},{10 / b + r}\n" for b in (1, 2, 4, 8) for r in (1, 2, 4))

    def replay(self, *arguments):
        path = self.write("grid.csv", self.GRID)
        return replay("--seeds", "40", *arguments, grid=path, where=None,
                      knobs=[("b", "batch"), ("r", "replicas")], objective="e", limit="t<=2",)

    def test_memory_runs_out_where_batch_and_replicas_are_largest(self):
        result = self.replay("--fail", "oom:0.34", "--default", "r=1", "--trials-of", "random:1")
        self.assertEqual(result["grid"]["available"], 8)  # 12 less those of 32, 16, 16 and 8 (once)
        for of in result["run"]["trials"]:
            levels = of["configuration"]["levels"]
            if levels["b"] * levels["r"] >= 16:
                self.assertEqual(of["outcome"], "out_of_memory")
        self.assertEqual(result["policies"][0]["returned"]["feasible"], 1)

    def test_refused_levels_leave_and_restarts_count_as_nothing(self):
        result = self.replay("--fail", "refuse:r=2", "--fail", "restart:0.3", "--trials-of", "random:1", "--default",
                             "r=1")
        self.assertEqual(result["grid"]["available"], 8)
        trials = result["run"]["trials"]
        outcomes = [of["outcome"] for of in trials]
        self.assertIn("refused", outcomes)
        self.assertLessEqual(outcomes.count("refused"), 1)
        for of in trials:
            self.assertEqual(of["outcome"] == "refused", of["configuration"]["levels"]["r"] == 2)
        self.assertEqual(max(of["trial"] for of in trials),
                         sum(outcome not in ("refused", "discarded") for outcome in outcomes))

    def test_crashes_and_hangs_come_as_often_as_asked_for(self):
        done = tuning("--json", "--policy", "random", "--seeds", "300", "--fail", "crash:0.2", "--fail", "hang:0.1")
        returned = json.loads(done.stdout)["policies"][0]["returned"]
        sd = (0.3 * 0.7 / 9000) ** .5
        self.assertAlmostEqual(returned["failed_trials_mean"] / returned["trials_mean"], 0.3, delta=5 * sd)

    def test_hopeless_windows_are_cut(self):
        result = self.replay("--fail", "cut:1.5", "--limit", "t<=0.2", "--trials-of", "random:3", "--default", "r=1")
        cut = [of for of in result["run"]["trials"] if of["outcome"] == "cut"]
        self.assertGreater(len(cut), 0)
        for of in cut:
            self.assertIsNone(of["objective"])
            self.assertAlmostEqual(of["figures"][1], 0.3)


class Refusals(Scratch):
    def check(self, done, *parts, status=2):
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout or "", "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("wattgov simulate tuning: "), done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_options_that_say_nothing_that_can_be_done(self):
        cases = [
            (["--knob", "n_cores"], "--knob: 'n_cores'", "COLUMN:ROLE"),
            (["--knob", "image_px:gpu_clok"], "gpu_clok", "gpu_clock", "power_limit"),
            (["--knob", "n_cores:batch"], "--knob: 'n_cores' is given twice"),
            (["--knob", "nothing:batch"], "--knob 'nothing'", "nothing", "gpu_hz"),
            (["--where", "model"], "--where: 'model'", "COLUMN=VALUE"),
            (["--where", "modle=xception"], "--where 'modle'", "modle", "image_px"),
            (["--where", "model=resnet"], "--where: no row of", "model=resnet", "inceptionv3"),
            (["--where", "image_px=200"], "no row meets all 3"),
            (["--limit", "inference_time_s"], "--limit: 'inference_time_s'", "<=BOUND"),
            (["--limit", "inference_time_s<=0"], "--limit: 'inference_time_s<=0'", "above 0"),
            (["--limit", "<=1"], "--limit: '<=1'"),
            (["--limit", "inference_time<=1"], "--limit 'inference_time'", "inference_time_s"),
            (["--limit", "inference_time_s*<=1"], "--limit: 'inference_time_s*', column 18"),
            (["--limit", "inference_time_s<=1W"], "--limit 'inference_time_s<=1W'", "whose name tells another"),
            (["--limit", "inference_time_s<=0.001"], "--limit 'inference_time_s': no configuration", "0.15"),
            (["--limit", "ina_sum_mw<=1x"], "none meets all 2"),
            (["--default", "n_cores=9"], "--default: n_cores has no level 9 (1, 2, 3, 4)"),
            (["--default", "model=xception"], "--default: 'model' is not a knob"),
            (["--policy", "wattgove"], "--policy: 'wattgove'", "wattgov"),
            (["--policy", "random", "--policy", "random"], "--policy: 'random' is given twice"),
            (["--fail", "crash"], "--fail: 'crash'", "crash:SHARE"),
            (["--fail", "crash:0.5", "--fail", "hang:0.5"], "at most 0.9"),
            (["--fail", "refuse:n_cores=7"], "--fail refuse: n_cores has no level 7"),
            (["--fail", "refuse:model=7"], "--fail refuse: 'model' is not a knob"),
            (["--trials-of", "random"], "--trials-of: 'random'", "POLICY:SEED"),
            (["--noise", "-1"], "--noise", "-1"),
            (["--stop-share", "1"], "--stop-share: '1' is not a number in 0 .. 0.999"),
            (["--csv", "same", "--html", "same"], "same file 'same'"),
            (["--csv", "runs.csv.gz"], "without .gz"),
            (["--html", "-"], "/dev/stdout"),
        ]
        for words, *parts in cases:
            with self.subTest(words=words):
                self.check(tuning(*words, cwd=self.folder.name), *parts)
                self.assertEqual(os.listdir(self.folder.name), [])
        self.check(tuning(objective="ina_sum_mw -"), "--objective: 'ina_sum_mw -', column 13")
        self.check(tuning(objective="ina_mw"), "--objective 'ina_mw'", "ina_sum_mw")
        self.check(run(), "--grid")
        self.check(run("--grid", GRID), "--knob")
        self.check(run("--grid", GRID, *knob_options()), "--objective")

    def test_files_that_cannot_be_used(self):
        knobs, args = [("b", "batch")], {"where": None, "objective": "e", "limit": "t<=2x"}
        cases = [
            ("b,t,e\n", ": no rows below the header"),
            ("", "the file is empty"),
            ("b,t,e\n1,1,0\n", ":2: --objective 'e' is 0 there, expected a number above 0"),
            ("b,t,e\n1,1,-3\n", "--objective 'e' is -3"),
            ("b,t,e\n1,0,2\n", "--limit 't' is 0 there"),
            ("b,t,e\n1,,2\n", ":2: column 't'"),
            ("b,t,e\nx,1,2\n", ":2: column 'b': 'x'"),
            ("b,t,e\n0,1,2\n", ":2: column 'b': 0 cannot be a batch, expected a number above 0"),
            ("b,t,e\n1,1\n", ":2: "),
        ]
        for text, part in cases:
            with self.subTest(text=text):
                path = self.write("grid.csv", text)
                self.check(tuning("--policy", "random", grid=path, knobs=knobs, **args), "grid.csv", part, status=1)
        self.check(tuning(grid=self.path("none.csv")), "none.csv: cannot open", status=1)
        path = self.write("grid.csv", "b,r,t,e\n1,2,1,1\n2,1,1,1\n")
        self.check(tuning("--default", "b=2", grid=path, knobs=[("b", "batch"), ("r", "replicas")], where=None,
                          objective="e", limit=None), "--default: no row has b=2,r=2")
        self.check(tuning("--policy", "random", grid=self.write("wide.csv", "b,e\n" + "".join(
            f"{i},1\n" for i in range(1, 1026))), knobs=knobs, where=None, objective="e", limit=None),
            "--knob 'b': 1025 different values")

    def test_one_row_is_a_grid(self):
        path = self.write("grid.csv", "b,t,e\n4,1,2\n")
        result = replay("--seeds", "3", grid=path, where=None, knobs=[("b", "batch")], objective="e", limit="t<=2x")
        self.assertEqual((result["grid"]["near_optimal"], result["max_trials"]), (1, 1))
        self.assertEqual(result["policies"][0]["first_hit"]["mean"], 1)

    def test_a_full_disk_is_told(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = tuning("--policy", "random", "--seeds", "2", stdout=full)
        self.check(done, "No space left", status=1)
        self.check(tuning("--policy", "random", "--seeds", "2", "--html", "/dev/full"), "/dev/full", "No space",
                   status=1)

    def test_help_is_shown(self):
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--objective EXPR", done.stdout)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if not os.path.exists(PROGRAM):
        sys.exit(f"{PROGRAM} does not exist")
    unittest.main()
