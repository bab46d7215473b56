"""Parameters, and who keeps them: an op without configuration, or a layer.

::

    w = tc.param("w", o=16, i=2)                # 2 -> 16, uniform in +-1/sqrt(2)
    a = tc.param("a", init=[-4.0])              # one output axis, from the literal

    @op
    def affine(x):
        return "w" @ x + "b"[16]                # the same parameters at every call
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from math import prod
from typing import Any

import numpy as np

from tcdsl.errors import ConfigurationError, DslSyntaxError, DtypeError, ShapeError, TcdslError
from tcdsl.frontend.arrays.array_literals import literal_array
from tcdsl.frontend.source.function_source import FunctionSource
from tcdsl.frontend.staging.active_session import DeclarationMet
from tcdsl.frontend.staging.declared_parameters import current_parameters, declaring
from tcdsl.frontend.staging.given_arrays import given_array, labels_of
from tcdsl.frontend.staging.run_time_integers import RunsOnTensors
from tcdsl.frontend.staging.session import current_session
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.recent import Recent
from tcdsl.rows.inference import Origin, parameter
from tcdsl.span import Span
from tcdsl.tensors.graphs.element_types import type_name
from tcdsl.tensors.graphs.initialization import Filled, Given, InitialValue, Made, Uniform
from tcdsl.tensors.graphs.literals import sizes_of
from tcdsl.tensors.graphs.location import fault
from tcdsl.tensors.graphs.tensor import Tensor
from tcdsl.tracebacks import user_facing, user_location

__all__ = ["Declaration", "DeclaredLater", "Parameters", "by_label", "param"]

# What makes a loop of Python's one that runs, whose rounds share what they declare.
_RUNNING: Mapping[type, str] = {
    ast.For: ", or let the loop run (`for t in tc.loop(...)`)",
    ast.While: ", or let the loop run from its first round on, by a condition on a tensor (`d = 1 + 0 * sum(x)`)",
}


@user_facing
def param(name: str, *, o: Any = None, i: Any = None, init: Any = None, dtype: Any = None) -> Tensor:
    """``w = tc.param("w", o=16, i=2)``: a differentiable leaf, which optimizers update.

    ``o`` and ``i`` are the sizes of its output and input axes; those that are not given, or None, are found by
    inference. There are no batch axes. ``init`` is a number for all cells, an array or literal
    (lists are output axes, tuples input axes), or a function ``init(generator, sizes)``; without it cells are uniform,
    scaled by fan-in. Without ``dtype`` it takes the floating type of the data that it meets. Inside an `@op` the same
    name is the same parameter, and what each place says about it holds everywhere. Raises `ShapeError`, `DtypeError`
    and `ConfigurationError` where these contradict each other.
    """
    if not isinstance(name, str) or not name:
        raise fault(DtypeError, f"tc.param({name!r}): a parameter has a name", 'write tc.param("w", o=3)')
    scope, session = current_parameters(), current_session()
    if scope is None and session is not None:
        error = fault(
            DslSyntaxError,
            f"the parameter `{name}` is made in code, which runs anew at every call",
            "make it outside, and pass it; ops declare parameters, and keep them",
        )
        raise DeclarationMet(error) if session.context.graph is None else error
    location = user_location()
    said = Declaration(
        None if o is None else sizes_of(o),
        None if i is None else sizes_of(i),
        init,
        None if dtype is None else _floating(dtype),
        location,
    )
    return scope.made(name, said, location) if isinstance(scope, Parameters) else _made((name,), said)


def _floating(dtype: Any) -> str:
    element_type = type_name(dtype)
    if not is_floating(element_type):
        raise fault(DtypeError, f"a parameter of type {element_type}", "parameters are floating")
    return element_type


class DeclaredLater(BaseException):
    """A later place says more about a parameter than the first: run the function again, with all that is said.

    What has been computed by then may have asked for the shape, the type or the value. Not an `Exception`, so that no
    ``except`` in user code catches it.
    """


@dataclass(frozen=True)
class Declaration:
    """What one or more places say about a parameter. ``span`` is the place that has said the most recent of it."""

    output: tuple[int | None, ...] | None = None
    input: tuple[int | None, ...] | None = None
    init: Any = None
    dtype: str | None = None
    span: Span | None = None

    def joined(self, name: str, other: Declaration) -> Declaration:
        """What both say; `ShapeError`, or the like, where they contradict each other."""
        found = {}
        for field in fields(self)[:-1]:
            mine, others = getattr(self, field.name), getattr(other, field.name)
            found[field.name] = others if mine is None else mine
            if mine is None or others is None:
                continue
            if field.name in ("output", "input") and len(mine) == len(others):
                # Of a size that one of them leaves open the other may say something.
                mine, others = _filled(mine, others), _filled(others, mine)
                found[field.name] = getattr(self, field.name) if mine == getattr(self, field.name) else mine
            # Random numbers differ where the same place is run again.
            same = self.span == other.span or _same_initial(mine, others) if field.name == "init" else mine == others
            if not same:
                raise _CONTRADICTIONS.get(field.name, ShapeError).at(
                    f'the parameter "{name}" is declared with {_described(field.name, others)} here, and with '
                    f"{_described(field.name, mine)} in another place",
                    other.span,
                    "one name is one parameter in the whole op; say it once, or use another name",
                    notes=() if self.span is None else (f"the other place is line {self.span.line}",),
                )
        says_more = any(found[field.name] is not getattr(self, field.name) for field in fields(self)[:-1])
        return Declaration(**found, span=other.span if says_more else self.span)

    def says_more_than(self, other: Declaration) -> bool:
        """Whether it says something, and all that ``other`` says, of which that says nothing."""
        if (self.output, self.input) != (other.output, other.input):
            return True
        return any(
            getattr(self, each.name) is not None and getattr(other, each.name) is None for each in fields(self)[:-1]
        )


def _filled(sizes: tuple[int | None, ...], others: tuple[int | None, ...]) -> tuple[int | None, ...]:
    return tuple(other if size is None else size for size, other in zip(sizes, others, strict=True))


_Sizes = tuple[int | None, ...] | None
_CONTRADICTIONS: Mapping[str, type[TcdslError]] = {"init": ConfigurationError, "dtype": DtypeError}


def _described(what: str, said: Any) -> str:
    match what:
        case "init":
            return f"init={said!r}" if isinstance(said, int | float) else "an init"
        case "dtype":
            return f"the type {said}"
        case _:
            return f"{what} axes {list(said)}"


def _same_initial(one: Any, other: Any) -> bool:
    if callable(one) or callable(other):
        return getattr(one, "__code__", one) is getattr(other, "__code__", other)
    (first, _), (second, _) = _initial("", one), _initial("", other)
    match first, second:
        case Filled(), Filled():
            return np.array_equal(first.number, second.number, equal_nan=True)
        case Given(), Given():
            return np.array_equal(first.value, second.value, equal_nan=True)
    return False


_Loop = ast.For | ast.While | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
# The loops of a definition, which each parameter of each layer asks for. By the id of the definition, which is kept
# alive.
_LOOPS: Recent[int, tuple[ast.AST, list[_Loop]]] = Recent(200)


def _loops_in(definition: ast.AST) -> list[_Loop]:
    known = _LOOPS.get(id(definition))
    if known is None:
        known = definition, [node for node in ast.walk(definition) if isinstance(node, _Loop)]
        _LOOPS[id(definition)] = known
    return known[1]


def _are(known: tuple[int, ...], said: tuple[int | None, ...]) -> bool:
    return len(known) == len(said) and all(each in (None, size) for size, each in zip(known, said, strict=True))


def _made(labels: Sequence[str], said: Declaration) -> Tensor:
    name = labels[0]
    initial, given = _initial(name, said.init)
    output, inputs = said.output, said.input
    if given is not None:
        output, inputs = _agreed(name, given, (output, inputs))
    if given is not None and given[2]:
        raise fault(
            ShapeError,
            f"the initial value of the parameter `{name}` has batch axes {list(given[2])}",
            "a parameter has output and input axes; tc.tensor(x, batch=1, grad=True) makes a differentiable leaf",
        )
    rows = parameter(".".join(labels), output, inputs, origin=Origin(user_location()))
    return Tensor(
        labels,
        rows,
        said.dtype,
        differentiable=True,
        parameter=True,
        initial=Uniform() if initial is None else initial,
    )


def _initial(name: str, init: Any) -> tuple[InitialValue | None, tuple[tuple[int, ...], ...] | None]:
    """The initial value, and the sizes of its output, input and batch axes where it says them."""
    if init is None:
        return None, None
    if isinstance(init, np.generic):
        given_array(init, name, "tc.param(): ", user_location())
    if isinstance(init, bool | int | float | np.generic):
        return Filled(float(init)), None
    if callable(init):
        return Made(init), None
    array = given_array(init, name, "tc.param(): ", user_location())
    if array is None:
        array, ranks = literal_array(init, user_location())
    else:
        array, ranks = np.array(array), (0, array.ndim, 0)
    sizes = array.shape
    batch, output = ranks[0], ranks[0] + ranks[1]
    return Given(array, labels_of(init)), (sizes[batch:output], sizes[output:], sizes[:batch])


def _agreed(name: str, literal: tuple[tuple[int, ...], ...], stated: tuple[_Sizes, _Sizes]) -> tuple[_Sizes, _Sizes]:
    # An array says the sizes; where rows are stated too, its cells are laid out in them.
    output, inputs = stated
    if output is None and inputs is None:
        return literal[0], literal[1]
    sizes = (*(output or ()), *(inputs or ()))
    cells = prod(size for row in literal for size in row)
    known = prod(size for size in sizes if size is not None)
    rest, left = divmod(cells, known or 1)
    if left or sizes.count(None) > 1 or (rest != 1 and None not in sizes):
        raise fault(
            ShapeError,
            f"the initial value of `{name}` has {cells} cells, but its axes have the sizes {list(sizes)}",
            "leave out the sizes, or give an array of them",
        )
    return tuple(tuple(rest if size is None else size for size in row or ()) for row in (output, inputs))  # type: ignore[return-value]


def by_label(tensors: Iterable[Tensor]) -> dict[str, Tensor]:
    """``tensors`` by label; equal labels get a number."""
    names = FreshNames()
    return {names.fresh(tensor.label): tensor for tensor in tensors}


class Parameters:
    """The parameters of one op or layer, by name. A `tcdsl.frontend.staging.declared_parameters.ParameterScope`."""

    def __init__(self, owner: str, source: FunctionSource | None = None, labels: Sequence[str] = ()) -> None:
        self.owner = owner
        self._source = source
        self._labels = tuple(labels)
        self._made: dict[str, Tensor] = {}
        self._layers: list[tuple[object, Any]] = []
        #: What the places of the call that is running say about the parameters that it declares.
        self._said: dict[str, Declaration] = {}
        self._known: frozenset[str] = frozenset()
        self.met = 0

    @contextmanager
    def call(self) -> Iterator[None]:
        """A new call: layers inside are met in the same order as at the first.

        Where it fails, what it has declared is forgotten, with all that it has found out about it.
        """
        made, layers, known = dict(self._made), list(self._layers), self._known
        self.met, self._known = 0, frozenset(made)
        try:
            with declaring(self):
                yield
        except DeclaredLater:
            # The layers inside know what has been said in them.
            self._made = made
            raise
        except BaseException as error:
            self._made, self._layers = made, layers
            if isinstance(error, Exception):
                self._said = {}  # others ask for the function to be run again
            raise
        else:
            self._said = {}
        finally:
            self._known = known

    @property
    def declared(self) -> tuple[dict[str, Tensor], list[tuple[object, Any]]]:
        """What calls have declared: parameters by name, and the layers inside with their functions."""
        return self._made, self._layers

    @declared.setter
    def declared(self, declared: tuple[dict[str, Tensor], list[tuple[object, Any]]]) -> None:
        self._made, self._layers = declared

    def layer(self, function: object, make: Any, describe: str, span: Span | None) -> Any:
        """The layer that this call of ``function`` belongs to: the one that the same call made the first time."""
        position, self.met = self.met, self.met + 1
        if position == len(self._layers):
            self._layers.append((function, make()))
        known, layer = self._layers[position]
        if known is not function or layer.description != describe:
            raise ConfigurationError.at(
                f"`{self.owner}` met {layer.description} here at its first call, and now {describe}",
                span,
                "layers inside an op are made once: give each its own, or make them outside",
            )
        return layer

    def find(self, name: str) -> Tensor | None:
        """The parameter ``name``, if it has been declared."""
        return self._made.get(name)

    def declare(self, name: str, extents: tuple[Any, ...] | None, span: Span | None) -> Tensor:
        """The parameter that the string ``name`` declares, with these output axes where they are given."""
        return self.made(name, Declaration(None if extents is None else sizes_of(extents), span=span), span)

    def made(self, name: str, said: Declaration, span: Span | None) -> Tensor:
        """The parameter ``name``, of which this place of the function says so much."""
        if name in self._known:
            return self._met(name, said, span)
        before = self._said.get(name)
        joined = said if before is None else before.joined(name, said)
        self._said[name] = joined
        if name in self._made and before is not None and joined.says_more_than(before):
            raise DeclaredLater
        return self._met(name, joined, span)

    def _met(self, name: str, said: Declaration, span: Span | None) -> Tensor:
        session = current_session()
        if name not in self._made:
            # Of a loop that runs all rounds have the same parameter.
            runs = session is not None and any(not each.statement.arms for each in session.running)
            if not runs and (loop := self._loop_around(span)) is not None:
                if session is not None and session.may_be_whole:
                    raise RunsOnTensors
                raise DslSyntaxError.at(
                    f'the parameter "{name}" is declared inside a loop, where it would be the same one every time',
                    span,
                    f"for one parameter, declare it before the loop (`{name} = param({name!r})`)"
                    f"{_RUNNING.get(type(loop), '')}; for one per turn, make a configured op of the loop's body: "
                    "`x = layer(x, label=..., size=...)`",
                )
            self._made[name] = _made((name, *self._labels), said)
        found = self._made[name]
        for what, sizes, row in (("output", said.output, found.rows.output), ("input", said.input, found.rows.input)):
            if sizes is not None and row.is_known and not _are(row.sizes, sizes):
                raise ShapeError.at(
                    f'the parameter "{name}" is declared with {what} axes {list(sizes)}; it is {found.rows}',
                    span,
                    "one name is one parameter in the whole op; use another name",
                )
        if session is not None and session.shapes is not None:
            session.shapes.meets(found)
        return found

    def _loop_around(self, span: Span | None) -> ast.AST | None:
        if span is None or self._source is None or span.filename != self._source.filename:
            return None
        for node in _loops_in(self._source.definition):
            # What a loop goes over, and the condition of `while`, are no part of its rounds.
            first = node.body[0] if isinstance(node, ast.For | ast.While) else node
            last = node.end_lineno or node.lineno
            after = (first.lineno, first.col_offset) <= (span.line, span.column)
            if after and (span.line, span.column) < (last, node.end_col_offset or 0):
                return node
        return None

    def __iter__(self) -> Iterator[Tensor]:
        yield from self._made.values()
        for _, layer in self._layers:
            yield from layer.parameters.values()

    def by_label(self) -> Mapping[str, Tensor]:
        """All parameters, those of inner layers included, by label; equal labels get a number."""
        return by_label(self)
