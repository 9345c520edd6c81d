#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`wattgov.wave.apply` on small models of each kind: what grows computes the same, what shrinks is a slice.

    tests/integration/python_wave.py build/release

Without Debian's python3-torch everything is skipped with status 77.
"""
import copy
import json
import os
import subprocess
import sys
import unittest
import warnings

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


class ResNext(nn.Module):
    """Groups of 4 channels, a depth-wise convolution that makes 2 of each, groups of 6 over both of two branches."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.reduce = nn.Conv2d(8, 16, 1)
        self.grouped = nn.Conv2d(16, 16, 3, padding=1, groups=4)
        self.bn = nn.BatchNorm2d(16)
        self.restore = nn.Conv2d(16, 8, 1)
        self.twice = nn.Conv2d(8, 16, 3, padding=1, groups=8)
        self.left = nn.Conv2d(16, 12, 1)
        self.right = nn.Conv2d(8, 6, 1)
        self.both = nn.Conv2d(18, 36, 3, 2, 1, groups=3, bias=False)
        self.fc = nn.Linear(36, 5)

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = x + self.restore(F.relu(self.bn(self.grouped(F.relu(self.reduce(x))))))
        y = torch.cat([self.left(F.relu(self.twice(x))), self.right(x)], 1)
        return self.fc(F.relu(self.both(y)).mean([2, 3]))


