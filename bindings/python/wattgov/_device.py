# SPDX-License-Identifier: MIT
"""Devices, and what became of the backends that look for them: `wattgov.devices()`, `wattgov.backends()`."""
from __future__ import annotations

import os

from wattgov._library import Record, check, error, ffi, load, to_bytes, to_text, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Union
    Gpus = Union[None, int, str, Iterable[Union[int, str]]]


class MeterInfo(Record):
    """What a device reports, by key: "power_w", "energy_j". Absent ones say why, and what can be done."""

    __slots__ = ("is_present", "source", "resolution", "update_period_s", "averaging_window_s", "wrap_s",
                 "why_not", "remedy")
    is_present: bool
    source: str
    resolution: float | None
    update_period_s: float | None
    averaging_window_s: float | None
    wrap_s: float | None
    why_not: str | None
    remedy: str | None


class KnobInfo(Record):
    """What can be set on a device, by key: "power_limit", in watts, and clocks, in hertz."""

    __slots__ = ("is_present", "is_writable", "min", "max", "step", "preset", "current", "levels", "source",
                 "why_not", "remedy")
    is_present: bool
    is_writable: bool
    min: float | None
    max: float | None
    step: float | None
    preset: float | None
    current: float | None
    levels: tuple[float, ...]
    source: str
    why_not: str | None
    remedy: str | None


class Device(Record):
    """A GPU, a CPU package, a memory domain or a rail. `state` is "OK", or why it gives nothing: "ELOST"."""

    __slots__ = ("kind", "index", "label", "id", "name", "backend", "uuid", "pci", "driver", "architecture",
                 "numa_node", "memory_bytes", "counts_in_total", "is_mig", "is_persistent", "mig_uuids", "state",
                 "state_text", "meters", "knobs")
    kind: str
    index: int
    label: str
    id: str
    name: str
    backend: str
    uuid: str | None
    pci: str | None
    driver: str | None
    architecture: str | None
    numa_node: int | None
    memory_bytes: int | None
    counts_in_total: bool
    is_mig: bool
    is_persistent: bool
    mig_uuids: tuple[str, ...]
    state: str
    state_text: str | None
    meters: dict[str, MeterInfo]
    knobs: dict[str, KnobInfo]

    def __repr__(self) -> str:
        trouble = "" if self.state == "OK" else f", {self.state}: {self.state_text}"
        return f"<Device {self.label}: {self.name}, {self.id}{trouble}>"


class Backend(Record):
    """What became of a backend: why there are no NVIDIA GPUs here, say."""

    __slots__ = ("name", "state", "text", "remedy", "device_count")
    name: str
    state: str
    text: str
    remedy: str | None
    device_count: int


def _code(lib, code: int) -> str:
    return ffi.string(lib.wg_code_name(code)).decode()[len("WG_"):]


def _plain_fields(kind, struct, *special: str) -> dict:
    return {name: value(name, getattr(struct, name)) for name in kind.__slots__ if name not in special}


def _knob(struct) -> KnobInfo:
    levels = () if struct.levels == ffi.NULL else tuple(struct.levels[0:struct.level_count])
    fields = _plain_fields(KnobInfo, struct, "levels")
    if not struct.is_present:
        fields.update(dict.fromkeys(("min", "max", "step")))
    return KnobInfo(levels=levels, **fields)


def _device(lib, struct) -> Device:
    return Device(
        kind=to_text(lib.wg_device_kind_key(struct.kind)),
        mig_uuids=tuple(to_text(struct.mig_uuids[i]) for i in range(struct.mig_count)),
        state=_code(lib, struct.state),
        meters={to_text(lib.wg_metric_key(i)): MeterInfo(**_plain_fields(MeterInfo, struct.meters[i]))
                for i in range(lib.WG_METRIC_COUNT)},
        knobs={to_text(lib.wg_knob_key(i)): _knob(struct.knobs[i]) for i in range(lib.WG_KNOB_COUNT)},
        **_plain_fields(Device, struct, "kind", "mig_uuids", "state", "meters", "knobs"))


def _selectors(gpus: Gpus) -> list[bytes]:
    if gpus is None:
        return []
    if isinstance(gpus, (int, str)):
        gpus = (gpus,)
    # None at all is the environment's choice, so a list that is empty must say what it means.
    return [to_bytes(str(gpu), "a GPU selector") for gpu in gpus] or [b"none"]


def machine_open(gpus: Gpus, replay: str | os.PathLike[str] | None, root: str | os.PathLike[str] | None):
    """A `struct wg_machine *` that the caller closes."""
    lib = load()
    err = ffi.new("struct wg_error *")
    out = ffi.new("struct wg_machine **")
    opts = ffi.new("struct wg_machine_opts *", {"size": ffi.sizeof("struct wg_machine_opts")})
    kept = [ffi.new("char[]", one) for one in _selectors(gpus)]
    pointers = ffi.new("char *[]", kept)
    if kept:
        opts.gpus = ffi.cast("char const *const *", pointers)
        opts.gpu_count = len(kept)
    if replay is not None:
        kept.append(ffi.new("char[]", b"replay:" + to_bytes(replay, "the recording")))
        opts.device = kept[-1]
    if root is not None:
        kept.append(ffi.new("char[]", to_bytes(root, "the root")))
        opts.root = kept[-1]
    check(lib.wg_machine_open(out, opts, err), err)
    return out[0]


def machine_devices(machine) -> list[Device]:
    lib = load()
    return [_device(lib, lib.wg_device_get_info(lib.wg_machine_device(machine, i)))
            for i in range(lib.wg_machine_device_count(machine))]


def machine_backends(machine) -> list[Backend]:
    lib = load()
    structs = (lib.wg_machine_backend(machine, i) for i in range(lib.wg_machine_backend_count(machine)))
    return [Backend(state=_code(lib, one.state), **_plain_fields(Backend, one, "state")) for one in structs]


def _look(read, gpus, replay, root):
    machine = machine_open(gpus, replay, root)
    try:
        return read(machine)
    finally:
        load().wg_machine_close(machine)


def devices(gpus: Gpus = None, *, replay=None, root=None) -> list[Device]:
    """The devices of this machine with their meters and knobs; `gpus` and the rest as in `Meter`."""
    return _look(machine_devices, gpus, replay, root)


def backends(gpus: Gpus = None, *, replay=None, root=None) -> list[Backend]:
    """What became of each backend: those that found nothing say why, and what to do."""
    return _look(machine_backends, gpus, replay, root)


def positions(found: list[Device], wanted) -> list[int]:
    """Where the devices of `wanted` (labels or ids; None: all) stand in `found`."""
    if wanted is None:
        return list(range(len(found)))
    if isinstance(wanted, str):
        wanted = (wanted,)
    out = []
    for name in wanted:
        fits = [i for i, one in enumerate(found) if name in (one.label, one.id)]
        if not fits:
            there = ", ".join(one.label for one in found) or "none"
            raise error("ENODEV", f"no device {name!r}; there are: {there}")
        out += [i for i in fits if i not in out]  # by label and by id it is one device, and counts once
    if not out:
        raise error("EINVAL", "an empty list of devices: leave it out to measure all of them")
    return out
