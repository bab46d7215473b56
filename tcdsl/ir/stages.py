"""A program with loops as stages: straight code, a loop, straight code, a loop, ...

A statement stands in the first stage in which all that it reads is there. If it makes a new version of a tensor that
loops read as it was, or statements that stand behind them, it stands behind these, unless loops need it before: what
nobody reads any more can be overwritten.

What holds for straight code alone is done stage by stage: `stage_programs` gives each as a program of its own. What
makes straight code shorter may see all stages at once: `around_loops` gives it the code with the loops left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from tcdsl.ir.dtypes import is_boolean
from tcdsl.ir.expressions import Apply, Cast, Constant
from tcdsl.ir.program import Keep, Program, Repeat, Statement, tensors_read

__all__ = [
    "Stage",
    "around_loops",
    "at_most_one",
    "in_order",
    "loops_in_order",
    "needed_by",
    "needed_of",
    "stage_programs",
    "stages",
    "stages_by_rules",
    "tensors_needed",
    "what_makes",
]


@dataclass(frozen=True, slots=True)
class Stage:
    """Statements, and the loop after them; the last stage has none."""

    statements: tuple[Statement, ...]
    repeat: Repeat | None


def at_most_one(repeat: Repeat) -> bool:
    """Whether a loop runs once or not at all, whatever the data are: it is a branch."""
    match repeat.count:
        case Cast(operand=operand):
            return is_boolean(operand.dtype)
        case Apply(primitive="where", arguments=(_, chosen, other)):
            return all(isinstance(each, Constant) and each.value <= 1 for each in (chosen, other))
        case Apply(primitive="min", arguments=arguments):
            return any(isinstance(each, Constant) and each.value <= 1 for each in arguments)
        case Constant(value=value):
            return bool(value <= 1)
    return False


def needed_by(repeat: Repeat) -> set[str]:
    """The tensors that a loop reads."""
    return {*repeat.inputs, *repeat.read_by_ends}


def stages(program: Program) -> Iterator[Stage]:
    """The stages of ``program``, in order. ``ValueError`` if a loop or a statement reads what is never there."""
    if not program.repeats:
        yield Stage(program.statements, None)
        return
    waiting = _Waiting(program, _behind(program))
    for position, repeat in enumerate((*program.repeats, None)):
        yield Stage(waiting.ready(position), repeat)
        if repeat is None:
            left = waiting.first()
            if left is not None:
                raise ValueError(f"nothing makes what {left.target.tensor} is made of")
        elif not needed_by(repeat) <= waiting.known:
            raise ValueError(f"nothing makes what the loop of {', '.join(repeat.results)} reads")
        else:
            waiting.make(repeat.results, position + 1)


class _Waiting:
    """The statements that have not been made yet, by what they wait for: long programs have many loops."""

    def __init__(self, program: Program, behind: Mapping[str, int]) -> None:
        self.known = {tensor.name for tensor in program.inputs}
        self._statements = program.statements
        self._behind = [behind.get(each.target.tensor, 0) for each in program.statements]
        self._missing: dict[int, int] = {}
        self._readers: dict[str, list[int]] = {}
        #: By their places, the statements for which all is there, by the stage that they wait for.
        self._free: dict[int, list[int]] = {}
        for place, statement in enumerate(program.statements):
            missing = tensors_read(statement) - self.known
            for name in missing:
                self._readers.setdefault(name, []).append(place)
            self._missing[place] = len(missing)
            if not missing:
                self._free.setdefault(self._behind[place], []).append(place)

    def ready(self, position: int) -> tuple[Statement, ...]:
        """Those of the stage at ``position``, in their order: each reads what is there and those before it."""
        found: list[Statement] = []
        now = self._free.pop(position, [])
        heapify(now)
        while now:
            place = heappop(now)
            del self._missing[place]
            statement = self._statements[place]
            found.append(statement)
            for other in self._freed(statement.target.tensor):
                if other > place and self._behind[other] <= position:
                    heappush(now, other)
                else:
                    self._wait(other, position + 1)
        return tuple(found)

    def make(self, names: Iterable[str], position: int) -> None:
        """Know these tensors, which the stage at ``position`` and those behind it may read."""
        for name in names:
            for place in self._freed(name):
                self._wait(place, position)

    def first(self) -> Statement | None:
        """One that is left, the first."""
        return self._statements[min(self._missing)] if self._missing else None

    def _freed(self, name: str) -> Iterator[int]:
        # The places of the statements that have waited for this tensor alone.
        self.known.add(name)
        for place in self._readers.pop(name, ()):
            self._missing[place] -= 1
            if not self._missing[place]:
                yield place

    def _wait(self, place: int, position: int) -> None:
        self._free.setdefault(max(position, self._behind[place]), []).append(place)


def stages_by_rules(program: Program) -> Iterator[Stage]:
    """The stages of ``program`` where what makes an output of a derivative rule stands behind the rule's arguments.

    By the rule, the output is a function of them, also where what makes it reads none: the adjoint of a linear tensor
    is a constant that is there from the start. Rules that wait for each other hold nothing up.
    """
    found = list(stages(program))
    if not program.rules:
        yield from found
        return
    waits = {name: set(rule.arguments).difference(rule.outputs) for name, rule in program.ruled.items()}
    waiting: list[Statement | Repeat] = []
    for stage in found:
        waiting += (*stage.statements, *((stage.repeat,) if stage.repeat is not None else ()))
    known = {tensor.name for tensor in program.inputs}
    straight: list[Statement] = []
    while waiting:
        later: list[Statement | Repeat] = []
        for part in waiting:
            made = part.results if isinstance(part, Repeat) else (part.target.tensor,)
            needed = needed_by(part) if isinstance(part, Repeat) else tensors_read(part)
            if not known.issuperset(needed) or any(not waits.get(name, set()) <= known for name in made):
                later.append(part)
                continue
            known.update(made)
            if isinstance(part, Repeat):
                yield Stage(tuple(straight), part)
                straight = []
            else:
                straight.append(part)
        if len(later) == len(waiting):
            waits = {}
        waiting = later
    yield Stage(tuple(straight), None)


def _behind(program: Program) -> dict[str, int]:
    """How many loops come before a statement that could overwrite what they read, or what statements behind them
    read, by what it makes.
    """
    given = [needed_by(repeat) for repeat in program.repeats]
    found: dict[str, int] = {}
    last = {name: place for place, names in enumerate(given, 1) for name in names}
    made = {name: place for place, repeat in enumerate(program.repeats, 1) for name in repeat.results}
    first: dict[str, int] | None = None
    for statement in program.statements:
        target, names = statement.target.tensor, tensors_read(statement)
        place = last.get(statement.start.tensor, 0) if isinstance(statement.start, Keep) else 0
        if place:
            first = _first_needed(program, given) if first is None else first
            if first.get(target, place) >= place:
                found[target] = place
        made[target] = here = max([found.get(target, 0), *(made.get(name, 0) for name in names)])
        if here:
            last.update((name, max(last.get(name, 0), here)) for name in names)
    return found


def _first_needed(program: Program, given: Iterable[Iterable[str]]) -> dict[str, int]:
    """Of all tensors that groups of others need, the number of the first group that needs them."""
    made_of = what_makes(program)
    found: dict[str, int] = {}
    for number, names in enumerate(given):
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = number
                waiting.extend(made_of.get(name, ()))
    return found


def stage_programs(program: Program) -> Iterator[tuple[Program, Repeat | None]]:
    """Each stage as a program of straight code, with the loop after it.

    Its inputs are those of ``program``, and behind them the tensors of earlier stages that it reads or passes on. Its
    outputs are the tensors that later stages and loops need; those of the last stage, and its updates, are the
    program's.
    """
    found = list(stages(program))
    needs = [
        {name for statement in stage.statements for name in tensors_read(statement)}.union(
            {*program.outputs, *(new for _, new in program.updates)}
            if stage.repeat is None
            else needed_by(stage.repeat)
        )
        for stage in found
    ]
    last = {name: k for k, names in enumerate(needs) for name in names}
    declared = {tensor.name: place for place, tensor in enumerate(program.tensors)}
    made: dict[str, int] = {}
    for k, stage in enumerate(found):
        targets = [statement.target.tensor for statement in stage.statements]
        around = set() if stage.repeat is None else needed_by(stage.repeat)
        straight = replace(
            program,
            inputs=(*program.inputs, *map(program.tensor, sorted(needs[k] & made.keys(), key=made.__getitem__))),
            tensors=tuple(
                program.tensors[place] for place in sorted({declared[name] for name in targets if name in declared})
            ),
            statements=stage.statements,
            repeats=(),
            rules=(),
            outputs=tuple(name for name in targets if last.get(name, k) > k or name in around)
            if stage.repeat is not None
            else program.outputs,
            updates=program.updates if stage.repeat is None else (),
        )
        yield straight, stage.repeat
        for name in (*targets, *(() if stage.repeat is None else stage.repeat.results)):
            made.setdefault(name, len(made))


def around_loops(program: Program, rewrite: Callable[[Program], Program]) -> Program:
    """``program`` with its statements by ``rewrite``, which sees no loops: what they make are inputs, and what they
    read are outputs.

    In a program `in_order`, a statement may read any earlier one: no loop has to wait for itself. ``rewrite`` may give
    outputs other names; the loops then read these.
    """
    if not program.repeats:
        return rewrite(program)
    made = {name: program.tensor(name) for repeat in program.repeats for name in repeat.results}
    known = {tensor.name for tensor in program.inputs} | made.keys()
    read = dict.fromkeys(name for repeat in program.repeats for name in sorted(needed_by(repeat)) if name not in known)
    straight = rewrite(
        replace(
            program,
            inputs=(*program.inputs, *made.values()),
            tensors=tuple(tensor for tensor in program.tensors if tensor.name not in made),
            outputs=(*program.outputs, *read),
            repeats=(),
        )
    )
    places = {tensor.name: place for place, tensor in enumerate(program.tensors)}
    names = dict(zip(read, straight.outputs[len(program.outputs) :], strict=True))
    return replace(
        straight,
        inputs=straight.inputs[: len(program.inputs)],
        tensors=tuple(
            sorted((*straight.tensors, *made.values()), key=lambda tensor: places.get(tensor.name, len(places)))
        ),
        outputs=straight.outputs[: len(program.outputs)],
        repeats=tuple(repeat.with_tensors(names) for repeat in program.repeats),
    )


def in_order(program: Program) -> Program:
    """``program`` with its statements in the order of their stages."""
    if not program.repeats:
        return program
    return replace(program, statements=tuple(statement for stage in stages(program) for statement in stage.statements))


def loops_in_order(program: Program) -> tuple[Repeat, ...]:
    """The loops of ``program``, each behind those whose results it is made of, and else as they stand."""
    waiting = _Waiting(program, {})
    repeats = list(program.repeats)
    found: list[Repeat] = []
    while repeats:
        waiting.ready(len(found))
        ready = next((repeat for repeat in repeats if needed_by(repeat) <= waiting.known), repeats[0])
        repeats.remove(ready)
        found.append(ready)
        waiting.make(ready.results, len(found))
    return tuple(found)


def tensors_needed(program: Program, names: Iterable[str]) -> set[str]:
    """``names``, and all tensors that they are made of; of what a derivative rule says, all that it names."""
    return needed_of(what_makes(program), names)


def needed_of(made_of: Mapping[str, Collection[str]], names: Iterable[str]) -> set[str]:
    """``names``, and all that they are made of, by what each is ``made_of`` at once."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(made_of.get(name, ()))
    return found


def what_makes(program: Program) -> dict[str, Collection[str]]:
    """The tensors that what makes each tensor reads, and those that its derivative rule names."""
    found: dict[str, Collection[str]] = {each.target.tensor: tensors_read(each) for each in program.statements}
    for repeat in program.repeats:
        found.update(dict.fromkeys(repeat.results, needed_by(repeat)))
    for name, rule in program.ruled.items():
        found[name] = {*found.get(name, ()), *rule.named}
    return found
