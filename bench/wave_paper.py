#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What aligning pruned networks to waves saves, in the terms of the paper on the GPU tail effect (arXiv 2011.03897).

    bench/wave_paper.py build/release/wattgov [--seeds N] [--json FILE]

Networks are pruned by the schedules of Li et al. (2017) for VGG16 and ResNet56: exactly so ("published"), and with
ratios that scatter from layer to layer as a threshold on filter norms makes them ("scattered", one network a seed).
Then `wattgov wave plan` moves each width, at most by what the range allows. Times are those of the kernel model, before
and after; nothing is measured here. Prints Markdown: means over seeds with 95 % intervals (Student's t).

    nearby        no fewer parameters, each width within 0.9 to 1.1 of the pruned one
    wider         the same within 0.8 to 1.25
    operations    no fewer operations, within 0.8 to 1.25
    parameters    no more time, most parameters, within 0.8 to 1.25
    round to 8    each width to its nearest multiple of 8, as pruners do
"""
import argparse
import concurrent.futures
import json
import math
import os
import random
import statistics
import subprocess
import tempfile

GPUS = ("p6000", "a100-sxm4-80gb", "jetson-nano", "orin-agx-64gb")
NETWORKS = ("vgg16-cifar", "vgg16", "resnet56-cifar")
BATCHES = (1, 32, 128)
VARIANTS = {
    "nearby": ("--goal", "align", "--range", "0.9:1.1"),
    "wider": ("--goal", "align", "--range", "0.8:1.25"),
    "operations": ("--goal", "align", "--range", "0.8:1.25", "--keep-flops", "1"),
    "parameters": ("--goal", "parameters", "--range", "0.8:1.25"),
}
# Percent of latency saved in the paper: P6000, Jetson Nano.
PAPER = {"vgg16": ("27.2", "20.5"), "resnet56": ("9.0", "13.3 to 17.1")}
SCATTER = 0.2  # standard deviation of a kept share's logarithm


class Network:
    def __init__(self, program, name):
        self.program, self.name = program, name
        self.widths = self.plan("p6000", 1, None, "--range", "1:1")["widths"]

    def plan(self, gpu, batch, pruned, *options):
        command = [self.program, "wave", "plan", self.name, "--gpu", gpu, "--batch", str(batch), "--precision", "fp32",
                   "--align", "4", "--json", *options]
        if pruned is not None:
            command += ["--pruned", pruned]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")
        return json.loads(done.stdout)

    def kept_shares(self):
        """The shares of filters that Li et al. keep: VGG-16-pruned-A, ResNet-56-pruned-B."""
        shares = {}
        convolutions = [width for width in self.widths if width["layers"][0].startswith("features")]
        for i, width in enumerate(convolutions, 1):
            shares[width["name"]] = 0.5 if i == 1 or i >= 8 else 1.0
        for width in self.widths:
            layer = width["layers"][0]
            if self.name.startswith("resnet56") and len(width["layers"]) == 1 and layer.endswith("conv1"):
                stage, block = int(layer[5]), int(layer.split(".")[1])
                skipped = {1: (7, 8), 2: (0, 7, 8), 3: (0, 8)}[stage]  # layers 16, 18, 20, 34, 36, 38, 54
                shares[width["name"]] = 1.0 if block in skipped else {1: 0.4, 2: 0.7, 3: 0.9}[stage]
        return shares

    def pruned(self, seed):
        """Channels of each width; seed None: as published."""
        rng = random.Random(f"{self.name} {seed}")
        shares = self.kept_shares()
        channels = {}
        for width in self.widths:
            share = shares.get(width["name"], 1.0)
            if seed is not None and width["name"] in shares:
                # A threshold on norms spares no layer whole: those that Li et al. keep lose some filters, too.
                share = min(1.0, min(share, 0.9) * math.exp(rng.gauss(0, SCATTER)))
            channels[width["name"]] = max(1, round(share * width["original"]))
        return channels


def rounded(channels, originals):
    return {name: min(originals[name], max(8, 8 * math.floor(count / 8 + 0.5))) for name, count in channels.items()}


def one_case(network, gpu, batch, seed, folder):
    """What each variant changes, as shares: {variant: {"time", "parameters", "operations"}}."""
    channels = network.pruned(seed)
    path = os.path.join(folder, f"{network.name}-{gpu}-{batch}-{seed}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(channels, file)
    out = {}
    for variant, options in VARIANTS.items():
        plan = network.plan(gpu, batch, path, *options)
        before, after = plan["before"], plan["after"]
        out[variant] = {"time": after["time_s"] / before["time_s"] - 1,
                        "parameters": after["parameters"] / before["parameters"] - 1,
                        "operations": after["flops"] / before["flops"] - 1, "is_optimal": plan["is_optimal"]}
    originals = {width["name"]: width["original"] for width in network.widths}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(rounded(channels, originals), file)
    after = network.plan(gpu, batch, path, "--range", "1:1")["before"]
    out["round to 8"] = {"time": after["time_s"] / before["time_s"] - 1,
                         "parameters": after["parameters"] / before["parameters"] - 1,
                         "operations": after["flops"] / before["flops"] - 1, "is_optimal": True}
    os.unlink(path)
    return out


def interval(values):
    """Mean and half the 95 % interval, percent."""
    mean = 100 * statistics.fmean(values)
    if len(values) < 2:
        return f"{mean:+.1f}"
    # Student's t, 97.5 %, by Cornish-Fisher from the normal quantile.
    z, n = 1.959964, len(values) - 1
    t = z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
    return f"{mean:+.1f} ± {100 * t * statistics.stdev(values) / math.sqrt(len(values)):.1f}"


def table(results, seeds):
    print("| network | pruned | GPU | batch | nearby | wider | operations | round to 8 (parameters) "
          "| parameters gained at no more time |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (name, gpu, batch), cases in results.items():
        for kind, chosen in (("published", cases[:1]), (f"scattered, {seeds} seeds", cases[1:])):
            def of(variant, key):
                return interval([case[variant][key] for case in chosen])
            print(f"| {name} | {kind} | {gpu} | {batch} | {of('nearby', 'time')} | {of('wider', 'time')} "
                  f"| {of('operations', 'time')} | {of('round to 8', 'time')} ({of('round to 8', 'parameters')}) "
                  f"| {of('parameters', 'parameters')} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--json", help="write all numbers")
    args = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name in NETWORKS:
            network = Network(args.program, name)
            for gpu in GPUS:
                for batch in BATCHES:
                    seeds = [None, *range(args.seeds)]
                    results[name, gpu, batch] = list(pool.map(
                        lambda seed, key=(network, gpu, batch): one_case(*key, seed, folder), seeds))
    proven = [case[variant]["is_optimal"] for cases in results.values() for case in cases for variant in case]
    print("Change of predicted time in percent, mean and 95 % interval.\n")
    table(results, args.seeds)
    print(f"\nProven optimal: {sum(proven)} of {len(proven)} plans.")
    for name, (p6000, nano) in PAPER.items():
        print(f"The paper, {name}: -{p6000} % on P6000, -{nano} % on Jetson Nano.")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump([{"network": name, "gpu": gpu, "batch": batch, "cases": cases}
                       for (name, gpu, batch), cases in results.items()], file)


if __name__ == "__main__":
    main()
