# SPDX-License-Identifier: MIT
"""A model of Triton's python backend that runs an ONNX file by onnxruntime, several requests together.

Parameters of the model's configuration: `path` of the file; `site`, a folder of packages (the backend's stub heeds no
PYTHONPATH); `threads` within an operator; `feed`, JSON of further inputs of the file that no request brings, each
{"shape": [..], "type": "float32", "value": x} with -1 for the batch; `below`, a bound that the input's numbers are taken
modulo, so that any generated load is valid (an index beyond a table would end in an error).
"""
import json
import sys

import triton_python_backend_utils as utils


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        told = {name: entry["string_value"] for name, entry in config["parameters"].items()}
        sys.path.insert(0, told["site"])
        import numpy  # pylint: disable=import-outside-toplevel
        import onnxruntime  # pylint: disable=import-outside-toplevel
        self.numpy = numpy
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(told.get("threads", "1"))
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Threads that spin while they wait take the processor from whoever shares it.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = onnxruntime.InferenceSession(told["path"], options, providers=["CPUExecutionProvider"])
        self.feed = json.loads(told.get("feed", "{}"))
        self.below = float(told.get("below", "0"))
        self.input = config["input"][0]["name"]
        self.output = config["output"][0]["name"]
        self.source = next(entry.name for entry in self.session.get_inputs() if entry.name not in self.feed)
        self.target = self.session.get_outputs()[0].name

    def inputs(self, tensor):
        numpy = self.numpy
        if self.below:
            tensor = numpy.nan_to_num(numpy.mod(tensor, self.below)).astype(tensor.dtype)
        values = {self.source: tensor}
        for name, entry in self.feed.items():
            shape = [len(tensor) if size == -1 else size for size in entry["shape"]]
            values[name] = numpy.full(shape, entry["value"], dtype=entry["type"])
        return values

    def execute(self, requests):
        tensors = [utils.get_input_tensor_by_name(request, self.input).as_numpy() for request in requests]
        result = self.session.run([self.target], self.inputs(self.numpy.concatenate(tensors)))[0]
        answers = []
        first = 0
        for tensor in tensors:
            part = self.numpy.ascontiguousarray(result[first:first + len(tensor)])
            answers.append(utils.InferenceResponse([utils.Tensor(self.output, part)]))
            first += len(tensor)
        return answers
