#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`wattgov train` around a job that says nothing: its steps are the period of its power.

    tests/integration/train_period.py build/release/vgpu

Runs alone (is_parallel in meson.build): a job that other tests keep from the processor for half a step has no period.
"""
import json
import signal

import vgpu_case
from train import Case
from vgpu_case import DEADLINE_S, tool


class Period(Case):
    def test_a_job_that_says_nothing_is_governed_by_the_period_of_its_power(self):
        process = self.in_background("--no-cache", "--profile", "measure=2s", "--json", "--", "env", "-u",
                                           "WATTGOV_PROGRESS", tool("wattgov-vload"), "cifar100", "--gpu", "V100",
                                           "--steps-per-epoch", "38", "--print-every", "1000", "--epochs", "1000")
        self.wait_for_limit(lambda limit: limit < 250, "a lower limit")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=DEADLINE_S)
        report = json.loads(out[out.index('{"schema"'):])
        self.assertEqual(report["progress"], "period")
        self.assertGreaterEqual(report["confidence"], 0.9)
        largest = report["stages"][0]["profile"][-1]
        self.assertEqual(largest["setting"], 250)
        # 7.613 s an epoch at 250 W, by the trace.
        self.assertAlmostEqual(largest["steps_per_s"], 38 / 7.613, delta=0.02 * 38 / 7.613)
        self.expect_nothing_left()


if __name__ == "__main__":
    vgpu_case.main(__doc__)
