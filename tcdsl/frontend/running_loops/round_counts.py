"""How often a loop runs: ``range`` and ``tc.loop`` of sizes, of numbers of the call, and of data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from typing import cast as cast_type

from tcdsl.errors import Diagnostic, DslSyntaxError, DtypeError, TcdslError
from tcdsl.frontend.arrays.arithmetic import element_of, record_elementwise
from tcdsl.frontend.points.exact_indices import exact_index
from tcdsl.frontend.running_loops.conditions import is_data, numbers_of
from tcdsl.frontend.staging.session import Session, current_session, session_of
from tcdsl.frontend.symbols.opaque_sizes import named_sizes
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize
from tcdsl.frontend.symbols.values import Value
from tcdsl.ir.build import apply, cast, constant, integer
from tcdsl.ir.conjunctions import said_of_sizes
from tcdsl.ir.dtypes import INTEGER, is_integer
from tcdsl.ir.expressions import Cast, Constant, Expr, Read, reads, transform, walk
from tcdsl.ir.program import OF_ROUND, Repeat, Tensor
from tcdsl.ir.text.expression_printer import format_expr
from tcdsl.rewrite.loop_segments import in_segments

__all__ = [
    "ENDLESS",
    "MANY_ROUNDS",
    "NO_ROUNDS",
    "Iterated",
    "RoundCount",
    "at_most_one",
    "loop",
    "rounds_of",
    "unrolled",
    "with_checkpoints",
]


def loop(*bounds: Any, checkpoint_every: int | None = None, checkpoints: int | None = None) -> range:
    """``for t in tc.loop(1000):`` runs in the compiled program, where ``range(1000)`` would be unrolled.

    ::

        @op
        def heat(u):
            for t in tc.loop(1000):
                u[i] += 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1])
            return u

    Takes ``range``'s arguments: integers, sizes, and numbers of the call. Outside of decorated functions it is
    ``range``. Gradients keep what they need of every round, or with ``checkpoint_every=100`` the state of every 100th
    round and what they need of 100 rounds at a time, for one more evaluation of each round. With ``checkpoints=8`` they
    keep 8 states, or as many as there are rounds, and what they need of one round, and compute rounds again as often as
    that takes: ``(8 + t)! / (8! t!)`` rounds ``t`` times each, 12,870 of them 8 times.
    """
    session = current_session()
    if not 1 <= len(bounds) <= 3:
        fact, hint = f"`tc.loop` with {len(bounds)} arguments", "it takes those of `range`: `tc.loop(begin, end, step)`"
        raise DslSyntaxError.at(fact, hint=hint) if session is None else session.fault(DslSyntaxError, fact, hint)
    if session is None:
        try:
            return range(*bounds)
        except (TypeError, ValueError) as error:
            raise DtypeError.at(f"`tc.loop`: {error}", hint="it takes integers, as `range` does") from None
    options = {"checkpoint_every": checkpoint_every, "checkpoints": checkpoints}
    # Wherever it is written, the `for` that it comes to looks at it.
    return cast_type(range, Iterated(loop, bounds, options))


@dataclass(frozen=True, slots=True)
class Iterated:
    """``function(*arguments)`` of what a loop goes over, which is looked at before it is called."""

    function: Any
    arguments: Sequence[Any]
    options: Mapping[str, Any]

    @property
    def counts(self) -> bool:
        """Whether it is ``range`` or ``tc.loop``."""
        return self.function in (range, loop)

    def __iter__(self) -> Iterator[Any]:
        # In functions that are not decorated, which are Python's.
        called = self.function(*self.arguments) if self.function is not loop else range(*self.arguments)
        return unrolled(session_of("a loop"), called) if isinstance(called, range) else iter(called)

    def __len__(self) -> int:
        return len(range(*self.arguments))


MANY_ROUNDS, _TOO_MANY_ROUNDS = 100, 10_000
"""Of so many rounds a loop over integers runs in the program, if it can; of so many others no loop is unrolled."""


@dataclass(frozen=True, slots=True)
class RoundCount:
    """``range(begin, end, step)`` as a number of rounds; ``sized`` if it is made of sizes and constants alone.

    ``element`` gives, for the number that it counts, what a loop binds. ``where`` is what an arm of a
    branch says of sizes, which is all that it asks if it is one ``by_sizes``. Reverse mode keeps the state of every
    ``segment``-th round, or so many ``checkpoints`` at a time, and computes the others again. ``checks`` are conditions
    that must hold where the loop begins, with the names of exceptions and their messages. ``strides`` are the arguments
    that the step depends on, if it is made of numbers of the call.
    """

    begin: Expr
    step: Expr
    count: Expr
    sized: bool
    element: Callable[[Any], Any] = lambda number: number
    where: Expr | None = None
    by_sizes: bool = False
    segment: int | None = None
    checkpoints: int | None = None
    checks: tuple[tuple[Expr, str, str], ...] = ()
    strides: frozenset[str] = frozenset()

    def checkpointed(self, repeat: Repeat) -> Repeat:
        """The loop with these rounds, in segments if it was to have them and nobody has to look at data for its end."""
        if self.checkpoints is not None:
            return replace(repeat, checkpointed=True, checkpoints=self.checkpoints)
        if self.segment is None or not self.sized or repeat.condition is not None:
            return repeat
        return in_segments(repeat, self.segment)

    def at(self, session: Session, number: Any) -> Any:
        """What the loop binds in the round of a number, a size or an integer from 0 on; for rounds made of sizes."""
        if not self.plain:
            assert isinstance(self.step, Constant)
            begin = self.begin.value if isinstance(self.begin, Constant) else SymbolicSize(session.builder, self.begin)
            number = begin + int(self.step.value) * number
        return self.element(number)

    def counted(self, session: Session, label: str) -> tuple[Any, Tensor]:
        """The number of a round, while its body is staged, and the input of the body that counts from 0."""
        builder, plain = session.builder, self.plain
        if self.sized:
            counter = builder.counter(f"{label}{OF_ROUND}", label if plain else f"{label}{OF_ROUND}")
            size = counter.shape[0]
            builder.require(apply("lt", size, self.count), "")
            if not plain:
                builder.words.update(self._words(label, size))
            expr = size if plain else apply("add", self.begin, apply("mul", self.step, size))
            return SymbolicSize(builder, expr), counter
        held = builder.placeholder(label if plain else f"{label}{OF_ROUND}", "int64", ())
        number = held
        if not plain:
            steps = apply("mul", self.step, cast(held.cell(()).expr, "int64"))
            number = record_elementwise(session, Value(apply("add", self.begin, steps), None, "int64"), (), label)
        # As weak as a size: what rounds compute has one type, whoever says how many there are.
        return SymbolicNumber(builder, number.cell(()).expr, "int", frozenset()), builder.tensor(held.name)

    def _words(self, label: str, size: Expr) -> dict[str, str]:
        # What the number of the round is called where the loop counts in another way than the program.
        begin, step, number = format_expr(self.begin), format_expr(self.step), format_expr(size)
        behind = label if begin == "0" else f"{label} - {begin}"
        match step:
            case "1":
                return {f"{begin} + {number}": label, f"{number} + {begin}": label, number: behind}
            case "-1":
                first, _, rest = begin.rpartition(" - ")
                forms = [f"{begin} - {number}", f"{first} - {number} - {rest}"]
                return {**dict.fromkeys(forms, label), number: f"({begin} - {label})"}
        return {f"{begin} + {step} * {number}": label, number: f"({behind}) // {step}"}

    @property
    def plain(self) -> bool:
        """Whether it counts from 0, by 1."""
        return self.begin == integer(0) and self.step == integer(1)

    def backwards(self) -> RoundCount:
        """``reversed(range(...))``: the last number first."""
        steps = apply("mul", self.step, apply("sub", self.count, integer(1)))
        back = integer(-int(self.step.value)) if isinstance(self.step, Constant) else apply("neg", self.step)
        return replace(self, begin=apply("add", self.begin, steps), step=back)


_MOST_ROUNDS = 2**62

ENDLESS = RoundCount(integer(0), integer(1), integer(_MOST_ROUNDS), False)
"""The rounds of ``while``, which a condition ends."""


NO_ROUNDS = RoundCount(integer(0), integer(1), integer(0), True)
"""The rounds of what Python leaves out."""


def at_most_one(taken: Expr, arm: bool, asked: Expr) -> RoundCount:
    """The round of an arm of a branch: it runs if the bool ``taken``, which is what was ``asked``, is ``arm``."""
    condition = taken if arm else apply("not_", taken)
    where = said_of_sizes(asked, arm)
    by_sizes = not any(reads(condition))
    if where is not None and not by_sizes:
        # What is said of sizes is to be seen.
        condition = apply("and_", where, condition)
    return RoundCount(integer(0), integer(1), cast(condition, "int64"), False, where=where, by_sizes=by_sizes)


def rounds_of(session: Session, arguments: Sequence[Any], always: bool) -> RoundCount | None:
    """The rounds of ``range(*arguments)``; ``None`` if it is Python's: unless ``always``, one of integers alone."""
    if not 1 <= len(arguments) <= 3:
        return None
    if not always and not any(map(is_data, arguments)):
        return None
    checks: list[tuple[Expr, str, str]] = []
    bounds = [_bound(session, each, checks) for each in arguments]
    begin, end = (integer(0), bounds[0]) if len(bounds) == 1 else bounds[:2]
    if not any(reads(begin)):
        checks.clear()  # Beyond 64 bits are no rounds, or more than can run.
    step = bounds[2] if len(bounds) == 3 else integer(1)
    if step == integer(0):
        raise session.fault(DslSyntaxError, "the step of a loop that runs is 0", "write a step other than 0")
    if isinstance(step, Constant):
        made = _striding(begin, end, step)
    else:
        checks.append((apply("ne", step, integer(0)), "ValueError", "range() arg 3 must not be zero"))
        made = _stepping(session, begin, end, step)
    return replace(made, checks=tuple(checks), strides=numbers_of(*arguments[2:]))


