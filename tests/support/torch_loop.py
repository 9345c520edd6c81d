#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A real PyTorch training, on the CPU, whose steps keep a virtual GPU busy.

    wattgov-vgpu run --machine v100 -- tests/support/torch_loop.py --library build/release/tests/support/vgpu_work.so

A small network learns which of two moons a point lies on; the accuracy is that of points it has not seen. Each step
computes gradients in earnest, and then does the GPU's part of the work on the virtual GPU, which takes longer when
that one is limited. How it tells its progress is --tell: `steps` by wattgov.steps, `print` by lines alone, `file` by
lines in $WATTGOV_PROGRESS as any language would. Without torch the status is 77, with the reason.
"""
import argparse
import ctypes
import os
import sys
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", help="vgpu_work.so; without it no GPU is kept busy")
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--steps", type=int, default=25, help="an epoch")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--work-ms", type=float, default=10, help="the GPU's part of a step, at its largest limit")
    parser.add_argument("--target", type=float, help="accuracy at which training ends")
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fail-at-step", type=int, help="leaves with status 3 there")
    parser.add_argument("--nan-at-epoch", type=int, help="tells NaN as the metric of that epoch")
    parser.add_argument("--tell", choices=("steps", "print", "file"), default="steps")
    return parser.parse_args()


class Gpu:
    """The virtual GPU's part of a step; none where no library is given."""

    def __init__(self, library, index):
        self._do = None
        self.busy_s = 0.0
        if library is not None:
            code = ctypes.CDLL(os.path.abspath(library))
            code.vgpu_work_do.restype = ctypes.c_double
            code.vgpu_work_do.argtypes = [ctypes.c_double, ctypes.c_double]
            if code.vgpu_work_open(index) != 0:
                sys.exit("torch_loop.py: no such virtual GPU; run it by `wattgov-vgpu run`")
            self._do = code.vgpu_work_do

    def work(self, seconds):
        if self._do is not None:
            self.busy_s += self._do(seconds, 1.0)


def moons(torch, count, generator):
    """Points on two half circles that reach into each other, and noise."""
    label = torch.arange(count) % 2
    angle = torch.rand(count, generator=generator) * 3.14159265
    x = torch.where(label == 0, torch.cos(angle), 1 - torch.cos(angle))
    y = torch.where(label == 0, torch.sin(angle), 0.5 - torch.sin(angle))
    points = torch.stack((x, y), dim=1) + 0.1 * torch.randn(count, 2, generator=generator)
    return points, label


class Teller:
    """Progress, in one of the ways."""

    def __init__(self, how, batch_size):
        self.how = how
        self.done = 0
        self.file = None
        if how == "steps":
            import wattgov
            self.wattgov = wattgov
            wattgov.train.batch_size(batch_size)
        elif how == "file":
            self.file = open(os.environ["WATTGOV_PROGRESS"], "a", encoding="utf-8", buffering=1)  # whole lines
            self.file.write(f"batch_size {batch_size}\n")

    def steps(self, batches):
        return self.wattgov.steps(batches) if self.how == "steps" else batches

    def step(self, loss):
        self.done += 1
        print(f"step {self.done} loss {loss:.4f}", flush=True)
        if self.file is not None:
            self.file.write(f"step {self.done}\n")

    def epoch(self, epoch, accuracy):
        print(f"epoch {epoch} accuracy {accuracy:.4f}", flush=True)
        if self.how == "steps":
            self.wattgov.train.metric(accuracy, "accuracy")
            self.wattgov.train.epoch()
        elif self.file is not None:
            self.file.write(f"metric {accuracy} accuracy\nepoch {epoch}\n")


def main():
    options = arguments()
    try:
        import torch
    except ImportError as cause:
        print(f"skipped: {sys.executable} has no torch ({cause}): install the Debian package python3-torch")
        sys.exit(77)
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(options.seed)
    points, labels = moons(torch, options.steps * options.batch_size, generator)
    unseen, truth = moons(torch, 500, generator)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(points, labels),
                                         batch_size=options.batch_size, shuffle=True, generator=generator)
    model = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    gpu, teller = Gpu(options.library, options.gpu), Teller(options.tell, options.batch_size)
    begin_s = time.monotonic()
    for epoch in range(1, options.epochs + 1):
        for inputs, targets in teller.steps(loader):
            loss = torch.nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            gpu.work(options.work_ms / 1000)
            teller.step(loss.item())
            if teller.done == options.fail_at_step:
                sys.exit(3)
        with torch.no_grad():
            accuracy = (model(unseen).argmax(dim=1) == truth).float().mean().item()
        teller.epoch(epoch, float("nan") if epoch == options.nan_at_epoch else accuracy)
        if options.target is not None and accuracy >= options.target:
            break
    print(f"time_s {time.monotonic() - begin_s:.3f} gpu_s {gpu.busy_s:.3f}", flush=True)


if __name__ == "__main__":
    main()
