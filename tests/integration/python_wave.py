#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`wattgov.wave.apply` on small models of each kind: what grows computes the same, what shrinks is a slice.

    tests/integration/python_wave.py build/release

Without Debian's python3-torch everything is skipped with status 77.
"""
import copy
import json
import os
import sys
import unittest

from python_binding import BUILD, Binding, main

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    print("python3-torch is not installed")
    sys.exit(77)

sys.path.insert(0, os.path.join(BUILD or "", "bindings/python"))
from wattgov import _wave_trace, wave  # noqa: E402


class Vgg(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                                      nn.Conv2d(8, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(12 * 16, 20), nn.ReLU(), nn.Linear(20, 5))

    def forward(self, x):
        return self.classifier(self.features(x))


class Block(nn.Module):
    def __init__(self, before, width, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.skip = nn.Sequential()
        if stride != 1 or before != width:
            self.skip = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        out = torch.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.skip(x)
        return F.relu(out)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.stage1 = nn.Sequential(Block(8, 8), Block(8, 8))
        self.stage2 = nn.Sequential(Block(8, 16, 2), Block(16, 16))
        self.fc = nn.Linear(16, 5)

    def forward(self, x):
        x = self.stage2(self.stage1(F.relu(self.stem(x))))
        return self.fc(x.mean([2, 3]))


class MobileNet(nn.Module):
    """Inverted bottlenecks with squeeze and excitation."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1)
        self.expand = nn.Conv2d(8, 24, 1)
        self.bn = nn.BatchNorm2d(24)
        self.depthwise = nn.Conv2d(24, 24, 3, 1, 1, groups=24)
        self.bn2 = nn.BatchNorm2d(24)
        self.squeeze = nn.Conv2d(24, 6, 1)
        self.excite = nn.Conv2d(6, 24, 1)
        self.project = nn.Conv2d(24, 8, 1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        x = F.relu6(self.stem(x))
        y = F.relu6(self.bn(self.expand(x)))
        y = F.relu6(self.bn2(self.depthwise(y)))
        y = y * torch.sigmoid(self.excite(F.relu(self.squeeze(self.pool(y)))))
        x = x + self.project(y)
        return self.fc(torch.flatten(self.pool(x), 1))


class DenseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(8 + 4 * i) for i in range(3)])
        self.convs = nn.ModuleList([nn.Conv2d(8 + 4 * i, 4, 3, padding=1) for i in range(3)])
        self.head = nn.Conv2d(20, 6, 1)
        self.fc = nn.Linear(6 * 64, 5)

    def forward(self, x):
        parts = [self.stem(x)]
        for i in range(3):
            parts.append(self.convs[i](F.relu(self.norms[i](torch.cat(parts, 1)))))
        x = F.max_pool2d(self.head(torch.cat(parts, dim=1)), 2)
        return self.fc(x.view(x.size(0), -1))


# Widths of each, with one name for each space.
MODELS = {
    Vgg: {"features.0": 8, "features.4": 12, "classifier.1": 20},
    ResNet: {"stem": 8, "stage1.0.conv1": 8, "stage1.1.conv1": 8, "stage2.0.conv1": 16, "stage2.1.conv2": 16,
             "stage2.1.conv1": 16},
    MobileNet: {"stem": 8, "expand": 24, "squeeze": 6},
    DenseNet: {"stem": 8, "convs.0": 4, "convs.1": 4, "convs.2": 4, "head": 6},
}


def make(kind, seed=0):
    torch.manual_seed(seed)
    model = kind()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.weight.data, module.bias.data, module.running_mean, module.running_var):
                tensor.uniform_(0.5, 1.5)
    return model.eval()


def example(batch=4):
    return torch.randn(batch, 3, 16, 16, generator=torch.Generator().manual_seed(7))


def difference(a, b, x):
    with torch.no_grad():
        return float((a(x) - b(x)).abs().max())