def _striding(begin: Expr, end: Expr, step: Constant) -> RoundCount:
    width, first, last = abs(int(step.value)), begin, end
    sized = _are_small_sizes(begin, end, step)
    if not sized and (begin != integer(0) or step != integer(1)):
        first, last = cast(begin, INTEGER), cast(end, INTEGER)
    count = apply("sub", last, first) if step.value > 0 else apply("sub", first, last)
    if width > 1:
        whole = constant(width - 1, count.dtype)
        count = apply("floor_div", apply("add", count, whole), constant(width, count.dtype))
    return RoundCount(begin, step, count if sized else _at_most_endless(count), sized)


def _are_small_sizes(*bounds: Expr) -> bool:
    # What is made of them fits into 64 bits, as all sizes do that a call lets pass.
    constants = (node for bound in bounds for node in walk(bound) if isinstance(node, Constant))
    return not any(any(reads(bound)) for bound in bounds) and all(abs(int(each.value)) < 2**31 for each in constants)


def _at_most_endless(count: Expr) -> Expr:
    # More rounds than can run, which the loop may leave, are as many as `while` has at most.
    if count.dtype != INTEGER:
        return count
    most = apply("min", count, constant(_MOST_ROUNDS, INTEGER))
    return Cast(apply("max", most, constant(0, INTEGER)), "int64")


