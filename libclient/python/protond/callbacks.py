# SPDX-License-Identifier: MIT
"""Callbacks for training loops: steps, epochs and what stands between them, by name.

    from protond.callbacks import LightningCallback      # lightning or pytorch_lightning
    trainer = Trainer(callbacks=[LightningCallback()])

    from protond.callbacks import TransformersCallback   # transformers
    trainer = Trainer(..., callbacks=[TransformersCallback()])

    from protond.callbacks import StepCallback           # a loop of one's own
    callback = StepCallback()
    for batch in loader:
        callback.on_step_begin()
        with callback.region("augment"):
            ...
        callback.on_step_end()

The frameworks are imported when their callback is first asked for, never before; where there is none
that is an ImportError. A step is what the framework calls one, and nothing is guessed any more (see
protond.torch.step()). What protond.torch names (`-k torch`: forward, backward, the optimizer) is left
to it; the callbacks name these parts themselves only where it is not installed.

The hooks keep no tensor, change nothing of the trainer's, wait for nothing and cost a few scopes. A
callback belongs to one thread, that of its loop.
"""
from __future__ import annotations

import importlib
import sys
from typing import Any, List, Tuple

from . import _api, torch

_native = _api._native


class _Regions:
    """Scopes that begin in one hook and end in another."""

    def __init__(self) -> None:
        super().__init__()
        self._open: List[str] = []

    def _begin(self, name: str) -> None:
        self._open.append(name)
        _native.push(name)

    def _end(self, name: str) -> None:
        """Ends it and what is open inside; nothing where it is not open."""
        if name in self._open:
            while self._open.pop() != name:
                pass
            _native.pop(name)

    def _end_all(self) -> None:
        torch.step_end()
        if self._open:
            self._end(self._open[0])


class StepCallback:
    """For a loop of one's own: where its steps begin and end."""

    def on_step_begin(self) -> None:
        """A step begins; one that is open ends."""
        torch.step()

    def on_step_end(self) -> None:
        """The step ends: what comes until the next one begins is in none. Nothing where none is open."""
        torch.step_end()

    def region(self, name: str) -> Any:
        """A part of a step: protond.scope(name)."""
        return _api.scope(name)


# --- Lightning ----------------------------------------------------------------------------------

class _Lightning(_Regions):
    """Names the steps, epochs, validations, tests and predictions of a Lightning Trainer.

        epoch
          step                    a training batch, from on_train_batch_start to on_train_batch_end
            training_step, optimizer.zero_grad, backward, optimizer.step
          validation
            batch

    The parts of a step only where protond.torch does not name them; with manual optimization
    `backward` alone, since no hook says where the others end. Batches are fetched between steps.
    Lightning runs training_step and backward in a closure inside the optimizer's step; they
    stand beside it, in protond.torch as here.
    """

    def _phase(self, pl_module: Any, name: str) -> None:
        """In automatic optimization each part of a step ends where the next one begins."""
        if not torch.installed() and pl_module.automatic_optimization:
            self._end_phase()
            self._begin(name)

    def _end_phase(self) -> None:
        for name in ("training_step", "optimizer.zero_grad", "optimizer.step"):
            self._end(name)

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self._end_all()

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin("epoch")

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        torch.step_end()
        self._end("epoch")

    def on_train_batch_start(self, trainer: Any, pl_module: Any, *args: Any, **kwargs: Any) -> None:
        torch.step()
        self._phase(pl_module, "training_step")

    def on_before_zero_grad(self, trainer: Any, pl_module: Any, *args: Any, **kwargs: Any) -> None:
        self._phase(pl_module, "optimizer.zero_grad")

    def on_before_backward(self, trainer: Any, pl_module: Any, *args: Any, **kwargs: Any) -> None:
        if not torch.installed():
            self._end_phase()
            self._begin("backward")

    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
        self._end("backward")

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, *args: Any, **kwargs: Any) -> None:
        self._phase(pl_module, "optimizer.step")

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *args: Any, **kwargs: Any) -> None:
        self._end_phase()
        torch.step_end()

    def on_sanity_check_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin("sanity check")

    def on_sanity_check_end(self, trainer: Any, pl_module: Any) -> None:
        self._end("sanity check")

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin("validation")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self._end("validation")

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin("test")

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        self._end("test")

    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin("predict")

    def on_predict_end(self, trainer: Any, pl_module: Any) -> None:
        self._end("predict")

    def _batch_start(self, trainer: Any, pl_module: Any, *args: Any, **kwargs: Any) -> None:
        self._begin("batch")

    def _batch_end(self, trainer: Any, pl_module: Any, *args: Any, **kwargs: Any) -> None:
        self._end("batch")

    on_validation_batch_start = on_test_batch_start = on_predict_batch_start = _batch_start
    on_validation_batch_end = on_test_batch_end = on_predict_batch_end = _batch_end

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._end_all()


# --- transformers -------------------------------------------------------------------------------

class _Transformers(_Regions):
    """Names the steps, epochs, evaluations and checkpoints of a transformers Trainer.

        epoch
          step          an update of the weights: with gradient accumulation several batches
            optimizer.step      only where protond.torch does not name it
          evaluate, save

    The Trainer says where an evaluation and a checkpoint end; they begin where it has decided on
    them, after the step. One outside of training, and of several sets for evaluation all but the
    first, begins after its first batch. Batches are fetched between steps.
    """

    def _decided(self, control: Any) -> None:
        """At the end of a step or an epoch the Trainer evaluates, then saves, if at all."""
        if control.should_evaluate:
            self._begin("evaluate")
        elif control.should_save:
            self._begin("save")

    def _end_decided(self) -> None:
        self._end("evaluate")
        self._end("save")

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end_all()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end_all()  # also what an exception has left open: the Trainer has no hook for that
        self._begin("epoch")

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end_all()
        self._decided(control)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end_decided()  # another callback may have decided against it
        torch.step()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not torch.installed():
            self._begin("optimizer.step")

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end("optimizer.step")

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end("optimizer.step")
        torch.step_end()
        self._decided(control)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if "evaluate" not in self._open:
            self._end("save")
            self._begin("evaluate")

    def on_evaluate(self, args: Any, state: Any, control: Any, *rest: Any, **kwargs: Any) -> None:
        self._end("evaluate")
        if control.should_save:
            self._begin("save")

    def on_predict(self, args: Any, state: Any, control: Any, *rest: Any, **kwargs: Any) -> None:
        self._end("evaluate")

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end("save")


# --- made when they are asked for ---------------------------------------------------------------

# Name here: what is in it, the modules that may have the base class, its name there.
_MADE = {
    "LightningCallback": (_Lightning, ("lightning.pytorch", "pytorch_lightning"), "Callback"),
    "TransformersCallback": (_Transformers, ("transformers",), "TrainerCallback"),
}

__all__ = ["StepCallback", *_MADE]


def _framework(names: Tuple[str, ...]) -> Any:
    """The first that is imported already, else the first that can be."""
    for name in names:
        if sys.modules.get(name) is not None:
            return sys.modules[name]
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError(f"none of {', '.join(names)} is installed")


def __getattr__(name: str) -> Any:
    if name not in _MADE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    ours, modules, base = _MADE[name]
    made = type(name, (ours, getattr(_framework(modules), base)), {"__module__": __name__, "__doc__": ours.__doc__})
    globals()[name] = made
    return made
