# SPDX-License-Identifier: MIT
"""What shares a width in a PyTorch model, found by walking its torch.fx graph.

Each convolution and linear layer makes a space of channels. Along the graph a tensor carries the layout of its
channel axis: a list of spaces, each with how many entries of the axis belong to one of its channels (a flattened 7x7
map: 49). Adding tensors makes their spaces one; concatenating joins lists; a convolution in groups makes its output
the space of its input, whose channels then come and go by whole groups, as they do in `wattgov wave plan` (a
depth-wise one is that of groups of one channel). Spaces that reach the model's output, or something that the walk
does not know, are fixed.
"""
from __future__ import annotations

import math
import operator

import torch
from torch import fx, nn
from torch.nn import functional as F

from wattgov.wave import PlanError

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
# They work on each channel alone, or on each place.
SAME = (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish, nn.Sigmoid, nn.Tanh,
        nn.Hardswish, nn.Hardsigmoid, nn.Hardtanh, nn.Softplus, nn.Identity, nn.Dropout, nn.Dropout2d, nn.Dropout3d,
        nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d, nn.AdaptiveAvgPool1d,
        nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d,
        nn.Upsample, nn.ZeroPad2d, nn.ReflectionPad2d, nn.ReplicationPad2d)
SAME_FUNCTIONS = {F.relu, F.relu6, F.leaky_relu, F.elu, F.selu, F.gelu, F.silu, F.mish, F.sigmoid, F.tanh, F.hardswish,
                  F.hardsigmoid, F.hardtanh, F.softplus, F.dropout, F.dropout2d, F.max_pool1d, F.max_pool2d,
                  F.max_pool3d, F.avg_pool1d, F.avg_pool2d, F.avg_pool3d, F.adaptive_avg_pool1d, F.adaptive_avg_pool2d,
                  F.adaptive_avg_pool3d, F.adaptive_max_pool2d, F.interpolate, torch.relu, torch.sigmoid, torch.tanh}
SAME_METHODS = {"relu", "relu_", "sigmoid", "tanh", "contiguous", "clone", "float", "half", "to"}
PAIRS = {torch.add, torch.sub, torch.mul, operator.add, operator.sub, operator.mul, operator.iadd, operator.isub,
         operator.imul, operator.truediv, torch.maximum, torch.minimum}
PAIR_METHODS = {"add", "add_", "sub", "mul", "mul_"}


class Space:
    """Channels that are changed together; `root()` is the one that stands for all that were united."""

    def __init__(self, channels: int, name: str) -> None:
        self.channels = channels
        self.names = [name]  # modules that produce it
        self.fixed: str | None = None  # why it cannot change
        self.block = 1  # so many channels stay together: the groups of a convolution
        self.blocked = ""  # which one's
        self._united: Space | None = None

    def root(self) -> Space:
        space = self
        while space._united is not None:
            space = space._united
        return space

    def unite(self, other: Space, where: str) -> None:
        a, b = self.root(), other.root()
        if a is b:
            return
        if a.channels != b.channels:
            raise PlanError(f"{where}: meets {a.channels} and {b.channels} channels")
        b._united = a
        a.names += [name for name in b.names if name not in a.names]
        a.fixed = a.fixed or b.fixed
        a.keep_together(b.block, b.blocked)

    def keep_together(self, block: int, name: str) -> None:
        if self.block % block != 0:
            self.block, self.blocked = math.lcm(self.block, block), name


class Segment:
    """A stretch of a tensor's channel axis: `each` entries for each channel of `space`."""

    def __init__(self, space: Space, each: int = 1) -> None:
        self.space, self.each = space, each

    def __len__(self) -> int:
        return self.space.root().channels * self.each


class Layout(list):
    """The segments of a channel axis. `is_flat`: each channel stands for a map whose size is not known yet."""

    def __init__(self, segments, is_flat: bool = False) -> None:
        super().__init__(segments)
        self.is_flat = is_flat

    def total(self) -> int:
        return sum(len(segment) for segment in self)

    def fix(self, why: str) -> None:
        for segment in self:
            root = segment.space.root()
            root.fixed = root.fixed or why


