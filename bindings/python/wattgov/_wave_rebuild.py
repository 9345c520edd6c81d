# SPDX-License-Identifier: MIT
"""Rebuilds the layers of a traced PyTorch model at other widths.

For each space of channels one list says which old channel each new one is, and what part of it its readers get: 1 for
a channel that stays, shares that sum to 1 for a channel and its copies, 0 for a fresh one. Where convolutions have
groups, whole groups stay, go or are copied. Producers take rows by
that list, norms take entries, readers take columns times the part; so a copy or a fresh channel changes nothing of
what the model computes.
"""
from __future__ import annotations

import torch
from torch import nn

from wattgov._wave_trace import NORMS, Layout, Space, Trace
from wattgov.wave import PlanError


class Choice:
    """Where the new channels of a space come from."""

    def __init__(self, source: torch.Tensor, share: torch.Tensor, is_fresh: torch.Tensor) -> None:
        self.source, self.share, self.is_fresh = source, share, is_fresh


def shapes(model: nn.Module, example) -> list | None:
    """The shapes of what the model makes of `example`, its mode left as it was."""
    if example is None:
        return None
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            out = model(*example) if isinstance(example, tuple) else model(example)
    except RuntimeError as error:
        raise PlanError(f"the model does not run on the example: {error}") from error
    finally:
        for module, mode in modes.items():
            module.training = mode
    outputs = list(out.values()) if isinstance(out, dict) else out if isinstance(out, (tuple, list)) else [out]
    return [tuple(one.shape) for one in outputs if isinstance(one, torch.Tensor)]


def rebuild(trace: Trace, widths: dict[Space, int], *, prune: str, grow: str, seed: int) -> None:
    if prune not in ("l1", "l2", "bn", "first"):
        raise PlanError(f"prune is {prune!r}, expected 'l1', 'l2', 'bn' or 'first'")
    if grow not in ("split", "random"):
        raise PlanError(f"grow is {grow!r}, expected 'split' or 'random'")
    random = torch.Generator().manual_seed(seed)
    choices = {}
    for space, channels in widths.items():
        if channels < space.channels:
            choices[space] = _keep(_norms(trace, space, prune), channels, space.block)
        else:
            choices[space] = _extend(space, channels, grow, random)
    with torch.no_grad():
        for name in list(trace.inputs):
            _rebuild_module(trace, name, choices, random)


