#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Accuracy at equal predicted latency, with and without wave alignment, of networks that are really trained.

    bench/wave_train.py BUILD_FOLDER [--digits digits.csv.gz] [--gpu GPU] [--seeds N] [--json FILE]

A small convolutional network learns scikit-learn's handwritten digits (1,797 images of 8x8 pixels; the file is taken
from an installed scikit-learn unless it is given) from 400 images under noise. Its filters are pruned by a threshold on
L1 norms over the whole network, which leaves irregular widths. From there:

    pruned    these widths, from the trained network's filters
    aligned   `wattgov wave plan --goal align`: no fewer parameters, less time
    grown     --goal grow: no width smaller, no more time; wattgov.wave.apply widens the pruned network
    refitted  --goal parameters: no more time, most parameters, from the trained network's filters

All are retrained alike and tested on the other 1,397 images under the same noise. Latencies are predicted; nothing is
measured on a GPU. Needs Debian's python3-torch; prints Markdown.
"""
import argparse
import gzip
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

import numpy
import torch
from torch import nn

BATCH = 256  # at which latencies are predicted
TRAIN, NOISE = 400, 0.35
EPOCHS, RETRAIN = 15, 8
KEPT = 0.4  # share of all filters
WIDTHS = (32, 48, 96, 96)
KINDS = ("pruned", "aligned", "grown", "refitted")


def load_digits(path):
    if path is None:
        found = importlib.util.find_spec("sklearn")
        if found is None:
            sys.exit("scikit-learn is not installed: give its file digits.csv.gz with --digits")
        path = os.path.join(os.path.dirname(found.origin), "datasets/data/digits.csv.gz")
    with gzip.open(path) as file:
        rows = numpy.loadtxt(file, delimiter=",")
    return torch.tensor(rows[:, :64] / 16, dtype=torch.float32).reshape(-1, 1, 8, 8), torch.tensor(rows[:, 64]).long()


def make_network():
    a, b, c, d = WIDTHS
    return nn.Sequential(nn.Conv2d(1, a, 3, padding=1, bias=False), nn.BatchNorm2d(a), nn.ReLU(),
                         nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(b, c, 3, padding=1, bias=False), nn.BatchNorm2d(c), nn.ReLU(),
                         nn.Conv2d(c, d, 3, padding=1, bias=False), nn.BatchNorm2d(d), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(d, 10))


def train(model, images, labels, epochs, seed, rate):
    torch.manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    model.train()
    steps = epochs * math.ceil(len(images) / 50)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(epochs):
        for chosen in torch.randperm(len(images)).split(50):
            noisy = images[chosen] + NOISE * torch.randn(images[chosen].shape)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(noisy), labels[chosen]).backward()
            optimizer.step()
            schedule.step()
    return model


def accuracy(model, images, labels, seed):
    generator = torch.Generator().manual_seed(seed)
    model.eval()
    with torch.no_grad():
        right = sum(int((model(images + NOISE * torch.randn(images.shape, generator=generator)).argmax(1) == labels)
                        .sum()) for _ in range(3))
    return right / (3 * len(images))


def l1_widths(model):
    """Channels that a threshold on L1 norms leaves, each layer's norms as shares of their mean."""
    norms = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Conv2d):
            sums = module.weight.detach().abs().sum((1, 2, 3))
            norms[name] = sums / sums.mean()
    every = torch.sort(torch.cat(list(norms.values())), descending=True).values
    threshold = every[round(KEPT * len(every)) - 1]
    return {name: max(4, int((values >= threshold).sum())) for name, values in norms.items()}


class Planner:
    def __init__(self, build, gpu, folder):
        self.program, self.gpu, self.folder = os.path.join(build, "wattgov"), gpu, folder

    def plan(self, widths, *options):
        pruned = os.path.join(self.folder, "pruned.json")
        with open(pruned, "w", encoding="utf-8") as file:
            json.dump(widths, file)
        command = [self.program, "wave", "plan", os.path.join(self.folder, "model.onnx"), "--gpu", self.gpu,
                   "--precision", "fp32", "--align", "4", "--pruned", pruned, "--json", *options]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr}")
        plan = json.loads(done.stdout)
        plan["after_widths"] = {layer.strip("/").split("/")[0]: width["after"]
                                for width in plan["widths"] for layer in width["layers"]}
        return plan

    def export(self, model):
        model.eval()
        torch.onnx.export(model, torch.zeros(BATCH, 1, 8, 8), os.path.join(self.folder, "model.onnx"))


