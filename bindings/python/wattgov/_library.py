# SPDX-License-Identifier: MIT
"""The door to libwattgov.so: loading it, its errors, its texts and numbers as Python has them.

`_abi` is made from the public headers at build time (generate_abi.py); `ffi` needs no parser, so importing costs
a millisecond or two. The library itself is loaded at first use: WATTGOV_LIBRARY names it, else the loader looks.
"""
from __future__ import annotations

import math
import os

from wattgov._abi import ffi

LIBRARY = "libwattgov.so.0"
_lib = None


class WattgovError(Exception):
    """What libwattgov answered: `code` ("ELOST"), `number` (-10), and the text, which names what was tried."""

    def __init__(self, code: str, number: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.number = number

    def __reduce__(self):
        return (type(self), (self.code, self.number, str(self)))


def error(code: str, text: str) -> WattgovError:
    """An error that Python found, in the words of the library."""
    numbers = {name: number for number, name in ffi.typeof("enum wg_code").elements.items()}
    return WattgovError(code, numbers["WG_" + code], text)


def load():
    """The loaded library. Several threads may come here at once: loading twice gives the same library."""
    global _lib
    if _lib is None:
        path = os.environ.get("WATTGOV_LIBRARY") or LIBRARY
        try:
            _lib = ffi.dlopen(path)
        except OSError as cause:
            raise error("ENOENT", f"cannot load {path}: {cause}; install libwattgov, or name its file in "
                                  "WATTGOV_LIBRARY") from None
    return _lib


def check(code: int, err) -> None:
    """Raises what a function returned, unless it was WG_OK."""
    if code != 0:
        lib = load()
        name = ffi.string(lib.wg_code_name(code)).decode()
        text = ffi.string(err.text).decode("utf-8", "replace") or ffi.string(lib.wg_code_text(code)).decode()
        raise WattgovError(name[len("WG_"):], int(code), text)


def to_bytes(text: str | os.PathLike[str], what: str) -> bytes:
    data = os.fsencode(text)
    if b"\0" in data:
        raise ValueError(f"{what} holds a zero byte: {text!r}")
    return data


def to_text(pointer) -> str | None:
    return None if pointer == ffi.NULL else ffi.string(pointer).decode("utf-8", "replace")


def words(bits: int, enum: str, key) -> frozenset[str]:
    """The words of the bits that are set, by the library's own table; a bit that it does not know has none."""
    names = (to_text(key(bit)) for bit in ffi.typeof(enum).elements if bits & bit)
    return frozenset(name for name in names if name is not None)


# What a number is when it is not known; not a number always means that.
UNKNOWN = {"numa_node": 2**32 - 1, "memory_bytes": 0, "resolution": 0.0, "update_period_s": 0.0,
           "averaging_window_s": 0.0, "wrap_s": 0.0}


def value(name: str, raw):
    """A field of a struct as Python has it: texts, numbers, and None for what is not known."""
    if isinstance(raw, ffi.CData):
        return to_text(raw)
    if isinstance(raw, float) and math.isnan(raw) or raw == UNKNOWN.get(name, math.nan):
        return None
    return raw


class Record:
    """Named values that are read and shown; `__slots__` lists them."""

    __slots__: tuple[str, ...] = ()

    def __init__(self, **values) -> None:
        for name, one in values.items():
            object.__setattr__(self, name, one)

    def __setattr__(self, name: str, _) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} is a result and cannot be set")

    def as_dict(self) -> dict:
        """The same as plain dicts, lists, numbers and texts, ready for json.dumps."""
        return {name: plain(getattr(self, name)) for name in self.__slots__}

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({shown})"


def plain(item):
    if isinstance(item, Record):
        return item.as_dict()
    if isinstance(item, dict):
        return {key: plain(one) for key, one in item.items()}
    if isinstance(item, (tuple, list)):
        return [plain(one) for one in item]
    if isinstance(item, frozenset):
        return sorted(item)
    return item