def _stepping(session: Session, begin: Expr, end: Expr, step: Expr) -> RoundCount:
    # A step that the call says: what is made of it is data, which way it goes too.
    held = record_elementwise(session, Value(step, None, "int64"), (), "step")
    step = cast(held.cell(()).expr, "int64")
    first, last, by = (cast(each, INTEGER) for each in (begin, end, step))
    forwards, one = apply("gt", step, integer(0)), constant(1, INTEGER)
    width = apply("max", apply("abs", by), one)
    span = apply("where", forwards, apply("sub", last, first), apply("sub", first, last))
    count = apply("floor_div", apply("sub", apply("add", span, width), one), width)
    none = apply("eq", step, integer(0))
    return RoundCount(begin, step, apply("where", none, integer(0), _at_most_endless(count)), False)


def with_checkpoints(
    session: Session, rounds: RoundCount, checkpoint_every: Any = None, checkpoints: Any = None
) -> RoundCount:
    """``rounds`` with the length of segments, or the number of states to keep, that a loop asks for."""
    asked = {"checkpoint_every": checkpoint_every, "checkpoints": checkpoints}
    for name, value in asked.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            fact = f"{name}={value!r} in a loop that runs"
            raise session.fault(DtypeError, fact, "give an integer of at least 1, known when the function is staged")
    if None not in asked.values():
        fact = f"a loop that runs has both checkpoint_every={checkpoint_every} and checkpoints={checkpoints}"
        raise session.fault(DslSyntaxError, fact, "give one: the rounds between two states, or the number of states")
    return replace(rounds, segment=checkpoint_every, checkpoints=checkpoints)


