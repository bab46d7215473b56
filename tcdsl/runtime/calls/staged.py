"""Staging and its cache: from a call to the program that serves it, staged at most once per key.

`StagedFunction` is what decorated functions and derivatives have in common: a way to trace a call into a program
(`trace`), a cache of programs by key and guards, and running.
"""

from __future__ import annotations

import ast
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from tcdsl.frontend.source.function_source import readable_source
from tcdsl.frontend.staging.loop_choices import LoopChoices, RunInProgram
from tcdsl.frontend.staging.program_inputs import CapturedArray, CarriedInteger
from tcdsl.frontend.staging.run_time_integers import Specialize
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.surroundings.containers import is_array
from tcdsl.frontend.surroundings.impure_calls import warn_once
from tcdsl.frontend.surroundings.named_values import spelled
from tcdsl.frontend.surroundings.readings import Reading, Together
from tcdsl.frontend.symbolic_operators import WholeArrays
from tcdsl.frontend.symbols.known_integers import known
from tcdsl.frontend.symbols.symbols import SymbolicNumber
from tcdsl.ir.build import cast
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Expr, Read
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.spoken_sizes import in_words, spoken_in
from tcdsl.ir.text.expression_printer import format_expr
from tcdsl.locks import COMPILING, without_collecting
from tcdsl.runtime.calling.arguments import Argument, Call, Signature
from tcdsl.runtime.calling.entries import Entry, LinearPart, Traced, narrowed_integers
from tcdsl.runtime.calling.execution import Executable
from tcdsl.runtime.calling.launches import Out
from tcdsl.runtime.calling.results import returned_if_passed
from tcdsl.runtime.calling.tape_memory import IN_LOOPS_TOO, staged_within_memory
from tcdsl.runtime.calls.table import CallTable
from tcdsl.runtime.displays.tables import Table, Tabular
from tcdsl.simplification.contractions import contracted
from tcdsl.span import Span
from tcdsl.tracebacks import NamesTold

__all__ = ["CacheInfo", "StagedFunction", "StagedOperation", "symbolic_argument"]


