# SPDX-License-Identifier: MIT
"""go-nvml, NVIDIA's Go binding, on an A100, a T4 and a GTX 1080: it ends at the first missing symbol."""
import json
import os
import subprocess
import unittest

import virtual_gpu


def see(*arguments):
    done = subprocess.run([os.environ["GO_NVML"], *map(str, arguments)], stdout=subprocess.PIPE, check=True,
                          timeout=virtual_gpu.DEADLINE_S)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Test(unittest.TestCase):
    def test_the_devices_are_those_of_the_machine(self):
        seen, truth = see(), virtual_gpu.gpus()
        for key, known in (("name", "name"), ("uuid", "uuid"), ("pci", "pci")):
            self.assertEqual([gpu[key] for gpu in seen], [gpu[known] for gpu in truth])
        self.assertEqual([gpu["limit_mw"] for gpu in seen], [400000, 70000, 180000])
        self.assertEqual([(gpu["limit_min_mw"], gpu["limit_max_mw"]) for gpu in seen],
                         [(100000, 400000), (60000, 70000), (90000, 216000)])
        virtual_gpu.wait_for(lambda: [gpu["power_mw"] for gpu in see()] == [60000, 10000, 8000], "the idle power")
        self.assertEqual([gpu["architecture"] for gpu in seen], [7, 6, 4])
        self.assertEqual([gpu["clocks"] for gpu in seen], [81, 87, 129])
        self.assertEqual([gpu["memory_clocks"] for gpu in seen], [1, 2, 2])
        self.assertEqual([gpu["energy_return"] for gpu in seen], [0, 0, 3])
        self.assertEqual([gpu["instant_return"] for gpu in seen], [0, 0, 0])
        self.assertEqual(seen[0]["memory_total"], 80 << 30)
        self.assertEqual({gpu["unsupported"] for gpu in seen}, {"Not Supported"})

    def test_limits_are_set_and_processes_seen(self):
        with virtual_gpu.load(0, "--utilization", 0.5, "--memory", 64) as process:
            answer, first, _, _ = see("set", 0, 250000)
            self.assertEqual(answer, {"set_return": 0})
            self.assertEqual(first["limit_mw"], 250000)
            self.assertEqual(first["processes"], [process.pid])
            self.assertEqual(first["sm_clock_mhz"], 1410)
        self.assertEqual(virtual_gpu.gpus()[0]["limit_w"], 250)
        self.assertEqual(see("set", 0, 401000)[0], {"set_return": 2})
        self.assertEqual(see("set", 0, 400000)[0], {"set_return": 0})


if __name__ == "__main__":
    unittest.main()
