# SPDX-License-Identifier: MIT
"""Triton's perf_analyzer as a second opinion on latency and throughput.

Its numbers are of one window of its own; `--request-count` is not used, since its throughput is then no rate. It has no
stable order of columns, but names them. It takes three windows and is told that any spread between them will do: on shared
machines it would give up otherwise.
"""
import csv
import os
import subprocess
import tempfile

import install


def analyze(cache, server, model, concurrency=1, rate=None, interval_s=2.0, protocol="http", count=1):
    """Median, p95 and p99 latency in seconds, requests per second; `rate` (Poisson arrivals) instead of `concurrency`."""
    address = server.grpc if protocol == "grpc" else server.http
    load = ["--concurrency-range", str(concurrency)] if rate is None else \
        ["--request-rate-range", str(rate), "--request-distribution", "poisson"]
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "table.csv")
        done = subprocess.run([*install.perf_analyzer(cache), "-m", model, "-u", address, "-i", protocol, "-b", str(count),
                               "--measurement-interval", str(int(1000 * interval_s)), "--stability-percentage", "10000",
                               "--percentile", "99", "-f", table, *load], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, timeout=300)
        if done.returncode != 0 or not os.path.exists(table):
            raise RuntimeError(f"perf_analyzer failed with {done.returncode}:\n{done.stdout[-2000:]}")
        with open(table, encoding="utf-8") as lines:
            row = next(csv.DictReader(lines))
    return {"p50_s": float(row["p50 latency"]) * 1e-6, "p95_s": float(row["p95 latency"]) * 1e-6,
            "p99_s": float(row["p99 latency"]) * 1e-6, "requests_per_s": float(row["Inferences/Second"])}