def unrolled(session: Session, numbers: range) -> Iterator[int]:
    """``numbers``, for a loop of Python: with a warning where many rounds record statements, and an end to it."""
    recording = session.builder.recording
    span, before = session.location(), len(recording.statements)
    for k, number in enumerate(numbers):
        records = len(recording.statements) - before >= k > 0
        if k == MANY_ROUNDS and records:
            text = f"a loop of {len(numbers)} rounds is unrolled: each becomes statements of its own"
            text = Diagnostic(TcdslError, text, span, hint="write `tc.loop(...)` for `range(...)`: it runs").render()
            place = ("<unknown>", 1) if span is None else (span.filename, span.line)
            warnings.warn_explicit(text, RuntimeWarning, *place)
        if k == _TOO_MANY_ROUNDS and records:
            fact = f"a loop of {len(numbers)} rounds would be unrolled: each becomes statements of its own"
            raise DslSyntaxError.at(fact, span, "write `tc.loop(...)` for `range(...)`: it runs in the program")
        yield number


def _bound(session: Session, given: Any, checks: list[tuple[Expr, str, str]]) -> Expr:
    # A size where it can be one: then ranges are known, and nothing is checked round by round.
    match given:
        case SymbolicSize():
            return given.expr
        case SymbolicNumber(weak_kind="int" | "bool"):
            found = _as_sizes(session, given.expr)
            return _exact(session, found, checks) if any(reads(found)) else found
        case SymbolicArray() if given.rank == 0 and is_integer(given.element_type):
            value, _ = element_of(given, session)
            return _exact(session, value.expr, checks)
        case SymbolicArray() | SymbolicNumber():
            pass
        case _ if hasattr(type(given), "__index__"):
            return integer(given.__index__())
    what = type(given).__name__
    if isinstance(given, SymbolicArray):
        what = f"{given.element_type} tensor of rank {given.rank}"
    elif isinstance(given, SymbolicNumber):
        what = given.weak_kind
    raise session.fault(
        DtypeError,
        f"a {what} where `range` needs an integer",
        "a loop runs so many times as a size, an integer, or an integer tensor of rank 0 says",
    )


def _exact(session: Session, expr: Expr, checks: list[tuple[Expr, str, str]]) -> Expr:
    # Computed in integers of any size, as indices are, and once: what a loop counts has 64 bits.
    if isinstance(expr, Read):
        found = cast(expr, INTEGER if expr.dtype == "uint64" else "int64")
    else:
        found = exact_index(expr, {}, session.integers, specializes=False)
    if found.dtype != INTEGER:
        cell = found.operand if isinstance(found, Cast) else found
        return found if isinstance(cell, Read) or not any(reads(found)) else _held(session, found)
    low, high = (constant(end, INTEGER) for end in (-(2**63), 2**63 - 1))
    inside = apply("and_", apply("le", low, found), apply("le", found, high))
    checks.append((inside, "OverflowError", "a bound of this `range` does not fit into 64 bits"))
    return _held(session, Cast(apply("min", apply("max", found, low), high), "int64"))


def _held(session: Session, expr: Expr) -> Expr:
    return record_elementwise(session, Value(expr, None, "int64"), (), "n").cell(()).expr


def _as_sizes(session: Session, expr: Expr) -> Expr:
    def rule(node: Expr) -> Expr:
        found = session.integers.size(node) if isinstance(node, Read) else None
        return node if found is None else found

    made = transform(expr, rule)
    return expr if any(reads(made)) else named_sizes(made, session.builder.opaque_size)
