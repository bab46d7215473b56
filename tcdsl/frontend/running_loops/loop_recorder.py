"""What a rewritten function calls for its loops and branches.

::

    for t in range(T):                for t in RECORDER.rounds(STATEMENT, ...):
        u = f(u, t)                       if RECORDER.runs(STATEMENT):
                                              u = RECORDER.carried(STATEMENT)
                                          u = f(u, t)
                                      if RECORDER.has_run(STATEMENT):
                                          t, u = RECORDER.after(STATEMENT)

A loop of Python's, and a branch that Python takes, are what they are. Of those that run each body is staged a few times
(`tcdsl.frontend.running_loops.running_loop`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from types import FrameType, SimpleNamespace
from typing import Any, cast

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.arrays.arithmetic import combine
from tcdsl.frontend.arrays.unpacking import Parts, nothing_for, unpacked
from tcdsl.frontend.names.array_calls import call_function
from tcdsl.frontend.running_loops.carried import declared_targets, maybe_unwritten, unheld, unwritten_targets
from tcdsl.frontend.running_loops.conditions import (
    asked,
    asks_more,
    branched,
    changing_truth,
    connected,
    decided,
    is_among,
    is_data,
    is_truth_value,
    matched,
    numbers_of,
    taken,
    truth,
)
from tcdsl.frontend.running_loops.iterated import (
    bounds_of,
    counts,
    looked_at,
    python_rounds,
    rounds_over,
    runs_in_program,
)
from tcdsl.frontend.running_loops.loop_statement import LoopStatement
from tcdsl.frontend.running_loops.nested_values import CONTAINERS
from tcdsl.frontend.running_loops.outside_changes import ReplacedInRounds, refuse_change, refuse_printing
from tcdsl.frontend.running_loops.round_counts import ENDLESS, NO_ROUNDS, Iterated, RoundCount, at_most_one, loop
from tcdsl.frontend.running_loops.run_time_checks import Shown, builtin_kind, record_check, record_raise
from tcdsl.frontend.running_loops.running_loop import RunningLoop
from tcdsl.frontend.running_loops.settled_bodies import bounds_of_arms, entry_of, known_bounds, remember_bounds
from tcdsl.frontend.source.function_source import span_of
from tcdsl.frontend.source.nested_blocks import own_frame
from tcdsl.frontend.source.rewritten_functions import CHOICE, is_result
from tcdsl.frontend.staging.declarations import OfARound, Unwritten
from tcdsl.frontend.staging.declared_parameters import layers_met, meet_layers_from
from tcdsl.frontend.staging.entry_states import EntryState
from tcdsl.frontend.staging.run_time_integers import Specialize
from tcdsl.frontend.staging.session import Session, current_session, session_of

__all__ = ["LoopRecorder"]

_NOTHING = Unwritten("")


class LoopRecorder:
    """The part of the recorder that is for loops."""

    #: Where the function stands.
    _filename: str

    def iterated(self, function: Any, /, *arguments: Any, **options: Any) -> Any:
        """``function(*arguments)`` in ``for``: not called yet if it is ``range``, ``zip`` or the like."""
        found = looked_at(function, arguments, options)
        return call_function(function, arguments, options) if found is None else found

    def rounds(self, statement: LoopStatement, iterable: Any) -> Iterator[Any]:
        """``for t in iterable``: one round for staging if the loop runs, else what Python iterates over."""
        frame, session = own_frame(), session_of("a loop")
        session.renewed.pop((statement, frame), None)
        found = rounds_over(session, iterable, partial(runs_in_program, session, statement, iterable))
        if found is None:
            if counts(iterable):
                session.loops.unrolls(statement)
            found = python_rounds(session, iterable)
        if not isinstance(found, RoundCount):
            return self._python_rounds(session, statement, frame, found)
        given = found.element
        found = replace(found, element=lambda number: unpacked(session, given(number), statement.parts))
        always = isinstance(iterable, Iterated) and iterable.function is loop
        numbers = frozenset() if always else numbers_of(*bounds_of(iterable)) | session.loops.tried(statement)
        self._check_body(statement, numbers, frame)
        going = (truth(session, True), lambda: truth(session, True)) if statement.breaks else None
        entry = entry_of(session, frame.f_locals)
        running = RunningLoop(session, statement, frame, found, condition=going, numbers=numbers, entry=entry)
        session.running.append(running)
        return running.passes()

    def apart(self, value: Any, parts: Parts) -> Any:
        """The value of ``a, b = value``, for Python to unpack."""
        return unpacked(session_of("an assignment"), value, parts)

    def _python_rounds(
        self, session: Session, statement: LoopStatement, frame: FrameType, values: Iterable[Any]
    ) -> Iterator[Any]:
        begun, fresh = False, unwritten_targets(statement.renewed, frame.f_locals)
        for each in values:
            begun = True
            session.renewed[statement, frame] = fresh, len(session.running)
            yield unpacked(session, each, statement.parts)
        session.renewed.pop((statement, frame), None)
        if not begun:
            yield from self._left_out(session, statement, frame, nothing_for(statement.parts))

    def while_rounds(self, statement: LoopStatement, condition: Callable[[], Any]) -> Iterator[Any]:
        """``while condition()``: one round for staging if that is data, else round by round as long as it holds."""
        frame = own_frame()
        return self._while_rounds(session_of("a loop"), statement, frame, condition)

    def _while_rounds(
        self, session: Session, statement: LoopStatement, frame: FrameType, condition: Callable[[], Any]
    ) -> Iterator[Any]:
        # Rounds of Python come first: `n = 0` and `while n < x[0]` may become data in a round. What they bind first
        # belongs to each of them, as in the rounds that run, unless it is read after them.
        unbound = [
            name
            for name in statement.names
            if isinstance(frame.f_locals.get(name, _NOTHING), Unwritten | OfARound)
            and not (is_result(name) or session.loops.is_read_after(statement, name))
        ]
        fresh = unwritten_targets(statement.renewed, frame.f_locals)
        going, begun = decided(session, condition()), False
        while not is_data(going):
            if not going:
                if not begun:
                    yield from self._left_out(session, statement, frame, True)
                return
            begun = True
            session.renewed[statement, frame] = fresh, len(session.running)
            yield True
            session.renewed.pop((statement, frame), None)
            going = decided(session, condition())
            left = session.left.pop(statement, False)
            if is_data(left):
                going = combine("and_", going, combine("not_", left)) if is_data(going) else combine("not_", left)
        numbers = numbers_of(going)
        self._check_body(statement, numbers, frame)
        again = truth(session, going), lambda: changing_truth(session, going, condition())
        before = {name: value for name, value in frame.f_locals.items() if name not in unbound}
        entry = entry_of(session, before)
        running = RunningLoop(session, statement, frame, ENDLESS, before, again, numbers, entry=entry)
        session.running.append(running)
        yield from running.passes(True)

    def arms(self, statement: LoopStatement, condition: Callable[[], Any]) -> Iterator[bool]:
        """The arms of ``if condition()`` that are to run: the one that Python takes, or both one after the other."""
        frame = own_frame()
        session = session_of("a branch")
        value = decided(session, condition())
        if not is_data(value):
            return self._arm(session, statement, frame, bool(value))
        return self._both_arms(session, statement, frame, value, entry_of(session, frame.f_locals))

    def _arm(self, session: Session, statement: LoopStatement, frame: FrameType, arm: bool) -> Iterator[bool]:
        yield arm
        if session is current_session():
            yield from self._left_out(session, statement, frame, not arm)

    def _left_out(self, session: Session, statement: LoopStatement, frame: FrameType, number: Any) -> Iterator[Any]:
        # What no round writes stays as it was declared. Its type may have to be found in the rounds.
        declared = declared_targets(statement.names, frame.f_locals)
        if declared and session.loops.leaves_out(statement, declared):
            running = RunningLoop(session, statement, frame, NO_ROUNDS)
            session.running.append(running)
            yield from running.passes(number)

    def _both_arms(
        self,
        session: Session,
        statement: LoopStatement,
        frame: FrameType,
        condition: Any,
        entry: EntryState | None = None,
    ) -> Iterator[bool]:
        # Each arm is a loop of at most one round, the second one after the first.
        said, found = asked(session, condition), taken(session, condition)
        rounds = {arm: at_most_one(found, arm, said) for arm in (True, False)}
        numbers = numbers_of(condition)
        before = dict(frame.f_locals)
        blank, layers = known_bounds(session, statement, entry), layers_met()
        new = [name for name in statement.names if isinstance(unheld(before.get(name, _NOTHING)), Unwritten)]
        blank = blank if new else {}
        if blank is None:
            arms: list[RunningLoop] = []
            for arm, count in rounds.items():
                running = RunningLoop(session, statement, frame, count, before)
                session.running.append(running)
                yield from running.trial(arm)
                running.replaced.leave_arm()
                arms.append(session.running.pop())
            blank = bounds_of_arms(session, *arms)
            remember_bounds(session, statement, entry, blank)
            meet_layers_from(layers)
        if len(new) == len(statement.names) and any(each.tries for each in session.running):
            session.running.append(RunningLoop(session, statement, frame, NO_ROUNDS, before, blank=blank))
            session.running[-1].supposed()
            return
        replaced = ReplacedInRounds(session)
        for arm, count in rounds.items():
            unseen = () if arm else blank
            running = RunningLoop(session, statement, frame, count, before, None, numbers, blank, unseen, entry)
            running.replaced = replaced
            session.running.append(running)
            yield from running.passes(arm)
            replaced.leave_arm()
            if arm:
                session.running.pop()
                after = zip(statement.names, running.after(), strict=True)
                before |= {name: maybe_unwritten(before.get(name), value) for name, value in after}

    def chosen(
        self,
        statement: LoopStatement,
        condition: Callable[[], Any],
        first: Callable[[], Any],
        other: Callable[[], Any],
    ) -> Any:
        """``first() if condition() else other()``: a branch whose arms bind a name, if Python does not know."""
        session, around = current_session(), own_frame().f_locals
        value = decided(session, condition())
        entry = entry_of(session, around) if session is not None and is_data(value) else None
        return self._chosen(statement, value, first, other, entry)

    def first_of(self, statement: LoopStatement, wanted: bool, *parts: Callable[[], Any]) -> Any:
        """``a and b`` if the first one that is false is ``wanted``, else ``a or b``."""
        value: Any = None
        for k, part in enumerate(parts):
            value = decided(current_session(), part())
            rest = parts[k + 1 :]
            if not rest or (not is_data(value) and bool(value) != wanted):
                return value
            if is_data(value):
                return self._first_of(statement, wanted, value, rest)
        return value

    def _first_of(self, statement: LoopStatement, wanted: bool, value: Any, rest: Sequence[Callable[[], Any]]) -> Any:
        session = session_of("a condition")

        def more() -> Any:
            return self.first_of(statement, wanted, *rest)

        primitive, is_truth = "and_" if wanted else "or_", partial(is_truth_value, session)

        def branch(known: Any, rest: Callable[[], Any]) -> Any:
            return self._chosen(statement, known, *self._sides(wanted, rest, lambda: known))

        if not is_truth(value):
            return branch(value, more)
        if asks_more(session, value, rest):
            return branched(primitive, value, more, branch, is_truth)
        # Of truth values no name has to be bound.
        other = more()
        return combine(primitive, value, other) if is_truth(other) else branch(value, lambda: other)

    def _sides(self, wanted: bool, more: Callable[[], Any], known: Callable[[], Any]) -> Any:
        return (more, known) if wanted else (known, more)

    def _chosen(
        self,
        statement: LoopStatement,
        value: Any,
        first: Callable[[], Any],
        other: Callable[[], Any],
        entry: EntryState | None = None,
    ) -> Any:
        if not is_data(value):
            return first() if value else other()
        session = session_of("a branch")
        names: dict[str, Any] = {}
        frame = cast(FrameType, SimpleNamespace(f_locals=names))
        for arm in self._both_arms(session, statement, frame, value, entry):
            names[CHOICE] = first() if arm else other()
        return self._ended(session)[0]

    def all_of(self, statement: LoopStatement, *parts: Callable[[], Any]) -> Any:
        """``a and b`` in a condition."""
        return connected("and_", parts, lambda known, more: self._chosen(statement, known, more, lambda: False))

    def any_of(self, statement: LoopStatement, *parts: Callable[[], Any]) -> Any:
        """``a or b`` in a condition."""
        return connected("or_", parts, lambda known, more: self._chosen(statement, known, lambda: True, more))

    def is_among(self, value: Any, others: Any) -> Any:
        """``value in others`` in a condition."""
        return is_among(value, others)

    def matched(self, value: Any) -> Any:
        """What is compared by ``match``, which is Python's."""
        return matched(value)

    def negation(self, operand: Any) -> Any:
        """``not a`` in a condition."""
        operand = decided(current_session(), operand)
        return combine("not_", operand) if is_data(operand) else not operand

    def holds(self, condition: Callable[[], Any], message: Callable[[], Any] | None = None) -> bool:
        """``assert condition(), message()``: whether it holds, or will be looked at by the program."""
        session = session_of("an assertion")
        value = decided(session, condition())
        if not is_data(value):
            return bool(value)
        always = all(each.by_sizes for each in session.running)
        record_check(session, value, "AssertionError", "" if message is None else str(message()), always)
        return True

    def raises(self, statement: LoopStatement, exception: Callable[[], Any]) -> bool:
        """Whether ``raise exception()``, at the end of an arm of a branch, is for the program to do."""
        running = self._running(statement, own_frame())
        if running is None:
            return False
        error = exception()
        error = error() if isinstance(error, type) else error
        if builtin_kind(error) != type(error).__name__:
            running.specialize()
        running.raised = True
        session = session_of("a branch")
        record_raise(session, running.rounds, error, all(each.by_sizes for each in session.running))
        return True

    def changes(self, text: str, root: str) -> None:
        """``text``, a store into an attribute or the like in a loop or a branch, is about to be done."""
        session = current_session()
        if session is not None and session.running:
            refuse_change(session, text, root, own_frame())

    def changing(self, text: str, root: str, value: Any) -> Any:
        """``value``, of which ``text`` calls a method that changes it if it is a container of Python's."""
        session = current_session()
        if session is not None and session.running and isinstance(value, CONTAINERS):
            refuse_change(session, text, root, own_frame())
        return value

    def printing(self, function: Any) -> Any:
        """What is called as ``print`` in a loop or a branch."""
        session = current_session()
        if session is not None and session.running and function is print:
            refuse_printing(session)
        return function

    def storing(self, function: Any, root: str) -> Any:
        """What is called as ``setattr`` in a loop or a branch, on what begins with the name ``root``."""
        session = current_session()
        if session is not None and session.running and function in (setattr, delattr):
            refuse_change(session, function.__name__, root, own_frame())
        return function

    def returns(self, value: Any) -> Any:
        """``return value``, behind loops and branches."""
        for part in value if isinstance(value, tuple | list) else (value,):
            if isinstance(part, OfARound):
                raise part.fault()
        return value

    def shown(self, value: Any, text: str) -> Any:
        """What a message shows of a value."""
        return Shown(f"{{{text}}}") if is_data(value) else value

    def _check_body(self, statement: LoopStatement, numbers: frozenset[str], frame: FrameType) -> None:
        # A loop on numbers of the call alone is Python's where it leaves a round as loops that run cannot.
        held = frame.f_locals
        adds = [name for name in statement.adds if isinstance(held.get(name, Unwritten(name)), Unwritten)]
        if numbers and (statement.leaves or statement.otherwise):
            raise Specialize(numbers)
        if adds:
            raise DslSyntaxError.at(
                f"`{adds[0]}` is added up in a loop that runs, but is not there before it",
                span_of(statement.adds[adds[0]], self._filename),
                f"declare it before the loop, or begin anew in each round: `{adds[0]} = output()`",
            )
        if statement.leaves:
            leaving = statement.leaves[0]
            kinds = {"break": ast.Break, "continue": ast.Continue, "return": ast.Return}
            word = next(word for word, kind in kinds.items() if isinstance(leaving, kind))
            hint = "it may stand in the loop, and in its branches, but in no other block"
            raise DslSyntaxError.at(f"`{word}` in a loop that runs", span_of(leaving, self._filename), hint)
        if statement.otherwise:
            raise session_of("a loop").fault(
                DslSyntaxError,
                "`else` of a loop that runs",
                "write what is in it after the loop, under a condition if `break` may end the loop",
            )

    def leaves(self, statement: LoopStatement, left: Any) -> bool:
        """Whether Python leaves the loop after a round that ``break`` has ended if ``left`` is true."""
        running = self._running(statement, own_frame())
        if running is not None:
            running.left = left
            return False
        if is_data(left) and statement.asks:
            # The rounds so far were Python's; whether there is another one is data.
            session_of("a loop").left[statement] = left
            return False
        if is_data(left):
            session = session_of("a loop")
            hint = "write `tc.loop(...)` for `range(...)`: it runs in the program"
            if not session.loops.ended_by_data(statement):
                hint = "pass what it goes over as an array, whose first axis a loop in the program goes along"
            fact = "data says whether this loop, which is unrolled, is left"
            raise session.fault(DslSyntaxError, fact, hint)
        return bool(left)

    def renewed(self, statement: LoopStatement, name: str, value: Any) -> Any:
        """What a target holds before a round writes it: nothing, if the loop began so and Python chose the arm."""
        session = session_of("a loop")
        fresh, running = session.renewed.get((statement, own_frame()), (frozenset(), 0))
        return Unwritten(name) if name in fresh and len(session.running) == running else value

    def runs(self, statement: LoopStatement) -> bool:
        """Whether the loop that is being staged runs."""
        return self._running(statement, own_frame()) is not None

    def carried(self, statement: LoopStatement) -> Any:
        """What the names that the body may bind hold at the beginning of a round."""
        running = self._running(statement, own_frame())
        return running.carried()

    def has_run(self, statement: LoopStatement) -> bool:
        """Whether the loop that has just been staged is one that runs."""
        return self._running(statement, own_frame()) is not None

    def after(self, statement: LoopStatement) -> Any:
        """What these names, and the number of the round, hold after a loop that runs."""
        return self._ended(session_of("a loop"))

    def _ended(self, session: Session) -> Any:
        running = session.running.pop()
        after = running.after()
        running.replaced.retire()
        return after

    def _running(self, statement: LoopStatement, frame: FrameType) -> Any:
        running = session_of("a loop").running
        last = running[-1] if running else None
        return last if last is not None and last.statement is statement and last.frame is frame else None
