#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Progress told from Python: wattgov.steps, wattgov.train, threads and forks, and the frameworks' callbacks.

    tests/integration/python_train.py build/release

The callbacks meet classes with the hooks that the frameworks document; tests/peers/train_callbacks runs the
frameworks themselves.
"""
import json
import os
import subprocess
import sys
import textwrap
import time

from progress_file import ProgressFile
from python_binding import BUILD, ROOT, Binding, main

PRELUDE = """
import copy, json, os, sys, threading
import wattgov
"""

# Just enough of transformers for its documented hooks, in a file of that name.
TRANSFORMERS = """
class TrainerCallback:
    def on_train_begin(self, args, state, control, **kwargs): pass
    def on_step_end(self, args, state, control, **kwargs): pass
    def on_epoch_end(self, args, state, control, **kwargs): pass
    def on_evaluate(self, args, state, control, **kwargs): pass
    def on_train_end(self, args, state, control, **kwargs): pass
"""
LIGHTNING = """
class Callback:
    def __init__(self): self.is_made = True
    def on_train_start(self, trainer, pl_module): pass
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx): pass
    def on_train_epoch_end(self, trainer, pl_module): pass
    def on_validation_end(self, trainer, pl_module): pass
    def on_train_end(self, trainer, pl_module): pass
