"""Branches and loops of `@compose`: rounds are recorded each by itself, or as a loop of the program.

Loops and branches on data are functions of Python's, whose loops run in the program: a body is a function of what the
rounds carry, a tuple of tensors, and is staged as one round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from types import FunctionType
from typing import Any

from tcdsl.errors import DslSyntaxError, ShapeError, TcdslError
from tcdsl.frontend.skriptnd.evaluation import MOST_ITEMS
from tcdsl.frontend.skriptnd.text.syntax import Branch, Loop
from tcdsl.frontend.skriptnd.values import ZERO, Pack, ScalarValue, TensorValue, bound_of, flat, most_of, type_of
from tcdsl.frontend.words.declared_stores import cell_of
from tcdsl.ir.build import integer
from tcdsl.ir.expressions import Expr, Read, SizeValue, size_names
from tcdsl.span import Span

__all__ = ["BranchArms", "LoopRounds", "counted_rounds"]


State = tuple[Any, ...]


def _counted(state: State, rounds: Any, body: Callable[[Any, State], State]) -> State:
    for number in rounds:
        state = body(number, state)
    return state


def _while(state: State, going: Any, body: Callable[[State], State], condition: Callable[[State], Any]) -> State:
    while going:
        state = body(state)
        going = condition(state)
    return state


def _bounded(
    state: State,
    rounds: Any,
    body: Callable[[Any, State], State],
    condition: Callable[[State], Any],
    tested_first: bool,
) -> State:
    for number in rounds:
        if tested_first and not condition(state):
            break
        state = body(number, state)
        if not tested_first and not condition(state):
            break
    return state


def _branch(condition: Any, chosen: Callable[[], State], other: Callable[[], State]) -> State:
    return chosen() if condition else other()


@cache
def _template(function: FunctionType) -> Any:
    # Texts without loops on data do without all that rewrites functions of Python's.
    from tcdsl.frontend.python.template import Template
    from tcdsl.frontend.source.function_source import read_source

    return Template(function, read_source(function), False)


def _loop(count: Any) -> Any:
    from tcdsl.frontend.running_loops.round_counts import loop

    return loop(count)


def counted_rounds(state: State, count: Any, body: Callable[[Any, State], State]) -> State:
    """``state = body(t, state)`` for all numbers below ``count``, an int, a size or an integer that data holds."""
    found: State = _template(_counted).run(None, state, _loop(count), body)
    return found


class BranchArms:
    """The arms of an `if` in a region.

    Each arm is one function, however often it is staged: what was found of it holds again where the arm around it is
    staged once more, so that staging an `elif` takes no longer than staging an `if`. ``looked`` are the same arms
    without a program, which tell what extents only data says: arms give those beside their results.
    """

    def __init__(self, region: Any, node: Branch, own: str, looked: BranchArms | None = None) -> None:
        self._region, self._node, self._own, self._looked = region, node, own, looked
        self._functions = [[partial(self._arm, k, which) for which in (True, False)] for k in range(len(node.arms))]
        self._found: dict[tuple[int, bool], list[Any]] = {}

    def results(self, k: int = 0) -> list[Any]:
        """The results of the arms from number ``k`` on."""
        region, node, composition = self._region, self._node, self._region.composition
        if k == len(node.arms):
            return self._operation(node.other)
        condition, chosen = node.arms[k]
        test = region.test(condition)
        if isinstance(test, bool):
            return self._operation(chosen) if test else self.results(k + 1)
        if composition.session is None:
            before = {*composition.updates}
            tensors: Any = [function() for function in self._functions[k]]
            _require_same(before, {*composition.updates}, "an arm of an `if` on data", node.span)
        else:
            if self._looked is None:
                self._looked = BranchArms(replace(region, composition=composition.quiet()), node, self._own)
                self._looked.results(k)
            tensors = _template(_branch).run(None, test.tensor, *self._functions[k])
        arms = self._found[k, True], self._found[k, False]
        both: list[Any] = region.agreed(*([*map(_with_room, arm)] for arm in arms), node.span)
        if composition.session is None:
            counts = [cell_of(".of_an_arm", (), composition.arithmetic.integer)] * len(self._open(k))
            return self._extended(k, both, counts)
        size = len(tensors) - len(self._open(k))
        cells = [cell_of(each.name, (), each.element_type) for each in tensors[size:]]
        return self._extended(k, composition.tensors(both, tensors[:size]), cells)

    def _open(self, k: int) -> list[tuple[int, int]]:
        # The axes that are as long as data says it in one of two arms: the number of the tensor, and the axis.
        looked = self if self._looked is None else self._looked
        pairs = zip(*(flat(looked._found[k, which]) for which in (True, False)), strict=False)
        return [
            (number, axis)
            for number, (first, second) in enumerate(pairs)
            for axis, extents in enumerate(zip(*(getattr(each, "shape", ()) for each in (first, second)), strict=False))
            if any(bound_of(extent) is not None for extent in extents)
        ]

    def _extended(self, k: int, results: Sequence[Any], counts: Sequence[Expr]) -> list[Any]:
        # Results whose open axes are as long as `counts`.
        tensors = flat(results)
        for (number, axis), count in zip(self._open(k), counts, strict=True):
            shape = list(tensors[number].shape)
            shape[axis] = ScalarValue(count, "int", bound=shape[axis])
            tensors[number] = replace(tensors[number], shape=Pack.of(shape))
        parts = iter(tensors)
        return [
            Pack.of((next(parts) for _ in each), None, each.length) if isinstance(each, Pack) else next(parts)
            for each in results
        ]

    def _arm(self, k: int, which: bool) -> State:
        composition = self._region.composition
        results = self._operation(self._node.arms[k][1]) if which else self.results(k + 1)
        found = self._found[k, which] = [composition.recorded(each, "result") for each in results]
        if composition.session is None:
            return tuple(composition.symbols(found))
        tensors = flat(found)
        counts = [composition.recorded(tensors[number].shape[axis], "count") for number, axis in self._open(k)]
        return tuple(composition.symbols([*found, *counts]))

    def _operation(self, node: Any) -> list[Any]:
        # An arm has names of its own.
        found: list[Any] = self._region.inner({}).operation(node, self._own)
        return found


def _require_same(before: set[str], after: set[str], where: str, span: Span | None) -> None:
    for label in sorted(after - before):
        hint = "update it with a result of the whole, in `@update` of what is around it"
        raise DslSyntaxError.at(f"the variable `{label}` is updated in {where}", span, hint)


def _with_room(value: Any) -> Any:
    # A tensor with all the cells that there may be.
    if isinstance(value, Pack):
        return Pack.of(map(_with_room, value), None, value.length)
    return replace(value, shape=Pack.of(map(most_of, value.shape))) if isinstance(value, TensorValue) else value


@dataclass(slots=True)
class LoopRounds:
    """The rounds of a loop in a region, which carry ``state``."""

    region: Any
    node: Loop
    own: str
    packs: Sequence[tuple[Any, Pack]]
    state: list[Any]

    def unrolled(self, count: int) -> list[Any]:
        """Each round by itself."""
        if count > MOST_ITEMS:
            raise ShapeError.at(f"a loop of {count} rounds is unrolled", self.node.span, f"{MOST_ITEMS} are the most")
        composition, state = self.region.composition, self.state
        stacked: list[list[Any]] = []
        for number in range(count):
            results = self._round(state, {name.name: pack[number] for name, pack in self.packs}, number, number)
            state = results[: len(state)]
            self.region.agreed(state, [composition.recorded(each, "start") for each in self.state], self.node.span)
            stacked.append(results[len(state) :])
        if not count and not self.packs:
            return [*state, *(Pack() for _ in self._round(state, {}, 0, 0)[len(state) :])]
        return [*state, *(Pack.of(column) for column in zip(*stacked, strict=True))]

    def _round(self, state: Sequence[Any], items: Mapping[str, Any], number: Any, suffix: int | None) -> list[Any]:
        composition, node = self.region.composition, self.node
        names = dict(zip((each.name for each in node.carried), state, strict=True)) | dict(items)
        if node.index is not None:
            names[node.index.name] = number
        inner = self.region.inner(names)
        # Rounds that are written out have each a label, which only loops with several results do not have themselves.
        own = self.own if suffix is None else f"{self.own or node.result}{suffix + 1}"
        results = inner.operation(node.body, own)
        if len(results) < len(state):
            fact = f"the body of a loop gives {len(results)} results, and the loop carries {len(state)}"
            raise DslSyntaxError.at(fact, node.span)
        return [composition.recorded(each, "result") for each in results]

    def running(self, count: Any, length: int | None) -> list[Any]:
        """A loop of the program: its number of rounds, or whether there is another one, is data."""
        composition, node = self.region.composition, self.node
        before = {*composition.updates}
        looked = self.one_round(composition if composition.session is None else composition.quiet())
        _require_same(before, {*composition.updates}, "a loop on data", node.span)
        state, given = looked[: len(self.state)], looked[len(self.state) :]
        # Only packs need room for all rounds.
        most = length if length is not None or not given else self._most(count)
        if given and most is None:
            hint = "let it scan a pack, which it is at most as long as, or carry what it computes"
            raise DslSyntaxError.at("a loop that may have any number of rounds gives a pack", node.span, hint)
        if any(isinstance(each, Pack) for each in given):
            raise DslSyntaxError.at("the rounds of a loop give packs", node.span, "each result is one tensor")
        if any(map(_is_open, given)):
            hint = "declare how large it is, or write the rounds out, `unroll`"
            raise DslSyntaxError.at("the rounds of a loop give tensors whose extents only data says", node.span, hint)
        if composition.session is None:
            unknown = Read("rounds", (), (), composition.arithmetic.integer)
            rounds = None if self._is_sure(count) else ScalarValue(unknown, "int", bound=most)
            return [*state, *(Pack.of((each,) * (most or 0), None, rounds) for each in given)]
        with composition.session.located(node.span):
            return self._recorded(count, length, given, most)

    def are_alike(self, count: int) -> bool:
        """Whether a loop of ``count`` rounds is one of the program: many rounds, which differ in data alone.

        Rounds with variables have each their own, and what has labels may be quantized in each in its own way.
        """
        kinds = [{(type(each), type_of(each), getattr(each, "shape", None)) for each in pack} for _, pack in self.packs]
        alike = all(len(each) == 1 and next(iter(each))[0] is TensorValue for each in kinds)
        if count <= _FEW or not alike or self.region.composition.quantizations:
            return False
        try:
            results = self.one_round(self.region.composition.quiet(_own_variables))
        except TcdslError:
            # Unrolled it may be right, and else is told of there.
            return False
        return not any(isinstance(each, Pack) or _is_open(each) for each in results)

    def one_round(self, quiet: Any) -> list[Any]:
        """What a round gives, without a program."""
        region = self.region
        inner = replace(region, composition=quiet)
        names = {name.name: pack[0] for name, pack in self.packs if pack}
        index = self._number(SizeValue(".round"))
        starts = [quiet.recorded(each, "start") for each in self.state]
        # Rounds change what they carry: nothing of it is known.
        state = [replace(each, constant=None) if isinstance(each, TensorValue) else each for each in starts]
        results = LoopRounds(inner, self.node, self.own, (), state)._round(state, names, index, None)
        region.agreed(results[: len(starts)], starts, self.node.span)
        if self.node.condition is not None:
            carried = dict(zip((each.name for each in self.node.carried), state, strict=True))
            if inner.inner(carried).test(self.node.condition) is True and self.node.count is None and not self.packs:
                hint = "make it of what the loop carries, or give a count, `do..(n)`"
                raise DslSyntaxError.at("a loop that does not end: its condition is always true", self.node.span, hint)
        return results

    def _number(self, number: Expr) -> ScalarValue:
        # That of a round, which is no size of the call.
        self.region.composition.arithmetic.rounds.update(size_names(number))
        return ScalarValue(number, "int", True)

    def _is_sure(self, count: Any) -> bool:
        # Whether the number of rounds is known before the loop runs.
        return self.node.condition is None and (type(count) is int or getattr(count, "bound", count) is None)

    def _most(self, count: Any) -> int | None:
        # How many rounds there are at most, where something says it.
        count = most_of(count)
        if isinstance(count, ScalarValue):
            count = self.region.composition.arithmetic.decisions.value(count.expr)
        if type(count) is not int:
            return None
        if count > MOST_ITEMS:
            raise ShapeError.at(f"a loop gives a pack of {count} tensors", self.node.span, f"{MOST_ITEMS} are the most")
        return count

    def _recorded(self, count: Any, length: int | None, given: Sequence[TensorValue], most: int | None) -> list[Any]:
        region, node = self.region, self.node
        composition: Any = region.composition
        start = [composition.recorded(each, "start") for each in self.state]
        stacks = [(name.name, composition.stacked(pack, name.span)) for name, pack in self.packs if pack]
        # What each round gives is a row of a tensor, which stays 0 behind the last round.
        shapes = ((each, Pack.of((most, *each.shape))) for each in given)
        rows = [composition.filled(each.name, each.type, shape, ZERO[each.type]) for each, shape in shapes]
        ran = [composition.filled("rounds", "int", Pack(), 0)] if given and not self._is_sure(count) else []
        carried = [*start, *rows, *ran]

        def around(number: Any, state: Sequence[Any]) -> tuple[Any, ...]:
            tensors = composition.tensors(carried, state)
            names: dict[str, Any] = {}
            index = None
            if number is not None:
                index = position = self._number(number.expr)
                names = {name: composition.row(stack, position) for name, stack in stacks}
            results = self._round(tensors[: len(start)], names, index, None)
            written = (
                composition.with_row(row, position, each)
                for row, each in zip(tensors[len(start) :], results[len(start) :], strict=False)
            )
            after = [*results[: len(start)], *written]
            if ran:
                number = composition.arithmetic.binary("+", position, 1, node.span)
                after.append(composition.filled("rounds", "int", Pack(), number))
            return tuple(composition.symbols(after))

        def going(state: Sequence[Any]) -> Any:
            tensors = composition.tensors(carried, state)
            names = {each.name: tensor for each, tensor in zip(node.carried, tensors, strict=False)}
            assert node.condition is not None
            test = region.inner(names).test(node.condition)
            return test if isinstance(test, bool) else test.tensor

        symbols = composition.symbols(carried)
        limit = composition.count(count, length, node.span)
        if node.condition is None:
            found = counted_rounds(symbols, limit, around)
        elif limit is not None:
            found = _template(_bounded).run(None, symbols, _loop(limit), around, going, node.tested_first)
        elif stacks or node.index is not None:
            hint = "give a count: `do..(i -> n)`"
            raise DslSyntaxError.at("a loop with a condition whose number of rounds has no bound", node.span, hint)
        else:
            first = going(symbols) if node.tested_first else True
            found = _template(_while).run(None, symbols, first, partial(around, None), going)
        tensors = composition.tensors(carried, found)
        number = None
        if ran:
            number = ScalarValue(cell_of(tensors[-1].tensor, (), composition.arithmetic.integer), "int", bound=most)
        places = [ScalarValue(integer(k), "int", True) for k in range(most or 0)]
        stacked = tensors[len(start) : len(tensors) - len(ran)]
        packs = (Pack.of((composition.row(each, place) for place in places), None, number) for each in stacked)
        return [*tensors[: len(start)], *packs]


def _own_variables(label: str, kind: str, shape: Pack, span: Span | None) -> Any:
    raise DslSyntaxError.at(f"the rounds of a loop have the variable `{label}` of their own", span)


def _is_open(value: Any) -> bool:
    # Whether only data says an extent of a tensor.
    return isinstance(value, TensorValue) and any(bound_of(each) is not None for each in value.shape)


# Rounds beyond which a loop of a known number of them runs: code for each takes longer to compile.
_FEW = 8
