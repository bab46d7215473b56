"""An independent reading of the language: ranges by trying all integers, results point by point, for sizes above 0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np

from tcdsl.frontend.comprehensions.text.parsing import parse
from tcdsl.frontend.comprehensions.text.syntax import (
    Binary,
    Call,
    Choice,
    Expression,
    Name,
    Number,
    Range,
    Statement,
    Unary,
)
from tcdsl.frontend.words.nodes import parts_of

__all__ = ["RefusedError", "results"]

_FAR = 60
_NEUTRAL = {"=": 0.0, "+": 0.0, "*": 1.0, "min": np.inf, "max": -np.inf}
_COMBINED = {"+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum}
_OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "%": lambda a, b: a % b,
    "/": lambda a, b: a // b,
}
Access = tuple[Expression, int, tuple[tuple[Expression, bool], ...]]


class RefusedError(Exception):
    """A program that has no meaning for these sizes."""


def results(text: str, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """The results of the only definition in ``text``."""
    tensors = dict(arrays)
    begins: dict[str, tuple[int, ...]] = {}
    (definition,) = parse(text).definitions
    for statement in definition.statements:
        assert isinstance(statement, Statement)
        _Statement(statement, tensors, sizes, begins).run()
    return {each.name.name: tensors[each.name.name] for each in definition.results}


class _Statement:
    def __init__(
        self,
        statement: Statement,
        tensors: dict[str, np.ndarray],
        sizes: Mapping[str, int],
        begins: dict[str, tuple[int, ...]],
    ) -> None:
        self.statement, self.tensors, self.sizes, self.begins = statement, tensors, sizes, begins
        self.target = [each.name for each in statement.target.indices]
        self.variables = list(dict.fromkeys([*self.target, *self.names(statement.value)]))
        self.operator = statement.operator.rstrip("!").removesuffix("=") or "="
        self.resets = statement.operator.endswith("!") and len(self.variables) > len(self.target)
        if statement.operator.endswith("!") and not self.resets:
            self.operator = "="

    def names(self, node: Expression) -> Iterator[str]:
        if isinstance(node, Name) and node.name not in self.sizes:
            yield node.name
        for part in parts_of(node):
            yield from self.names(part)

    def accesses(self, node: Expression, guard: tuple[tuple[Expression, bool], ...] = ()) -> Iterator[Access]:
        if isinstance(node, Choice):
            yield from self.accesses(node.condition, guard)
            yield from self.accesses(node.chosen, (*guard, (node.condition, True)))
            yield from self.accesses(node.other, (*guard, (node.condition, False)))
            return
        if isinstance(node, Call):
            shape = self.tensors[node.name.name].shape
            yield from ((index, extent, guard) for index, extent in zip(node.arguments, shape, strict=True))
        for part in parts_of(node):
            yield from self.accesses(part, guard)

    def value(self, node: Expression, point: Mapping[str, int]) -> float:
        match node:
            case Number(value=value):
                return value
            case Name(name=name):
                return point[name] if name in point else self.sizes[name]
            case Unary(operand=operand):
                return -self.value(operand, point)
            case Binary(operator=operator, left=left, right=right):
                return _OPERATORS[operator](self.value(left, point), self.value(right, point))
            case Choice(condition=condition, chosen=chosen, other=other):
                return self.value(chosen if self.value(condition, point) else other, point)
            case Call(name=Name(name="min"), arguments=arguments):
                return min(self.value(each, point) for each in arguments)
            case Call(name=Name(name=name), arguments=arguments):
                cell = tuple(int(self.value(each, point)) for each in arguments)
                return float(self.tensors[name][cell])
        raise NotImplementedError(node)

    def is_linear(self, node: Expression) -> bool:
        if isinstance(node, Binary) and node.operator in "/%":
            return not any(self.names(node))
        return all(map(self.is_linear, parts_of(node)))

    def bounds(self, continues: bool) -> list[tuple[Expression, int, int]]:
        # What the index of each linear access has to stay in.
        found = []

        def visit(node: Expression) -> None:
            if isinstance(node, Call):
                held = self.tensors[node.name.name]
                begin = self.begins.get(node.name.name, (0,) * held.ndim)
                found.extend(zip(node.arguments, begin, held.shape, strict=True))
            for part in parts_of(node):
                visit(part)

        visit(self.statement.value)
        if continues:
            visit(Call(self.statement.target.name, self.statement.target.indices))
        return [each for each in found if self.is_linear(each[0]) and any(self.names(each[0]))]

    def ranges(self, continues: bool) -> dict[str, range]:
        solved: dict[str, range] = {}
        for clause in self.statement.clauses:
            if isinstance(clause, Range):
                ends = (int(self.value(end, {})) for end in (clause.low, clause.high))
                solved[clause.variable.name] = range(*ends)
        bounds = self.bounds(continues)
        while len(solved) < len(self.variables):
            found = {}
            for name in self.variables:
                fitting = [each for each in bounds if set(self.names(each[0])) - solved.keys() == {name}]
                if name not in solved and fitting:
                    allowed = [
                        x for x in range(-_FAR, _FAR) if all(self.fits(each, name, x, solved) for each in fitting)
                    ]
                    if not allowed or allowed[0] == -_FAR:
                        raise RefusedError(f"no range for {name}")
                    found[name] = range(allowed[0], allowed[-1] + 1)
            if not found:
                raise RefusedError("no progress")
            solved.update(found)
        if not all(len(each) for each in solved.values()):
            raise RefusedError("an empty range")
        return solved

    def fits(self, bound: tuple[Expression, int, int], name: str, x: int, solved: Mapping[str, range]) -> bool:
        index, low, high = bound
        others = [each for each in dict.fromkeys(self.names(index)) if each != name]
        points = product(*(solved[each] for each in others))
        return all(
            low <= self.value(index, {**dict(zip(others, point, strict=True)), name: x}) < high for point in points
        )

    def run(self) -> None:
        if self.statement.operator == "=" and len(self.variables) > len(self.target):
            raise RefusedError("a reduction without an operator")
        name = self.statement.target.name.name
        known = self.tensors.get(name)
        continues = known is not None and self.operator != "=" and not self.resets
        ranges = self.ranges(continues)
        begin = tuple(ranges[each].start for each in self.target)
        if min(begin, default=0) < 0:
            raise RefusedError("below 0")
        shape = tuple(ranges[each].stop for each in self.target)
        if known is not None:
            if continues and any(map(int.__gt__, shape, known.shape)):
                raise RefusedError("beyond the target")
            shape = tuple(map(max, shape, known.shape))
            begin = tuple(map(min, begin, self.begins.get(name, (0,) * len(begin))))
        made = np.full(shape, _NEUTRAL[self.operator])
        if known is not None and not self.resets:
            made = np.zeros(shape)
            made[tuple(map(slice, known.shape))] = known
        accesses = list(self.accesses(self.statement.value))
        for values in product(*(ranges[each] for each in self.variables)):
            point = dict(zip(self.variables, values, strict=True))
            for index, extent, guard in accesses:
                reached = all(bool(self.value(test, point)) == wanted for test, wanted in guard)
                if reached and not 0 <= self.value(index, point) < extent:
                    raise RefusedError("out of range")
            cell = tuple(point[each] for each in self.target)
            value = self.value(self.statement.value, point)
            made[cell] = value if self.operator == "=" else _COMBINED[self.operator](made[cell], value)
        self.tensors[name], self.begins[name] = made, begin
