#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A server whose law is known: KServe v2 with Triton's extensions and OpenAI, over HTTP; KServe over gRPC.

    fake_server.py [--http PORT] [--grpc PORT] [--batch-base-ms 5] [--batch-row-ms 0] [--memory-rows N] ...

It prints one line of JSON with its ports when it listens. `instances` threads take waiting requests, up
to max_batch_size of them, waiting at most the queue delay for more, and sleep base + rows * per row. So
a queue before it is M/D/1 where arrivals are Poisson and batches of one. It keeps a log of each request
(when it came, when its batch began and ended, how large that was): GET /fake/log. What it does wrong:
POST /fake/mode {"mode": "error" | "hang" | "close" | "garbage" | "oom" | "cut", "share": 0.5}.
The next answers at a path, in turn (status, body; 0: the true one; -1: none ever): POST /fake/plan
{"path": "/v2/models/m/config", "answers": [[0, ""], [503, ""], [200, "{}"]]}.
"""
import argparse
import asyncio
import json
import random
import threading
import time

class Model:
    """The one model, its configuration, its queue, its counts."""

    def __init__(self, options):
        self.options = options
        self.lock = threading.Condition()
        self.default = {
            "name": "m", "platform": "", "backend": "fake", "max_batch_size": 4,
            "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [-1, 3]}],
            "instance_group": [{"name": "m", "kind": "KIND_CPU", "count": 1}],
            "dynamic_batching": {"max_queue_delay_microseconds": 0, "preferred_batch_size": []},
            "parameters": {"threads": {"string_value": "1"}}}
        self.mode, self.share = "", 1.0
        self.asked = 0
        self.planned = {}
        self.log = []
        self.waiting = []
        self.generation = 0
        self.is_loaded = False
        if not options.unloaded:
            self.load(None)

    def load(self, config):
        """An error's text, or None."""
        config = config or self.default
        rows = config["max_batch_size"] * config["instance_group"][0]["count"]
        if rows > self.options.memory_rows:
            return "failed to load 'm': CUDA out of memory. Tried to allocate 2.00 GiB"
        if config["max_batch_size"] == 13:
            return "failed to load 'm': Internal: plan 13 is not built"
        with self.lock:
            self.generation += 1
            self.config = json.loads(json.dumps(config))
            self.is_loaded = True
            self.inferences = self.executions = self.success = self.success_ns = self.queue_ns = 0
            self.batches = {}
            for _ in range(config["instance_group"][0]["count"]):
                threading.Thread(target=self.work, args=(self.generation,), daemon=True).start()
            self.lock.notify_all()
        return None

    def gather(self, generation):
        """The next batch; None when the model was loaded anew."""
        most = max(1, self.config["max_batch_size"])
        delay_s = self.config["dynamic_batching"]["max_queue_delay_microseconds"] * 1e-6
        with self.lock:
            while True:
                if generation != self.generation:
                    return None
                left = self.waiting[0][0] + delay_s - time.monotonic() if self.waiting else None
                if self.waiting and (sum(r[1] for r in self.waiting) >= most or left <= 0):
                    batch, rows = [], 0
                    while self.waiting and (not batch or rows + self.waiting[0][1] <= most):
                        rows += self.waiting[0][1]
                        batch.append(self.waiting.pop(0))
                    return batch
                self.lock.wait(left)

    def work(self, generation):
        while True:
            batch = self.gather(generation)
            if batch is None:
                return
            rows = sum(request[1] for request in batch)
            begin = time.monotonic()
            time.sleep((self.options.batch_base_ms + self.options.batch_row_ms * rows) * 1e-3)
            end = time.monotonic()
            with self.lock:
                self.inferences += rows
                self.executions += 1
                count, ns = self.batches.get(rows, (0, 0))
                self.batches[rows] = (count + 1, ns + int((end - begin) * 1e9))
                for came, _, done in batch:
                    self.success += 1
                    self.success_ns += int((end - came) * 1e9)
                    self.queue_ns += int((begin - came) * 1e9)
                    self.log.append([came, begin, end, rows])
            for _, _, done in batch:
                done()

    def submit(self, rows, done):
        with self.lock:
            self.waiting.append((time.monotonic(), rows, done))
            self.lock.notify_all()

    def statistics(self):
        def duration(count, ns):
            return {"count": count, "ns": ns}
        with self.lock:
            batches = [{"batch_size": size, "compute_input": duration(count, 0),
                        "compute_infer": duration(count, ns), "compute_output": duration(count, 0)}
                       for size, (count, ns) in sorted(self.batches.items())]
            return {"model_stats": [{
                "name": "m", "version": "1", "inference_count": self.inferences,
                "execution_count": self.executions,
                "inference_stats": {"success": duration(self.success, self.success_ns), "fail": duration(0, 0),
                                    "queue": duration(self.success, self.queue_ns)},
                "batch_stats": batches}]}

    def goes_wrong(self):
        return self.mode if self.mode and random.random() < self.share else ""