class Trace:
    """The walk over `model`: `inputs` and `outputs` are the layouts of each module that holds weights."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.modules = dict(model.named_modules())
        self.inputs: dict[str, Layout] = {}
        self.outputs: dict[str, Layout] = {}
        self.grouped: set[str] = set()  # convolutions whose groups come and go with their input
        self._layouts: dict[fx.Node, Layout | None] = {}
        try:
            graph = fx.Tracer().trace(model)
        except Exception as error:  # whatever a model's code raises when it is traced
            raise PlanError(f"torch.fx cannot trace the model: {error}") from error
        for node in graph.nodes:
            self._layouts[node] = self._visit(node)

    def widths(self, wanted: dict[str, int]) -> dict[Space, int]:
        """The channels that each space is to have."""
        out: dict[Space, int] = {}
        for name, channels in wanted.items():
            layout = self.outputs.get(name)
            if layout is None:
                what = "no convolution or linear layer that is reached" if name in self.modules else "no module"
                raise PlanError(f"{name!r} is {what} in the model; modules with widths are: "
                                f"{', '.join(sorted(self.outputs))}")
            space = layout[0].space.root()
            if channels < 1:
                raise PlanError(f"{name!r} is to have {channels} channels, expected 1 or more")
            if len(layout) > 1 or layout[0].each > 1:  # a convolution in groups, of what others produce
                if channels != layout.total():
                    raise PlanError(f"{name!r} cannot change from {layout.total()} to {channels} channels by itself: "
                                    f"it follows {', '.join(one.space.root().names[0] for one in layout)}")
                continue
            if out.setdefault(space, channels) != channels:
                raise PlanError(f"{name!r} is to have {channels} channels, and {out[space]} because it shares its "
                                f"width with {', '.join(one for one in space.names if one != name)}")
            if space.fixed and channels != space.channels:
                raise PlanError(f"{name!r} cannot change from {space.channels} to {channels} channels: {space.fixed}")
            if channels % space.block != 0:
                raise PlanError(f"{name!r} is to have {channels} channels, expected a multiple of {space.block}: "
                                f"{space.blocked!r} is a convolution in groups, which stay whole")
        return {space: channels for space, channels in out.items() if channels != space.channels}

    # one method a kind of node

    def _visit(self, node: fx.Node) -> Layout | None:
        if node.op in ("placeholder", "get_attr"):
            return None
        if node.op == "output":
            for source in node.all_input_nodes:
                self._fix(source, "it reaches the model's output")
            return None
        if node.op == "call_module":
            return self._module(node)
        return self._call(node)

    def _of(self, argument) -> Layout | None:
        return self._layouts.get(argument) if isinstance(argument, fx.Node) else None

    def _fix(self, argument, why: str) -> None:
        layout = self._of(argument)
        if layout is not None:
            layout.fix(why)

    def _unknown(self, node: fx.Node) -> None:
        for source in node.all_input_nodes:
            self._fix(source, f"it reaches {node.op.replace('call_', '')} {node.target!s}, which mixes channels in a "
                              "way that is not known")

    def _module(self, node: fx.Node) -> Layout | None:
        name, module = str(node.target), self.modules[str(node.target)]
        source = self._of(node.args[0]) if node.args else None
        if isinstance(module, CONVOLUTIONS + (nn.Linear,)):
            return self._weights(name, module, source)
        if isinstance(module, NORMS):
            return self._norm(name, module, source)
        if isinstance(module, nn.Flatten):
            return self._flatten(node, source, module.start_dim)
        if isinstance(module, SAME) or isinstance(module, nn.PReLU) and module.num_parameters == 1:
            return source
        return self._unknown(node)

    def _weights(self, name: str, module: nn.Module, source: Layout | None) -> Layout:
        is_linear = isinstance(module, nn.Linear)
        taken = module.in_features if is_linear else module.in_channels
        made = module.out_features if is_linear else module.out_channels
        groups = 1 if is_linear else module.groups
        if source is not None:
            source = self._settle(name, source, taken)
        if name in self.outputs:  # called a second time
            self._same_input(name, source)
            return self.outputs[name]
        self.inputs[name] = source if source is not None else Layout([])
        self.outputs[name] = Layout([Segment(Space(made, name))]) if groups == 1 else self._groups(name, module, source)
        return self.outputs[name]

    def _groups(self, name: str, module: nn.Module, source: Layout | None) -> Layout:
        """Each channel of the input makes as many of the output, as long as whole groups stay together."""
        size = module.in_channels // module.groups
        if source is None or module.out_channels % module.in_channels or any(len(one) % size for one in source):
            space = Space(module.out_channels, name)
            space.fixed = f"{name!r} is a convolution in {module.groups} groups, which are not its input's channels"
            if source is not None:
                source.fix(space.fixed)
            return Layout([Segment(space)])
        for segment in source:
            root = segment.space.root()
            root.names.append(name)
            root.keep_together(size // math.gcd(size, segment.each), name)
        self.grouped.add(name)
        times = module.out_channels // module.in_channels
        return Layout([Segment(one.space, one.each * times) for one in source])

    def _same_input(self, name: str, source: Layout | None) -> None:
        first = self.inputs[name]
        if source is None or len(first) != len(source):
            for layout in (first, source or Layout([])):
                layout.fix(f"{name!r} is called on inputs of different layouts")
            return
        for a, b in zip(first, source):
            a.space.unite(b.space, name)

    def _settle(self, name: str, source: Layout, taken: int) -> Layout | None:
        """Finds how many entries a channel of a flattened map has."""
        total = source.total()
        if source.is_flat and total > 0 and taken % total == 0:
            return Layout([Segment(one.space, one.each * (taken // total)) for one in source])
        if total != taken:
            source.fix(f"{name!r} takes {taken} channels, where {total} were expected")
            return None
        return source

    def _norm(self, name: str, module: nn.Module, source: Layout | None) -> Layout | None:
        if source is None:
            return None
        source = self._settle(name, source, module.num_features)
        if name in self.inputs:
            self._same_input(name, source)
        elif source is not None:
            self.inputs[name] = source
        return source

    def _flatten(self, node: fx.Node, source: Layout | None, start: int) -> Layout | None:
        if start != 1:
            return self._unknown(node)
        return None if source is None else Layout(source, is_flat=True)

    def _call(self, node: fx.Node) -> Layout | None:
        target = node.target
        first = self._of(node.args[0]) if node.args else None
        if target in SAME_FUNCTIONS or target in SAME_METHODS:
            return first
        if target in PAIRS or target in PAIR_METHODS:
            return self._pair(node)
        if target in (torch.cat, torch.concat):
            return self._concatenate(node)
        if target in (torch.flatten, "flatten"):
            start = node.kwargs.get("start_dim", node.args[1] if len(node.args) > 1 else 0)
            return self._flatten(node, first, start)
        if target in (torch.mean, "mean", F.adaptive_avg_pool2d):
            return self._mean(node, first)
        if target in ("size", "dim") or target is getattr and node.args[1] in ("shape", "dtype", "device"):
            return None
        if target in ("view", "reshape") and len(node.args) == 3 and node.args[2] == -1:
            return self._flatten(node, first, 1)
        return self._unknown(node)

    def _pair(self, node: fx.Node) -> Layout | None:
        layouts = [self._of(argument) for argument in node.args]
        tensors = [argument for argument in node.args if isinstance(argument, fx.Node)]
        if len(tensors) < 2:
            return layouts[0] if layouts[0] is not None else (layouts[1] if len(layouts) > 1 else None)
        a, b = layouts[:2]
        if a is None or b is None or len(a) != len(b) or a.is_flat != b.is_flat:
            return self._unknown(node)
        if [(len(one), one.each) for one in a] != [(len(one), one.each) for one in b]:
            return self._unknown(node)
        for one, other in zip(a, b):
            one.space.unite(other.space, node.name)
        return a

    def _concatenate(self, node: fx.Node) -> Layout | None:
        parts = node.args[0] if node.args else node.kwargs["tensors"]
        axis = node.kwargs.get("dim", node.kwargs.get("axis", node.args[1] if len(node.args) > 1 else 0))
        layouts = [self._of(part) for part in parts]
        if axis != 1 or any(layout is None or layout.is_flat for layout in layouts):
            return self._unknown(node)
        return Layout([segment for layout in layouts for segment in layout])

    def _mean(self, node: fx.Node, source: Layout | None) -> Layout | None:
        axes = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else None)
        axes = (axes,) if isinstance(axes, int) else axes
        if axes is None or any(axis in (0, 1) for axis in axes) or any(axis < -2 for axis in axes):
            return self._unknown(node)
        return source