@dataclass(frozen=True, slots=True, repr=False)
class CacheInfo(Tabular, NamesTold):
    """What a function has staged and compiled.

    ``programs`` counts staged programs, ``kernels`` compiled ones, ``hits`` calls served without staging, ``misses``
    calls that staged. ``from_disk`` counts kernels whose machine code came from the cache directory. ``served`` has for
    each program what calls it serves, the kernels of it, and the calls that were served without staging.
    """

    programs: int
    kernels: int
    hits: int
    misses: int
    from_disk: int
    served: tuple[tuple[str, int, int], ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """What calls each program serves."""
        return tuple(key for key, _, _ in self.served)

    def table(self) -> Table:
        """A row for each program."""
        head = (
            f"programs={self.programs} kernels={self.kernels} (from disk: {self.from_disk}) "
            f"hits={self.hits} misses={self.misses}"
        )
        rows = [(key, str(kernels), str(hits)) for key, kernels, hits in self.served]
        return Table(head, ("program for", "kernels", "hits"), rows)


#: So many programs are kept that differ in what was read around the function alone.
_SURROUNDINGS = 16


def symbolic_argument(session: Session, argument: Argument, size_names: Sequence[str | None] = ()) -> Any:
    """The input of the program for ``argument``: a tensor, or a run-time number."""
    tensor = session.builder.input(argument.label, argument.dtype, argument.array.ndim, size_names)
    if argument.weak is not None:
        expr = cast(Read(tensor.name, (), (), tensor.element_type), tensor.element_type)
        return SymbolicNumber(session.builder, expr, argument.weak, frozenset((str(argument.place),)))
    for axis, extent in enumerate(argument.array.shape):
        declared = session.builder.tensor(tensor.name).shape[axis]
        session.extents[declared.name] = extent  # type: ignore[union-attr]
    return tensor


class StagedFunction(ABC):
    """A function of arrays that is traced into programs. Subclasses say how (`trace`) and keep the signature."""

    def __init__(self, calls: CallTable | None = None) -> None:
        self._misses = 0
        #: The calls that are served without further questions, and what was staged.
        self.calls = CallTable() if calls is None else calls
        #: The entry that was staged last.
        self.latest: Entry | None = None

    @abstractmethod
    def trace(self, session: Session, positional: list[Any], configuration: dict[str, Any]) -> Traced:
        """Run the function symbolically in ``session`` and give the program and the structure of its results."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The function's name, for programs and messages."""

    oob: str = "check"

    def entry(self, call: Call, seeds: Sequence[np.ndarray] = ()) -> tuple[Entry, list[np.ndarray]]:
        """The staged program that serves ``call``, and the program's inputs, of which ``seeds`` are the last."""
        served = self._served(call, seeds)
        if served is not None:
            return served
        with COMPILING:
            # Another thread may have staged it in the meantime.
            served = self._served(call, seeds)
            if served is not None:
                return served
            self._misses += 1
            with without_collecting():
                made = self._stage(call, seeds)
            self._put(call.key, made)
            self.keep_elsewhere(call, made)
            self.latest = made
        arrays = made.arrays(call, seeds)
        if arrays is None:
            raise RuntimeError(f"the program staged for {self.title} does not serve the call that it was staged for")
        return made, arrays

    def _served(self, call: Call, seeds: Sequence[np.ndarray]) -> tuple[Entry, list[np.ndarray]] | None:
        # What keeps few states is for calls for which a tape, or more states, would be too large.
        entries = self.calls.staged.get(call.key, [])
        for found in sorted(entries, key=_by_states):
            arrays = found.arrays(call, seeds)
            if arrays is not None:
                found.hits += 1
                if entries[0] is not found:
                    self.calls.staged[call.key] = [found, *(each for each in entries if each is not found)]
                return found, arrays
        for found in self.staged_elsewhere(call):
            arrays = found.arrays(call, seeds)
            if arrays is not None:
                found.hits += 1
                self._put(call.key, found)
                return found, arrays
        return None

    def _put(self, key: tuple[Any, ...], entry: Entry) -> None:
        # What was used last comes first. Of those that differ in their surroundings alone, some are kept.
        others = self.calls.staged.get(key, [])
        alike = [each for each in others if each.differs_in_surroundings(entry)]
        dropped = alike[_SURROUNDINGS - 1 :]
        self.calls.staged[key] = [entry, *(each for each in others if all(each is not one for one in dropped))]
        if dropped:
            self._warn_of_changes(alike[0])

    def _warn_of_changes(self, entry: Entry) -> None:
        # A function that is staged again and again is slow, and nothing else would say so.
        changed = next((each for each in entry.readings if not each.unchanged()), None)
        codes = [each.seen for each in entry.readings if isinstance(each.seen, CodeType)]
        span = self.span or (_line_of(codes[0]) if codes else None)
        if changed is None or span is None:
            return
        name = spelled(changed.names)
        fact = f"`{self.title}` is staged again whenever `{name}` has changed, {_SURROUNDINGS} times by now"
        warn_once(name, fact, span, "pass what changes as an argument")

    @property
    def span(self) -> Span | None:
        """The line of the definition."""
        return None

    def staged_elsewhere(self, call: Call) -> Iterable[Entry]:
        """Entries of other functions that may serve ``call``."""
        return ()

    def keep_elsewhere(self, call: Call, entry: Entry) -> None:
        """Keep an entry that was just staged for other functions."""
        return

    def _stage(self, call: Call, seeds: Sequence[np.ndarray] = ()) -> Entry:
        entry = self._staged(call, 0)
        return staged_within_memory(call, seeds, entry, self._staged) if entry.tapes else entry

    def _staged(self, call: Call, checkpoints: int) -> Entry:
        constants: dict[int | str, Any] = {}
        small: set[str] = set()
        loops = LoopChoices()
        while True:
            session = Session(self.title, WholeArrays())
            session.checkpoints, session.loops = checkpoints, loops
            session.uses.outside = sys._getframe().f_code
            loops.begin()
            values = [
                self._symbolic(session, argument)
                if argument.place not in constants
                else known(argument.given)
                if str(argument.place) in small
                else argument.given
                for argument in call.arguments
            ]
            positional: list[Any] = [None] * call.positions
            configuration = dict(call.configuration)
            for argument, value in zip(call.arguments, values, strict=True):
                if isinstance(argument.place, int):
                    positional[argument.place] = value
                else:
                    configuration[argument.place] = value
            try:
                with session.active(), session.within(oob=self.oob):
                    traced = self.trace(session, positional, configuration)
            except RunInProgram as needed:
                loops.run(needed.loop)
            except Specialize as needed:
                # Python branched on these numbers, so they become constants, and part of what the program depends on.
                loops.unroll(needed.parameters)
                # Loops over those that are constants only because they are small run as others do.
                small |= session.integers.small & needed.parameters
                for argument in call.arguments:
                    if str(argument.place) in needed.parameters:
                        constants[argument.place] = argument.given
            except Exception as error:
                loops.leave_to_python(error, [each.statement for each in session.running])
            else:
                return _entry(session, call, traced, constants)

    def _symbolic(self, session: Session, argument: Argument) -> Any:
        value = symbolic_argument(session, argument, self.size_names(argument.label))
        if argument.is_integer:
            session.integers.add(session.builder.inputs[-1].name, argument.place, int(argument.given))
        return value

    def size_names(self, label: str) -> Sequence[str | None]:
        """What the function calls the extents of the parameter ``label``."""
        return ()

    def run(
        self, signature: Signature, arguments: tuple[Any, ...], keywords: Mapping[str, Any], out: Out = None
    ) -> Any:
        """Run on concrete arguments, by the short way if the call is like an earlier one. ``out`` gets the results."""
        done = self.calls.run(arguments, keywords, out)
        return self.run_anew(signature, arguments, keywords, out) if done is None else done[0]

    def run_anew(
        self, signature: Signature, arguments: tuple[Any, ...], keywords: Mapping[str, Any], out: Out = None
    ) -> Any:
        """Run a call that the table does not serve, and remember it."""
        call = signature.call(arguments, keywords)
        entry, arrays = self.entry(call)
        result = entry.run(arrays, call, out)
        self.calls.remember(entry, call, arguments, keywords)
        return result

    def program_of(self, call: Call) -> Program:
        """The program that serves ``call``."""
        return self.entry(call)[0].executable.program

    def entries(self) -> list[Entry]:
        """The programs in the order in which they were staged first; what was served from disk is staged for that."""
        self.last_entry()
        return [each for found in self.calls.staged.values() for each in found]

    def cache_info(self) -> CacheInfo:
        """How many programs and kernels this function has, and how often they served a call."""
        entries = [(key, entry) for key, found in self.calls.staged.items() for entry in found]
        kept = self.calls.served
        compiled = [kernel for _, entry in entries for kernel in entry.executable._compiled.values()]
        served = [(_printable(*each), len(each[1].executable._compiled), each[1].hits) for each in entries]
        served += [(f"{each.name}, kept on disk", 1, each.hits) for each in kept]
        return CacheInfo(
            programs=len(served),
            kernels=len(compiled) + len(kept),
            hits=sum(hits for _, _, hits in served),
            misses=self._misses,
            from_disk=sum(kernel.from_disk for kernel in compiled) + len(kept),
            served=tuple(served),
        )

    def cache_clear(self) -> None:
        """Forget all staged programs and loaded kernels (the cache directory stays)."""
        self.calls.clear()
        self._misses = 0
        self.latest = None

    def last_entry(self) -> Entry | None:
        """The entry that was staged last; what was served from disk is staged for that."""
        if self.latest is None and self.calls.latest is not None:
            return self.entry(self.calls.latest)[0]
        return self.latest


class StagedOperation(StagedFunction):
    """The staged programs of what ``record(session, operands)`` records, by the types and ranks of the operands."""

    def __init__(self, name: str, operands: Iterable[str], record: Callable[[Session, list[Any]], Any]) -> None:
        super().__init__()
        self.signature = Signature.of_operands(operands, name)
        self._record = record

    @property
    def title(self) -> str:
        """The name for programs and messages."""
        return self.signature.name

    def trace(self, session: Session, positional: list[Any], configuration: dict[str, Any]) -> Traced:
        """Record one use."""
        outputs, structure = returned_if_passed(session, self._record(session, positional), self.title)
        traced = Traced(session.builder.program(outputs), structure)
        return traced.checking(session.checked).without_needless_checks()


def _line_of(code: CodeType) -> Span:
    return Span(code.co_filename, code.co_firstlineno, 0, code.co_firstlineno, 10_000)


def _by_states(entry: Entry) -> tuple[bool, bool, int]:
    # Those that keep most come first.
    return entry.checkpoints > 0, entry.checkpoints > IN_LOOPS_TOO, -entry.checkpoints


def _entry(session: Session, call: Call, traced: Traced, constants: Mapping[int | str, Any]) -> Entry:
    # What has been staged, with what must hold for it to serve another call. The arguments that are no constants are
    # the first inputs.
    program = traced.program
    sources = [k for k, argument in enumerate(call.arguments) if argument.place not in constants]
    given = [(tensor, call.arguments[k]) for tensor, k in zip(program.inputs, sources, strict=False)]
    constants = {**constants, **session.integers.fixed}
    orders = _orders(session, program)
    linear = None if traced.linear is None else LinearPart.of(traced.linear, _orders(session, traced.linear))
    return Entry(
        program.name,
        Executable(program, orders=orders),
        traced.structure,
        (*sources, *_more_inputs(session)),
        _settled(traced.readings, session),
        constants,
        narrowed_integers(program, {tensor.name: each.place for tensor, each in given if each.weak == "int"}),
        guards=tuple(session.guards),
        configuration=call.configuration,
        linear=linear,
        labels=tuple(argument.label for argument in call.arguments),
        tapes=session.tapes,
        differentiable=tuple(
            tensor.name for tensor, each in given if isinstance(each.place, int) and is_floating(tensor.dtype)
        ),
    )


def _orders(session: Session, program: Program) -> tuple[int, ...]:
    # Those in which its contractions are best in this call.
    found: list[int] = []

    def choose(points: Sequence[Expr]) -> int:
        found.append(session.least(points))
        return found[-1]

    contracted(program, choose)
    return tuple(found)


def _more_inputs(session: Session) -> list[CapturedArray | CarriedInteger]:
    # In the order of the program's inputs.
    more: dict[str, CapturedArray | CarriedInteger] = {each.tensor: each for each in session.captured}
    more |= {each.tensor: each for each in session.integers.carried.values()}
    return [more[tensor.name] for tensor in session.builder.inputs if tensor.name in more]


def _printable(key: tuple[Any, ...], entry: Entry) -> str:
    arguments, _ = key
    parts = []
    for tensor, (place, dtype, rank, weak, _) in zip(entry.labels, arguments, strict=True):
        if place in entry.constants:
            parts.append(f"{tensor}={entry.constants[place]!r}")
        else:
            parts.append(f"{tensor}: {weak}" if weak else f"{tensor}: {dtype}[{', '.join('_' * rank)}]")
    parts.extend(f"{name}={value!r}" for name, value in entry.configuration.items())
    spoken = spoken_in(entry.executable.program) if entry.guards else {}
    for guard in entry.guards:
        left, right = (in_words(format_expr(each), spoken) for each in (guard.left, guard.right))
        parts.append(
            {"left": f"{left} == 1 broadcast", "right": f"{right} == 1 broadcast"}.get(
                guard.relation, f"{left} {'<=' if guard.relation == 'most' else '=='} {right}"
            )
        )
    return f"{entry.executable.program.name}({', '.join(parts)})"


def _settled(readings: Sequence[Reading], session: Session) -> tuple[Reading, ...]:
    # What the function itself changed while it was staged, such as a list that it appends to, is no reason to stage it
    # again.
    now: list[Reading] = []
    for reading in {each.key: each for each in readings}.values():
        now += [reading] if reading.unchanged() else reading.renewed()
    inputs = {id(each.value if each.reading is None else each.reading.seen) for each in session.captured}
    settled: list[Reading] = []
    first: dict[int, Reading] = {}
    for reading in now:
        if not is_array(reading.seen):
            settled.append(reading)
        else:
            settled.append(session.uses.captured(reading, now, _definition))
        if id(reading.seen) in inputs:
            same = first.setdefault(id(reading.seen), reading)
            if same.place != reading.place:
                # One input stands for arrays of two names, which another time may be two.
                settled.append(replace(reading, seen=Together(same)))
    return tuple(settled)


def _definition(function: FunctionType) -> ast.AST | None:
    source = readable_source(function)
    return None if source is None else source.definition
