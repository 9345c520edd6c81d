#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`--gpu live` of the commands of `wattgov wave`, on virtual GPUs.

    tests/integration/wave_live.py build/release/vgpu
"""
import json
import os

import vgpu_case
from vgpu_case import Case


class Live(Case):
    def sweep(self, gpu, *machines):
        arguments = [argument for machine in machines for argument in ("--machine", machine)]
        wattgov = os.path.join(Case.programs, "..", "wattgov")
        return self.vgpu("run", *arguments, "--", wattgov, "wave", "sweep", "--gemm", "64,64,64", "--precision", "fp32",
                         "--gpu", gpu, "--json")

    def expect(self, identifier, gpu, *machines):
        done = self.sweep(gpu, *machines)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["gpu"], identifier)

    def test_each_shipped_machine_is_known_by_the_name_of_its_gpu(self):
        for machine, identifier in (("a100", "a100-sxm4-80gb"), ("a40", "a40"), ("h100", "h100-sxm-80gb"),
                                    ("h200", "h200-sxm-141gb"), ("rtx-4090", "rtx-4090"), ("t4", "t4"),
                                    ("v100", "v100-pcie-32gb")):
            self.expect(identifier, "live", machine)

    def test_an_index_chooses_among_several(self):
        self.expect("a100-sxm4-80gb", "live:0", "mixed")
        self.expect("t4", "live:1", "mixed")
        self.expect("gtx-1080", "live:2", "mixed")
        done = self.sweep("live:3", "mixed")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("'3'", done.stderr)

    def test_an_unknown_gpu_is_not_taken_for_its_neighbour(self):
        path = os.path.join(self.folder, "new.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("id: new\ndriver: 1.2\ncuda_version: 12.4\ngpus:\n  - like: t4\n    name: NVIDIA T4000\n")
        done = self.sweep("live", path)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn("no GPU 'NVIDIA T4000'", done.stderr)
        self.assertIn("--gpu gpu.yaml", done.stderr)


if __name__ == "__main__":
    vgpu_case.main(__doc__)
