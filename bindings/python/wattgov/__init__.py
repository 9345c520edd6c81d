# SPDX-License-Identifier: MIT
"""wattgov: what a piece of a Python program costs in joules and seconds.

    import wattgov

    with wattgov.window("epoch") as epoch:
        train_one_epoch()
    print(epoch.energy_j, epoch.time_s, epoch.flags)
    for label, part in epoch.devices.items():
        print(label, part.energy_j, part.why_not)

A training tells its progress to `wattgov train` by `for batch in wattgov.steps(loader):` and `wattgov.train`.

Units are in the names and SI. What could not be measured is None, never 0, and `why_not` says why. Work that runs
asynchronously (CUDA kernels) must be waited for before a window begins and ends: wattgov calls no CUDA.
"""
from wattgov._device import Backend, Device, KnobInfo, MeterInfo, backends, devices
from wattgov._library import WattgovError
from wattgov._meter import Meter, Result, Window, begin, default_meter, end, window
from wattgov._train import Train, steps, train

__all__ = ["Backend", "Device", "KnobInfo", "Meter", "MeterInfo", "Result", "Train", "WattgovError", "Window", "backends",
           "begin", "default_meter", "devices", "end", "steps", "train", "version", "window"]


def version() -> str:
    """The version of the libwattgov that is loaded."""
    from wattgov._library import ffi, load
    return ffi.string(load().wg_version()).decode()
