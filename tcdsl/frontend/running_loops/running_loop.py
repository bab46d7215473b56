"""Loops that run: ``for t in range(T)`` over a size, staged as one round and recorded as a `tcdsl.ir.program.Repeat`.

The rewritten function runs the body as Python runs any loop, on a number that is a size (`loop_recorder`).

What a round carries to the next one is found by staging: the body is staged again until the names that it changes, and
their types, are those that it was staged with. Numbers of Python take the type that their updates give them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError, TcdslError
from tcdsl.frontend.arrays.arithmetic import element_of, record_elementwise
from tcdsl.frontend.points.point_scalars import PointValue
from tcdsl.frontend.running_loops.carried import (
    Carried,
    Kind,
    is_declared,
    is_read,
    joined,
    kind_of,
    label_of,
    shown,
    start_of,
    unheld,
)
from tcdsl.frontend.running_loops.conditions import goes_on
from tcdsl.frontend.running_loops.learned_sizes import learn_for_all_rounds
from tcdsl.frontend.running_loops.loop_statement import LoopStatement
from tcdsl.frontend.running_loops.round_counts import RoundCount
from tcdsl.frontend.staging.declarations import DeclaredInRound, DeclaredTarget, OfARound, Unwritten
from tcdsl.frontend.staging.run_time_integers import Specialize
from tcdsl.frontend.staging.session import Poison, Session
from tcdsl.frontend.staging.subprograms import Part
from tcdsl.frontend.symbols.recordings import Learned, Recording
from tcdsl.frontend.symbols.retired_names import OF_A_ROUND
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicNumber, SymbolicSize, SymbolicTensor
from tcdsl.frontend.symbols.values import Value, cast_value
from tcdsl.ir.build import apply, cast, constant, integer
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Read, size_names
from tcdsl.ir.program import AxisExtent, Program, Repeat, Tensor
from tcdsl.ranges.round_conditions import sizes_of_round

__all__ = ["RunningLoop"]

_MOST_PASSES = 8


class RunningLoop:
    """One loop that runs, while its body is staged in ``frame``.

    The names that it may bind hold ``before`` what they hold. ``condition`` says at the end of a round whether there is
    another one, if that is data, behind what it says of the first round. What is in ``blank``, by its name, is there
    from the beginning without cells: both arms of a branch bind it. Where what is carried changes its type or shape,
    the function is staged for the values of the arguments ``numbers``, on which alone the loop depends.
    """

    def __init__(
        self,
        session: Session,
        statement: LoopStatement,
        frame: FrameType,
        rounds: RoundCount,
        before: Mapping[str, Any] | None = None,
        condition: tuple[SymbolicTensor, Callable[[], SymbolicTensor]] | None = None,
        numbers: frozenset[str] = frozenset(),
        blank: Mapping[str, Kind] | None = None,
    ) -> None:
        self.statement = statement
        self.frame = frame
        self.finished = False
        self._session = session
        self._builder = session.builder
        self._rounds = rounds
        self._span = session.location()
        held = frame.f_locals if before is None else before
        self._before: dict[str, Any] = {name: unheld(held[name]) for name in statement.names if name in held}
        self._condition = None if condition is None else condition[1]
        self._going = None if condition is None else Carried("running", condition[0], Kind("bool", None))
        self._numbers = numbers
        self._blank = blank or {}
        #: Whether the round was left by `break`.
        self.left: Any = False
        #: What a pass has bound that no name held before.
        self.bound: dict[str, Kind] = {}
        self._names: dict[str, Carried] = {}
        self._memory: dict[int, Carried] = {}
        #: The version and the type of that memory before the loop.
        self._versions: dict[int, tuple[str, str]] = {}
        self._stand_ins: dict[str, Any] = {}
        self._after: dict[str, Any] = {}

    # -- for the rewritten function

    def passes(self, number: Any = None) -> Iterator[Any]:
        """The number of the round, or what is given, once for each time that the body is to be staged."""
        for _ in range(_MOST_PASSES):
            body: Program | None = None
            with self._forgetting() as (part, learned):
                with part.recording(), self._round(part) as (own, counter):
                    yield self._rounds.element(own) if number is None else number
                    settled = self._settled(part.recorded, self.frame.f_locals)
                    left = self._left(self.frame.f_locals) if settled else []
                if settled and not self._session.faults:
                    body = self._body(part, counter, left)
                since = self._builder.forget_since(learned)
            if self._session.faults:
                self._after = dict.fromkeys(self.statement.names, Poison())
                self.finished = True
                return
            if body is not None:
                learn_for_all_rounds(self._session, since, counter, self._span, self._rounds.where)
                self._finish(body)
                return
        raise self._fault(DtypeError, "the types of what this loop carries do not settle", "give its numbers a type")

    def trial(self, number: Any) -> Iterator[Any]:
        """What is given, once: the body is staged for what it binds."""
        with self._forgetting() as (part, _), part.recording(), self._round(part):
            yield number
            held = self.frame.f_locals
            for name in self.statement.names:
                if isinstance(self._before.get(name, Unwritten(name)), Unwritten):
                    kind = kind_of(self._session, held.get(name))
                    if kind is not None:
                        self.bound[name] = replace(kind, memory=False)

    @contextmanager
    def _forgetting(self) -> Iterator[tuple[Part, Learned]]:
        # What is learned in the block is no part of the program.
        learned, part = self._builder.learned(), Part(self._builder)
        try:
            yield part, learned
        finally:
            self._builder.forget_since(learned)
            self._builder.retire(_labels(part.recorded), OF_A_ROUND)

    @contextmanager
    def _round(self, part: Part) -> Iterator[tuple[Any, Tensor]]:
        try:
            yield self._begin()
        finally:
            self._restore(part.recorded)

    def carried(self) -> Any:
        """What the names hold at the beginning of a round."""
        return tuple(
            self._stand_ins.get(name, self._before.get(name, Unwritten(name))) for name in self.statement.names
        )

    def after(self) -> Any:
        """What they hold after the loop, the number of the round first."""
        numbers = tuple(
            OfARound(
                name,
                f"`{name}` counts the rounds of a loop that runs, and is used after that loop",
                "take another letter, or what the loop runs to",
                self._span,
                self._numbers,
            )
            for name in self.statement.numbers
        )
        return (*numbers, *(self._after[name] for name in self.statement.names))

    # -- one pass

    def _begin(self) -> tuple[Any, Tensor]:
        builder, rounds = self._builder, self._rounds
        label = self.statement.numbers[0] if len(self.statement.numbers) == 1 else "round"
        plain = rounds.begin == integer(0) and rounds.step == 1
        number: Any
        if rounds.sized:
            counter = builder.counter(f"{label}_round", label if plain else f"{label}_round")
            size = counter.shape[0]
            builder.require(apply("lt", size, rounds.count), "")
            expr = size if plain else apply("add", rounds.begin, apply("mul", integer(rounds.step), size))
            number = SymbolicSize(builder, expr)
        else:
            held = builder.placeholder(label if plain else f"{label}_round", "int64", ())
            counter, number = builder.tensor(held.name), held
            if not plain:
                steps = apply("mul", integer(rounds.step), cast(held.cell(()).expr, "int64"))
                value = Value(apply("add", rounds.begin, steps), None, "int64")
                number = record_elementwise(self._session, value, (), label)
        self._stand_ins = {name: self._stand_in(each) for name, each in self._names.items()}
        for name, before in self._before.items():
            if isinstance(before, DeclaredTarget) and before.extents is not None and name not in self._names:
                self._stand_ins[name] = self._declared(name, before)
        if self._going is not None:
            self._stand_in(self._going)
        for each in self._memory.values():
            stand_in = self._stand_in(each)
            _set(each.before, stand_in.name, stand_in.element_type)
        return number, counter

    def _stand_in(self, carried: Carried) -> Any:
        kind = carried.kind
        made = self._builder.placeholder(carried.label, kind.dtype, kind.extents)
        made.rows = kind.rows
        made.memory = kind.memory
        carried.placeholder = made.name
        before = carried.before
        made.declared = is_declared(before)
        if isinstance(before, SymbolicTensor):
            made.sized = before.sized
            self._builder.written.stands_for(made.name, before.name)
        if kind.weak is None:
            return made
        return SymbolicNumber(self._builder, Read(made.name, (), (), compute_dtype(kind.dtype)), kind.weak, frozenset())

    def _declared(self, name: str, target: DeclaredTarget) -> DeclaredInRound:
        # Until its first statement has been seen, its cells are of the type that meets any other without a trace.
        assert target.extents is not None
        dtype = "int8" if target.dtype is None else "float16" if target.dtype == "real" else target.dtype
        made = self._builder.placeholder(name, dtype, target.extents)
        return DeclaredInRound(made, target)

    def _restore(self, recording: Recording) -> None:
        # Memory as it was before the loop.
        for memory, name, dtype in recording.stored.values():
            _set(memory, name, dtype)
        for each in self._memory.values():
            _set(each.before, *self._versions[id(each.before)])

    def _settled(self, recording: Recording, held: Mapping[str, Any]) -> bool:
        """Whether the names and the memory that this pass has changed are those that it was staged for."""
        settled = True
        made = {tensor.name for tensor in recording.tensors}
        for memory, name, dtype in recording.stored.values():
            if id(memory) not in self._memory and name not in made:
                self._memory[id(memory)] = Carried(
                    memory.label, memory, Kind(dtype, None, memory.extents, memory.rows, True)
                )
                self._versions[id(memory)] = (name, dtype)
                settled = False
        for name in self.statement.names:
            settled &= self._name_settled(recording, name, held.get(name))
        return settled

    def _name_settled(self, recording: Recording, name: str, after: Any) -> bool:
        before, known = self._before.get(name, Unwritten(name)), self._names.get(name)
        if after is before or after is None or isinstance(after, Poison | Unwritten):
            return True
        stand_in: Any = self._stand_ins.get(name, self)
        if after is stand_in and (known is not None or not is_read(recording, stand_in.name)):
            return True
        found = kind_of(self._session, after)
        first = kind_of(self._session, before)
        if isinstance(before, Unwritten) and name in self._blank:
            if known is None:
                self._names[name] = Carried(label_of(name), before, self._blank[name], 0)
                return False
            return found is not None and self._same(name, known.kind, found)
        if isinstance(before, Unwritten):
            return True  # of this round alone
        if isinstance(before, DeclaredTarget) and found is not None:
            if isinstance(after, DeclaredInRound) and after is not self._stand_ins[name]:
                return False  # what another one holds, whose type this pass finds
            if known is None:
                start = start_of(recording, after) if isinstance(after, SymbolicTensor) else 0
                self._names[name] = Carried(label_of(name), before, replace(found, memory=False), start)
                return False
            return self._same(name, known.kind, found)
        if found is None or first is None:
            raise self._python_value(name, before, after)
        if len(found.extents) != len(first.extents):
            raise self._changed(name, first, found)
        if first.weak is None:
            wanted = replace(first, memory=found.memory)
        else:
            wanted = joined(first if known is None else known.kind, found)
        if known is None or known.kind != wanted:
            self._names[name] = Carried(label_of(name), before, wanted)
            return False
        return self._same(name, known.kind, found)

    def _same(self, name: str, kind: Kind, found: Kind) -> bool:
        number = kind.weak is None and found.weak is not None and not kind.extents
        if not number and (kind.dtype != found.dtype or (kind.weak is None) != (found.weak is None)):
            raise self._changed(name, kind, found)
        if len(kind.extents) != len(found.extents) or kind.rows != found.rows:
            raise self._changed(name, kind, found)
        return True

    def _left(self, held: Mapping[str, Any]) -> list[tuple[Carried, str]]:
        """For all that is carried, the tensor that holds it after a round."""
        made: list[tuple[Carried, str]] = []
        for name, carried in self._names.items():
            made.append((carried, self._tensor(carried, held[name]).name))
        made.extend((each, each.before.name) for each in self._memory.values())
        if self._going is not None and self._condition is not None:
            made.append((self._going, goes_on(self._session, self._condition(), self.left).name))
        return made

    def _tensor(self, carried: Carried, given: Any) -> SymbolicTensor:
        kind, session = carried.kind, self._session
        if isinstance(given, PendingArray):
            given = given.materialize(carried.label)
        elif isinstance(given, np.ndarray):
            given = session.capture(given, carried.label)
        value = given if isinstance(given, SymbolicTensor) else self._number(given, carried)
        if value.extents == kind.extents:
            return value
        pairs = [(old, new) for old, new in zip(kind.extents, value.extents, strict=True) if old != new]
        if self._numbers and not all(session.are_same(old, new) for old, new in pairs):
            self._specialize()
        for old, new in pairs:
            fact = f"`{carried.label}` changes its shape in a loop that runs: from an extent of"
            fact = f"{fact} {shown(old)} to {shown(new)}\ngive what has another shape another name"
            self._builder.require_equal(old, new, fact, self._span)
        same = SymbolicTensor(self._builder, value.name, value.element_type, kind.extents, carried.label)
        return record_elementwise(session, element_of(same, session)[0], kind.extents, carried.label)

    def _body(self, part: Part, counter: Tensor, left: Sequence[tuple[Carried, str]]) -> Program:
        program, _ = part.program(f"{self._builder.name}_loop", [new for _, new in left])
        updates = tuple((each.placeholder, new) for (each, _), new in zip(left, program.outputs, strict=True))
        others = [tensor for tensor in program.inputs if tensor.name != counter.name]
        # Its size is the first, as it is the first input.
        own = AxisExtent(counter.name, 0)
        sizes = sorted(program.sizes, key=lambda size: size.source != own)
        condition = () if self._going is None else (self._going.placeholder,)
        return replace(program, inputs=(counter, *others), sizes=tuple(sizes), outputs=condition, updates=updates)

    # -- after the last pass

    def _changing(self, counter: Tensor, sizes: Mapping[str, Any]) -> frozenset[str]:
        number = next(iter(size_names(counter.shape[0])), "") if counter.shape else ""
        return sizes_of_round(number, sizes) if number else frozenset()

    def _finish(self, body: Program) -> None:
        """Record the loop, and give the names its results."""
        builder = self._builder
        carried = [*self._names.items(), *(("", each) for each in self._memory.values())]
        if self._going is not None:
            carried.append(("", self._going))
        given = {each.placeholder: self._initial(each).name for _, each in carried}
        results: list[Tensor] = []
        for _, each in carried:
            name = builder.fresh_name(each.label)
            label = "" if name == each.label else each.label
            results.append(Tensor(name, each.kind.dtype, each.kind.extents, label, self._span))
            builder.declare(results[-1])
        inputs = tuple(given.get(tensor.name, tensor.name) for tensor in body.inputs[1:])
        names = tuple(tensor.name for tensor in results)
        if results:
            repeat = self._rounds.in_segments(Repeat(names, self._rounds.count, body, inputs, self._span))
            builder.add_repeat(repeat, results)
        self._after = {name: self._after_round(name) for name in self.statement.names}
        for (name, each), tensor in zip(carried, results, strict=True):
            made = SymbolicTensor(builder, tensor.name, tensor.dtype, tensor.shape, each.label, each.kind.memory)
            made.rows = each.kind.rows
            before = each.before
            made.declared = is_declared(before)
            if each is self._going:
                continue
            if not name:
                before.become(made)
            elif each.kind.weak is not None:
                read = Read(made.name, (), (), compute_dtype(each.kind.dtype))
                self._after[name] = SymbolicNumber(builder, read, each.kind.weak, frozenset())
            else:
                self._after[name] = made
        self.finished = True

    def _after_round(self, name: str) -> Any:
        before = self._before.get(name, Unwritten(name))
        if not isinstance(before, Unwritten):
            return before
        if self.statement.arms:
            fact = f"`{name}` is bound in one arm of a branch that runs, and is used after that branch"
            hint = f"bind `{name}` before the branch, or in both arms"
        else:
            fact = f"`{name}` is first bound in a round of a loop that runs, and is used after that loop"
            hint = f"bind `{name}` before the loop, so that rounds carry it"
        return OfARound(name, fact, hint, self._span, self._numbers)

    def _initial(self, carried: Carried) -> SymbolicTensor:
        before, kind, session = carried.before, carried.kind, self._session
        if isinstance(before, SymbolicTensor):
            return before.held() if before.memory else before
        if isinstance(before, PendingArray):
            return before.materialize(carried.label)
        if isinstance(before, DeclaredTarget | Unwritten):
            value = Value(constant(carried.start or 0, compute_dtype(kind.dtype)), None, kind.dtype)
            made = record_elementwise(session, value, kind.extents, carried.label)
            self._builder.recording.starts[made.name] = carried.start or 0
            return made
        if isinstance(before, np.ndarray):
            return session.capture(before, carried.label)
        return self._number(before, carried)

    def _number(self, value: Any, carried: Carried) -> SymbolicTensor:
        # A number as a tensor of rank 0: the one that it is, if it is one.
        kind, session = carried.kind, self._session
        element, extents = element_of(value, session)
        if isinstance(element.expr, Read) and not element.expr.indices:
            found = self._builder.tensor(element.expr.tensor)
            if found.dtype == kind.dtype:
                return SymbolicTensor(self._builder, found.name, found.dtype, (), carried.label)
        return record_elementwise(session, cast_value(element, kind.dtype), extents, carried.label)

    # -- faults

    def _fault(self, kind: type[TcdslError], fact: str, hint: str) -> TcdslError:
        return kind.at(fact, self._span, hint)

    def _specialize(self) -> None:
        # What depends on numbers of the call alone may be Python's instead.
        if self._numbers:
            raise Specialize(self._numbers)

    def _changed(self, name: str, before: Kind, after: Kind) -> TcdslError:
        self._specialize()
        kind = DtypeError if len(before.extents) == len(after.extents) else ShapeError
        fact = f"`{name}` is {before} before a loop that runs, but {after} after a round"
        return self._fault(
            kind, fact, f"bind `{name}` before the loop to what it is to be, or use another name in the round"
        )

    def _python_value(self, name: str, before: Any, after: Any) -> TcdslError:
        self._specialize()
        if isinstance(after, PointValue):
            fact = f"`{name}` is a local definition, which a loop that runs cannot carry from round to round"
            return self._fault(DslSyntaxError, fact, f"store it: `{name}[...] = ...`")
        what = (
            f"a {type(after).__name__}"
            if type(before) is type(after)
            else f"a {type(before).__name__}, then a {type(after).__name__}"
        )
        fact = f"`{name}` holds {what}, which changes in a loop that runs"
        return self._fault(
            DslSyntaxError, fact, "the body is staged once: collect results by `ys[t, ...] = h`, or loop over integers"
        )


def _set(memory: SymbolicTensor, name: str, dtype: str) -> None:
    # Stand for another version, without having been stored into.
    memory.name, memory._element_type = name, dtype


def _labels(recording: Recording) -> dict[str, str]:
    return {tensor.name: tensor.label or tensor.name for tensor in (*recording.tensors, *recording.placeholders)}
