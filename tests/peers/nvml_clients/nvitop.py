# SPDX-License-Identifier: MIT
"""nvitop on an A100, a T4, a GTX 1080, and an A100 that is split beside one that is whole."""
import os
import subprocess
import sys
import unittest

# The folder of this file stands first in the path, and this file has the module's name.
sys.path.append(sys.path.pop(0))
from nvitop import Device, NA  # noqa: E402 (after the path)

import virtual_gpu  # noqa: E402

A100, T4, GTX1080, SPLIT, WHOLE = range(5)


class Test(unittest.TestCase):
    def test_the_devices_are_those_of_the_machine(self):
        devices, truth = Device.all(), virtual_gpu.gpus()
        self.assertEqual([device.name() for device in devices], [gpu["name"] for gpu in truth])
        self.assertEqual([device.uuid() for device in devices], [gpu["uuid"] for gpu in truth])
        self.assertEqual([device.bus_id() for device in devices], [gpu["pci"] for gpu in truth])
        self.assertEqual([device.power_limit() for device in devices], [400000, 70000, 180000, 400000, 400000])
        virtual_gpu.wait_for(lambda: [device.power_usage() for device in devices] == [60000, 10000, 8000, 60000, 60000],
                             "the idle power")
        self.assertEqual(devices[T4].memory_total(), 15360 << 20)
        self.assertIn(devices[T4].temperature(), range(34, 40))
        self.assertEqual(devices[A100].max_clock_infos().sm, 1410)
        self.assertEqual(devices[T4].cuda_compute_capability(), (7, 5))

    def test_mig_is_seen(self):
        devices = Device.all()
        self.assertEqual(devices[SPLIT].mig_mode(), "Enabled")
        self.assertEqual(devices[WHOLE].mig_mode(), "Disabled")
        self.assertEqual(devices[T4].mig_mode(), NA)
        self.assertEqual(len(devices[SPLIT].mig_devices()), 4)

    def test_processes_are_those_of_the_load(self):
        device = Device(T4)
        with virtual_gpu.load(T4, "--utilization", 0.25, "--memory", 512) as process:
            (pid, running), = device.processes().items()
            self.assertEqual((pid, running.gpu_memory()), (process.pid, 512 << 20))
            self.assertEqual(device.gpu_utilization(), 25)
            self.assertEqual(device.memory_used(), 512 << 20)

    def test_the_program_shows_them(self):
        done = subprocess.run([os.path.join(os.path.dirname(sys.executable), "nvitop"), "-1", "--no-unicode"],
                              stdout=subprocess.PIPE, text=True, check=True, timeout=virtual_gpu.DEADLINE_S)
        self.assertIn("Driver Version: 535.161.08", done.stdout)
        self.assertRegex(done.stdout, r"\d+W / 70W")
        self.assertIn("8W / 180W", done.stdout)
        self.assertIn("3g.40gb", done.stdout)


if __name__ == "__main__":
    unittest.main()
