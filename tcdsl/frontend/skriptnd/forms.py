"""What is known of a graph without arrays, and what of its results data cuts off."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcdsl.errors import ShapeError
from tcdsl.frontend.skriptnd.arithmetic import Arithmetic, StandIns
from tcdsl.frontend.skriptnd.composition import Composer, Library
from tcdsl.frontend.skriptnd.evaluation import ExpressionEvaluator, Scope
from tcdsl.frontend.skriptnd.graph_inputs import GraphInputs, graph_attributes
from tcdsl.frontend.skriptnd.text.syntax import Operator
from tcdsl.frontend.skriptnd.values import Pack, TensorValue, bound_of, flat
from tcdsl.frontend.words.shared_parts import sharing
from tcdsl.span import Span

__all__ = ["GraphForm", "Variable", "composed", "ended_packs", "marked", "open_extents", "trimmed"]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a graph: its label, type and shape, and the name of its file."""

    label: str
    type: str
    shape: tuple[int, ...]
    file: str
    span: Span | None


@dataclass(slots=True)
class GraphForm:
    """What is known of a graph without arrays: attributes and variables, and the shapes of its inputs and outputs.

    ``operations`` are the operators that are called, ``sizes`` the most that each size may be, by name.
    """

    attributes: dict[str, Any]
    variables: dict[str, Variable]
    inputs: list[Any]
    outputs: list[Any]
    operations: int
    #: The labels of variables that a call changes.
    updates: tuple[str, ...]
    sizes: dict[str, int]
    #: What quantizes tensors, by their labels: an operator, and its attributes.
    quantizations: dict[str, tuple[str, dict[str, Any]]]


def trimmed(results: Any, marks: Sequence[Sequence[bool]]) -> Any:
    """Results of a body without the numbers behind them, and arrays without the cells that these leave out.

    ``marks`` says of each axis of the first results whether only data says its extent. Tensors keep all cells.
    """
    count = sum(map(sum, marks))
    if not count:
        return results
    found, counts = list(results[:-count]), iter(results[-count:])
    for k, axes in enumerate(marks):
        numbers = [next(counts) if each else None for each in axes]
        if isinstance(found[k], np.ndarray):
            parts = (slice(None) if each is None else slice(int(each)) for each in numbers)
            found[k] = np.ascontiguousarray(found[k][tuple(parts)])
    return found[0] if len(found) == 1 else tuple(found)


def open_extents(operator: Operator) -> list[list[bool]]:
    """Whether extents of outputs are declared by a bound alone, one list for each output that is no pack."""
    return [[each.bound is not None for each in output.type.shape or ()] for output in operator.outputs]


def marked(outputs: Sequence[Any]) -> list[list[bool]]:
    """Whether only data says the extents of tensors, one list for each tensor."""
    return [[bound_of(extent) is not None for extent in each.shape] for each in flat(outputs)]


def ended_packs(outputs: Sequence[Any]) -> list[Pack]:
    """The packs of which only data says how long they are."""
    return [each for each in outputs if isinstance(each, Pack) and each.length is not None]


def composed(
    operator: Operator,
    find: Library,
    attributes: Mapping[str, Any],
    lengths: Mapping[str, int] | None = None,
    quantized: bool = False,
    left_out: Collection[str] = (),
) -> GraphForm:
    """Look at a graph without arrays; its inputs are as large as they may be, its packs have ``lengths`` tensors.

    Inputs in ``left_out`` are not given.

    All faults of the text are errors, but for indices that are out of range, which the first call tells.
    """
    known_sizes = StandIns()
    arithmetic = Arithmetic("float32", "int64", known_sizes)  # what the call has, arrays tell
    variables: dict[str, Variable] = {}

    def variable(label: str, kind: str, shape: Pack, span: Span | None) -> TensorValue:
        # The names of a graph that is called without a label begin with its own.
        called = any(isinstance(each, Operator) for each in composition.unlabelled)
        file = f"main.{label}.dat" if called else f"main.{operator.name}.{label}.dat"
        known = Variable(label, kind, tuple(shape), file, span)
        if variables.setdefault(label, known) != known:
            raise ShapeError.at(f"the variable `{label}` has two shapes", span)
        return TensorValue(label, kind, shape)

    composition = Composer(arithmetic, None, find, variable, quantized=quantized)
    evaluator = ExpressionEvaluator(arithmetic, Scope())
    values = graph_attributes(operator, evaluator, attributes)
    given = GraphInputs(operator, evaluator, lengths or {}, left_out).stand_ins(known_sizes)
    with sharing():
        outputs = composition.operator(operator, "main", (), values, given, "", None)
    updates, sizes = tuple(composition.updates), known_sizes.sizes
    quantizations = composition.quantizations
    called = composition.operations - 1  # without the graph itself
    return GraphForm(values, variables, given, outputs, called, updates, sizes, quantizations)