METADATA = {"name": "m", "versions": ["1"], "platform": "fake",
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, -1, 3]}],
            "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 1]}]}


class Http:
    """HTTP/1.1 on asyncio's streams."""

    def __init__(self, model):
        self.model = model
        self.last_request = {}

    async def serve(self, reader, writer):
        try:
            while await self.one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):  # no HTTP
            pass
        finally:
            writer.close()

    async def one(self, reader, writer):
        line = await reader.readline()
        if not line:
            return False
        method, path, _ = line.decode().split(" ", 2)
        headers = {}
        while (line := await reader.readline()) not in (b"\r\n", b""):
            name, value = line.decode().split(":", 1)
            headers[name.strip().lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return await self.answer(method, path, headers, body, writer)

    def reply(self, writer, status, body, headers=""):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body)
        return True

    async def answer(self, method, path, headers, body, writer):
        model = self.model
        status, text = model.planned[path].pop(0) if model.planned.get(path) else (0, "")
        if status < 0:
            await asyncio.sleep(3600)
        if status > 0:
            return self.reply(writer, status, text.encode())
        if path.endswith("/infer"):
            return await self.infer(path, headers, body, writer)
        if path.startswith("/v1/") and method == "POST":
            return await self.complete(path, body, writer)
        if path == "/fake/log":
            with model.lock:
                log, model.log = model.log, []
            return self.reply(writer, 200, {"log": log, "last": self.last_request})
        if path == "/fake/mode":
            wanted = json.loads(body)
            model.mode, model.share = wanted["mode"], wanted.get("share", 1.0)
            return self.reply(writer, 200, {})
        if path == "/fake/plan":
            wanted = json.loads(body)
            model.planned[wanted["path"]] = wanted["answers"]
            return self.reply(writer, 200, {})
        if path == "/fake/plan/left":
            return self.reply(writer, 200, sum(map(len, model.planned.values())))
        if path == "/fake/restart":
            model.load(None)
            model.is_loaded = not json.loads(body).get("unloaded", False)
            return self.reply(writer, 200, {})
        if path in ("/v2/health/ready", "/health"):
            return self.reply(writer, 200, b"")
        if path == "/v1/models":
            return self.reply(writer, 200, {"data": [{"id": "llm"}]})
        return self.about_model(path, body, writer)

    def about_model(self, path, body, writer):
        model = self.model
        if path == "/v2/repository/models/m/load":
            text = json.loads(body or b"{}").get("parameters", {}).get("config")
            error = model.load(json.loads(text) if text else None)
            return self.reply(writer, 400 if error else 200, {"error": error} if error else b"")
        if path == "/v2/repository/models/m/unload":
            model.is_loaded = False
            return self.reply(writer, 200, b"")
        if path == "/v2/repository/index":
            return self.reply(writer, 200, [{"name": "m", "version": "1", "state": "READY"}, {"name": "m", "version": "2"},
                                            {"name": "other"}])
        if model.options.explicit and path.startswith("/v2/repository/models/"):
            name = path.split("/")[4]
            return self.reply(writer, 500, {"error": f"failed to load '{name}', failed to poll from model repository"})
        if not path.startswith("/v2/models/m"):
            return self.reply(writer, 404, {"error": "Request for unknown model: not found"})
        if not model.is_loaded:
            return self.reply(writer, 400, {"error": "Request for unknown model: 'm' is not found"})
        if path.endswith("/stats"):
            model.asked += 1
            if model.options.no_statistics:
                return self.reply(writer, 404, {"error": "no such path"})
            if model.asked == model.options.lost_statistics:
                return self.reply(writer, 400, {"error": "Request for unknown model: 'm' has no available versions"})
        found = {"/v2/models/m": METADATA, "/v2/models/m/ready": b"", "/v2/models/m/config": model.config,
                 "/v2/models/m/stats": model.statistics()}.get(path)
        return self.reply(writer, 404 if found is None else 200, found or b"")

    async def infer(self, path, headers, body, writer):
        model = self.model
        if not model.is_loaded:
            return self.reply(writer, 400, {"error": "Request for unknown model: 'm' is not found"})
        length = int(headers.get("inference-header-content-length", len(body)))
        request = json.loads(body[:length])
        self.last_request = {"json": request, "binary": len(body) - length, "path": path}
        wrong = model.goes_wrong()
        if wrong == "error":
            return self.reply(writer, 500, {"error": "inference failed on purpose"})
        if wrong == "oom":
            return self.reply(writer, 500, {"error": "CUDA error: out of memory"})
        if wrong == "hang":
            await asyncio.sleep(3600)
        rows = request["inputs"][0]["shape"][0]
        if rows > max(1, model.config["max_batch_size"]):
            return self.reply(writer, 400, {"error": "inference request batch-size must be <= max"})
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        model.submit(rows, lambda: loop.call_soon_threadsafe(done.set))
        await done.wait()
        if wrong == "garbage":
            return self.reply(writer, 200, b'{"outputs": [nonsense')
        if wrong in ("close", "cut"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{" if wrong == "cut" else b"")
            return False
        output = {"name": "y", "datatype": "FP32", "shape": [rows, 1]}
        if "binary_data_output" not in request.get("parameters", {}):
            return self.reply(writer, 200, {"model_name": "m", "outputs": [dict(output, data=[0.0] * rows)]})
        output["parameters"] = {"binary_data_size": 4 * rows}
        head = json.dumps({"model_name": "m", "outputs": [output]}).encode()
        return self.reply(writer, 200, head + bytes(4 * rows),
                          f"Inference-Header-Content-Length: {len(head)}\r\n")

    async def complete(self, path, body, writer):
        """Tokens at known moments: the first after 20 ms, the others 5 ms apart."""
        request = json.loads(body)
        self.last_request = {"json": request, "path": path}
        wrong = self.model.goes_wrong()
        if wrong == "error":
            return self.reply(writer, 503, {"error": {"message": "overloaded on purpose"}})
        count = request["max_tokens"]
        is_chat = path.endswith("chat/completions")
        if not request.get("stream"):
            await asyncio.sleep(0.02 + 0.005 * (count - 1))
            choice = {"message": {"content": "a" * count}} if is_chat else {"text": "a" * count}
            return self.reply(writer, 200, {"choices": [choice], "usage": {"completion_tokens": count}})
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")

        def event(text):
            data = f"data: {text}\r\n\r\n".encode()
            for part in (data[:7], data[7:]):  # in pieces, as networks do
                writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")

        begin = time.monotonic()
        for i in range(count):
            await asyncio.sleep(max(0, begin + 0.02 + 0.005 * i - time.monotonic()))
            event(json.dumps({"choices": [{"delta": {"content": "a"}} if is_chat else {"text": "a"}]}))
            await writer.drain()
            if wrong == "cut" and i == 1:
                return False
            if wrong == "garbage" and i == 1:
                event("{broken")
        event(json.dumps({"choices": [], "usage": {"completion_tokens": count}}))
        event("[DONE]")
        writer.write(b"0\r\n\r\n")
        return True


# -- gRPC: messages encoded by hand, so that they check those of protobuf ------------------------------

def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(data):
    """(number, value) of each; numbers as int, else bytes."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
        elif key & 7 == 2:
            length = number()
            yield key >> 3, data[at:at + length]
            at += length
        else:
            raise ValueError(f"wire type {key & 7}")


def one(data, number, default=b""):
    return next((value for key, value in fields(data) if key == number), default)


def serve_grpc(model, port):
    import grpc
    from concurrent import futures

    def fail(context, code, text):
        context.abort(code, text)

    def infer(body, context):
        wrong = model.goes_wrong()
        if wrong == "error":
            fail(context, grpc.StatusCode.UNAVAILABLE, "100% on purpose: \u00e4")
        if wrong == "oom":
            fail(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "GPU out of memory")
        if wrong == "hang":
            time.sleep(5)
        tensor = one(body, 5)
        shape = [value for key, value in fields(tensor) if key == 3]
        if len(shape) == 1 and isinstance(shape[0], bytes):  # packed
            shape = [value for value in packed(shape[0])]
        raw = one(body, 7)
        model.last = {"model": one(body, 1).decode(), "name": one(tensor, 1).decode(),
                      "datatype": one(tensor, 2).decode(), "shape": shape, "bytes": len(raw)}
        done = threading.Event()
        model.submit(shape[0], done.set)
        done.wait()
        if wrong == "garbage":
            return b"\xff\xff\xff"
        output = field(1, "y") + field(2, "FP32") + field(3, bytes([shape[0], 1]))
        return field(1, "m") + field(5, output) + field(6, bytes(4 * shape[0]))

    def packed(data):
        at = 0
        while at < len(data):
            value = shift = 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            yield value

    def metadata(body, context):
        if one(body, 1) != b"m" or not model.is_loaded:
            fail(context, grpc.StatusCode.NOT_FOUND, "Request for unknown model: 'm' is not found")
        tensor = field(1, "x") + field(2, "FP32") + field(3, -1) + field(3, -1) + field(3, 3)
        return field(1, "m") + field(2, "1") + field(3, "fake") + field(4, tensor)

    def config(body, context):
        return field(1, field(1, "m") + field(4, model.config["max_batch_size"]) + field(17, "fake"))

    def statistics(body, context):
        def duration(item):
            return field(1, item["count"]) + field(2, item["ns"])
        stats = model.statistics()["model_stats"][0]
        inner = stats["inference_stats"]
        text = field(1, "m") + field(2, "1") + field(4, stats["inference_count"]) + \
            field(5, stats["execution_count"]) + \
            field(6, field(1, duration(inner["success"])) + field(3, duration(inner["queue"])))
        for batch in stats["batch_stats"]:
            text += field(7, field(1, batch["batch_size"]) + field(3, duration(batch["compute_infer"])))
        return field(1, text)

    def load(body, context):
        text = None
        for key, entry in fields(body):
            if key == 3 and one(entry, 1) == b"config":
                text = one(one(entry, 2), 3).decode()
        error = model.load(json.loads(text) if text else None)
        if error:
            fail(context, grpc.StatusCode.INTERNAL, error)
        return b""

    calls = {"ServerLive": lambda b, c: field(1, 1), "ServerReady": lambda b, c: field(1, 1),
             "ModelReady": lambda b, c: field(1, int(model.is_loaded)), "ModelMetadata": metadata,
             "ModelConfig": config, "ModelInfer": infer, "ModelStatistics": statistics,
             "RepositoryModelLoad": load}
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=64))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(
        "inference.GRPCInferenceService",
        {name: grpc.unary_unary_rpc_method_handler(call) for name, call in calls.items()})])
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server, bound


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int, default=0)
    parser.add_argument("--grpc", type=int, default=-1)
    parser.add_argument("--batch-base-ms", type=float, default=5)
    parser.add_argument("--batch-row-ms", type=float, default=0)
    parser.add_argument("--memory-rows", type=int, default=64)
    parser.add_argument("--unloaded", action="store_true")
    parser.add_argument("--explicit", action="store_true", help="it has a repository, as Triton with explicit control")
    parser.add_argument("--no-statistics", action="store_true")
    parser.add_argument("--lost-statistics", type=int, default=0, help="the request for them that is refused, from 1 on")
    options = parser.parse_args()
    model = Model(options)
    grpc_port = None
    if options.grpc >= 0:
        grpc_server, grpc_port = serve_grpc(model, options.grpc)
    server = await asyncio.start_server(Http(model).serve, "127.0.0.1", options.http, backlog=1024)
    print(json.dumps({"http": server.sockets[0].getsockname()[1], "grpc": grpc_port}), flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
