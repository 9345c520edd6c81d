# SPDX-License-Identifier: MIT
"""Lightning, as `lightning` or as `pytorch_lightning`:

    from wattgov.integrations.lightning import WattgovCallback
    trainer = lightning.Trainer(..., callbacks=[WattgovCallback(metric="val_acc")])

A step is one batch. `metric` is the name of the target as the module logs it; None takes the only one that was logged
by validation, or tells none. Validation before training (the sanity check) does not count. A run that resumes goes on
counting where it was.
"""
from __future__ import annotations

import sys

from wattgov._train import Train
from wattgov.integrations._callback import find_class, number

_PLACES = [("lightning.pytorch", "Callback"), ("pytorch_lightning", "Callback")]


class _Callback:
    """The hooks, without Lightning's base class."""

    def __init__(self, metric: str | None = None, batch_size: int | None = None) -> None:
        super().__init__()
        self.metric = metric
        self.batch_size = batch_size
        self._train: Train | None = None

    def on_train_start(self, trainer, pl_module) -> None:
        del pl_module
        done = trainer.fit_loop.epoch_loop.total_batch_idx + 1 if hasattr(trainer, "fit_loop") else 0
        self._train = Train(rank=trainer.global_rank, first_step=max(0, done), first_epoch=trainer.current_epoch)
        if self.batch_size is not None:
            self._train.batch_size(self.batch_size)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:
        if self._train is not None:
            self._train.step()

    def on_train_epoch_end(self, trainer, pl_module) -> None:
        if self._train is not None:
            self._train.epoch()

    def on_validation_end(self, trainer, pl_module) -> None:
        del pl_module
        if self._train is None or trainer.sanity_checking:
            return
        logged = trainer.callback_metrics
        names = [self.metric] if self.metric is not None else [name for name in logged if name.startswith("val")]
        value = number(logged.get(names[0])) if len(names) == 1 else None
        if value is not None:
            self._train.metric(value, names[0])

    def on_train_end(self, trainer, pl_module) -> None:
        if self._train is not None:
            self._train.close()
            self._train = None


_classes: dict[tuple[type, ...], type] = {}


class WattgovCallback:
    """A Callback of Lightning that tells progress; the class is made when the first object is.

    Both packages may be installed, and each trainer accepts its own Callback only: the one that the program has
    imported counts, and both when it has both.
    """

    def __new__(cls, metric: str | None = None, batch_size: int | None = None):
        places = [place for place in _PLACES if place[0] in sys.modules] or _PLACES
        bases = tuple(dict.fromkeys(find_class("lightning or pytorch_lightning", places)))
        if bases not in _classes:
            _classes[bases] = type("WattgovCallback", (_Callback, *bases), {"__module__": __name__})
        return _classes[bases](metric, batch_size)
