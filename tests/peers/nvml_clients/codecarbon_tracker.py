# SPDX-License-Identifier: MIT
"""codecarbon's tracker on a V100: its energy is that of the counter.

It believes in NVIDIA GPUs only when `nvidia-smi --help` succeeds, so a script of that name stands in PATH.
"""
import os
import tempfile
import time
import unittest

import virtual_gpu

JOULES_PER_KWH = 3.6e6


class Test(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        script = os.path.join(folder.name, "nvidia-smi")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexit 0\n")
        os.chmod(script, 0o755)
        os.environ["PATH"] = folder.name + ":" + os.environ["PATH"]
        os.environ["HOME"] = folder.name  # no settings of whoever runs the tests

    def test_the_energy_of_the_gpu_is_close_to_the_truth(self):
        from codecarbon import OfflineEmissionsTracker  # looks for GPUs when it is loaded
        tracker = OfflineEmissionsTracker(country_iso_code="USA", measure_power_secs=1, save_to_file=False,
                                          log_level="error", allow_multiple_runs=True)
        with virtual_gpu.load(0, "--utilization", 0.5):
            before = virtual_gpu.gpus()[0]["energy_j"]
            tracker.start()
            begun = virtual_gpu.gpus()[0]["energy_j"]
            end = time.monotonic() + 1.5
            virtual_gpu.wait_for(lambda: time.monotonic() >= end, "the time")
            ending = virtual_gpu.gpus()[0]["energy_j"]
            tracker.stop()
            after = virtual_gpu.gpus()[0]["energy_j"]
        data = tracker.final_emissions_data
        used = data.gpu_energy * JOULES_PER_KWH
        self.assertEqual((data.gpu_count, data.gpu_model), (1, "1 x Tesla V100-PCIE-32GB"))
        # It asks somewhere within start() and stop(), and the counter ticks every 20 ms.
        self.assertGreater(ending - begun, 150)
        self.assertGreaterEqual(used, ending - begun - 5)
        self.assertLessEqual(used, after - before + 5)


if __name__ == "__main__":
    unittest.main()
