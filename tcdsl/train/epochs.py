"""Epochs: a routine run over all positions of a static index, again and again, with its progress shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tcdsl.errors import ConfigurationError
from tcdsl.tensors.graph_linking.static_indices import StaticIndex
from tcdsl.tensors.graphs.location import fault
from tcdsl.tensors.graphs.tensor import Tensor
from tcdsl.tensors.routines import Routine
from tcdsl.tracebacks import user_facing

__all__ = ["epochs"]


@user_facing
def epochs(
    routine: Routine,
    index: StaticIndex,
    count: int,
    *,
    loss: Tensor | None = None,
    on_epoch: Callable[[int, float], Any] | None = None,
    progress: bool = True,
    **numbers: Any,
) -> list[float]:
    """``means = tc.train.epochs(step, batch_n, 20, loss=loss, learning_rate=cosine(0.1, 200))``: 20 times all batches.

    Runs ``routine`` for each position of ``index`` and returns the mean of ``loss`` over each epoch (NaN without one).
    ``numbers`` are set as ``routine.run`` does; those that are functions are called with the number of the step,
    counted from 0 over all epochs. ``on_epoch(epoch, mean)`` is called after each epoch, to shuffle, report or save; if
    it returns True, that was the last one. A bar shows the progress in terminals and notebooks.
    """
    _check(routine, index, count, loss)
    means: list[float] = []
    done = 0
    with _shown(count, progress) as show:
        for epoch in range(count):
            total = 0.0
            for position in range(index.extent):
                routine.run(**{index.label: position}, **_at(numbers, done))
                done += 1
                total += float("nan") if loss is None else float(loss.value)
            means.append(total / index.extent)
            show(epoch + 1, means[-1])
            if on_epoch is not None and on_epoch(epoch, means[-1]) is True:
                break
    return means


def _check(routine: Any, index: Any, count: Any, loss: Any) -> None:
    fact, hint = "", ""
    if not isinstance(routine, Routine):
        fact, hint = f"a {type(routine).__name__} as a routine", "tc.compile(code, ...) makes one"
    elif not isinstance(index, StaticIndex):
        fact, hint = f"a {type(index).__name__} as the index", 'tc.static_index("batch_n", size) makes one'
    elif isinstance(count, bool) or not isinstance(count, int) or count < 0:
        fact, hint = f"{count!r} epochs", "give an integer, 0 or more"
    elif loss is not None and (not isinstance(loss, Tensor) or loss.size != 1):
        fact, hint = "the loss is no tensor of one cell", "give the tensor that the routine differentiates"
    if fact:
        raise fault(ConfigurationError, fact, hint)


def _at(numbers: Mapping[str, Any], step: int) -> dict[str, Any]:
    return {name: value(step) if callable(value) else value for name, value in numbers.items()}


@contextmanager
def _shown(count: int, progress: bool) -> Iterator[Callable[[int, float], None]]:
    from rich import get_console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = get_console()
    if not progress or not (console.is_terminal or console.is_jupyter):
        yield lambda done, mean: None
        return
    columns = (TextColumn("epoch"), MofNCompleteColumn(), BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("", total=count)

        def show(done: int, mean: float) -> None:
            bar.update(task, completed=done, description="" if mean != mean else f"loss {mean:.6g}")  # noqa: PLR0124

        yield show
