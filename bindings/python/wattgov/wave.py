# SPDX-License-Identifier: MIT
"""Widths that `wattgov wave plan` chose, applied to a PyTorch model.

    from wattgov import wave

    slim = wave.apply(model, "plan.json", example)        # or {"layer1.0.conv1": 48, "stem": 24}

The model is traced with torch.fx; what shares a width (residual additions, depth-wise convolutions, concatenations,
flattened maps) is found and changed together. A width that shrinks keeps the channels of largest norm, summed over
all layers that produce it; the groups of a convolution come and go whole, as in the plan. One that grows computes the
same function as before, until it is trained (see `grow`). What the trace cannot follow is never guessed: its widths
are fixed, and a plan that changes one fails with the reason.

torch is imported in `apply` only.
"""
from __future__ import annotations

import json
import operator
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping
    import torch

__all__ = ["PlanError", "apply", "module_name", "targets"]

PLAN_SCHEMA = "wattgov.wave.plan/1"


class PlanError(ValueError):
    """A plan that does not fit the model: says which module, and why."""


def module_name(name: str) -> str:
    """The module of a node that torch.onnx.export named: "/layer1/layer1.0/conv1/Conv" is "layer1.0.conv1"."""
    if not name.startswith("/"):
        return name
    scopes = name.strip("/").split("/")[:-1]
    kept = [scope for scope, inner in zip(scopes, scopes[1:] + [""]) if not inner.startswith(scope + ".")]
    return ".".join(kept)


def targets(plan: str | os.PathLike | Mapping, names: Mapping[str, str] | None = None) -> dict[str, int]:
    """What a plan says of each module: {name: channels}. `names` maps a plan's layer names to modules' names, where
    they are neither that nor made from it by torch.onnx.export."""
    where = "the plan"
    if isinstance(plan, (str, os.PathLike)):
        where = os.fspath(plan)
        with open(plan, encoding="utf-8") as file:
            try:
                plan = json.load(file)
            except ValueError as error:  # JSON, or UTF-8
                raise PlanError(f"{where}: not JSON: {error}") from error
    names = names or {}
    if not hasattr(plan, "items"):
        raise PlanError(f"{where} is a {type(plan).__name__}, expected a plan or {{module: channels}}")
    if "schema" not in plan:
        return {names.get(name, name): _channels(where, name, channels) for name, channels in plan.items()}
    if plan["schema"] != PLAN_SCHEMA:
        raise PlanError(f"{where}: the schema is {plan['schema']!r}, expected {PLAN_SCHEMA!r}")
    out: dict[str, int] = {}
    try:
        for width in plan["widths"]:
            if width["after"] == width["before"]:
                continue
            if not width["layers"]:
                raise PlanError(f"{where}: {width['name']!r} goes from {width['before']} to {width['after']} channels, "
                                "but names no layer that makes them")
            for layer in width["layers"]:
                out[names.get(layer, module_name(layer))] = _channels(where, layer, width["after"])
    except (KeyError, TypeError, AttributeError) as error:
        raise PlanError(f"{where}: its widths are not as 'wattgov wave plan' writes them ({error!r})") from error
    return out


def _channels(where: str, name: str, channels: object) -> int:
    try:
        whole = operator.index(channels)  # what rounds would be another plan
    except TypeError:
        whole = None
    if whole is None or isinstance(channels, bool):
        raise PlanError(f"{where}: {name!r} has {channels!r} channels, expected a whole number")
    return whole


def apply(model: torch.nn.Module, plan: str | os.PathLike | Mapping, example: torch.Tensor | tuple | None = None, *,
          prune: str = "l1", grow: str = "split", names: Mapping[str, str] | None = None, inplace: bool = False,
          seed: int = 0) -> torch.nn.Module:
    """`model` with the widths of `plan`: the file or the parsed JSON of `wattgov wave plan`, or {module: channels}.

    example  an input, or a tuple of them: the new model is run on it once, and its outputs must have the shapes
             that the old one's have
    prune    which channels stay where a width shrinks: those of largest "l1" or "l2" norm of the filters that
             produce them, or of largest "bn" factor (the sums over all that share the width); "first": the first
    grow     where it grows: "split" copies channels drawn at random and splits what reads them between the copies,
             in unequal parts so that they learn different things (Net2Net); "random" draws new filters as wide as
             the present ones and reads them with weights of 0. Both leave the function as it is
    seed     of what is drawn
    """
    import copy

    from wattgov import _wave_rebuild, _wave_trace

    wanted = targets(plan, names)
    if not inplace:
        model = copy.deepcopy(model)
    trace = _wave_trace.Trace(model)
    widths = trace.widths(wanted)
    shapes = _wave_rebuild.shapes(model, example)
    _wave_rebuild.rebuild(trace, widths, prune=prune, grow=grow, seed=seed)
    after = _wave_rebuild.shapes(model, example)
    if shapes != after:
        raise PlanError(f"the new model's outputs have the shapes {after}, the old one's {shapes}")
    return model