# Widths of each, with one name for each space.
MODELS = {
    Vgg: {"features.0": 8, "features.4": 12, "classifier.1": 20},
    ResNet: {"stem": 8, "stage1.0.conv1": 8, "stage1.1.conv1": 8, "stage2.0.conv1": 16, "stage2.1.conv2": 16,
             "stage2.1.conv1": 16},
    MobileNet: {"stem": 8, "expand": 24, "squeeze": 6},
    DenseNet: {"stem": 8, "convs.0": 4, "convs.1": 4, "convs.2": 4, "head": 6},
    ResNext: {"stem": 8, "reduce": 16, "left": 12, "right": 6},
}
# Channels that stay together, where more than one.
BLOCKS = {(ResNext, "reduce"): 4, (ResNext, "left"): 6, (ResNext, "right"): 6}


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
                plan = {name: channels + (1 + i % 3) * BLOCKS.get((kind, name), 1) + (2 * channels if i == 1 else 0)
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
                if prune == "bn" and kind in (Vgg, DenseNet, MobileNet) or kind is ResNext:
                    continue  # of those in groups more than a channel goes
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

    def test_groups_go_whole_those_of_largest_norm_first(self):
        model = make(ResNext)
        slim = wave.apply(model, {"reduce": 8}, example())
        norms = [layer.weight.abs().sum((1, 2, 3)).reshape(4, 4).sum(1) for layer in (model.reduce, model.grouped)]
        groups = torch.sort(torch.topk(norms[0] + norms[1], 2).indices).values
        kept = torch.cat([torch.arange(4 * group, 4 * group + 4) for group in groups.tolist()])
        self.assertTrue(torch.equal(slim.reduce.weight, model.reduce.weight[kept]))
        self.assertTrue(torch.equal(slim.grouped.weight, model.grouped.weight[kept]))
        self.assertTrue(torch.equal(slim.grouped.bias, model.grouped.bias[kept]))
        self.assertTrue(torch.equal(slim.bn.running_mean, model.bn.running_mean[kept]))
        self.assertTrue(torch.equal(slim.restore.weight, model.restore.weight[:, kept]))
        self.assertEqual((slim.grouped.groups, slim.grouped.in_channels, slim.grouped.out_channels), (2, 8, 8))
        # A depth-wise one follows its input, with all that it makes of a channel.
        slim = wave.apply(model, {"stem": 5}, example())
        norms = sum(layer.weight.abs().sum((1, 2, 3)) for layer in (model.stem, model.restore)) \
            + model.twice.weight.abs().sum((1, 2, 3)).reshape(8, 2).sum(1)
        kept = torch.sort(torch.topk(norms, 5).indices).values
        made = torch.stack([2 * kept, 2 * kept + 1], 1).flatten()
        self.assertTrue(torch.equal(slim.twice.weight, model.twice.weight[made]))
        self.assertTrue(torch.equal(slim.left.weight, model.left.weight[:, made]))
        self.assertEqual((slim.twice.groups, slim.twice.in_channels, slim.twice.out_channels), (5, 5, 10))
        # Of two branches in one, each keeps its own groups.
        slim = wave.apply(model, {"left": 6}, example())
        self.assertEqual((slim.both.groups, slim.both.in_channels, slim.both.out_channels), (2, 12, 24))
        halves = [model.left.weight[at:at + 6].abs().sum() + model.both.weight[2 * at:2 * at + 12].abs().sum()
                  for at in (0, 6)]
        first = 6 * int(halves[1] > halves[0])
        self.assertTrue(torch.equal(slim.both.weight[:12], model.both.weight[2 * first:2 * first + 12]))
        self.assertTrue(torch.equal(slim.both.weight[12:], model.both.weight[24:]))

    def test_a_group_that_is_zero_changes_nothing(self):
        model = make(ResNext)
        for layer in (model.reduce, model.grouped, model.bn):
            layer.weight.data[4:8] = 0
            layer.bias.data[4:8] = 0
        for prune in ("l1", "l2", "bn"):
            slim = wave.apply(model, {"reduce": 12}, example(), prune=prune)
            self.assertLess(difference(model, slim, example()), 1e-5, prune)

    def test_a_plan_of_the_exported_model_has_its_parameters(self):
        """torch -> ONNX -> wattgov wave plan -> apply: as many parameters as the plan says, each layer as wide."""
        for kind, options in ((ResNext, ["--keep", "0.8"]), (ResNext, ["--goal", "parameters", "--limit", "1s"]),
                              (MobileNet, ["--keep", "0.8"]), (ResNet, ["--keep", "0.7"]),
                              (DenseNet, ["--keep", "0.8"])):
            with self.subTest(kind=kind.__name__, options=options):
                model = make(kind)
                path, plan_path = os.path.join(self.folder, "m.onnx"), os.path.join(self.folder, "plan.json")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    torch.onnx.export(copy.deepcopy(model), example(1), path, do_constant_folding=False,
                                      training=torch.onnx.TrainingMode.PRESERVE)
                subprocess.run([os.path.join(BUILD, "wattgov"), "wave", "plan", path, "--gpu", "a100-sxm4-80gb",
                                "--range", "0.4:1.6", "--align", "1", "-o", plan_path, *options], check=True,
                               stdout=subprocess.DEVNULL)
                with open(plan_path, encoding="utf-8") as file:
                    plan = json.load(file)
                shaped = wave.apply(model, plan_path, example())
                self.assertEqual(sum(one.numel() for one in model.parameters()), plan["before"]["parameters"])
                self.assertEqual(sum(one.numel() for one in shaped.parameters()), plan["after"]["parameters"])
                self.assertNotEqual(plan["before"]["parameters"], plan["after"]["parameters"])
                self.assertEqual(shaped(example()).shape, model(example()).shape)
                layers = {wave.module_name(layer["name"]): layer["after"] for layer in plan["layers"]}
                for name, module in shaped.named_modules():
                    if isinstance(module, nn.Conv2d):
                        self.assertEqual((module.in_channels, module.out_channels),
                                         (layers[name]["in"], layers[name]["out"]), name)

    def test_slim_models_train(self):
        for kind, widths in MODELS.items():
            plan = {name: max(BLOCKS.get((kind, name), 1), channels // 2) for name, channels in widths.items()}
            slim = wave.apply(make(kind), plan, example())
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

        class Uneven(nn.Module):  # 2 groups of 4 make 3 each
            def __init__(self):
                super().__init__()
                self.up = nn.Conv2d(3, 8, 1)
                self.uneven = nn.Conv2d(8, 6, 1, groups=2)
                self.fc = nn.Conv2d(6, 2, 1)

            def forward(self, x):
                return self.fc(self.uneven(self.up(x)))

        class Crossing(ResNext):  # a group of 6 reads of both branches
            def __init__(self):
                super().__init__()
                self.left, self.right = nn.Conv2d(16, 9, 1), nn.Conv2d(8, 9, 1)

        cases = [
            (Vgg, {"classifier.3": 4}, "the model's output"),
            (Vgg, {"nothing": 4}, "no module in the model"),
            (Vgg, {"features.1": 4}, "no convolution or linear layer"),
            (Vgg, {"features.0": 0}, "expected 1 or more"),
            (ResNet, {"stem": 4, "stage1.0.conv2": 5}, "shares its width"),
            (Mixed, {"features.0": 4}, "not known"),
            (ResNext, {"reduce": 6}, "multiple of 4: 'grouped' is a convolution in groups"),
            (ResNext, {"left": 8}, "multiple of 6: 'both'"),
            (ResNext, {"both": 24}, "cannot change from 36 to 24 channels by itself: it follows left, right"),
            (ResNext, {"twice": 10}, "from 16 to 10 channels by itself: it follows stem"),
            (Uneven, {"up": 6}, "'uneven' is a convolution in 2 groups"),
            (Uneven, {"uneven": 4}, "'uneven' is a convolution in 2 groups"),
            (Crossing, {"left": 6}, "'both' is a convolution in 3 groups"),
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

    def test_what_is_no_plan_is_refused(self):
        path = os.path.join(self.folder, "plan.json")
        texts = {b"": "not JSON", b"{": "not JSON", b"\xff\xfe": "not JSON", b"[]": "is a list", b"3": "is a int",
                 b'{"stem": 4.0}': "has 4.0 channels", b'{"stem": "4"}': "has '4' channels",
                 b'{"stem": null}': "has None",
                 b'{"stem": true}': "has True", b'{"stem": NaN}': "has nan", b'{"stem": -1}': "expected 1 or more",
                 b'{"schema": "wattgov.wave.analyze/1"}': "schema is 'wattgov.wave.analyze/1'",
                 b'{"schema": "wattgov.wave.plan/1"}': "widths are not as", b'{"schema": "wattgov.wave.plan/1", '
                 b'"widths": [{"before": 1, "after": 2}]}': "widths are not as", b'{"schema": "wattgov.wave.plan/1", '
                 b'"widths": [3]}': "widths are not as", b'{"schema": "wattgov.wave.plan/1", "widths": [{"before": 8, '
                 b'"after": 7.5, "layers": ["stem"]}]}': "'stem' has 7.5 channels", b'{"schema": "wattgov.wave.plan/1", '
                 b'"widths": [{"name": "up", "before": 8, "after": 4, "layers": []}]}': "'up' goes from 8 to 4 channels"}
        for text, part in texts.items():
            with open(path, "wb") as file:
                file.write(text)
            with self.assertRaisesRegex(wave.PlanError, part, msg=text):
                wave.apply(make(ResNet), path, example())
        with self.assertRaises(FileNotFoundError):
            wave.apply(make(ResNet), path + "x", example())
        self.assertEqual(wave.apply(make(ResNet), {"stem": torch.tensor(4)}).stem.out_channels, 4)

    def test_torch_is_imported_by_apply_only(self):
        self.assertFalse(self.values("""
            from wattgov import wave
            print(json.dumps("torch" in sys.modules))
        """))


if __name__ == "__main__":
    main(__doc__)