class Apply(Binding):
    def test_what_grows_computes_the_same(self):
        for kind, widths in MODELS.items():
            for grow in ("split", "random"):
                model = make(kind)
                plan = {name: channels + 1 + i % 3 + (2 * channels if i == 1 else 0)
                        for i, (name, channels) in enumerate(widths.items())}
                wide = wave.apply(model, plan, example(), grow=grow, seed=3)
                for name, channels in plan.items():
                    self.assertEqual(len(dict(wide.named_modules())[name].weight), channels, (kind, name))
                self.assertLess(difference(model, wide, example()), 1e-5, (kind, grow))
                model.train()
                self.assertLess(difference(model, wide.train(), example()), 1e-4, (kind, grow))

    def test_copies_learn_different_things(self):
        model = make(Vgg)
        wide = wave.apply(model, {"features.0": 16}, example())
        wide(example()).square().sum().backward()
        gradient = wide.features[0].weight.grad
        source = [int((model.features[0].weight == row).flatten(1).all(1).nonzero()) for row in wide.features[0].weight]
        pairs = [(i, source.index(source[i])) for i in range(8, 16)]
        for copy_at, first in pairs:
            self.assertGreater(float((gradient[copy_at] - gradient[first]).abs().max()), 0)

    def test_channels_that_are_zero_go_first_and_change_nothing(self):
        for kind, widths in MODELS.items():
            for prune in ("l1", "l2", "bn"):
                model = make(kind)
                if prune == "bn" and kind in (Vgg, DenseNet, MobileNet):
                    continue
                trace = _wave_trace.Trace(model)
                for name in widths:  # the second channel of each space
                    space = trace.outputs[name][0].space.root()
                    for module_name, layout in {**trace.inputs, **trace.outputs}.items():
                        self.zero(trace, module_name, space)
                slim = wave.apply(model, {name: channels - 1 for name, channels in widths.items()
                                          if prune != "bn" or name != "stem"}, example(), prune=prune)
                self.assertLess(difference(model, slim, example()), 1e-5, (kind, prune))

    def zero(self, trace, name, space):
        module = trace.modules[name]
        layout = trace.inputs[name] if isinstance(module, nn.BatchNorm2d) else trace.outputs[name]
        at = 0
        for segment in layout:
            if segment.space.root() is space:
                module.weight.data[at + 1] = 0
                if module.bias is not None:
                    module.bias.data[at + 1] = 0
            at += len(segment)

    def test_a_pruned_chain_is_the_slice_of_largest_filters(self):
        model = make(Vgg)
        slim = wave.apply(model, {"features.0": 5, "classifier.1": 7}, example())
        norms = model.features[0].weight.abs().sum((1, 2, 3))
        kept = torch.sort(torch.topk(norms, 5).indices).values
        self.assertTrue(torch.equal(slim.features[0].weight, model.features[0].weight[kept]))
        self.assertTrue(torch.equal(slim.features[1].running_var, model.features[1].running_var[kept]))
        self.assertTrue(torch.equal(slim.features[4].weight, model.features[4].weight[:, kept]))
        kept = torch.sort(torch.topk(model.classifier[1].weight.abs().sum(1), 7).indices).values
        self.assertTrue(torch.equal(slim.classifier[1].weight, model.classifier[1].weight[kept]))
        self.assertTrue(torch.equal(slim.classifier[3].weight, model.classifier[3].weight[:, kept]))
        self.assertEqual((slim.classifier[3].in_features, slim.features[4].in_channels), (7, 5))

    def test_a_flattened_map_is_sliced_by_whole_channels(self):
        model = make(Vgg)
        slim = wave.apply(model, {"features.4": 9}, example())
        norms = model.features[4].weight.abs().sum((1, 2, 3))
        kept = torch.sort(torch.topk(norms, 9).indices).values
        columns = model.classifier[1].weight.reshape(20, 12, 16)[:, kept].flatten(1)
        self.assertTrue(torch.equal(slim.classifier[1].weight, columns))

    def test_a_residual_width_goes_by_the_joint_norm(self):
        model = make(ResNet)
        slim = wave.apply(model, {"stage1.0.conv2": 3}, example())
        norms = sum(layer.weight.abs().sum((1, 2, 3)) for layer in
                    (model.stem, model.stage1[0].conv2, model.stage1[1].conv2))
        kept = torch.sort(torch.topk(norms, 3).indices).values
        self.assertTrue(torch.equal(slim.stem.weight, model.stem.weight[kept]))
        self.assertTrue(torch.equal(slim.stage1[1].conv2.weight, model.stage1[1].conv2.weight[kept]))
        self.assertTrue(torch.equal(slim.stage2[0].skip[0].weight, model.stage2[0].skip[0].weight[:, kept]))

    def test_slim_models_train(self):
        for kind, widths in MODELS.items():
            slim = wave.apply(make(kind), {name: max(1, channels // 2) for name, channels in widths.items()}, example())
            slim.train()
            slim(example()).square().sum().backward()
            self.assertTrue(all(one.grad is not None and one.grad.shape == one.shape for one in slim.parameters()))

    def test_the_model_stays_as_it_is_unless_in_place(self):
        model = make(ResNet)
        before = copy.deepcopy(model.state_dict())
        wave.apply(model, {"stem": 4}, example())
        self.assertTrue(all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items()))
        self.assertIs(wave.apply(model, {"stem": 4}, example(), inplace=True), model)
        self.assertEqual(model.stem.out_channels, 4)

    def test_reads_the_plan_of_the_command(self):
        path = os.path.join(self.folder, "plan.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"schema": "wattgov.wave.plan/1", "widths": [
                {"name": "a", "layers": ["/stem/Conv", "/stage1/stage1.0/conv2/Conv"], "before": 8, "after": 6},
                {"name": "b", "layers": ["/stage1/stage1.1/conv1/Conv"], "before": 8, "after": 9},
                {"name": "c", "layers": ["/fc/Gemm"], "before": 5, "after": 5}]}, file)
        model = wave.apply(make(ResNet), path, example())
        self.assertEqual((model.stem.out_channels, model.stage1[1].conv1.out_channels), (6, 9))
        model = wave.apply(make(ResNet), {"Conv_0": 6}, example(), names={"Conv_0": "stem"})
        self.assertEqual(model.stem.out_channels, 6)

    def test_names_of_exported_nodes(self):
        self.assertEqual(wave.module_name("/layer1/layer1.0/down/down.0/Conv"), "layer1.0.down.0")
        self.assertEqual(wave.module_name("/layer1/layer1.1/layer1.1.0/conv1/Conv"), "layer1.1.0.conv1")
        self.assertEqual(wave.module_name("/fc/Gemm"), "fc")
        self.assertEqual(wave.module_name("features.0"), "features.0")

    def test_says_what_does_not_fit(self):
        class Mixed(Vgg):
            def forward(self, x):
                return super().forward(torch.roll(self.features[0](x), 1, 1)[:, :3])

        class Branch(Vgg):
            def forward(self, x):
                return super().forward(x) if x.sum() > 0 else x

        cases = [
            (Vgg, {"classifier.3": 4}, "the model's output"),
            (Vgg, {"nothing": 4}, "no module in the model"),
            (Vgg, {"features.1": 4}, "no convolution or linear layer"),
            (Vgg, {"features.0": 0}, "expected 1 or more"),
            (ResNet, {"stem": 4, "stage1.0.conv2": 5}, "shares its width"),
            (Mixed, {"features.0": 4}, "not known"),
            (Branch, {"features.0": 4}, "cannot trace"),
        ]
        for kind, plan, part in cases:
            with self.assertRaisesRegex(wave.PlanError, part):
                wave.apply(make(kind), plan)
        with self.assertRaisesRegex(wave.PlanError, "does not run"):
            wave.apply(make(Vgg), {"features.0": 4}, torch.zeros(1, 3, 5, 5))
        for option in ({"prune": "l3"}, {"grow": "sideways"}):
            with self.assertRaisesRegex(wave.PlanError, "expected"):
                wave.apply(make(Vgg), {"features.0": 4}, **option)
        with self.assertRaisesRegex(wave.PlanError, "schema"):
            wave.apply(make(Vgg), {"schema": "x"})

    def test_torch_is_imported_by_apply_only(self):
        self.assertFalse(self.values("""
            from wattgov import wave
            print(json.dumps("torch" in sys.modules))
        """))


if __name__ == "__main__":
    main(__doc__)
