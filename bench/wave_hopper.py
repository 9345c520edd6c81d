#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What drives the steps on Hopper: one rule after another against measured cliffs, for docs/internals/wave-choice.md.

    bench/wave_hopper.py --data DIR

DIR holds aiconfigurator/ (data/wave/calibration/README.md says where it comes from). A place is a step of one row,
m -> m + 1 at a multiple of 64; a cliff is one that takes 10 % longer. Each rule tells a rise at each place and nothing
else. AUC: the chance that it tells more at a cliff than at a place without one; r2: the share of the variance of
log(time at m + 1 / time at m) that it explains in a line. Other GPUs and FP8 stand beside it: a rule that is right
should work where its cause is, and not where it isn't. Needs numpy.
"""
import argparse
import csv
import gzip
import pathlib

import numpy as np

SETS = [  # name, file, dtype, SMs
    ("H100 BF16", "gemm_H100-SXM-80GB.csv.gz", "bfloat16", 132),
    ("H100 FP8", "gemm_H100-SXM-80GB.csv.gz", "fp8", 132),
    ("A100 BF16", "gemm_A100-SXM-80GB.csv", "bfloat16", 108),
    ("RTX PRO 6000 BF16", "gemm_RTX-PRO-6000-BSE.csv", "bfloat16", 188),
]
HOPPER_TILES = [(64, 64), (64, 128), (64, 256), (128, 64), (128, 128), (128, 192), (128, 256), (192, 128),
                (256, 64), (256, 128)]
SMALL_TILES = [(16, 64), (16, 128), (32, 64), (32, 128)]
CLIFF = 1.10


def read(path, dtype):
    """(n, k) -> {m: seconds}."""
    curves = {}
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["dtype"] == dtype:
                curves.setdefault((int(row["n"]), int(row["k"])), {})[int(row["m"])] = 1e-6 * float(row["us"])
    return curves


def ceil(value, by):
    return -(-value // by)


def auc(score, is_cliff):
    """By ranks, equal scores sharing theirs."""
    _, inverse, counts = np.unique(score, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    rank = (last - (counts - 1) / 2.0)[inverse]
    ones = is_cliff.sum()
    return (rank[is_cliff].sum() - ones * (ones + 1) / 2.0) / (ones * (len(score) - ones))


def explained(score, rise):
    return 0.0 if score.std() == 0 else np.corrcoef(score, rise)[0, 1] ** 2


class Place:
    """All places of one data set, as columns."""

    def __init__(self, curves, sms):
        rows = [(m, n, k, times[m], times[m + 1]) for (n, k), times in sorted(curves.items())
                for m in sorted(times) if m % 64 == 0 and m + 1 in times]
        self.m, self.n, self.k = (np.array([row[i] for row in rows]) for i in range(3))
        self.before, self.after = (np.array([row[i] for row in rows]) for i in (3, 4))
        self.rise = np.log(self.after / self.before)
        self.is_cliff = self.after >= CLIFF * self.before
        self.sms = sms


def waves(place, m, tile, slots=None, cluster=(1, 1), swap=False, whole=True):
    """Time in units of a tile's work: rounds of clusters over the slots for them."""
    rows, columns = (place.n, m) if swap else (m, place.n)
    size = cluster[0] * cluster[1]
    groups = ceil(ceil(rows, tile[0]), cluster[0]) * ceil(ceil(columns, tile[1]), cluster[1])
    free = (place.sms if slots is None else slots) // size
    rounds = ceil(groups, free) if whole else np.maximum(groups / free, 1.0)
    return rounds * float(tile[0] * tile[1])


def least(place, m, tiles, power=0.88, **how):
    """The tile of least time, larger tiles being more efficient: twice the work takes 2 ** power of the time."""
    return np.min([waves(place, m, tile, **how) / float(tile[0] * tile[1]) ** (1.0 - power) for tile in tiles], axis=0)


def told(place, tiles, **how):
    return np.log(least(place, place.m + 1, tiles, **how) / least(place, place.m, tiles, **how))


def split(place, m, tiles):
    """Split-k: up to 8 parts of each tile's k, to fill the last round."""
    best = None
    for parts in range(1, 9):
        for tile in tiles:
            blocks = ceil(m, tile[0]) * ceil(place.n, tile[1]) * parts
            time = ceil(blocks, place.sms) / parts * float(tile[0] * tile[1]) ** 0.88 * (1.0 + 0.03 * (parts - 1))
            best = time if best is None else np.minimum(best, time)
    return best


def others_at(place, keys):
    """The mean rise at this place's values of `keys`, over other shapes."""
    groups = {}
    for i, key in enumerate(zip(*keys)):
        groups.setdefault(key, []).append(i)
    out = np.full(len(place.m), place.rise.mean())
    for members in groups.values():
        for i in members:
            rest = [j for j in members if (place.n[j], place.k[j]) != (place.n[i], place.k[i])]
            if rest:
                out[i] = place.rise[rest].mean()
    return out


