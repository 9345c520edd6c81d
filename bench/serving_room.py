# SPDX-License-Identifier: MIT
"""When a fine-tuning job could be done at best beside requests that are all in time.

Even arrivals at a rate r leave 1 - r t(b) / b of the GPU to fine-tuning, where b is the largest batch of which
the oldest request, after waiting for the b - 1 others, is in time at the 99th percentile of the batch's noise.
Steps are taken to cost nothing besides their rows and to fill every gap, so no policy can be faster for long,
but for requests that it lets be late. A trace is taken as even within bins of five seconds, which leaves more
room than its own unevenness does; the result is the mean over the places at which a run may begin.
"""
import csv
import gzip
import random
import re
from datetime import datetime

BIN_S, CERTAINTY, PLACES = 5, 2.326, 400
BURST_S = 60


def room_of(figures, scenario, rate):
    """The share of the GPU that even arrivals leave."""
    if rate <= 0:
        return 1.0
    shares = [1 - rate * figures.batch_s(b) / b for b in range(1, 9)
              if (b - 1) / rate + figures.batch_s(b) * (1 + CERTAINTY * figures.noise) <= scenario.slo_s]
    return max([0.0, *shares])


def counts_of(path):
    """Requests in each second of a trace."""
    if path.endswith(".gz"):
        with gzip.open(path, "rt") as file:
            return [int(line) for line in file]
    with open(path, encoding="utf-8", newline="") as file:
        moments = [datetime.fromisoformat(row["TIMESTAMP"][:26]).timestamp() for row in csv.DictReader(file)]
    counts = [0] * (int(moments[-1] - moments[0]) + 1)
    for moment in moments:
        counts[int(moment - moments[0])] += 1
    return counts


def burstiest(counts):
    """The minute in which the counts vary most."""
    best, place = -1.0, 0
    total, squares = sum(counts[:BURST_S]), sum(count * count for count in counts[:BURST_S])
    for begin in range(len(counts) - BURST_S + 1):
        if begin > 0:
            old, new = counts[begin - 1], counts[begin + BURST_S - 1]
            total, squares = total + new - old, squares + new * new - old * old
        if squares - total * total / BURST_S > best:
            best, place = squares - total * total / BURST_S, begin
    return counts[place:place + BURST_S]


def rates_of(law):
    """Requests a second in each bin of a trace's law, thinned to its rate."""
    path, options = law[len("trace:"):].split(",", 1)
    counts = counts_of(path)
    if "window=burstiest" in options:
        counts = burstiest(counts)
    scale = float(re.search(r"rate=([0-9.]+)", options).group(1)) / (sum(counts) / len(counts))
    bins = [counts[i:i + BIN_S] for i in range(0, len(counts), BIN_S)]
    return [scale * sum(of) / len(of) for of in bins]


def earliest_s(figures, scenario, law):
    """Seconds from the job's coming to its end at best; a mean."""
    work_s = figures.work_s(scenario)
    if not law.startswith("trace:"):
        room = room_of(figures, scenario, float(law.split(":")[1]))
        return work_s / room if room > 0 else float("inf")
    rooms = [room_of(figures, scenario, rate) for rate in rates_of(law)]
    if sum(rooms) <= 0:
        return float("inf")
    total, rng = 0.0, random.Random(1)
    for _ in range(PLACES):
        at, left, seconds = rng.randrange(len(rooms)), work_s, 0.0
        while left > BIN_S * rooms[at]:
            left, seconds, at = left - BIN_S * rooms[at], seconds + BIN_S, (at + 1) % len(rooms)
        total += seconds + left / rooms[at]
    return total / PLACES
