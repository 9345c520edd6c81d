#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real networks from Python packages through `wattgov wave`, against onnx and a count of its own.

    onnx_models.py PROGRAM DUMP CACHE [NAME ..]

PROGRAM is wattgov, DUMP the test program onnx_shapes_dump. The wheels are fetched once into CACHE (60 MB);
where the registry cannot be reached, or python3-onnx is not installed, the test is skipped and says so.

Each model opens, has the shapes that onnx infers wherever it does, finite figures in `analyze` and `import`,
and as many multiply-adds (convolutions, matrix products, recurrent layers) as Counter finds over onnx's shapes,
or as a run of the model did, where onnx leaves sizes open. Of an If both count the branch that multiplies more.
"""
import glob
import json
import math
import os
import subprocess
import sys
import warnings
import zipfile

SKIPPED = 77
WHEELS = ["onnx==1.23.2", "silero-vad==6.2.3", "rapidocr-onnxruntime==1.4.4", "magika==1.0.3"]
VAD = {"input": [1, 576], "state": [2, 1, 128], "sr": [], "h": [1, 1, 128], "c": [1, 1, 128]}
# Inputs as their packages feed them; light models' are numbers already.
INPUTS = {
    "silero_vad": VAD, "silero_vad_16k_op15": VAD, "silero_vad_16k_sequence": VAD, "silero_vad_half": VAD,
    "silero_vad_op18_ifless": VAD, "silero_vad_openvino_16k": VAD,
    "ch_PP-OCRv4_det_infer": {"x": [1, 3, 64, 96]},
    "ch_PP-OCRv4_rec_infer": {"x": [1, 3, 48, 320]},
    "ch_ppocr_mobile_v2.0_cls_infer": {"x": [1, 3, 48, 192]},
    "model": {},  # magika
}
# Multiply-adds where onnx leaves sizes open: counted while onnx's reference interpreter (1.23.2) ran the model;
# magika by its three products, 2048 x 64 x 257 + 508 x 512 x 1280 + 512 x 214.
RUN = {
    "silero_vad": 679552, "silero_vad_16k_op15": 679552, "silero_vad_16k_sequence": 745600,
    "silero_vad_half": 679552, "silero_vad_op18_ifless": 679552, "silero_vad_openvino_16k": 679552,
    "ch_PP-OCRv4_rec_infer": 702469440, "ch_ppocr_mobile_v2.0_cls_infer": 16315376, "model": 366717952,
}
# G multiply-adds as published, within 2 %: torchvision's, or the papers'.
PUBLISHED = {"light_resnet50": 4.09, "light_vgg19": 19.63, "light_densenet121": 2.83, "light_squeezenet": 0.35}


def fetch(cache):
    """The models' paths by name; None where the registry cannot be reached."""
    os.makedirs(cache, exist_ok=True)
    paths = {}
    for wheel in WHEELS:
        folder = f"{cache}/{wheel}"
        if not os.path.exists(f"{folder}/complete"):
            done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--python-version",
                                   "3.12", "--only-binary=:all:", "-d", folder, wheel], check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode != 0:
                print(f"{wheel}: {done.stdout.strip().splitlines()[-1:]}")
                return None
            for file in glob.glob(f"{folder}/*.whl"):
                with zipfile.ZipFile(file) as archive:
                    for member in archive.namelist():
                        if member.endswith(".onnx") and ("/light/" in member or not wheel.startswith("onnx==")):
                            archive.extract(member, folder)
                os.remove(file)
            with open(f"{folder}/complete", "w", encoding="ascii"):
                pass
        for path in glob.glob(f"{folder}/**/*.onnx", recursive=True):
            paths[os.path.basename(path).removesuffix(".onnx")] = path
    return paths


def with_inputs(onnx, path, inputs):
    """The model with its inputs' sizes, and what --set-dim must say for them."""
    model = onnx.load(path, load_external_data=False)
    dims, names = [], set()
    for value in model.graph.input:
        shape = value.type.tensor_type.shape
        for axis, size in enumerate(inputs.get(value.name, [])):
            dim = shape.dim[axis]
            if dim.HasField("dim_value") and dim.dim_value > 0:
                continue
            if dim.dim_param in ("", "?") or dim.dim_param not in names:
                dims.append((f"{value.name}:{axis}", size))
            names.add(dim.dim_param)
            dim.Clear()
            dim.dim_value = size
    return model, dims


def sizes_of(value):
    shape = value.type.tensor_type.shape
    if not value.type.tensor_type.HasField("shape"):
        return None
    return [dim.dim_value if dim.HasField("dim_value") else None for dim in shape.dim]


def product(sizes):
    return math.prod(sizes) if sizes is not None and None not in sizes else math.nan


