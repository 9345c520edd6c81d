# SPDX-License-Identifier: MIT
"""What the tests of the virtual GPU share: machines that run, clients of its library, waiting.

Each test has a folder of its own for machine files (XDG_RUNTIME_DIR), so machines that others run do not show.
The library is called by ctypes from processes of their own, as any client would.
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = os.environ.get("WATTGOV_SOURCE_ROOT", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
DEADLINE_S = 60

# A client of NVML: reads lines "FUNCTION [NUMBER]...", answers each by a line of JSON {code, value}.
CLIENT = r"""
import ctypes, json, sys
nvml = ctypes.CDLL("libnvidia-ml.so.1")
start = nvml.nvmlInit_v2()
print(json.dumps({"code": start}), flush=True)
devices = []
count = ctypes.c_uint()
if start == 0 and nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0:
    for i in range(count.value):
        device = ctypes.c_void_p()
        assert nvml.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(device)) == 0
        devices.append(device)
for line in sys.stdin:
    name, *numbers = line.split()
    gpu, *numbers = map(int, numbers)
    answer = {}
    if name == "has":
        answer = {}
    elif "Set" in name or "Reset" in name:
        answer["code"] = getattr(nvml, name)(devices[gpu], *map(ctypes.c_uint, numbers))
    elif name in ("nvmlDeviceGetName", "nvmlDeviceGetUUID"):
        text = ctypes.create_string_buffer(96)
        answer["code"] = getattr(nvml, name)(devices[gpu], text, 96)
        answer["value"] = text.value.decode()
    else:
        number = ctypes.c_ulonglong(0)
        answer["code"] = getattr(nvml, name)(devices[gpu], ctypes.byref(number))
        answer["value"] = number.value
    answer["count"] = count.value
    print(json.dumps(answer), flush=True)
"""


def tool(name):
    return os.path.join(Case.programs, name)


def wait_for(condition, what):
    """Polls until the condition gives something true, and returns that."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.005)
    raise AssertionError(f"{what} did not come true")


def wait_for_line(process, pattern):
    """Reads what a program says until a line matches; in_background sees to it that this ends."""
    for line in process.stderr:
        if re.search(pattern, line):
            return
    raise AssertionError(f"'{pattern}' was not said")


class Client:
    """One process that has the library loaded."""

    def __init__(self, environment, **kwargs):
        python = "/usr/bin/python3" if "user" in kwargs else sys.executable
        self.process = subprocess.Popen([python, "-c", CLIENT], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                                        **kwargs)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.stderr.read())
        self.init_code = json.loads(line)["code"]

    def send(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def receive(self):
        return json.loads(self.process.stdout.readline())

    def call(self, *words):
        self.send(*words)
        return self.receive()

    def value(self, *words):
        answer = self.call(*words)
        if answer["code"] != 0:
            raise AssertionError(f"{words}: code {answer['code']}")
        return answer["value"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(DEADLINE_S)
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()


class Case(unittest.TestCase):
    programs = None  # the folder

    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.environment = {name: value for name, value in os.environ.items()
                            if name not in ("WATTGOV_VGPU", "LD_LIBRARY_PATH")}
        self.environment["XDG_RUNTIME_DIR"] = self.folder
        # Only the folder of the test is looked at.
        self.environment["TMPDIR"] = self.folder

    def files(self):
        return [name for name in os.listdir(self.folder) if name.startswith("wattgov-vgpu-")]

    def vgpu(self, *arguments, program="wattgov-vgpu", **kwargs):
        kwargs.setdefault("stdout", subprocess.PIPE)
        kwargs.setdefault("env", self.environment)
        return subprocess.run([tool(program), *map(str, arguments)], stderr=subprocess.PIPE, text=True,
                              timeout=DEADLINE_S, check=False, **kwargs)

    def start(self, *arguments, **kwargs):
        """A machine whose command waits until its stdin is closed."""
        process = subprocess.Popen([tool("wattgov-vgpu"), "run", *arguments, "--", "sh", "-c", "echo $WATTGOV_VGPU; echo "
                                    "$LD_LIBRARY_PATH; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, env=self.environment, **kwargs)

        def stop():
            process.stdin.close()
            process.wait(DEADLINE_S)
            process.stdout.close()
        self.stack.callback(stop)
        path = process.stdout.readline().strip()
        environment = dict(self.environment, WATTGOV_VGPU=path,
                           LD_LIBRARY_PATH=process.stdout.readline().strip())
        self.assertTrue(os.path.exists(path), path)
        return process, environment

    def client(self, environment, **kwargs):
        client = Client(environment, **kwargs)
        self.stack.callback(client.close)
        return client

    def show(self, environment=None):
        done = self.vgpu("show", "--json", env=environment or self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def gpu(self, environment, index=0):
        return self.show(environment)["gpus"][index]

    def fault(self, environment, *arguments):
        done = self.vgpu("fault", *arguments, env=environment)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def background(self, environment, program, *arguments):
        process = subprocess.Popen([tool(program), *map(str, arguments)], env=environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        def stop():
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.stack.callback(stop)
        return process

    def expect_usage(self, done, text):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn(text, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)


class HoldingCase(Case):
    """A command of wattgov that holds settings of a machine while it runs, and gives them back."""
    verb = None   # the command
    model = None  # the machine

    def setUp(self):
        super().setUp()
        self.environment["WATTGOV_STATE_DIR"] = self.path("state")
        for name in ("WATTGOV_PROGRESS", "RANK", "CUDA_VISIBLE_DEVICES"):
            self.environment.pop(name, None)
        _, self.machine = self.start("--machine", self.model)
        self.limit_before_w = self.limit_w()

    def path(self, name):
        return os.path.join(self.folder, name)

    def command(self, *arguments):
        return [os.path.join(os.path.dirname(tool("x")), "../wattgov"), self.verb, *map(str, arguments)]

    def call(self, *arguments, **kwargs):
        kwargs.setdefault("env", self.machine)
        return subprocess.run(self.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=DEADLINE_S, check=False, **kwargs)

    def in_background(self, *arguments, **kwargs):
        kwargs.setdefault("env", self.machine)
        process = subprocess.Popen(self.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True, **kwargs)

        def stop():
            with contextlib.suppress(ProcessLookupError):  # what it runs outlives it when it is killed
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        self.stack.callback(stop)
        timer = threading.Timer(DEADLINE_S, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        self.stack.callback(timer.cancel)
        return process

    def limit_w(self):
        return self.gpu(self.machine)["limit_w"]

    def expect_nothing_left(self):
        """The limit is the original one, at once, and no journal is left."""
        self.assertEqual(self.limit_w(), self.limit_before_w)
        journals = self.path("state/journal")
        left = [name for name in (os.listdir(journals) if os.path.isdir(journals) else []) if name != "lock"]
        self.assertEqual(left, [])


def main(document):
    """Runs the tests of the program; its first argument is the folder with the programs."""
    if len(sys.argv) < 2:
        sys.exit(document)
    Case.programs = os.path.abspath(sys.argv.pop(1))
    unittest.main(module="__main__")
