"""Loops that run: ``for t in range(T)`` over a size, staged as one round and recorded as a `tcdsl.ir.program.Repeat`.

The rewritten function runs the body as Python runs any loop, on a number that is a size (`loop_recorder`).

What a round carries to the next one is found by staging: the body is staged again until the names that it changes, and
their types, are those that it was staged with. Numbers of Python take the type that their updates give them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

from tcdsl.errors import DtypeError, TcdslError
from tcdsl.frontend.running_loops.bodies import body_of, labels_of, stand_for
from tcdsl.frontend.running_loops.carried import (
    Bound,
    Carried,
    Kind,
    all_passed,
    begun_by,
    bound_value,
    fits,
    joined,
    kind_of,
    label_of,
    unheld,
)
from tcdsl.frontend.running_loops.carried_faults import (
    changed_kind,
    changed_value,
    changed_view,
    deleted_name,
    number_after,
    unbound_after,
)
from tcdsl.frontend.running_loops.carried_tensors import (
    DeclaredTypes,
    declared_result,
    held_result,
    initial_tensor,
    kind_for_all_rounds,
    number_of,
    stand_in,
    tensor_after,
)
from tcdsl.frontend.running_loops.conditions import goes_on
from tcdsl.frontend.running_loops.learned_sizes import learn_for_all_rounds
from tcdsl.frontend.running_loops.loop_statement import LoopStatement
from tcdsl.frontend.running_loops.nested_values import (
    NamesBefore,
    is_nested,
    is_unchanged,
    outline,
    own_copies,
    own_copy,
    values_in,
)
from tcdsl.frontend.running_loops.outside_changes import ReplacedInRounds
from tcdsl.frontend.running_loops.round_counts import NO_ROUNDS, RoundCount
from tcdsl.frontend.running_loops.run_time_checks import both_passed
from tcdsl.frontend.running_loops.settled_bodies import Settled, SettledBody, expected
from tcdsl.frontend.source.function_source import span_of
from tcdsl.frontend.source.rewritten_functions import is_result
from tcdsl.frontend.staging.declarations import BegunInRound, DeclaredInRound, DeclaredTarget, Unwritten
from tcdsl.frontend.staging.declared_parameters import layers_met, meet_layers_from
from tcdsl.frontend.staging.entry_states import EntryState
from tcdsl.frontend.staging.run_time_integers import RunsOnTensors, Specialize
from tcdsl.frontend.staging.session import Poison, Session
from tcdsl.frontend.staging.subprograms import Part
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.recordings import Learned, Recording
from tcdsl.frontend.symbols.retired_values import OF_A_ROUND
from tcdsl.frontend.symbols.symbols import SymbolicTensor, View
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.program import BRANCH, Program, Repeat, Tensor
from tcdsl.span import Span

__all__ = ["RunningLoop"]

_MOST_PASSES = 8


class RunningLoop:
    """One loop that runs, while its body is staged in ``frame``.

    The names that it may bind hold ``before`` what they hold. ``condition`` says at the end of a round whether there is
    another one, if that is data, behind what it says of the first round. What is in ``blank``, by its name, is there
    from the beginning without cells: both arms of a branch bind it, ``unseen`` by each other. Where what is carried
    changes its type or shape, the function is staged for the arguments ``numbers``, on which alone the loop depends.
    In the state ``entry`` the first pass begins with what was found to be carried in that state before.
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
        blank: Mapping[str, Bound] | None = None,
        unseen: Collection[str] = (),
        entry: EntryState | None = None,
    ) -> None:
        session.needs_one_point()
        self.statement = statement
        self.frame = frame
        self._session = session
        self._builder = session.builder
        self.rounds = rounds
        self.span = session.location()
        held = frame.f_locals if before is None else before
        self._before = NamesBefore()
        for name in statement.names:
            if name in held:
                self._before.hold(name, unheld(held[name]))
        self._declared = DeclaredTypes(session.builder, {name: held.get(name) for name in statement.names})
        self._condition = None if condition is None else condition[1]
        #: Whether the user's checks in the body have passed.
        self._checks: Carried | None = None
        self._going = None if condition is None else Carried("running", condition[0], Kind("bool", None))
        self._numbers = numbers
        self._unseen = unseen
        self._first = frozenset(blank or ())
        self._blank: dict[str, Kind] = self._before.hold_blank(blank or {})
        #: What stands for the number of the round, where the body has one name for it.
        self.number: Any = None
        #: The input of the body that counts rounds.
        self.counter: Any = None
        #: Whether the round was left by `break`.
        self.left: Any = False
        #: What rounds replace of what there was before.
        self.replaced = ReplacedInRounds(session)
        #: What a pass has bound that no name held before.
        self.bound: dict[str, Bound] = {}
        #: Whether the arm ends by `raise`: what it binds, nobody reads; and whether it is staged for that alone.
        self.raised = self.tries = False
        self._names: dict[str, Carried] = {}
        self._memory: dict[int, Carried] = {}
        #: The version and the type of that memory before the loop.
        self._versions: dict[int, tuple[str, str]] = {}
        self._stand_ins: dict[str, Any] = {}
        self._after: dict[str, Any] = {}
        self._shaped: dict[str, Any] = {}
        self._layers = layers_met()
        self._memo = SettledBody(session, entry, statement, self._before.nested)

    # -- for the rewritten function

    def passes(self, number: Any = None) -> Iterator[Any]:
        """The number of the round, or what is given, once for each time that the body is to be staged."""
        known = self._memo.found(number) or expected(self._session, self.statement, self._before, self._blank)
        self._begin_with(known)
        for _ in range(_MOST_PASSES):
            body: Program | None = None
            with self._forgetting() as (part, learned):
                with part.recording(), self._round(part) as (own, counter):
                    lent = own_copies(self.frame.f_locals, self.statement.lent)
                    yield self.rounds.element(own) if number is None else number
                    self._check_lent(lent)
                    self.replaced.release(self._before.values, self._stand_ins, self._held_after())
                    settled = self._settled(part.recorded, self.frame.f_locals)
                    changed = self._memo.changes(part.recorded, self._names, self._held_after(), self._stand_ins)
                    again = known is not None and not (settled and changed == known.changed)
                    settled = settled and not again
                    left = self._left(self._held_after()) if settled else []
                if settled and not self._session.faults:
                    body = body_of(part, f"{self._builder.name}_loop", counter, left, self._going)
                since = self._builder.forget_since(learned)
            if self._session.faults:
                self._before.nested.clear()
                self._after = dict.fromkeys(self.statement.names, Poison())
                return
            if again:
                known = None
                self._begin_with(None)
            if body is not None:
                self._memo.remember(number, self._names, self._memory, self._checks is not None, changed)
                learn_for_all_rounds(self._session, since, counter, self.span, self.rounds)
                self._finish(body)
                return
        raise DtypeError.at("the types of what this loop carries do not settle", self.span, "give its numbers a type")

    def _check_lent(self, before: Mapping[str, Any]) -> None:
        for name, held in before.items():
            if not is_unchanged(held, self.frame.f_locals.get(name)):
                raise self._python_value(name, held, held)

    def _begin_with(self, known: Settled | None) -> None:
        names = {} if known is None else known.names
        self._names = {name: Carried(label_of(name), self._before[name], *each) for name, each in names.items()}
        self._memory, self._versions = {}, {}
        for memory in self._memo.memory(known):
            self._carry_memory(memory, memory.name, memory.element_type)
        self._checks = all_passed() if known is not None and known.checks else None

    def _held_after(self) -> dict[str, Any]:
        held = self.frame.f_locals
        return dict(pair for name in self.statement.names for pair in values_in(name, held.get(name)))

    def trial(self, number: Any) -> Iterator[Any]:
        """What is given, once: the body is staged for what it binds."""
        self.tries = True
        with self._forgetting() as (part, _), part.recording(), self._round(part):
            yield number
            held = self.frame.f_locals
            self.replaced.release(self._before.values, self._stand_ins, self._held_after())
            for name in self.statement.names:
                new = name not in self._before.nested and isinstance(self._before[name], Unwritten)
                if new and not isinstance(held.get(name, self._before[name]), Unwritten):
                    self.bound[name] = bound_value(self._session, name, held[name])

    def supposed(self) -> None:
        """In place of `passes`, in a trial of a body around: what the arms bind is there, without its cells."""
        found = {name: Carried(label_of(name), self._before[name], kind, 0) for name, kind in self._blank.items()}
        # No placeholders: a loop in that body reads them from around it.
        for name, each in found.items():
            made = self._builder.tensor(initial_tensor(self._session, each).name)
            self._after[name] = number_of(each, held_result(self._builder, each, made))

    @contextmanager
    def _forgetting(self) -> Iterator[tuple[Part, Learned]]:
        # What is learned in the block is no part of the program.
        learned, part = self._builder.learned(), Part(self._builder)
        meet_layers_from(self._layers)
        try:
            yield part, learned
        finally:
            self._builder.forget_since(learned)
            self._builder.retire(labels_of(part.recorded), OF_A_ROUND)

    @contextmanager
    def _round(self, part: Part) -> Iterator[tuple[Any, Tensor]]:
        outer = self._session.checked
        try:
            by_data = not (self.rounds.sized or self.rounds.by_sizes)
            with self._builder.in_a_round(by_data, self.rounds.where):
                yield self._begin()
        finally:
            self._session.checked = outer
            self._restore(part.recorded)

    def carried(self) -> Any:
        """What the names hold at the beginning of a round."""
        return tuple(
            Unwritten(name)
            if name in self._unseen
            else own_copy(self._before.put_together(name, lambda key: self._stand_ins.get(key, self._before[key])))
            for name in self.statement.names
        )

    def after(self) -> Any:
        """What they hold after the loop, the number of the round first."""
        numbers = (number_after(name, self.span, self._numbers) for name in self.statement.numbers)
        return (*numbers, *(self._before.put_together(name, self._after_round) for name in self.statement.names))

    def has_bound(self, name: str) -> bool:
        """Whether ``name`` holds what this round has bound it to."""
        held = self.frame.f_locals.get(name)
        return name in self.statement.names and held is not None and held is not self._before.values.get(name)

    @property
    def by_sizes(self) -> bool:
        """Whether it is an arm of a branch on sizes."""
        return self.statement.arms and self.rounds.by_sizes

    def specialize(self) -> None:
        """What depends on numbers of the call alone may be Python's instead."""
        if self._numbers:
            raise Specialize(self._numbers)

    def _begin(self) -> tuple[Any, Tensor]:
        numbers = self.statement.numbers
        label = BRANCH if self.statement.arms else numbers[0] if len(numbers) == 1 else "round"
        number, counter = self.rounds.counted(self._session, label)
        self.counter = counter
        self.number = number if len(numbers) == 1 else None
        self._stand_ins = {name: stand_in(self._builder, each) for name, each in self._names.items()}
        for name, before in self._before.values.items():
            if isinstance(before, DeclaredTarget) and before.extents is not None and name not in self._names:
                self._stand_ins[name] = self._declared.stand_in(self._builder, name, before)
        if self._going is not None:
            stand_in(self._builder, self._going)
        self._session.checked = None if self._checks is None else stand_in(self._builder, self._checks)
        for each in self._memory.values():
            made = stand_in(self._builder, each)
            stand_for(each.before, made.name, made.element_type)
        return number, counter

    def _restore(self, recording: Recording) -> None:
        for memory, name, dtype in recording.stored.values():
            stand_for(memory, name, dtype)
        for each in self._memory.values():
            stand_for(each.before, *self._versions[id(each.before)])

    def _settled(self, recording: Recording, held: Mapping[str, Any]) -> bool:
        """Whether the names and the memory that this pass has changed are those that it was staged for."""
        settled = True
        known, types = dict(self._names), dict(self._declared.types)
        if self._session.checked is not None and self._checks is None:
            self._checks = all_passed()
            settled = False
        made, own = {tensor.name for tensor in recording.tensors}, set(map(id, recording.copies))
        for memory, name, dtype in recording.stored.values():
            if not (id(memory) in self._memory or id(memory) in own or name in made):
                self._carry_memory(memory, name, dtype)
                settled = False
        for name in self.statement.names:
            if name not in held and self._before.binds(name):
                self.specialize()
                raise deleted_name(name, self.statement.arms, self._span_of(self.statement.deletes.get(name)))
            for key, value in self._values(name, held.get(name, Unwritten(name))):
                settled &= self._name_settled(recording, key, value)
        if types != self._declared.types:
            self._names = known  # what this pass found of other names may come of the types that it took for these
        found = {name: each for name, each in self._names.items() if each is not known.get(name)}
        if not all(each.needed for each in found.values()):
            # Open extents may come of numbers that this pass took for the first round's.
            self._names = {name: each for name, each in self._names.items() if not (name in found and each.needed)}
        return settled

    def _carry_memory(self, memory: SymbolicTensor, name: str, dtype: str) -> None:
        kind = Kind(dtype, None, memory.extents, memory.rows, True)
        self._memory[id(memory)] = Carried(memory.label, memory, kind)
        self._versions[id(memory)] = (name, dtype)

    def _values(self, name: str, after: Any) -> list[tuple[str, Any]]:
        # What a name holds after a round, as it was taken apart before.
        nested = self._before.nested.get(name)
        open_before = isinstance(self._before[name], Unwritten)
        if nested is None and is_result(name) and is_nested(after) and open_before:
            self._before.taken_apart(name, after)
        elif nested is None or isinstance(after, Poison | Unwritten):
            return [(name, after)] if nested is None else []
        elif outline(after) != outline(nested):
            raise self._python_value(name, nested, after)
        return list(values_in(name, after))

    def _name_settled(self, recording: Recording, name: str, after: Any) -> bool:
        before, known = self._before[name], self._names.get(name)
        if is_unchanged(before, after) or isinstance(after, Poison | Unwritten):
            return True
        shapes = self._session.shapes
        if shapes is not None and shapes.same(before, after, name, self.span):
            self._shaped[name] = after
            return True
        if isinstance(before, View) and before.memory:
            if isinstance(after, View) and after.is_same(before):
                return True
            raise changed_view(name, self.statement.arms, self.span)
        given: Any = self._stand_ins.get(name, self)
        if after is given and (known is not None or self._declared.unread(recording, name, given)):
            return True
        found, first = (kind_of(self._session, each) for each in (after, before))
        if isinstance(before, Unwritten):
            return self._first_settled(name, before, after, found)
        if isinstance(before, DeclaredTarget) and found is not None:
            return self._declared_settled(recording, name, before, after, found)
        if found is None or first is None:
            raise self._python_value(name, before, after)
        if len(found.extents) != len(first.extents):
            raise self._changed(name, first, found)
        if first.weak is None:
            # Whole numbers of Python have no type of their own as cells either.
            takes = is_floating(found.dtype) and self._builder.written.is_weak(getattr(before, "name", ""))
            wanted = replace(first, dtype=found.dtype) if takes else first
        else:
            # Code gives it memory anew in each round, as it does behind the number.
            wanted = replace(joined(first if known is None else known.kind, found), memory=False)
        if known is None or known.kind != wanted:
            self._names[name] = Carried(label_of(name), before, wanted)
            return False
        return self._same(name, known.kind, found)

    def _declared_settled(
        self, recording: Recording, name: str, before: DeclaredTarget, after: Any, found: Kind
    ) -> bool:
        known = self._names.get(name)
        if isinstance(after, DeclaredInRound) and after is not self._stand_ins.get(name):
            return False  # what another one holds, whose type this pass finds
        if known is not None:
            return self._same(name, known.kind, found)
        if not self._declared.corrected(recording, name, before, self._stand_ins.get(name), found.dtype):
            kind, needed = kind_for_all_rounds(self._session, name, before, found, self.counter)
            self._names[name] = Carried(label_of(name), before, kind, *begun_by(recording, after), needed)
        return False

    def _first_settled(self, name: str, before: Unwritten, after: Any, found: Kind | None) -> bool:
        # What had no value: of this round alone, unless it is to have one after it.
        if not is_result(name) and name not in self._blank:
            return True
        known = self._names.get(name)
        kind = self._blank.get(name, found) if known is None else known.kind
        if found is None or kind is None:
            raise self._python_value(name, before, after)
        wanted = replace(kind if kind.weak is None else joined(kind, found), memory=False)
        if known is None or known.kind != wanted:
            self._names[name] = Carried(label_of(name), before, wanted, 0)
            return False
        return self._same(name, known.kind, found)

    def _same(self, name: str, kind: Kind, found: Kind) -> bool:
        if not fits(kind, found):
            raise self._changed(name, kind, found)
        return True

    def _left(self, values: Mapping[str, Any]) -> list[tuple[Carried, str]]:
        """For all that is carried, the tensor that holds it after a round."""
        names = self._names.items()
        made = [(each, tensor_after(self._session, each, values[name], self).name) for name, each in names]
        made.extend((each, each.before.name) for each in self._memory.values())
        if self._checks is not None and self._session.checked is not None:
            made.append((self._checks, self._session.checked.name))
        if self._going is not None and self._condition is not None:
            made.append((self._going, goes_on(self._session, self._condition(), self.left).name))
        return made

    def _finish(self, body: Program) -> None:
        """Record the loop, and give the names its results."""
        builder = self._builder
        carried = [*self._names.items(), *(("", each) for each in self._memory.values())]
        carried.extend(("", each) for each in (self._checks, self._going) if each is not None)
        given = {each.placeholder: initial_tensor(self._session, each).name for _, each in carried}
        results = [declared_result(builder, each, self.span) for _, each in carried]
        inputs = tuple(given.get(tensor.name, tensor.name) for tensor in body.inputs[1:])
        if results:
            names = tuple(tensor.name for tensor in results)
            repeat = self.rounds.checkpointed(Repeat(names, self.rounds.count, body, inputs, self.span))
            builder.add_repeat(repeat, results)
        for (name, each), tensor in zip(carried, results, strict=True):
            made = held_result(builder, each, tensor)
            if each is self._checks:
                self._session.checked = both_passed(self._session, made)
            elif not name and each is not self._going:
                each.before.become(made)
            elif name and (self.rounds is not NO_ROUNDS or isinstance(each.before, DeclaredTarget)):
                self._after[name] = number_of(each, made)

    def _after_round(self, name: str) -> Any:
        before, found = self._before[name], self._shaped.get(name)
        before = before.tensor if isinstance(before, BegunInRound) else before
        if name in self._after or not isinstance(before, Unwritten):
            return self._after.get(name, found if isinstance(found, GraphTensor) else before)
        return unbound_after(name, self.statement, self.span, self._numbers) if found is None else found

    def _changed(self, name: str, before: Kind, after: Kind) -> TcdslError:
        self.specialize()
        first = self.statement.arms and name.partition("[")[0] in self._first
        return changed_kind(name, before, after, self.statement.arms, first, self.span)

    def _span_of(self, place: ast.expr | ast.stmt | None) -> Span | None:
        return self.span if place is None else span_of(place, self.frame.f_code.co_filename)

    def _python_value(self, name: str, before: Any, after: Any) -> TcdslError:
        if self._session.may_be_whole and any(isinstance(each, GraphTensor) for each in (before, after)):
            raise RunsOnTensors
        self.specialize()
        head, known = name.partition("[")[0], self.statement
        span = self._span_of(known.changes.get(head) or known.stores.get(head) or known.lent.get(head))
        return changed_value(self._session, name, before, after, self.statement.arms, span)
