# SPDX-License-Identifier: MIT
"""Progress of a training, told to the governor that runs it (`wattgov train -- python train.py`).

    for epoch in range(10):
        for batch in wattgov.steps(loader):
            train_one_step(batch)
        wattgov.train.metric(evaluate())
        wattgov.train.epoch()

Where no governor runs ($WATTGOV_PROGRESS is not set) nothing is loaded and `steps` gives the loader back. A governor
that dies or hangs never blocks or ends the training.
"""
from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator

from wattgov._library import WattgovError, check, ffi, load, to_bytes

VARIABLE = "WATTGOV_PROGRESS"


def _close(handle, pid: int) -> None:
    if pid == os.getpid():
        load().wg_train_close(handle)


def _text(name: str | None):
    return ffi.NULL if name is None else ffi.new("char[]", to_bytes(name, "the name of a metric"))


class Train:
    """A reporter of progress. `wattgov.train` is the one of this process; another is for a run of its own.

    `path` is the governor's file or socket (None: $WATTGOV_PROGRESS), `rank` that of this process in a distributed
    training (None: as torchrun, Open MPI, Slurm or PMI have set it). `first_step` and `first_epoch` were done by an
    earlier run that this one resumes. Raises WattgovError when `path` is given and cannot be opened; when the
    governor's own can't, there is a warning, and nothing is told. May be used by several threads. After fork the
    child's does nothing.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, rank: int | None = None, first_step: int = 0,
                 first_epoch: int = 0) -> None:
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._handle = ffi.NULL
        self._step = None  # wg_train_step; None: there is no governor
        if path is None and not os.environ.get(VARIABLE):
            return
        try:
            self._open(path, rank, first_step, first_epoch)
        except WattgovError as cause:
            if path is not None:
                raise
            warnings.warn(f"wattgov is told no progress: {cause}", RuntimeWarning, stacklevel=3)

    def _open(self, path: str | os.PathLike[str] | None, rank: int | None, first_step: int, first_epoch: int) -> None:
        lib = load()
        err = ffi.new("struct wg_error *")
        name = ffi.NULL if path is None else ffi.new("char[]", to_bytes(path, "the path of the progress"))
        opts = ffi.new("struct wg_train_opts *", {"size": ffi.sizeof("struct wg_train_opts"), "path": name,
                                                  "rank": rank or 0, "has_rank": rank is not None,
                                                  "first_step": first_step, "first_epoch": first_epoch})
        out = ffi.new("struct wg_train **")
        code = lib.wg_train_open(out, opts, err)
        if code != 0:
            lib.wg_train_close(out[0])
            check(code, err)
        self._handle = out[0]
        self._step = lib.wg_train_step
        self._free = weakref.finalize(self, _close, out[0], self._pid)

    @property
    def is_active(self) -> bool:
        """Whether a governor listens."""
        with self._lock:
            return self._step is not None and bool(load().wg_train_is_active(self._handle))

    def step(self, count: int = 1) -> None:
        """One more step is done, or `count`. Work on the GPU that still runs need not be waited for."""
        if self._step is None:
            return
        if count != 1:
            self._call("wg_train_steps", lambda: (count,))
            return
        with self._lock:
            if self._step is not None:
                self._step(self._handle)

    def epoch(self) -> None:
        """One more epoch is done."""
        self._call("wg_train_epoch")

    def metric(self, value: float, name: str | None = None) -> None:
        """The value of the target metric: a number, or what has an `item()` (a tensor of one element)."""
        self._call("wg_train_metric", lambda: (_text(name), float(value)))

    def batch_size(self, count: int) -> None:
        """The samples of one step, all ranks together."""
        self._call("wg_train_batch_size", lambda: (count,))

    def _call(self, function: str, arguments: Callable[[], tuple] = tuple) -> None:
        """What cannot be told (`metric(None)`) is dropped with a warning: alone, without a governor, it is no error."""
        if self._step is None:
            return
        try:
            words = arguments()
            with self._lock:
                if self._step is not None:
                    getattr(load(), function)(self._handle, *words)
        except (TypeError, ValueError, OverflowError, WattgovError) as cause:
            warnings.warn(f"wattgov is not told a {function.removeprefix('wg_train_')}: {cause}", RuntimeWarning, stacklevel=3)

    def steps(self, batches: Iterable) -> Iterable:
        """`batches`, each of which is a step: done when the next one is asked for. Keeps len()."""
        return batches if self._step is None else _Steps(self, batches)

    def close(self) -> None:
        """Tells what is not told yet. Also done at exit; what comes later does nothing."""
        with self._lock:
            if self._step is not None:
                self._step = None
                self._free()

    def __enter__(self) -> Train:
        return self

    def __exit__(self, *_) -> None:
        self.close()


class _Steps:
    """An iterable that counts; all else is as in what it wraps (a DataLoader's dataset, batch_size, ...)."""

    def __init__(self, train: Train, batches: Iterable) -> None:
        self._train = train
        self._batches = batches

    def __iter__(self) -> Iterator:
        step = self._train.step
        for batch in self._batches:
            yield batch
            step()

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __getattr__(self, name: str):
        if name in ("_train", "_batches") or name.startswith("__"):
            raise AttributeError(name)  # while it is copied there are none yet
        return getattr(self._batches, name)


class _Default(Train):
    """The reporter of this process, opened at first use: an import opens nothing."""

    def __init__(self) -> None:  # pylint: disable=super-init-not-called
        self._opening = threading.Lock()

    def __getattr__(self, name: str):
        # Called for what is not there yet: the members that Train's own __init__ makes.
        if name not in ("_step", "_lock", "_handle", "_pid"):
            raise AttributeError(name)
        with self._opening:
            if name not in self.__dict__:
                made = Train()
                # At once: another thread must see no half of it. It is closed when it is collected, so it is kept.
                self.__dict__.update(made.__dict__, _made=made)
        return self.__dict__[name]


train = _Default()


def steps(batches: Iterable) -> Iterable:
    """`batches`, to loop over: each is a step of the training. Where no governor runs, what was given."""
    return train.steps(batches)
