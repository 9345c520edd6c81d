# SPDX-License-Identifier: MIT
"""Zeus 0.16 on a V100 and an A100: the energy of its windows, and its control of limits and clocks.

sync_execution=False, since the default wants PyTorch with CUDA.
"""
import time
import unittest

from zeus.device import get_gpus
from zeus.monitor import ZeusMonitor

import virtual_gpu

V100, A100 = range(2)


class Test(unittest.TestCase):
    def window(self, monitor, gpu, seconds):
        """The energy of a window, and between which bounds the truth lies."""
        before = virtual_gpu.gpus()[gpu]["energy_j"]
        monitor.begin_window("window", sync_execution=False)
        begun = virtual_gpu.gpus()[gpu]["energy_j"]
        end = time.monotonic() + seconds
        virtual_gpu.wait_for(lambda: time.monotonic() >= end, "the time")
        ending = virtual_gpu.gpus()[gpu]["energy_j"]
        result = monitor.end_window("window", sync_execution=False)
        after = virtual_gpu.gpus()[gpu]["energy_j"]
        self.assertGreaterEqual(result.time, seconds)
        return result.gpu_energy[gpu], ending - begun, after - before

    def test_a_window_has_the_energy_of_the_counter(self):
        for gpu, tick_s, power_w in ((V100, 0.02, 250), (A100, 0.1, 400)):
            monitor = ZeusMonitor(gpu_indices=[gpu])
            with virtual_gpu.load(gpu):
                used, least, most = self.window(monitor, gpu, 1)
            self.assertGreater(least, 0.8 * power_w)
            self.assertGreaterEqual(used, least - tick_s * power_w)
            self.assertLessEqual(used, most + tick_s * power_w)

    def test_the_devices_are_those_of_the_machine(self):
        gpus = get_gpus()
        self.assertEqual(len(gpus), 2)
        self.assertEqual([gpus.get_name(i) for i in range(2)], ["Tesla V100-PCIE-32GB", "NVIDIA A100-SXM4-80GB"])
        self.assertTrue(gpus.supports_get_total_energy_consumption(V100))
        self.assertEqual(gpus.get_power_management_limit_constraints(V100), (100000, 250000))
        virtual_gpu.wait_for(lambda: gpus.get_instant_power_usage(A100) == 60000, "the idle power")
        self.assertIn(gpus.get_gpu_temperature(V100), range(32, 45))
        self.assertEqual(len(gpus.get_supported_graphics_clocks(A100, 1593)), 81)

    def test_power_limits_are_set_read_back_and_reset(self):
        gpus = get_gpus()
        for gpu, default in ((V100, 250000), (A100, 400000)):
            gpus.set_power_management_limit(gpu, 200000)
            self.assertEqual(gpus.get_power_management_limit(gpu), 200000)
            self.assertEqual(virtual_gpu.gpus()[gpu]["limit_w"], 200)
            with virtual_gpu.load(gpu):
                self.assertLessEqual(virtual_gpu.gpus()[gpu]["power_w"], 200)
            gpus.reset_power_management_limit(gpu)
            self.assertEqual(gpus.get_power_management_limit(gpu), default)

    def test_clocks_are_locked_and_reset(self):
        gpus = get_gpus()
        gpus.set_gpu_locked_clocks(A100, 600, 900)
        self.assertEqual(virtual_gpu.gpus()[A100]["clock_lock_max_hz"], 900e6)
        gpus.reset_gpu_locked_clocks(A100)
        self.assertIsNone(virtual_gpu.gpus()[A100]["clock_lock_max_hz"])


if __name__ == "__main__":
    unittest.main()