def one_seed(seed, data, planner, wave):
    images, labels = data
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    learn, test = order[:TRAIN], order[TRAIN:]
    torch.manual_seed(seed)
    model = train(make_network(), images[learn], labels[learn], EPOCHS, seed, 3e-3)
    planner.export(model)
    widths = l1_widths(model)
    plans = {"aligned": planner.plan(widths, "--goal", "align", "--range", "0.7:1.4"),
             "grown": planner.plan(widths, "--goal", "grow", "--range", "1:1.5"),
             "refitted": planner.plan(widths, "--goal", "parameters", "--range", "0.7:1.5")}
    example = torch.zeros(2, 1, 8, 8)
    pruned = wave.apply(model, widths, example)
    models = {"aligned": wave.apply(model, plans["aligned"]["after_widths"], example),
              "grown": wave.apply(pruned, plans["grown"]["after_widths"], example, seed=seed),
              "refitted": wave.apply(model, plans["refitted"]["after_widths"], example, seed=seed), "pruned": pruned}
    before = plans["aligned"]["before"]
    out = {"whole": {"accuracy": accuracy(model, images[test], labels[test], seed)}}
    for kind in KINDS:
        after = before if kind == "pruned" else plans[kind]["after"]
        retrained = train(models[kind], images[learn], labels[learn], RETRAIN, seed + 1000, 1e-3)
        out[kind] = {"accuracy": accuracy(retrained, images[test], labels[test], seed), "time_s": after["time_s"],
                     "parameters": after["parameters"],
                     "widths": widths if kind == "pruned" else plans[kind]["after_widths"]}
    return out


def interval(values):
    """Mean and half the 95 % interval (Student's t by Cornish-Fisher)."""
    z, n = 1.959964, len(values) - 1
    t = z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
    return statistics.fmean(values), t * statistics.stdev(values) / math.sqrt(len(values))


def report(results, gpu):
    print(f"{len(results)} seeds, latency predicted for {gpu} at batch {BATCH}, fp32. The whole network: "
          f"{100 * statistics.fmean(one['whole']['accuracy'] for one in results):.2f} %.\n")
    print("| network | accuracy | against pruned (points) | latency | against pruned | parameters |")
    print("|---|---|---|---|---|---|")
    for kind in KINDS:
        mean, half = interval([100 * one[kind]["accuracy"] for one in results])
        gain, gain_half = interval([100 * (one[kind]["accuracy"] - one["pruned"]["accuracy"]) for one in results])
        slower, slower_half = interval([100 * (one[kind]["time_s"] / one["pruned"]["time_s"] - 1) for one in results])
        more = statistics.fmean(one[kind]["parameters"] / one["pruned"]["parameters"] - 1 for one in results)
        time_ms = 1e3 * statistics.fmean(one[kind]["time_s"] for one in results)
        print(f"| {kind} | {mean:.2f} ± {half:.2f} % | {gain:+.2f} ± {gain_half:.2f} | {time_ms:.2f} ms "
              f"| {slower:+.1f} ± {slower_half:.1f} % | {100 * more:+.0f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--digits")
    parser.add_argument("--gpu", default="jetson-nano")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", help="write all numbers")
    args = parser.parse_args()
    sys.path.insert(0, os.path.join(args.build, "bindings/python"))
    os.environ.setdefault("WATTGOV_LIBRARY", os.path.join(args.build, "src/libwattgov.so.0"))
    from wattgov import wave
    torch.set_num_threads(2)
    data = load_digits(args.digits)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        planner = Planner(args.build, args.gpu, folder)
        for seed in range(args.seeds):
            results.append(one_seed(seed, data, planner, wave))
            print(f"seed {seed}: " + ", ".join(f"{kind} {100 * one['accuracy']:.2f} %"
                                               for kind, one in results[-1].items()), file=sys.stderr)
    report(results, args.gpu)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(results, file)


if __name__ == "__main__":
    main()