"""


class Progress(Binding):
    def setUp(self):
        super().setUp()
        self.governor = ProgressFile(os.path.join(self.folder, "progress"))
        self.addCleanup(os.close, self.governor.fd)

    def governed(self, code, **environment):
        return self.run_python(code, prelude=PRELUDE, **{"WATTGOV_PROGRESS": self.governor.path, **environment}).stdout

    def module(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def framework(self, code):
        """With the frameworks of this folder."""
        return self.governed(code, PYTHONPATH=os.path.join(BUILD, "bindings/python") + ":" + self.folder)

    def expect_told(self, *lines):
        self.assertEqual(self.governor.told(), list(lines))


class Steps(Progress):
    def test_each_batch_that_was_worked_on_is_a_step(self):
        said = self.governed("""
            for epoch in range(2):
                batches = wattgov.steps([7, 8, 9])
                assert len(batches) == 3
                print([batch for batch in batches])
                wattgov.train.metric(0.25 * (epoch + 1), "acc")
                wattgov.train.epoch()
        """)
        self.assertEqual(said, "[7, 8, 9]\n[7, 8, 9]\n")
        self.expect_told("step 3", "metric 0.25 acc", "epoch 1", "step 6", "metric 0.5 acc", "epoch 2")

    def test_a_loop_that_is_left_counts_no_step_that_was_not_finished(self):
        self.governed("""
            for batch in wattgov.steps(range(100)):
                if batch == 5:
                    break
            try:
                for batch in wattgov.steps(range(100)):
                    if batch == 3:
                        raise KeyError
            except KeyError:
                pass
        """)
        self.expect_told("step 8")

    def test_what_it_wraps_shines_through(self):
        said = self.governed("""
            class Loader:
                batch_size = 32
                def __len__(self): return 2
                def __iter__(self): return iter("ab")
            steps = wattgov.steps(Loader())
            print(steps.batch_size, len(steps), list(steps), list(copy.copy(steps)))
            print(list(wattgov.steps(x * x for x in range(3))))
            try:
                len(wattgov.steps(iter("ab")))
            except TypeError as error:
                print(error)
        """)
        self.assertEqual(said.splitlines()[:2], ["32 2 ['a', 'b'] ['a', 'b']", "[0, 1, 4]"])
        self.assertIn("has no len()", said)
        self.expect_told("step 7")

    def test_without_a_governor_the_loader_comes_back_and_nothing_is_loaded(self):
        done = self.run_python("""
            loader = [1, 2]
            assert wattgov.steps(loader) is loader
            wattgov.train.step()
            wattgov.train.epoch()
            wattgov.train.metric(float("nan"))
            wattgov.train.batch_size(4)
            assert not wattgov.train.is_active
            wattgov.train.close()
            with open("/proc/self/maps") as file:
                assert "libwattgov" not in file.read()
            print("fine")
        """, prelude=PRELUDE, WATTGOV_LIBRARY="/nowhere")
        self.assertEqual(done.stdout, "fine\n")


class Reporter(Progress):
    def test_what_cannot_be_told_is_dropped_with_a_warning(self):
        self.governed("""
            import warnings
            calls = [lambda: wattgov.train.metric(None), lambda: wattgov.train.metric([1]), lambda: wattgov.train.metric(0.5, 5),
                     lambda: wattgov.train.metric(10**400), lambda: wattgov.train.step(1.5), lambda: wattgov.train.step(-1),
                     lambda: wattgov.train.step("3"), lambda: wattgov.train.batch_size(None)]
            for call in calls:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    call()
                assert len(caught) == 1 and "wattgov is not told" in str(caught[0].message), caught
            wattgov.train.step()
        """)
        self.expect_told("step 1")

    def test_every_call_is_told(self):
        self.governed("""
            train = wattgov.train
            assert train.is_active
            train.batch_size(64)
            train.step()
            train.step(9)
            class Tensor:
                def __float__(self): return 0.5
            train.metric(Tensor())
            train.metric(float("nan"), name="loss")
            train.metric(1, "x y")
            train.epoch()
            train.close()
            train.step()
            train.epoch()
            assert not train.is_active
        """)
        self.expect_told("step 0", "batch_size 64", "step 10", "metric 0.5", "metric nan loss", "metric 1 x_y", "epoch 1")

    def test_the_last_steps_are_told_at_exit(self):
        self.governed("""
            for _ in range(5):
                wattgov.train.step()
        """)
        self.expect_told("step 5")

    def test_a_run_that_resumes_goes_on_counting_and_the_rank_is_told(self):
        self.governed("""
            with wattgov.Train(rank=3, first_step=100, first_epoch=2) as train:
                train.step()
                train.epoch()
        """, RANK="1")
        self.expect_told("step 101 rank 3", "epoch 3 rank 3")

    def test_the_rank_is_that_of_the_launcher(self):
        self.governed("wattgov.train.epoch()", RANK="2")
        self.expect_told("step 0 rank 2", "epoch 1 rank 2")

    def test_threads_lose_no_step(self):
        self.governed("""
            def work():
                for _ in range(20000):
                    wattgov.train.step()
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        """)
        self.expect_told("step 80000")

    def test_a_forked_child_tells_nothing_of_its_parents(self):
        self.governed("""
            wattgov.train.step()
            pid = os.fork()
            if pid == 0:
                assert not wattgov.train.is_active
                wattgov.train.step(1000)
                wattgov.train.epoch()
                wattgov.train.close()
                sys.exit(0)
            assert os.waitpid(pid, 0)[1] == 0
            wattgov.train.step()
        """)
        self.expect_told("step 2")

    def test_a_path_that_will_not_do(self):
        said = self.governed("""
            import warnings
            try:
                wattgov.Train(path="/no/such/file")
            except wattgov.WattgovError as error:
                print(error.code, error)
            os.environ["WATTGOV_PROGRESS"] = "/no/such/file"
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                wattgov.train.step()
                wattgov.train.step()
            print(*(warning.message for warning in caught))
            assert wattgov.steps([1]) == [1]
        """)
        self.assertRegex(said, r"^ENOENT cannot tell progress to '/no/such/file'.*\nwattgov is told no progress: cannot tell")

    def test_a_governor_that_goes_away_does_not_touch_the_training(self):
        said = self.governed("""
            wattgov.train.step()
            os.unlink(os.environ["WATTGOV_PROGRESS"])
            for batch in wattgov.steps(range(1000)):
                pass
            wattgov.train.metric(1)
            print(wattgov.train.is_active)
        """)
        self.assertEqual(said, "False\n")

    def test_moments_are_those_of_the_steps(self):
        from_ns = time.monotonic_ns()
        self.governed("wattgov.train.epoch()")
        for moment_ns in self.governor.moments_ns():
            self.assertTrue(from_ns <= moment_ns <= time.monotonic_ns())

    def test_the_bench_of_steps_prints_its_figures(self):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "bench/train_overhead.py"), BUILD], timeout=60,
                              stdout=subprocess.PIPE, text=True, check=True,
                              env=self.environment(STEPS="2000", ROUNDS="3"))
        figures = json.loads(done.stdout)
        for case in ("none", "file"):
            self.assertGreater(figures[case]["step_ns"]["median"], 0)
            self.assertGreater(figures[case]["loop_ns"]["median"], 0)
        self.assertLess(figures["file"]["loop_ns"]["median"], 500000)


class Frameworks(Progress):
    def test_the_modules_import_without_their_frameworks(self):
        said = self.governed("""
            from wattgov.integrations import huggingface, lightning
            for module in (huggingface, lightning):
                sys.modules.update(dict.fromkeys(("transformers", "lightning", "pytorch_lightning")))  # not there
                try:
                    module.WattgovCallback()
                except ImportError as error:
                    print(error)
        """)
        self.assertRegex(said, "needs transformers, which is not installed here.*\n.*needs lightning or pytorch_lightning")
        self.expect_told()

    def test_hugging_faces_hooks(self):
        self.module("transformers/__init__.py", TRANSFORMERS)
        self.framework("""
            from types import SimpleNamespace as Space
            from transformers import TrainerCallback
            from wattgov.integrations.huggingface import WattgovCallback
            callback = WattgovCallback(metric="eval_f1")
            assert isinstance(callback, TrainerCallback)
            assert type(callback) is type(WattgovCallback())
            args = Space(train_batch_size=8, gradient_accumulation_steps=2, world_size=4)
            state = Space(global_step=500, epoch=2.0)
            callback.on_evaluate(args, state, None, metrics={"eval_f1": 0.1})  # before training: nothing
            callback.on_train_begin(args, state, None, model=None)
            for _ in range(3):
                callback.on_step_end(args, state, None, model=None)
            callback.on_evaluate(args, state, None, metrics={"eval_loss": 1.0, "eval_f1": 0.75})
            callback.on_evaluate(args, state, None, metrics={"eval_loss": 1.0})
            callback.on_epoch_end(args, state, None)
            callback.on_train_end(args, state, None)
            callback.on_step_end(args, state, None)
        """)
        self.expect_told("step 500", "batch_size 64", "step 503", "metric 0.75 eval_f1", "epoch 3")

    def test_lightnings_hooks_under_both_names(self):
        self.module("lightning/__init__.py", "")
        self.module("lightning/pytorch/__init__.py", LIGHTNING)
        self.module("pytorch_lightning/__init__.py", LIGHTNING)
        self.framework("""
            from types import SimpleNamespace as Space
            import pytorch_lightning
            from wattgov.integrations.lightning import WattgovCallback
            assert isinstance(WattgovCallback(), pytorch_lightning.Callback)
            assert "lightning.pytorch" not in sys.modules
            import lightning.pytorch
            callback = WattgovCallback("val_acc", batch_size=16)
            assert isinstance(callback, pytorch_lightning.Callback) and callback.is_made
            assert isinstance(callback, lightning.pytorch.Callback)
            class Tensor:
                def item(self): return 0.5
            trainer = Space(global_rank=1, current_epoch=4, sanity_checking=True,
                            callback_metrics={"val_acc": Tensor(), "val_loss": 2.0},
                            fit_loop=Space(epoch_loop=Space(total_batch_idx=39)))
            callback.on_validation_end(trainer, None)
            callback.on_train_start(trainer, None)
            for index in range(10):
                callback.on_train_batch_end(trainer, None, None, None, index)
            trainer.sanity_checking = False
            callback.on_validation_end(trainer, None)
            callback.on_train_epoch_end(trainer, None)
            callback.metric = None
            callback.on_validation_end(trainer, None)  # two of them: which one is not known
            del trainer.callback_metrics["val_acc"]
            callback.on_validation_end(trainer, None)
            callback.metric = "missing"
            callback.on_validation_end(trainer, None)
            callback.on_train_end(trainer, None)
        """)
        self.expect_told("step 40 rank 1", "batch_size 16 rank 1", "step 50 rank 1", "metric 0.5 val_acc rank 1",
                         "epoch 5 rank 1", "metric 2 val_loss rank 1")


if __name__ == "__main__":
    main(textwrap.dedent(__doc__))
