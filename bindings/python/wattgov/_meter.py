# SPDX-License-Identifier: MIT
"""Meters and windows: `with wattgov.window("epoch") as epoch: ...`, then `epoch.energy_j`.

libwattgov samples in threads of its own; here is no Python thread, no process and nothing that imports the
program's `__main__` again. A meter belongs to the process that opened it. A child of fork has none of its threads,
so it opens one anew, with the same options, at first use, and never touches the parent's.

Threads: everything may be called from any thread. `_Native` counts who is inside the library, and the last one out
closes what was closed meanwhile.
"""
from __future__ import annotations

import math
import os
import threading
import weakref

from wattgov import _device
from wattgov._library import Record, WattgovError, check, error, ffi, load, to_bytes, to_text, value, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable
    from wattgov._device import Backend, Device, Gpus


class Result(Record):
    """Energy and time of a window, with how far they can be trusted. None is unknown; `why_not` says why."""

    __slots__ = ("name", "energy_j", "energy_error_j", "time_s", "power_mean_w", "power_peak_w", "idle_share",
                 "throttled_s", "coverage", "resolution_s", "sample_count", "flags", "source", "why_not", "devices")
    name: str
    energy_j: float | None
    energy_error_j: float | None
    time_s: float
    power_mean_w: float | None
    power_peak_w: float | None
    idle_share: float | None
    throttled_s: float | None
    coverage: float
    resolution_s: float | None
    sample_count: int
    flags: frozenset[str]
    source: str
    why_not: str | None
    devices: dict[str, Result]

    def __repr__(self) -> str:
        if self.energy_j is None:
            energy = f"energy unknown ({self.why_not})"
        else:
            error_j = "" if self.energy_error_j is None else f" +- {self.energy_error_j:.3g} J"
            energy = f"{self.energy_j:.6g} J{error_j}"
        power = "" if self.power_mean_w is None else f", {self.power_mean_w:.4g} W"
        flags = f", flags: {', '.join(sorted(self.flags))}" if self.flags else ""
        return f"<Result {self.name!r}: {energy} in {self.time_s:.6g} s{power}{flags}>"


class _Native:
    """A machine and its meter, in the process that opened them."""

    def __init__(self, options: dict) -> None:
        lib = load()
        self.pid = os.getpid()
        self.windows: weakref.WeakSet[Window] = weakref.WeakSet()
        self._lock = threading.RLock()  # a collection of garbage may come back into this thread
        self._users = 0
        self._is_closed = False
        self._handles = [ffi.NULL, ffi.NULL]  # meter, machine
        self._finalizer = weakref.finalize(self, _close_handles, self._handles, self.pid)
        self._handles[1] = _device.machine_open(options["gpus"], options["replay"], options["root"])
        self.devices = _device.machine_devices(self._handles[1])
        self.backends = _device.machine_backends(self._handles[1])
        self.positions = _device.positions(self.devices, options["devices"])
        err = ffi.new("struct wg_error *")
        out = ffi.new("struct wg_meter **")
        opts = ffi.new("struct wg_meter_opts *", {"size": ffi.sizeof("struct wg_meter_opts"),
                                                  "sample_period_ms": options["period_ms"]})
        check(lib.wg_meter_open(out, self._handles[1], opts, err), err)
        self._handles[0] = out[0]

    @property
    def meter(self):
        return self._handles[0]

    def __enter__(self) -> _Native:
        if self.pid != os.getpid():
            raise error("ESTATE", f"this window was begun before fork, by process {self.pid}")
        with self._lock:
            if self._is_closed:
                raise error("ESTATE", "the meter is closed")
            self._users += 1
        return self

    def __exit__(self, *_) -> None:
        with self._lock:
            self._users -= 1
            is_last = self._is_closed and self._users == 0
        if is_last:
            self._finalizer()

    def adopt(self, window: Window) -> None:
        with self._lock:
            self.windows.add(window)

    def close(self) -> None:
        if self.pid != os.getpid():
            return
        with self:
            with self._lock:
                windows = list(self.windows)
            for window in windows:
                window._settle(self)
            with self._lock:
                self._is_closed = True

    def why_not(self, position: int, flags: frozenset[str]) -> str:
        """Why a device's energy is unknown."""
        device = self.devices[position]
        if device.state_text is not None:
            return device.state_text
        meters = [device.meters["energy_j"], device.meters["power_w"]]
        if not any(meter.is_present for meter in meters):
            return f"{device.label}: " + "; ".join(meter.why_not or "no meter" for meter in meters)
        return f"{device.label}: " + (", ".join(sorted(flags)) or "no sample in this time")

    def why_none(self) -> str:
        """Why there is nothing to measure at all."""
        trouble = [f"{one.name}: {one.text}" + (f" ({one.remedy})" if one.remedy else "")
                   for one in self.backends if one.device_count == 0]
        return "no device; " + "; ".join(trouble)


