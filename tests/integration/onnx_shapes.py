#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares wattgov's shape inference with onnx's own, over every model that the packages hold.

    onnx_shapes.py DUMP [--cases] [FILE.onnx ..]

DUMP is the test program onnx_shapes_dump. Models are those of Debian's libonnx-testdata, of the
installed onnx, and with --cases onnx's own test cases too (written to a scratch folder). The types
and shapes that files declare for what nodes make are forgotten first, on both sides. Wherever onnx
knows an element type, a rank or a dimension, we must know the same; where we know more, the test
data's recorded outputs must agree.

Left out, with the reason: see SHAPES_ONNX_GETS_WRONG, DATA_OF_ANOTHER_TYPE and NEWER_OPERATORS.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import warnings

SKIPPED = 77
DATA = "/usr/share/libonnx-testdata/data"
# A loop that inserts ever longer tensors into a sequence: onnx calls its elements scalars.
SHAPES_ONNX_GETS_WRONG = {("test_loop13_seq", "seq_res")}
# numpy has no bfloat16: the recorded outputs hold its bits as uint16.
DATA_OF_ANOTHER_TYPE = "_FLOAT_to_BFLOAT16"
# Operators that came after opset 23.
NEWER_OPERATORS = {"CausalConvWithState", "FlexAttention", "LinearAttention", "SwiGLU"}


def dimensions(tensor_type):
    if not tensor_type.HasField("shape"):
        return None
    return [d.dim_value if d.HasField("dim_value") else d.dim_param or None
            for d in tensor_type.shape.dim]


def flat_type(type_proto):
    """[KIND, ELEM_TYPE, DIMS], as the dump program prints it; None for maps and sparse tensors."""
    kind = type_proto.WhichOneof("value")
    if kind == "tensor_type":
        return ["t", type_proto.tensor_type.elem_type, dimensions(type_proto.tensor_type)]
    if kind not in ("sequence_type", "optional_type"):
        return None
    inner = flat_type(getattr(type_proto, kind).elem_type)
    if inner is None:
        return None
    names = {("sequence_type", "t"): "seq", ("optional_type", "t"): "opt",
             ("optional_type", "seq"): "optseq"}
    name = names.get((kind, inner[0]))
    return [name] + inner[1:] if name else None


def onnx_says(onnx, model):
    """What onnx infers, by tensor; empty where its inference gives up."""
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.ClearField("type")
    try:
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=False, data_prop=True)
    except Exception as error:  # onnx raises several kinds
        print(f"onnx gives up: {str(error)[:80]}", file=sys.stderr)
        return {}
    types = {}
    for value in list(inferred.graph.value_info) + list(inferred.graph.output):
        flat = flat_type(value.type) if value.HasField("type") else None
        if flat:
            types[value.name] = flat
    return types


def recorded(onnx, path, model):
    """Types and shapes of the outputs that the test data holds beside a model."""
    found = {}
    for index, output in enumerate(model.graph.output):
        data = f"{os.path.dirname(path)}/test_data_set_0/output_{index}.pb"
        if output.type.WhichOneof("value") != "tensor_type" or not os.path.exists(data):
            continue
        tensor = onnx.TensorProto()
        with open(data, "rb") as file:
            tensor.ParseFromString(file.read())
        found[output.name] = ["t", tensor.data_type, list(tensor.dims)]
    return found


def same_knowledge(onnx_type, ours):
    """Whether we know all that onnx does; its made-up names (unk__7) are no knowledge."""
    if onnx_type[0] != ours[0] or (onnx_type[1] and onnx_type[1] != ours[1]):
        return False
    if onnx_type[2] is None:
        return True
    if ours[2] is None or len(ours[2]) != len(onnx_type[2]):
        return False
    for theirs, mine in zip(onnx_type[2], ours[2]):
        if isinstance(theirs, int) and theirs != mine:
            return False
        if isinstance(theirs, str) and not theirs.startswith("unk__"):
            if not isinstance(mine, int) and theirs != mine:
                return False
    return True


def contradicts(data, ours):
    if ours[0] != "t":
        return True
    if ours[1] and ours[1] != data[1]:
        return True
    return ours[2] is not None and (len(ours[2]) != len(data[2]) or any(
        isinstance(mine, int) and mine != real for mine, real in zip(ours[2], data[2])))


def case_name(path):
    folder, file = os.path.split(path)
    return os.path.basename(folder) if file == "model.onnx" else file.removesuffix(".onnx")


def write_cases(folder):
    from onnx.backend.test.case.node import collect_testcases
    paths = []
    for case in collect_testcases(None):
        if case.model:
            paths.append(f"{folder}/{case.name}.onnx")
            with open(paths[-1], "wb") as file:
                file.write(case.model.SerializeToString())
    return paths


def compare(onnx, path, ours, counts, faults):
    model = onnx.load(path, load_external_data=False)
    name = case_name(path)
    if any(node.op_type in NEWER_OPERATORS for node in model.graph.node):
        counts["left out"] += 1
        return
    data = recorded(onnx, path, model)
    if ours["error"]:
        faults.append(f"{name}: {ours['error']}")
    for tensor, theirs in onnx_says(onnx, model).items():
        mine = ours["tensors"].get(tensor, ["t", 0, None])
        counts["tensors"] += 1
        if not same_knowledge(theirs, mine) and (name, tensor) not in SHAPES_ONNX_GETS_WRONG:
            faults.append(f"{name}: {tensor}: onnx knows {theirs}, we {mine}")
    for tensor, real in data.items():
        mine = ours["tensors"].get(tensor)
        if mine is None or DATA_OF_ANOTHER_TYPE in name:
            continue
        counts["recorded"] += 1
        if contradicts(real, mine):
            faults.append(f"{name}: {tensor}: the data is {real}, we say {mine}")


def main():
    try:
        warnings.filterwarnings("ignore")
        import onnx
        import onnx.shape_inference
    except ImportError:
        print("python3-onnx is not installed")
        return SKIPPED
    arguments = sys.argv[2:]
    paths = [a for a in arguments if a.endswith(".onnx")]
    with tempfile.TemporaryDirectory() as folder:
        if not paths:
            paths = sorted(glob.glob(f"{DATA}/**/*.onnx", recursive=True))
            paths += sorted(glob.glob(f"{os.path.dirname(onnx.__file__)}/**/*.onnx",
                                      recursive=True))
        if "--cases" in arguments:
            paths += write_cases(folder)
        if not paths:
            print("libonnx-testdata is not installed")
            return SKIPPED
        dump = subprocess.run([sys.argv[1]], input="\n".join(paths) + "\n", check=True,
                              stdout=subprocess.PIPE, text=True)
        counts, faults = {"tensors": 0, "recorded": 0, "left out": 0}, []
        lines = dump.stdout.splitlines()
        if len(lines) != len(paths):
            faults.append(f"{len(paths)} files, {len(lines)} lines")
        for path, line in zip(paths, lines):
            compare(onnx, path, json.loads(line), counts, faults)
    print("\n".join(faults))
    print(f"onnx {onnx.__version__}: {len(paths)} models, {counts['tensors']} tensors that onnx "
          f"knows, {counts['recorded']} recorded outputs, {counts['left out']} models left out, "
          f"{len(faults)} faults")
    return 1 if faults or counts["tensors"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
