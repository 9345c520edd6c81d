# SPDX-License-Identifier: MIT
"""The real Triton server with real ONNX models, for tests.

    with Server(cache, ["classifier"]) as server:      # ready, the models loaded
        server.http, server.grpc                       # "127.0.0.1:PORT"
        server.load("classifier", batch=8, delay_us=500, instances=2, threads=1)
        server.kill()                                  # as kill -9 does; `supervise` starts it anew

Models are loaded through the repository API (--model-control-mode=explicit), as `wattgov tune` does it. Each answers to
one request of the shape in MODELS; sizes beyond are of no interest to a load. Silero's voice detector keeps no state
here: every request is a first one.

By hand: tests/peers/triton/run --help
"""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import install

HERE = os.path.dirname(os.path.abspath(__file__))

# Name: the file in the packages, the input, its shape and type in a request, the output.
MODELS = {
    "classifier": {"file": "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
                   "input": ("x", "TYPE_FP32", [3, 48, 192]), "output": ("y", "TYPE_FP32", [2])},
    "detector": {"file": "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
                 "input": ("x", "TYPE_FP32", [3, 64, 64]), "output": ("y", "TYPE_FP32", [1, 64, 64])},
    "magika": {"file": "magika/models/standard_v3_3/model.onnx", "below": 257,
               "input": ("bytes", "TYPE_INT32", [2048]), "output": ("label", "TYPE_FP32", [214])},
    "voice": {"file": "silero_vad/data/silero_vad_16k_op15.onnx",
              "feed": {"state": {"shape": [2, -1, 128], "type": "float32", "value": 0},
                       "sr": {"shape": [], "type": "int64", "value": 16000}},
              "input": ("samples", "TYPE_FP32", [576]), "output": ("speech", "TYPE_FP32", [1])},
}


def config(name, packages, batch=8, delay_us=0, instances=1, threads=1):
    """The configuration of a model, as Triton's JSON."""
    model = MODELS[name]
    parameters = {"path": os.path.join(packages, model["file"]), "site": packages, "threads": str(threads),
                  "feed": json.dumps(model.get("feed", {})), "below": str(model.get("below", 0))}
    entry = dict(zip(("name", "data_type", "dims"), model["input"]))
    answer = dict(zip(("name", "data_type", "dims"), model["output"]))
    return {"name": name, "backend": "python", "max_batch_size": batch, "input": [entry], "output": [answer],
            "dynamic_batching": {"max_queue_delay_microseconds": delay_us},
            "instance_group": [{"kind": "KIND_CPU", "count": instances}],
            "parameters": {key: {"string_value": value} for key, value in parameters.items()}}


def protobuf_text(value, indent=""):
    """JSON of a configuration as the text format that config.pbtxt has."""
    lines = []
    for key, entry in value.items():
        if key == "parameters":
            for name, told in entry.items():
                lines.append(f'{indent}parameters {{ key: "{name}" value: {{ string_value: '
                             f'{json.dumps(told["string_value"])} }} }}')
        elif isinstance(entry, dict):
            lines += [f"{indent}{key} {{", protobuf_text(entry, indent + "  "), f"{indent}}}"]
        elif isinstance(entry, list) and entry and isinstance(entry[0], dict):
            for part in entry:
                lines += [f"{indent}{key} {{", protobuf_text(part, indent + "  "), f"{indent}}}"]
        elif isinstance(entry, str) and key not in ("data_type", "kind"):
            lines.append(f"{indent}{key}: {json.dumps(entry)}")
        else:
            lines.append(f"{indent}{key}: {entry}")
    return "\n".join(lines)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for entry in sockets:
        entry.bind(("127.0.0.1", 0))
    ports = [entry.getsockname()[1] for entry in sockets]
    for entry in sockets:
        entry.close()
    return ports