def _keep(norms: torch.Tensor, channels: int, block: int) -> Choice:
    """The channels, or blocks of them, of largest norm, in their old order; of equal ones the first."""
    order = torch.sort(norms.reshape(-1, block).sum(1), descending=True, stable=True).indices[:channels // block]
    source = _expand(torch.sort(order).values, block)
    return Choice(source, torch.ones(channels), torch.zeros(channels, dtype=torch.bool))


def _expand(blocks: torch.Tensor, size: int) -> torch.Tensor:
    """The channels of blocks."""
    return (blocks[:, None] * size + torch.arange(size)[None, :]).flatten()


def _extend(space: Space, after: int, grow: str, random: torch.Generator) -> Choice:
    before, block = space.channels, space.block
    more = after - before
    old = torch.arange(before)
    if grow == "random":
        source = torch.cat([old, torch.zeros(more, dtype=torch.long)])
        is_fresh = torch.arange(after) >= before
        return Choice(source, (~is_fresh).to(torch.float64), is_fresh)
    # Every block is copied once before any is copied twice.
    blocks = before // block
    rounds = [torch.randperm(blocks, generator=random) for _ in range((more + before - 1) // before)]
    source = _expand(torch.cat([torch.arange(blocks)] + rounds)[:after // block], block)
    part = 0.5 + torch.rand(after, generator=random, dtype=torch.float64)
    total = torch.zeros(before, dtype=torch.float64).index_add_(0, source, part)
    return Choice(source, part / total[source], torch.zeros(after, dtype=torch.bool))


def _norms(trace: Trace, space: Space, prune: str) -> torch.Tensor:
    """What each channel of the space weighs, over all that produce it."""
    sums = torch.zeros(space.channels, dtype=torch.float64)
    if prune == "first":
        return -torch.arange(space.channels, dtype=torch.float64)
    found = False
    for name, layout in (trace.inputs if prune == "bn" else trace.outputs).items():
        module = trace.modules[name]
        if (prune == "bn") != isinstance(module, NORMS) or prune == "bn" and module.weight is None:
            continue
        flat = module.weight.detach().to("cpu", torch.float64).flatten(1) if prune != "bn" else None
        norms = module.weight.detach().to("cpu", torch.float64).abs() if prune == "bn" else \
            flat.abs().sum(1) if prune == "l1" else flat.square().sum(1)
        at = 0
        for segment in layout:
            if segment.space.root() is space:
                sums += norms[at:at + len(segment)].reshape(-1, segment.each).sum(1)
                found = True
            at += len(segment)
    if not found:
        raise PlanError(f"{space.names[0]!r}: no norm tells its channels apart, for prune={prune!r}")
    return sums


def _axis(layout: Layout, choices: dict[Space, Choice]) -> Choice | None:
    """The choice along a whole channel axis; None: it stays."""
    if not any(segment.space.root() in choices for segment in layout):
        return None
    source, share, is_fresh, at = [], [], [], 0
    for segment in layout:
        root, each = segment.space.root(), segment.each
        choice = choices.get(root)
        if choice is None:
            choice = Choice(torch.arange(root.channels), torch.ones(root.channels, dtype=torch.float64),
                            torch.zeros(root.channels, dtype=torch.bool))
        entries = choice.source[:, None] * each + torch.arange(each)[None, :]
        source.append(at + entries.flatten())
        share.append(choice.share.to(torch.float64).repeat_interleave(each))
        is_fresh.append(choice.is_fresh.repeat_interleave(each))
        at += root.channels * each
    return Choice(torch.cat(source), torch.cat(share), torch.cat(is_fresh))


def _parameter(module: nn.Module, name: str, value: torch.Tensor) -> None:
    old = getattr(module, name)
    if isinstance(old, nn.Parameter):
        setattr(module, name, nn.Parameter(value.contiguous(), requires_grad=old.requires_grad))
    else:
        setattr(module, name, value.contiguous())


def _take(tensor: torch.Tensor, choice: Choice, axis: int) -> torch.Tensor:
    return tensor.index_select(axis, choice.source.to(tensor.device))


def _rebuild_module(trace: Trace, name: str, choices: dict[Space, Choice], random: torch.Generator) -> None:
    module = trace.modules[name]
    taken = _axis(trace.inputs[name], choices)
    if isinstance(module, NORMS):
        if taken is not None:
            _rebuild_norm(module, taken)
        return
    made = _axis(trace.outputs[name], choices)
    is_grouped = name in trace.grouped
    if made is not None:
        _rebuild_rows(module, made, random)
    if taken is not None and not is_grouped:  # a group reads the same channels of its own as before
        weight = _take(module.weight, taken, 1)
        part = taken.share.to(weight.device, weight.dtype).reshape([1, -1] + [1] * (weight.dim() - 2))
        _parameter(module, "weight", weight * part)
    _set_sizes(module, is_grouped)


def _rebuild_rows(module: nn.Module, made: Choice, random: torch.Generator) -> None:
    weight = _take(module.weight, made, 0)
    fresh = made.is_fresh.to(weight.device)
    if bool(fresh.any()):
        drawn = torch.randn(weight.shape, generator=random).to(weight.device, weight.dtype)
        weight[fresh] = drawn[fresh] * module.weight.std(unbiased=False)
    _parameter(module, "weight", weight)
    if module.bias is not None:
        _parameter(module, "bias", _take(module.bias, made, 0).masked_fill(fresh, 0))


def _rebuild_norm(module: nn.Module, taken: Choice) -> None:
    for name, neutral in (("weight", 1), ("bias", 0), ("running_mean", 0), ("running_var", 1)):
        old = getattr(module, name)
        if old is not None:
            fresh = taken.is_fresh.to(old.device)
            _parameter(module, name, _take(old.detach(), taken, 0).masked_fill(fresh, neutral))
    module.num_features = len(taken.source)


def _set_sizes(module: nn.Module, is_grouped: bool) -> None:
    made, taken = module.weight.shape[:2]
    if isinstance(module, nn.Linear):
        module.out_features, module.in_features = made, taken
        return
    if is_grouped:
        module.groups = made // (module.out_channels // module.groups)
    module.out_channels = made
    module.in_channels = taken * module.groups
