# SPDX-License-Identifier: MIT
"""Hugging Face Trainer:

    from wattgov.integrations.huggingface import WattgovCallback
    trainer = Trainer(..., callbacks=[WattgovCallback(metric="eval_accuracy")])

A step is one update of the weights (as in `state.global_step`), with all its accumulated batches. `metric` is the
name of the target among the results of evaluation; None takes `eval_loss`. A run that resumes from a checkpoint goes
on counting where it was.
"""
from __future__ import annotations

from wattgov._train import Train
from wattgov.integrations._callback import find_class, number


class _Callback:
    """The hooks, without transformers' base class."""

    def __init__(self, metric: str | None = None) -> None:
        self.metric = metric
        self._train: Train | None = None

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        del control, kwargs
        self._train = Train(first_step=state.global_step, first_epoch=int(state.epoch or 0))
        self._train.batch_size(args.train_batch_size * args.gradient_accumulation_steps * args.world_size)

    def on_step_end(self, args, state, control, **kwargs) -> None:
        if self._train is not None:
            self._train.step()

    def on_epoch_end(self, args, state, control, **kwargs) -> None:
        if self._train is not None:
            self._train.epoch()

    def on_evaluate(self, args, state, control, metrics=None, **kwargs) -> None:
        del args, state, control, kwargs
        name = self.metric or "eval_loss"
        value = number((metrics or {}).get(name))
        if self._train is not None and value is not None:
            self._train.metric(value, name)

    def on_train_end(self, args, state, control, **kwargs) -> None:
        if self._train is not None:
            self._train.close()
            self._train = None


_classes: dict[type, type] = {}


class WattgovCallback:
    """A transformers.TrainerCallback that tells progress; the class is made when the first object is."""

    def __new__(cls, metric: str | None = None):
        base, = find_class("transformers", [("transformers", "TrainerCallback")])
        if base not in _classes:
            _classes[base] = type("WattgovCallback", (_Callback, base), {"__module__": __name__})
        return _classes[base](metric)
