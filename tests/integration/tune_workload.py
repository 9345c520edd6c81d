#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A served model on a virtual GPU, as a command that `wattgov tune` measures.

    tune_workload.py VGPU --batch B [--precision fp16|fp32] [--seconds S] [--fail KIND]

A batch of b takes (2 + 1.5 b / f) ms at the share f of the largest clock (twice that in fp32): a fixed part and one that
the clock acts on. While it "works" the GPU is loaded by wattgov-vgpu, so its power follows the clock, the limit and the
batch by the model of the machine. It serves for S seconds and tells latency and requests as they would have been; the
clock is read where a real program would feel it, from the GPU.
"""
import argparse
import ctypes
import json
import os
import signal
import subprocess
import sys
import time


def clock_share():
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    device, now, most = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_uint()
    assert nvml.nvmlInit_v2() == 0
    assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
    assert nvml.nvmlDeviceGetClockInfo(device, 1, ctypes.byref(now)) == 0
    assert nvml.nvmlDeviceGetMaxClockInfo(device, 1, ctypes.byref(most)) == 0
    return now.value / most.value


def batch_s(batch, share, precision):
    return (2e-3 + 1.5e-3 * batch / share) * (2 if precision == "fp32" else 1)


def fail(kind):
    if kind == "memory":
        print("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", file=sys.stderr)
        sys.exit(1)
    if kind == "crash":
        print("Segmentation fault (as it were)", file=sys.stderr)
        sys.exit(1)
    if kind == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vgpu")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--precision", default="fp16")
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--fail")
    parser.add_argument("--log")
    given = parser.parse_args()
    if given.log:
        with open(given.log, "a", encoding="utf-8") as log:
            log.write(f"{given.batch} {given.precision} {os.getpid()}\n")
    fail(given.fail)
    intensity = 0.4 + 0.6 * min(1, given.batch / 8)
    load = subprocess.Popen([given.vgpu, "load", "--intensity", str(intensity)], stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.05)  # the load is on, and the clock is what it is under it
        print("wattgov: begin", flush=True)
        time.sleep(given.seconds)
        share = clock_share()
        print("wattgov: end", flush=True)
    finally:
        load.terminate()
        load.wait()
    service_s = batch_s(given.batch, share, given.precision)
    print(json.dumps({"p99_s": service_s, "mean_s": service_s, "requests": given.batch * given.seconds / service_s,
                      "service_s": service_s}))


if __name__ == "__main__":
    main()
