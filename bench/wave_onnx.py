#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long `wattgov wave analyze` takes on ONNX files of hundreds of megabytes, and in how much memory.

    bench/wave_onnx.py build/release/wattgov [--runs 21] [--megabytes 500] [--folder DIR]

Writes models of that size: few large weights, thousands of small ones, and large ones in a file beside the model.
JSON on stdout: for each, and for `wattgov --version`, the median and the 95th percentile of the whole process in
milliseconds, its processor time, the peak of resident memory, and of it what is the process's own (anonymous, sampled every
millisecond); the rest are pages of the program, of libraries and of the model, which the system may take back.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

FLOAT = 1


def varint(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, payload):
    """A length-delimited field; text is encoded."""
    data = payload.encode() if isinstance(payload, str) else payload
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(at, value):
    return varint(at << 3) + varint(value)


def value_info(name, dims):
    shape = b"".join(field(1, number(1, dim)) for dim in dims)
    return field(1, name) + field(2, field(1, number(1, FLOAT) + field(2, shape)))


def tensor(name, side, place):
    """TensorProto without its bytes; `place`: where in the file beside the model they are."""
    out = number(1, side) + number(1, side) + number(2, FLOAT) + field(8, name)
    if place is not None:
        for key, text in (("location", "weights.bin"), ("offset", str(place)), ("length", str(4 * side * side))):
            out += field(13, field(1, key) + field(2, text))
        out += number(14, 1)
    return out


def write_model(path, side, count, is_external):
    """y = relu(.. relu(x * W0) .. * Wn), all weights `side` x `side`. Returns the bytes on disk."""
    nodes, weights, zeros = [], [], bytes(4 * side * side)
    for i in range(count):
        product = field(1, f"r{i}") + field(1, f"w{i}") + field(2, f"m{i}") + field(3, f"matmul{i}") + field(4, "MatMul")
        nodes.append(field(1, product))
        nodes.append(field(1, field(1, f"m{i}") + field(2, f"r{i + 1}") + field(3, f"relu{i}") + field(4, "Relu")))
        weights.append(tensor(f"w{i}", side, len(zeros) * i if is_external else None))
    raw = b"" if is_external else varint(9 << 3 | 2) + varint(len(zeros))
    heads = [varint(5 << 3 | 2) + varint(len(w) + len(raw) + (0 if is_external else len(zeros))) + w + raw for w in weights]
    rest = field(2, "large") + field(11, value_info("r0", [1, side])) + field(12, value_info(f"r{count}", [1, side]))
    length = sum(map(len, nodes)) + sum(map(len, heads)) + len(rest) + (0 if is_external else count * len(zeros))
    with open(path, "wb") as file:
        file.write(number(1, 8) + field(8, number(2, 17)) + varint(7 << 3 | 2) + varint(length) + b"".join(nodes))
        for head in heads:
            file.write(head)
            if not is_external:
                file.write(zeros)
        file.write(rest)
    if is_external:
        with open(os.path.join(os.path.dirname(path), "weights.bin"), "wb") as file:
            for _ in range(count):
                file.write(zeros)
    return os.path.getsize(path) + (count * len(zeros) if is_external else 0)


def spawn(command):
    return os.posix_spawn(command[0], command, os.environ,
                          file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])


def once(command):
    start = time.perf_counter()
    _, status, usage = os.wait4(spawn(command), 0)
    taken = time.perf_counter() - start
    if status != 0:
        sys.exit(f"{' '.join(command)}: status {os.waitstatus_to_exitcode(status)}")
    return taken, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def anonymous_kib(command):
    """The most of its own memory that was seen."""
    child, most = spawn(command), 0
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        try:
            with open(f"/proc/{child}/status", encoding="ascii") as file:
                found = [line for line in file if line.startswith("RssAnon")]
        except OSError:
            continue
        most = max([most] + [int(line.split()[1]) for line in found])
        time.sleep(0.001)
    return most


def measure(command, runs):
    once(command)  # program and model are in the page cache from now on
    taken = [once(command) for _ in range(runs)]
    times = sorted(1e3 * run[0] for run in taken)
    return {"median_ms": round(statistics.median(times), 1), "p95_ms": round(times[int(0.95 * (runs - 1))], 1),
            "processor_ms": round(1e3 * statistics.median(run[1] for run in taken), 1),
            "peak_kib": max(run[2] for run in taken), "own_kib": max(anonymous_kib(command) for _ in range(runs))}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--folder")
    args = parser.parse_args()
    program = os.path.abspath(args.program)
    results = [{"what": "--version", **measure([program, "--version"], args.runs)}]
    for what, side, is_external in (("large weights", 2048, False), ("small weights", 256, False),
                                    ("weights beside it", 2048, True)):
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            path = os.path.join(folder, "model.onnx")
            count = -(-args.megabytes * 10**6 // (4 * side * side))
            size = write_model(path, side, count, is_external)
            command = [program, "wave", "analyze", path, "--gpu", "a100-sxm4-80gb", "--json"]
            results.append({"what": what, "bytes": size, "nodes": 2 * count, **measure(command, args.runs)})
    print(json.dumps({"command": "bench/wave_onnx.py", "runs": args.runs, "results": results}, indent=1))


if __name__ == "__main__":
    main()