def nearest(place, count=1):
    """The mean rise at the same m of the nearest shapes, by the logarithms of n and k; n counts double."""
    out = np.zeros(len(place.m))
    at = np.stack([2.0 * np.log2(place.n), np.log2(place.k)])
    for m in np.unique(place.m):
        here = np.flatnonzero(place.m == m)
        apart = np.abs(at[:, here, None] - at[:, None, here]).sum(axis=0)
        np.fill_diagonal(apart, np.inf)
        out[here] = place.rise[here][np.argsort(apart, axis=1, kind="stable")[:, :count]].mean(axis=1)
    return out


def rules(place):
    """(what is thought to cause it, the rise that it tells)."""
    tiles = HOPPER_TILES
    flat = [tile for tile in tiles if tile[0] in (64, 128)]
    yield "whole waves, the best of ten tiles", told(place, tiles)
    for tile in ((64, 256), (128, 128), (128, 256), (256, 128)):
        yield f"whole waves, {tile[0]} x {tile[1]} only", told(place, [tile])
    for cluster in ((2, 1), (1, 2), (2, 2), (4, 1)):
        yield f"clusters of {cluster[0]} x {cluster[1]}, the best tile", told(place, tiles, cluster=cluster)
    for cluster in ((2, 1), (1, 2)):
        yield f"clusters of {cluster[0]} x {cluster[1]}, 128 x 256 only", told(place, [(128, 256)], cluster=cluster)
    for less in (4, 8, 12):
        yield (f"GPCs cut up: {less} SMs without a cluster of 2 x 1",
               told(place, tiles, cluster=(2, 1), slots=place.sms - less))
    yield "persistent: one block an SM, no drain but the last", told(place, tiles, power=1.0)
    yield "stream-k: no rounding of waves, tiles only", told(place, tiles, whole=False)
    yield "split-k fills the last wave", np.log(split(place, place.m + 1, tiles) / split(place, place.m, tiles))
    yield "operands swapped, the best tile", told(place, tiles + SMALL_TILES, swap=True)
    yield "operands swapped, 128 rows of n", told(place, [(128, t) for t in (16, 32, 64, 128, 256)], swap=True)
    for height in (64, 128, 192, 256):
        yield (f"rows of {height}: one more of them, over how many",
               np.log(ceil(place.m + 1, height) / ceil(place.m, height)))
    yield "tiles of 64 or 128 rows only", told(place, flat)
    yield "power: fast products are throttled", place.m * 2.0 * place.n * place.k / place.before
    yield "power: the longer the slower", np.log(place.before)
    yield "m alone: mean of other shapes", others_at(place, [place.m])
    yield "m and n: mean of other k", others_at(place, [place.m, place.n])
    yield "m and k: mean of other n", others_at(place, [place.m, place.k])
    yield "nearest shape's rise at the same m", nearest(place)
    yield "mean of the 4 nearest shapes' rises", nearest(place, 4)


def noise(curves):
    """Of one measurement: on plateaus where no tile of 16 rows or more ends, as a share; and of neighbouring rises."""
    ends = (65, 80, 81, 96, 97, 112, 113, 128)
    logs = np.log([[times[m] for m in ends] for times in curves.values() if all(m in times for m in ends)])
    rises = np.diff(logs, axis=1)
    rises = np.clip(rises - np.median(rises, axis=0), -0.2, 0.2)
    together = np.mean([np.corrcoef(rises[:, i], rises[:, i + 1])[0, 1] for i in range(rises.shape[1] - 1)])
    return rises.std() / 2.0 ** 0.5, together, (rises > np.log(1.08)).mean(), (rises < -np.log(1.1)).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    args = parser.parse_args()
    curves = [read(args.data / "aiconfigurator" / file, dtype) for _, file, dtype, _ in SETS]
    places = [Place(curve, sms) for curve, (_, _, _, sms) in zip(curves, SETS)]
    names = [name for name, _, _, _ in SETS]
    print("| rule | " + " | ".join(f"{name}: AUC, r2" for name in names) + " |")
    print("|---|" + "---|" * len(names))
    print("| (places, cliffs) | " + " | ".join(f"{len(p.m)}, {p.is_cliff.sum()}" for p in places) + " |")
    for columns in zip(*(rules(place) for place in places)):
        cells = [f"{auc(score, place.is_cliff):.2f}, {explained(score, place.rise):.2f}"
                 for place, (_, score) in zip(places, columns)]
        print(f"| {columns[0][0]} | " + " | ".join(cells) + " |")
    print()
    print("| | sd of one measurement % | correlation of neighbouring rises | plateau rises above 8 %, % "
          "| a tenth faster: plateaus, % | places, % | places of the largest 1 % of drops that recur at other k, % |")
    print("|---|---|---|---|---|---|---|")
    for name, curve, place in zip(names, curves, places):
        spread, together, above, below = noise(curve)
        drops = place.rise < -np.log(1.1)
        most = np.argsort(place.rise)[:len(place.rise) // 100]
        recur = others_at(place, [place.m, place.n])[most] < -np.log(1.03)
        print(f"| {name} | {100 * spread:.1f} | {together:.2f} | {100 * above:.1f} | {100 * below:.1f} "
              f"| {100 * drops.mean():.1f} | {100 * recur.mean():.0f} |")


if __name__ == "__main__":
    main()
