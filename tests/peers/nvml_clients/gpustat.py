# SPDX-License-Identifier: MIT
"""gpustat on an A100, a T4, a GTX 1080 and eight H100."""
import json
import os
import subprocess
import sys
import unittest

import virtual_gpu


def gpustat(*arguments):
    program = os.path.join(os.path.dirname(sys.executable), "gpustat")
    return subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True, check=True,
                          timeout=virtual_gpu.DEADLINE_S).stdout


class Test(unittest.TestCase):
    def test_json_is_the_machine(self):
        virtual_gpu.wait_for(lambda: json.loads(gpustat("--json"))["gpus"][2]["power.draw"] == 8,
                             "the idle power")
        seen, truth = json.loads(gpustat("--json")), virtual_gpu.show()
        self.assertEqual(seen["driver_version"], truth["driver"])
        self.assertEqual(len(seen["gpus"]), 11)
        for got, gpu in zip(seen["gpus"], truth["gpus"]):
            for key, want in (("index", gpu["index"]), ("uuid", gpu["uuid"]), ("name", gpu["name"]),
                              ("power.draw", round(gpu["power_w"])), ("enforced.power.limit", round(gpu["limit_w"])),
                              ("temperature.gpu", round(gpu["temperature_c"])), ("utilization.gpu", 0),
                              ("processes", [])):
                self.assertEqual(got[key], want, key)
        self.assertEqual(seen["gpus"][1]["memory.total"], 15360)

    def test_a_load_and_a_cap_show(self):
        with virtual_gpu.load(2, "--utilization", 0.5, "--memory", 256) as process, \
                virtual_gpu.fault("cap", "--gpu", 2, "--value", 100):
            got = json.loads(gpustat("--json"))["gpus"][2]
        self.assertEqual([(one["pid"], one["gpu_memory_usage"]) for one in got["processes"]], [(process.pid, 256)])
        self.assertEqual((got["utilization.gpu"], got["memory.used"], got["enforced.power.limit"]), (50, 256, 100))

    def test_the_table_has_a_line_a_gpu(self):
        lines = gpustat("--no-color", "--show-power").splitlines()
        self.assertEqual(sum("NVIDIA H100 80GB HBM3" in line for line in lines), 8)
        self.assertRegex(lines[2], r"^\[1\] Tesla T4 +\| +34.C, +0 %,? +10 / +70 W")


if __name__ == "__main__":
    unittest.main()
