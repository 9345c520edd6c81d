# SPDX-License-Identifier: MIT
"""What the callbacks share: classes that are made when the first one is, with the framework's own class as base."""
from __future__ import annotations

import importlib
import numbers


def find_class(framework: str, places: list[tuple[str, str]]) -> list[type]:
    """The classes that are there, by (module, name); ImportError with what to install when there is none."""
    found = []
    for module, name in places:
        try:
            found.append(getattr(importlib.import_module(module), name))
        except ImportError:
            continue
    if not found:
        raise ImportError(f"WattgovCallback needs {framework}, which is not installed here (looked for: "
                          + ", ".join(module for module, _ in places) + ")")
    return found


def number(value) -> float | None:
    """A metric as a number: tensors of one element too; None when it is none."""
    if isinstance(value, numbers.Real):
        return float(value)
    try:
        return float(value.item())
    except (AttributeError, TypeError, ValueError, RuntimeError):
        return None