def _close_handles(handles: list, pid: int) -> None:
    """The end of a meter: explicit, by the garbage collector, or at exit. Never in a child of fork."""
    if pid == os.getpid():
        lib = load()
        meter, machine = handles
        handles[:] = [ffi.NULL, ffi.NULL]
        lib.wg_meter_close(meter)
        lib.wg_machine_close(machine)


def _free_window(handle, native: _Native) -> None:
    try:
        with native:
            load().wg_window_free(handle)
    except WattgovError:
        if native.pid == os.getpid():
            load().wg_window_free(handle)  # its meter is closed: only memory is left


class Window:
    """A stretch of time over devices. Begins at `with` or `Meter.begin`, ends at the end of `with` or at `end()`.

    Neither waits for a device. The first look at a result does: for the sample that closes the window, at most one
    update of the slowest counter. Inside the window a look tells the values up to now. A window that began before
    a fork stays the parent's.
    """

    def __init__(self, meter: Meter | None, name: str, devices: str | Iterable[str] | None = None) -> None:
        self._meter = meter
        self._name = to_bytes(name, "the name of a window")
        self._wanted = devices
        self._native: _Native | None = None
        self._positions: list[int] = []
        self._free: weakref.finalize | None = None  # of the handle
        self._handle = ffi.NULL
        self._is_open = False
        self._result: Result | WattgovError | None = None
        self._lock = threading.RLock()  # libwattgov takes one thread at a time for a window

    @property
    def name(self) -> str:
        return os.fsdecode(self._name)

    @property
    def is_open(self) -> bool:
        return self._is_open

    def begin(self) -> Window:
        if self._is_open:
            raise error("ESTATE", f"window {self.name!r} is open already")
        meter = self._meter if self._meter is not None else default_meter()
        native = meter._native_here()
        chosen = native.positions if self._wanted is None else _device.positions(native.devices, self._wanted)
        with native:
            err = ffi.new("struct wg_error *")
            out = ffi.new("struct wg_window **")
            check(load().wg_window_begin(out, native.meter, self._name, chosen or ffi.NULL, len(chosen), err), err)
            if self._free is not None:
                self._free()  # of the time before
            self._handle = out[0]
            self._native, self._positions, self._result = native, chosen, None
            free = weakref.finalize(self, _free_window, self._handle, native)
            free.atexit = False  # the meter's end is theirs
            self._free = free
            self._is_open = True
            native.adopt(self)
        return self

    def end(self) -> Window:
        """Marks the end; a second end does nothing."""
        with self._lock:
            if self._is_open and self._native is not None:
                with self._native:
                    load().wg_window_end(self._handle)
                self._is_open = False
        return self

    def __enter__(self) -> Window:
        return self.begin()

    def __exit__(self, *_) -> None:
        # A child that leaves the block by an exception or exit has nothing to end: the window is its parent's.
        if self._native is not None and self._native.pid == os.getpid():
            self.end()

    @property
    def result(self) -> Result:
        """Of an open window: up to now. Raises what could not be read."""
        with self._lock:
            result = self._result
            if result is None:
                if self._native is None:
                    raise error("ESTATE", f"window {self.name!r} was not begun")
                with self._native:
                    result = self._read(self._native)
                if not self._is_open:
                    self._result = result
        if isinstance(result, WattgovError):
            raise result
        return result

    def as_dict(self) -> dict:
        """Of the result: plain dicts, lists, numbers and texts, ready for json.dumps."""
        return self.result.as_dict()

    def _read(self, native: _Native) -> Result:
        count = len(self._positions)
        err = ffi.new("struct wg_error *")
        total = ffi.new("struct wg_window_result *")
        parts = ffi.new("struct wg_window_result[]", max(count, 1))
        check(load().wg_window_read(self._handle, total, parts, count, err), err)
        devices = {}
        for i, position in enumerate(self._positions):
            part = self._convert(parts[i], lambda flags, at=position: native.why_not(at, flags))
            devices[native.devices[position].label] = part
        reasons = [one.why_not for one in devices.values() if one.why_not is not None]
        return self._convert(total, lambda _: "; ".join(reasons) or native.why_none(), devices)

    def _convert(self, struct, why_not, devices: dict[str, Result] | None = None) -> Result:
        lib = load()
        flags = words(struct.flags, "enum wg_window_flag", lib.wg_window_flag_key)
        special = ("name", "flags", "source", "why_not", "devices")
        return Result(name=self.name, flags=flags, source=to_text(lib.wg_energy_source_key(struct.source)),
                      why_not=why_not(flags) if math.isnan(struct.energy_j) else None, devices=devices or {},
                      **{key: value(key, getattr(struct, key)) for key in Result.__slots__ if key not in special})

    def _settle(self, native: _Native) -> None:
        """The meter closes: what the window measured stays readable."""
        with self._lock:
            self.end()
            if self._result is None:
                try:
                    self._result = self._read(native)
                except WattgovError as cause:
                    self._result = cause

    def __repr__(self) -> str:
        if self._native is None:
            return f"<Window {self.name!r}, not begun>"
        try:
            return repr(self.result).replace("Result", "Window", 1) if not self._is_open else \
                f"<Window {self.name!r}, open>"
        except WattgovError as cause:
            return f"<Window {self.name!r}: {cause}>"

    # The result's own attributes, so that `epoch.energy_j` is enough; they are made below.
    energy_j: float | None
    energy_error_j: float | None
    time_s: float
    power_mean_w: float | None
    power_peak_w: float | None
    idle_share: float | None
    throttled_s: float | None
    coverage: float
    resolution_s: float | None
    sample_count: int
    flags: frozenset[str]
    source: str
    why_not: str | None
    devices: dict[str, Result]


