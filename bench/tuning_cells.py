# SPDX-License-Identifier: MIT
"""The cells of bench/tuning_results.py: a cell is a measured grid under a limit, and the options that say so.

A family is a set of cells of one device that weigh the same. Its files come from data/ of this repository
or from a folder of data that may be used but not passed on; its README names the origins.
"""
import csv
import gzip
import os

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
FACTORS = ("1.2", "1.5", "2.5")
POLICIES = ("random", "polythrottle", "cbo", "wattgov")

# Where each outside family was published.
ORIGINS = {
    "jetson_agx_jacobson": ("github.com/emwjacobson/JetsonEfficiencyTesting", "2b4408066d65"),
    "giordano_a100": ("github.com/giordano/gpu-power-frequency-benchmarks", "2fe08d224490"),
    "darsh_llm_powercap": ("github.com/DarshEllisd/LLM-Power-Cap-Expt", "f59638c41c27"),
    "hpdc25_powercap_rtx4000ada": ("github.com/tanish111/Adaptive-GPU-Power-Capping", "a2327e120351"),
}


class Cell:
    """One grid under one limit."""

    def __init__(self, family, name, file, options):
        self.family, self.name, self.file, self.options = family, name, file, options

    def slug(self):
        return "".join(c if c.isalnum() else "_" for c in f"{self.family}_{self.name}")


def values_of(path, column, where=()):
    """The different texts of a column, in the order of the file."""
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if all(row[key] == value for key, value in where)]
    return list(dict.fromkeys(row[column] for row in rows))


def options_of(knobs, objective, limit, where=(), default=None):
    options = []
    for condition in where:
        options += ["--where", condition]
    for knob in knobs:
        options += ["--knob", knob]
    options += ["--objective", objective]
    if limit:
        options += ["--limit", limit]
    return options + (["--default", default] if default else [])


def tx2():
    file = "data/tuning/flexibo_tx2/tx2_4knob_grid.csv.gz"
    grids = [("inceptionv3", 200), ("inceptionv3", 400), ("inceptionv3", 600), ("xception", 200), ("xception", 400)]
    knobs = ["n_cores:cores", "cpu_khz:cpu_clock", "gpu_hz:gpu_clock", "emc_hz:mem_clock"]
    for model, side in grids:
        for factor in FACTORS:
            yield Cell("tx2", f"{model} {side} {factor}x", file,
                       options_of(knobs, "ina_sum_mw", f"inference_time_s<={factor}x",
                                  [f"model={model},image_px={side}"]))


def agx(folder):
    file = os.path.join(folder, "jetson_agx_jacobson/triton_mobilenet_batch_freq_power.csv")
    for factor in FACTORS:
        yield Cell("agx", f"mobilenet {factor}x", file,
                   options_of(["batch:batch", "gpu_khz:gpu_clock"], "wall_power_w / inferences_per_s",
                              f"p99_us<={factor}x", ["engine=gpu,sweep_file=batch_*"]))


def a100(folder):
    file = os.path.join(folder, "giordano_a100/freq_x_powercap.csv")
    for app in values_of(file, "app"):
        for factor in FACTORS:
            yield Cell("a100", f"{app} {factor}x", file,
                       options_of(["core_mhz:gpu_clock", "power_cap_w:power_limit"], "energy_wh",
                                  f"time_s<={factor}x", [f"app={app}"]))


def rtx(folder, gpu):
    file = os.path.join(folder, "darsh_llm_powercap/summary.csv")
    for model in values_of(file, "model", [("gpu", gpu)]):
        for factor in FACTORS:
            yield Cell(gpu.replace(" ", ""), f"{model} {factor}x", file,
                       options_of(["power_cap_w:power_limit"], "j_per_token", f"1/tokens_per_s<={factor}x",
                                  [f"gpu={gpu},model={model}"]))


def ada(folder):
    file = os.path.join(folder, "hpdc25_powercap_rtx4000ada/powercap_sweep.csv")
    for workload in values_of(file, "workload"):
        for factor in FACTORS:
            yield Cell("ada", f"workload {workload} {factor}x", file,
                       options_of(["power_cap_w:power_limit"], "energy_kj", f"time_s<={factor}x",
                                  [f"workload={workload}"]))


def training(folder=None):
    """Batch size x power limit of training jobs; of each data set the optimizer with most rows."""
    del folder
    with open(os.path.join(ROOT, "data/training_jobs.csv"), encoding="utf-8", newline="") as file:
        defaults = {row["dataset"]: row["default_batch_size"] for row in csv.DictReader(file)}
    for gpu in ("v100", "a40"):
        name = f"data/zeus/trace/summary_power_{gpu}.csv"
        with open(os.path.join(ROOT, name), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for dataset in dict.fromkeys(row["dataset"] for row in rows):
            optimizers = [row["optimizer"] for row in rows if row["dataset"] == dataset]
            optimizer = max(dict.fromkeys(optimizers), key=optimizers.count)
            sizes = {row["batch_size"] for row in rows if row["dataset"] == dataset and row["optimizer"] == optimizer}
            batch = max((size for size in sizes if int(size) <= int(defaults[dataset])), key=int)
            for factor in FACTORS:
                yield Cell("training", f"{gpu} {dataset} {factor}x", name,
                           options_of(["batch_size:train_batch", "power_limit:power_limit"],
                                      "time_per_epoch * average_power", f"time_per_epoch<={factor}x",
                                      [f"dataset={dataset},optimizer={optimizer}"], f"batch_size={batch}"))


BOARD_KNOBS = ["gpu_mhz:gpu_clock", "emc_mhz:mem_clock", "batch:batch"]


def boards(folder=None):
    """The boards fitted to PolyThrottle's points, in the settings of its figure 4."""
    del folder
    for board in ("orin_b7", "tx2_b4"):
        yield Cell("boards", f"{board} batch 1, 1.2x", f"data/tuning/boards/{board}.csv",
                   options_of(BOARD_KNOBS, "energy", "latency<=1.2x", ["batch=1"]))
        yield Cell("boards", f"{board} all batches, no limit", f"data/tuning/boards/{board}.csv",
                   options_of(BOARD_KNOBS, "energy", None))


FAMILIES = {
    "tx2": ("TX2, 4 knobs", lambda folder: tx2(), None),
    "agx": ("AGX Xavier, batch x clock", agx, "jetson_agx_jacobson"),
    "a100": ("A100, clock x cap", a100, "giordano_a100"),
    "rtx4000": ("RTX 4000, caps", lambda folder: rtx(folder, "rtx 4000"), "darsh_llm_powercap"),
    "rtx5000": ("RTX 5000, caps", lambda folder: rtx(folder, "rtx 5000"), "darsh_llm_powercap"),
    "ada": ("RTX 4000 Ada, caps", ada, "hpdc25_powercap_rtx4000ada"),
    "training": ("V100 and A40, training batch x cap", training, None),
    "boards": ("boards of the paper", boards, None),
}


def cells_of(family, folder):
    """The cells of a family; None when its data are not there."""
    _, make, needs = FAMILIES[family]
    if needs is not None and (folder is None or not os.path.isdir(os.path.join(folder, needs))):
        return None
    return list(make(folder))