class Counter:
    """Multiply-adds of a graph, over onnx's shapes; what has none is in `unknown`."""

    def __init__(self, shapes):
        self.shapes = dict(shapes)
        self.unknown = []

    def count(self, graph):
        for tensor in graph.initializer:
            self.shapes[tensor.name] = list(tensor.dims)
        for value in list(graph.input) + list(graph.value_info) + list(graph.output):
            if sizes_of(value) is not None:
                self.shapes.setdefault(value.name, sizes_of(value))
        total = 0.0
        for node in graph.node:
            macs = self.of_node(node)
            if math.isnan(macs):
                self.unknown.append(node.name or node.output[0])
            else:
                total += macs
        return total

    def of_node(self, node):
        shapes = [self.shapes.get(name) for name in node.input]
        out = self.shapes.get(node.output[0])
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value":
                    self.shapes[node.output[0]] = list(attribute.t.dims)
        if node.op_type == "Conv":
            return product(out) * product(shapes[1][1:] if shapes[1] else None)
        if node.op_type == "ConvTranspose":
            return product(shapes[0]) * product(shapes[1][1:] if shapes[1] else None)
        if node.op_type in ("MatMul", "Gemm"):
            turned = any(a.name == "transA" and a.i for a in node.attribute)
            if not shapes[0] or out is None:
                return math.nan
            return product(out) * product([shapes[0][0 if turned else -1]])
        if node.op_type in ("LSTM", "GRU"):
            x, w, r = shapes[:3]
            return product(x[:2]) * (product(w) + product(r)) if x and w and r else math.nan
        branches = [self.of_branch(a.g) for a in node.attribute if a.HasField("g")]
        known = [macs for macs in branches if not math.isnan(macs)]
        return max(known) if known else math.nan if branches else 0.0

    def of_branch(self, graph):
        inner = Counter(self.shapes)
        total = inner.count(graph)
        return total if not inner.unknown else math.nan


def run(*arguments):
    return subprocess.run(list(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                          check=False)


def is_finite(document):
    """No number in JSON that is none: null is what is not known, NaN would be a fault."""
    if isinstance(document, dict):
        return all(is_finite(value) for value in document.values())
    if isinstance(document, list):
        return all(is_finite(value) for value in document)
    return not isinstance(document, float) or math.isfinite(document)


def check_shapes(onnx_types, dumped, faults, name):
    if dumped["error"]:
        faults.append(f"{name}: {dumped['error']}")
    known = 0
    for tensor, theirs in onnx_types.items():
        mine = dumped["tensors"].get(tensor)
        if mine is None or theirs is None:
            continue
        if mine[2] is None or len(mine[2]) != len(theirs):
            faults.append(f"{name}: {tensor}: onnx knows {theirs}, we {mine[2]}")
            continue
        known += 1
        if any(a is not None and a != b for a, b in zip(theirs, mine[2])):
            faults.append(f"{name}: {tensor}: onnx knows {theirs}, we {mine[2]}")
    return known


def check(onnx, program, dump, name, path):
    """A line that tells what was compared, and the faults."""
    faults = []
    model, dims = with_inputs(onnx, path, INPUTS.get(name, {}))
    options = [word for dim, size in dims for word in ("--set-dim", f"{dim}={size}")]
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=False, data_prop=True)
    counter = Counter({})
    macs = counter.count(inferred.graph)
    types = {value.name: sizes_of(value) for value in inferred.graph.value_info}
    done = subprocess.run([dump, "--declared", *options], input=path + "\n", stdout=subprocess.PIPE, check=True, text=True)
    known = check_shapes(types, json.loads(done.stdout), faults, name)
    imported = run(program, "wave", "import", path, *options, "--json")
    analysed = run(program, "wave", "analyze", path, "--gpu", "a100-sxm4-80gb", *options, "--json")
    for done in (imported, analysed):
        if done.returncode != 0:
            faults.append(f"{name}: {done.stderr.strip()}")
    if faults:
        return f"{name}: failed", faults
    if not is_finite(json.loads(analysed.stdout)) or not is_finite(json.loads(imported.stdout)):
        faults.append(f"{name}: a number that is none")
    [graph] = json.loads(imported.stdout)["files"]
    ours = sum(layer["flops"] for layer in graph["layers"]) / 2
    parameters = sum(layer["parameters"] for layer in graph["layers"])
    if counter.unknown:
        macs = max(macs, RUN.get(name, math.inf))
    if ours != macs:
        faults.append(f"{name}: {ours:.0f} multiply-adds, counted {macs:.0f}")
    if name in PUBLISHED and abs(ours / 1e9 / PUBLISHED[name] - 1) > 0.02:
        faults.append(f"{name}: {ours / 1e9:.3f} G multiply-adds, published {PUBLISHED[name]}")
    return (f"{name}: {len(graph['layers'])} layers, {graph['nodes_left_out']} nodes left out, {parameters} parameters, "
            f"{ours / 1e6:.3f} M multiply-adds, {known} shapes as onnx's"), faults


def main():
    try:
        warnings.filterwarnings("ignore")
        import onnx
        import onnx.shape_inference
    except ImportError:
        print("python3-onnx is not installed")
        return SKIPPED
    program, dump, cache = sys.argv[1:4]
    paths = fetch(cache)
    if paths is None:
        print("the package registry cannot be reached")
        return SKIPPED
    faults = []
    for name in sorted(sys.argv[4:] or paths):
        line, found = check(onnx, program, dump, name, paths[name])
        print(line)
        faults += found
    print("\n".join(faults))
    return 1 if faults or len(paths) < 15 else 0


if __name__ == "__main__":
    sys.exit(main())