def _of_result(name: str) -> property:
    return property(lambda window: getattr(window.result, name))


for _name in Result.__slots__:
    if _name != "name":
        setattr(Window, _name, _of_result(_name))


class Meter:
    """Samples devices in the background (10 Hz unless `period_ms` says so), over which windows are opened.

    `gpus`: "all", "none", an index, "0,2-3", a UUID or its beginning, a PCI address, or a list of such; None is what
    CUDA_VISIBLE_DEVICES lets through, else all. GPUs that are not chosen are never touched. `devices`: labels or ids
    ("gpu0", "cpu0") that windows cover unless they name their own; None is all. `replay` is a recording to read
    instead of this machine, `root` a folder that holds sys/, proc/ and dev/.
    """

    def __init__(self, gpus: Gpus = None, devices: str | Iterable[str] | None = None, period_ms: int = 100, *,
                 replay: str | os.PathLike[str] | None = None, root: str | os.PathLike[str] | None = None) -> None:
        if gpus is not None and not isinstance(gpus, (int, str)):
            gpus = tuple(gpus)
        if devices is not None and not isinstance(devices, str):
            devices = tuple(devices)
        self._options = {"gpus": gpus, "devices": devices, "period_ms": period_ms, "replay": replay, "root": root}
        self._is_closed = False
        self._native: _Native | None = _Native(self._options)
        self._reset_lock()
        _meters.add(self)

    def _reset_lock(self) -> None:
        self._lock = threading.RLock()
        self._open: dict[str, list[Window]] = {}

    def _native_here(self) -> _Native:
        """What this process measures with; a child of fork opens its own."""
        with self._lock:
            if self._is_closed:
                raise error("ESTATE", "the meter is closed")
            if self._native is None or self._native.pid != os.getpid():
                self._native = _Native(self._options)
            return self._native

    def window(self, name: str, devices: str | Iterable[str] | None = None) -> Window:
        """A window for `with`; it begins there."""
        return Window(self, name, devices)

    def begin(self, name: str, devices: str | Iterable[str] | None = None) -> Window:
        """Begins a window that `end(name)` ends. Names may nest: the newest one ends first."""
        window = Window(self, name, devices).begin()
        with self._lock:
            # Those that their own end() ended are forgotten here, or a long run would keep them all.
            self._open[name] = [one for one in self._open.get(name, []) if one.is_open] + [window]
        return window

    def end(self, name: str) -> Result:
        """Ends the newest open window of that name and waits for its result, at most one counter update."""
        with self._lock:
            windows = self._open.get(name, [])
            while windows and not windows[-1].is_open:
                windows.pop()  # ended by its own end()
            if not windows:
                there = ", ".join(sorted(repr(key) for key, many in self._open.items() if many)) or "none"
                raise error("ESTATE", f"no window {name!r} is open; open are: {there}")
            window = windows.pop()
            window.end()
        return window.result

    @property
    def devices(self) -> list[Device]:
        return list(self._native_here().devices)

    @property
    def backends(self) -> list[Backend]:
        return list(self._native_here().backends)

    def latest(self, device: str) -> dict[str, float]:
        """The newest sample of a device, by metric, and its time.monotonic_ns(): {"t_ns": ..., "power_w": 71.3}."""
        native = self._native_here()
        lib = load()
        with native:
            err = ffi.new("struct wg_error *")
            out = ffi.new("struct wg_sample *")
            for position in _device.positions(native.devices, device):
                check(lib.wg_meter_latest(native.meter, position, out, err), err)
        values = {ffi.string(lib.wg_metric_key(i)).decode(): out.values[i]
                  for i in range(lib.WG_METRIC_COUNT) if out.present >> i & 1}
        values["t_ns"] = out.t_ns
        return values

    def wait_ready(self, timeout_s: float = 5.0) -> None:
        """Waits until each device has a first sample or has failed."""
        native = self._native_here()
        with native:
            err = ffi.new("struct wg_error *")
            check(load().wg_meter_wait_ready(native.meter, round(timeout_s * 1000), err), err)

    def close(self) -> None:
        """Ends open windows, keeps their results, stops sampling. A second close does nothing."""
        with self._lock:
            native, self._native, is_first = self._native, None, not self._is_closed
            self._is_closed = True
            self._open = {}
        if is_first and native is not None:
            native.close()

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._is_closed:
            return "<Meter, closed>"
        labels = ", ".join(one.label for one in self.devices) or "no device"
        return f"<Meter of {labels}, every {self._options['period_ms']} ms>"


_meters: weakref.WeakSet[Meter] = weakref.WeakSet()
_default: Meter | None = None
_default_lock = threading.Lock()


def default_meter() -> Meter:
    """The meter of this process, over all devices; opened at first use."""
    global _default
    with _default_lock:
        if _default is None:
            _default = Meter()
        return _default


def window(name: str, devices: str | Iterable[str] | None = None) -> Window:
    """A window of the default meter, for `with`; it begins there."""
    return Window(None, name, devices)


def begin(name: str, devices: str | Iterable[str] | None = None) -> Window:
    """Begins a window of the default meter that `end(name)` ends."""
    return default_meter().begin(name, devices)


def end(name: str) -> Result:
    """Ends the newest open window of that name and waits for its result."""
    return default_meter().end(name)


def _after_fork() -> None:
    """In the child: locks that other threads held are free, and the parent's windows are nobody's."""
    global _default_lock
    _default_lock = threading.Lock()
    for meter in list(_meters):
        meter._reset_lock()


os.register_at_fork(after_in_child=_after_fork)