class Server:
    """A context manager. `supervise`: whoever kills the server, it is started again."""

    def __init__(self, cache, models=tuple(MODELS), load=True, supervise=False, configs=None):
        self.command, self.extra = install.tritonserver(cache)
        self.packages = install.site(install.environment(cache))
        self.models, self.load_first, self.supervise = list(models), load, supervise
        self.configs = configs or {}
        self.ports = free_ports(3)
        self.http, self.grpc, self.metrics = (f"127.0.0.1:{port}" for port in self.ports)
        self.folder = self.log = self.process = self.watcher = None
        self.starts, self.ending = 0, False

    def write_repository(self):
        for name in self.models:
            version = os.path.join(self.folder.name, "repository", name, "1")
            os.makedirs(version)
            with open(os.path.join(HERE, "onnx_model.py"), encoding="utf-8") as source, \
                    open(os.path.join(version, "model.py"), "w", encoding="utf-8") as target:
                target.write(source.read())
            with open(os.path.join(version, "../config.pbtxt"), "w", encoding="utf-8") as target:
                target.write(protobuf_text(config(name, self.packages, **self.configs.get(name, {}))) + "\n")

    def start(self):
        arguments = ["--model-repository", os.path.join(self.folder.name, "repository"),
                     "--model-control-mode", "explicit", "--http-address", "127.0.0.1", "--http-port",
                     str(self.ports[0]), "--grpc-address", "127.0.0.1", "--grpc-port", str(self.ports[1]),
                     "--metrics-address", "127.0.0.1", "--metrics-port", str(self.ports[2]),
                     "--allow-gpu-metrics", "false", "--exit-timeout-secs", "5"]
        if self.load_first:
            for name in self.models:
                arguments += ["--load-model", name]
        # A session of its own: its stubs are ended with it.
        self.process = subprocess.Popen(self.command + arguments, stdout=self.log, stderr=subprocess.STDOUT,
                                        env=dict(os.environ, **self.extra), start_new_session=True)
        self.starts += 1

    def ask(self, path, body=None, timeout=10):
        """A request of the HTTP protocol; the answer's JSON, None when it has no body."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{self.http}{path}", data=data, method="GET" if body is None else "POST")
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def is_ready(self):
        try:
            self.ask("/v2/health/ready", timeout=2)
            return True
        except (OSError, urllib.error.URLError):
            return False

    def wait_ready(self, timeout_s=60):
        end = time.monotonic() + timeout_s
        while not self.is_ready():
            if time.monotonic() > end or (self.process.poll() is not None and not self.supervise):
                raise RuntimeError(f"tritonserver is not ready:\n{self.said()[-3000:]}")
            time.sleep(0.05)

    def said(self):
        """What the server has printed."""
        with open(self.log.name, encoding="utf-8", errors="replace") as text:
            return text.read()

    def load(self, name, **knobs):
        """Loads a model with these knobs (of config); raises urllib.error.HTTPError as the server answers."""
        told = json.dumps(config(name, self.packages, **knobs))
        self.ask(f"/v2/repository/models/{name}/load", {"parameters": {"config": told}}, timeout=60)

    def kill_stubs(self):
        """Ends what is left of the server's session: stubs outlive a server that was killed."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        if not self.supervise:
            self.process.wait()
            self.kill_stubs()

    def watch(self):
        while not self.ending:
            self.process.wait()
            self.kill_stubs()
            if not self.ending:
                self.start()

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="wattgov-triton-")
        self.log = open(os.path.join(self.folder.name, "log"), "wb")
        self.write_repository()
        try:
            self.start()
            if self.supervise:
                self.watcher = threading.Thread(target=self.watch, daemon=True)
                self.watcher.start()
            self.wait_ready()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *unused):
        self.ending = True
        if self.process is not None:
            if self.process.poll() is None:
                self.process.terminate()
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.kill_stubs()
        if self.watcher is not None:
            self.watcher.join(timeout=10)
        self.log.close()
        self.folder.cleanup()


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)
