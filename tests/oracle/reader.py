"""From the text of one tensor statement to the oracle's nodes, with sizes replaced by their numbers.

Names follow section "Names" of the language: what the function has bound is that value, any other lower-case name in a
subscript is an index variable. Variables of reductions inside the value get names of their own (``k@1``), so that
reductions side by side never share one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tests.oracle.nodes import BOUNDARIES, Axis, Cell, Fold, Node, Number, Operation, Variable
from tests.oracle.outcome import FaultError, UnspecifiedError

__all__ = ["REDUCTIONS", "Reader", "Statement", "free_names"]

REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "mean", "argmax", "argmin")
_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**"}
_COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_WHOLE = {"sum": "+", "prod": "*", "max": ">>", "min": "<<", "any": "|", "all": "&"}
_AUGMENTED = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "**",
    ast.RShift: ">>",
    ast.LShift: "<<",
    ast.BitOr: "|",
    ast.BitAnd: "&",
}


@dataclass(frozen=True, eq=False)
class Statement:
    """A tensor statement: ``accumulate`` is ``=`` or the accumulator's sign; ``reset`` for ``C[i] = sum(...)``.

    ``trailing`` are the conditions after the value, without those of a generator.
    """

    target: str
    indices: tuple[Node, ...]
    accumulate: str
    reset: bool
    value: Node
    conditions: tuple[Node, ...]
    ranges: tuple[tuple[str, int, int], ...]
    trailing: tuple[Node, ...]

    def only(self, conditions: tuple[Node, ...]) -> Statement:
        """The same target under ``conditions`` alone."""
        return replace(self, conditions=conditions, ranges=(), value=Number(0))

    def mapped(self, rule: Callable[[Node], Node]) -> Statement:
        """The same statement after ``rule``."""
        made = {node: rule(node) for node in (*self.indices, self.value, *self.conditions)}
        return replace(
            self,
            indices=tuple(made[node] for node in self.indices),
            value=made[self.value],
            conditions=tuple(made[node] for node in self.conditions),
            trailing=tuple(made[node] for node in self.trailing),
        )


def is_reduction(node: ast.AST) -> bool:
    """Whether ``node`` is a reduction call; ``max`` and ``min`` of several arguments are elementwise."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in REDUCTIONS
        and len(node.args) == 1
    )


def free_names(node: ast.AST, bound: Mapping[str, object]) -> set[str]:
    """Index variables below ``node``: names that are not bound, not called and not subscripted."""
    parts = list(ast.walk(node))
    called = {id(part.func) for part in parts if isinstance(part, ast.Call)}
    called |= {id(part.value) for part in parts if isinstance(part, ast.Subscript)}
    return {
        part.id
        for part in parts
        if isinstance(part, ast.Name) and id(part) not in called and part.id not in bound and part.id.islower()
    }


def _outside_reductions(node: ast.AST, bound: Mapping[str, object]) -> set[str]:
    # Index variables of node that stand outside every reduction below it (node itself may be one).
    if is_reduction(node):
        body = node.args[0]
        if not isinstance(body, ast.GeneratorExp):
            return set()
        tests = [test for clause in body.generators for test in clause.ifs]
        return set().union(*(_outside_reductions(part, bound) for part in (body.elt, *tests))) - _generated(body)
    if isinstance(node, ast.Name):
        return free_names(node, bound)
    skipped = node.func if isinstance(node, ast.Call) else node.value if isinstance(node, ast.Subscript) else None
    names: set[str] = set()
    for child in ast.iter_child_nodes(node):
        if child is not skipped:
            names |= _outside_reductions(child, bound)
    return names


def _generated(node: ast.AST) -> set[str]:
    # The variables of a generator.
    clauses = node.generators if isinstance(node, ast.GeneratorExp) else []
    return {clause.target.id for clause in clauses if isinstance(clause.target, ast.Name)}


class Reader:
    """Reads statements where ``sizes`` and ``tensors`` are bound and ``local`` holds local definitions."""

    def __init__(self, sizes: Mapping[str, int], tensors: Mapping[str, object], local: Mapping[str, ast.expr]) -> None:
        self.sizes = sizes
        self.tensors = tensors
        self.bound: dict[str, object] = {**sizes, **tensors, **local}
        self.local = local
        self.serial = 0

    def statement(self, node: ast.Assign | ast.AugAssign) -> Statement:
        """Read ``T[index, ...] op= value, condition, ...``."""
        target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
        assert isinstance(target, ast.Subscript)
        assert isinstance(target.value, ast.Name)
        parts = self._expand(node.value)
        value, *conditions = parts.elts if isinstance(parts, ast.Tuple) else [parts]
        indices = _elements(target.slice)
        self._check_names(value, [*indices, *conditions])
        trailing = list(conditions)
        accumulate = _AUGMENTED[type(node.op)] if isinstance(node, ast.AugAssign) else "="
        ranges: tuple[tuple[str, int, int], ...] = ()
        reset = accumulate == "=" and is_reduction(value) and value.func.id in _WHOLE
        if reset:
            accumulate = _WHOLE[value.func.id]
            value = value.args[0]
            if isinstance(value, ast.GeneratorExp):
                ranges, filters = self._generator(value, {})
                conditions += filters
                value = value.elt
        generated = {name for name, _, _ in ranges} | set().union(*map(_generated, ast.walk(value)))
        on_target: set[str] = set().union(*(_outside_reductions(part, self.bound) for part in indices))
        outer = on_target | _outside_reductions(value, self.bound) | {name for name, _, _ in ranges}
        added = set().union(*(_outside_reductions(part, self.bound) for part in trailing))
        new = added - (outer - {name for name, _, _ in ranges})
        if new & generated:
            raise FaultError("the letter of a generator in a condition")
        inside: list[ast.expr] = []
        if accumulate == "=" and is_reduction(value) and not isinstance(value.args[0], ast.GeneratorExp):
            own = (added | _outside_reductions(value.args[0], self.bound)) - on_target
            inside = [condition for condition in conditions if free_names(condition, self.bound) & own]
        elif new and (accumulate == "=" or ranges):
            raise FaultError("a plain store under conditions on other variables than its target's")
        else:
            outer |= added
        if reset and not outer - on_target:
            raise FaultError("a reduction that binds nothing")
        names = {name: name for name in outer}
        kept = [condition for condition in conditions if condition not in inside]
        around = {name: name for name in outer if name not in {name for name, _, _ in ranges}}
        filters = [self.node(condition, around if condition in trailing else names) for condition in kept]
        value_read = self._fold(value, names, inside) if inside else self.node(value, names)
        return Statement(
            target.value.id,
            tuple(self.node(index, names) for index in indices),
            accumulate,
            reset,
            value_read,
            tuple(filters),
            ranges,
            tuple(node for condition, node in zip(kept, filters, strict=True) if condition in trailing),
        )

    def _check_names(self, value: ast.expr, indexing: list[ast.expr]) -> None:
        # In values only names that are index variables elsewhere are; others would be Python's.
        known: set[str] = set()
        for node in indexing:
            known |= free_names(node, self.bound)
        for part in (part for node in (value, *indexing) for part in ast.walk(node)):
            if isinstance(part, ast.Subscript):
                known |= free_names(part.slice, self.bound)
            elif isinstance(part, ast.comprehension):
                known |= {part.target.id, *(name for test in part.ifs for name in free_names(test, self.bound))}
        unknown = free_names(value, self.bound) - known - {"inf", "pi"}
        if unknown:
            raise FaultError(f"{sorted(unknown)} are not defined")

    def _expand(self, node: ast.expr) -> ast.expr:
        local = self.local

        class Expansion(ast.NodeTransformer):
            def visit_Name(self, name: ast.Name) -> ast.expr:
                if name.id not in local:
                    return name
                text = self.visit(ast.parse(ast.unparse(local[name.id]), mode="eval").body)
                for part in ast.walk(text):
                    if is_reduction(part) and not _outside_reductions(text, bound):
                        part.alone = True  # a bare reduction
                return text

        bound = {**self.sizes, **self.tensors}
        return Expansion().visit(ast.parse(ast.unparse(node), mode="eval").body)

    def _generator(
        self, node: ast.GeneratorExp, names: dict[str, str]
    ) -> tuple[tuple[tuple[str, int, int], ...], list[ast.expr]]:
        ranges, filters = [], []
        for clause in node.generators:
            assert isinstance(clause.target, ast.Name)
            assert isinstance(clause.iter, ast.Call)
            ends = [self.constant(argument) for argument in clause.iter.args]
            low, high = (0, *ends) if len(ends) == 1 else ends
            ranges.append((names.get(clause.target.id, clause.target.id), low, high))
            filters += clause.ifs
        return tuple(ranges), filters

    def constant(self, node: ast.expr) -> int:
        """The value of a size expression."""
        return eval(ast.unparse(node), {"min": min, "max": max}, {**self.tensors, **self.sizes})  # noqa: S307

    def node(self, node: ast.expr, names: Mapping[str, str]) -> Node:
        """``node`` with ``names`` in scope."""
        again = lambda part: self.node(part, names)  # noqa: E731
        match node:
            case ast.Constant(value=value):
                return Number(value)
            case ast.Name(id="inf"):
                return Number(float("inf"))
            case ast.Name(id=name) if name in names:
                return Variable(names[name])
            case ast.Name(id=name) if name in self.sizes:
                return Number(self.sizes[name], symbolic=True)
            case ast.Name(id=name) if name in self.bound:
                return Cell(name, ())
            case ast.Name(id=name):
                raise FaultError(f"{name} belongs to no reduction and is not in the statement")
            case ast.Subscript(value=ast.Attribute()):
                return Number(self.constant(node))
            case ast.Subscript(value=ast.Name(id=tensor)):
                return Cell(tensor, tuple(self._axis(index, names) for index in _elements(node.slice)))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
                return Number(-value)
            case ast.UnaryOp(op=operator):
                return Operation("not" if isinstance(operator, ast.Not) else "neg", (again(node.operand),))
            case ast.BinOp(op=ast.Mult()):
                return Operation("product", tuple(again(factor) for factor in _factors(node)))
            case ast.BinOp(left=left, op=operator, right=right):
                return Operation(_BINARY[type(operator)], (again(left), again(right)))
            case ast.Compare(left=left, ops=operators, comparators=others):
                pairs = zip([left, *others], operators, others, strict=False)
                tests = tuple(Operation(_COMPARE[type(op)], (again(a), again(b))) for a, op, b in pairs)
                return tests[0] if len(tests) == 1 else Operation("and", tests)
            case ast.BoolOp(op=operator, values=values):
                return Operation("and" if isinstance(operator, ast.And) else "or", tuple(map(again, values)))
            case ast.IfExp(test=test, body=body, orelse=other):
                return Operation("if", (again(test), again(body), again(other)))
            case ast.Call() if is_reduction(node):
                return self._fold(node, names)
            case ast.Call(func=ast.Name(id="get"), args=[read, fill]):
                cell = again(read)
                assert isinstance(cell, Cell)
                return Cell(cell.tensor, cell.axes, again(fill))
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return Operation(name, tuple(map(again, arguments)))
        raise NotImplementedError(ast.dump(node))

    def _axis(self, node: ast.expr, names: Mapping[str, str]) -> Axis:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BOUNDARIES:
            return Axis(node.func.id, self.node(node.args[0], names))
        data = any(isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name) for part in ast.walk(node))
        return Axis("data" if data else "direct", self.node(node, names))

    def _fold(self, node: ast.Call, names: Mapping[str, str], behind: Sequence[ast.expr] = ()) -> Fold:
        # `behind` are conditions of the statement that belong to the reduction, which is its whole value.
        body = node.args[0]
        self.serial += 1
        if isinstance(body, ast.GeneratorExp):
            own = {clause.target.id for clause in body.generators}
            inner = {**names, **{name: f"{name}@{self.serial}" for name in own}}
            ranges, conditions = self._generator(body, inner)
            body = body.elt
        else:
            own = set().union(*(_outside_reductions(part, self.bound) for part in (body, *behind))) - set(names)
            if not own and hasattr(node, "alone"):
                own = _outside_reductions(body, self.bound)
            inner = {**names, **{name: f"{name}@{self.serial}" for name in own}}
            ranges, conditions = (), []
        if not own:
            raise FaultError("a reduction that binds nothing")
        assert isinstance(node.func, ast.Name)
        if node.func.id in ("argmax", "argmin") and len(own) > 1 and not ranges:
            raise UnspecifiedError("a position over several variables")
        conditions = [*conditions, *behind]
        return Fold(
            node.func.id,
            tuple(inner[name] for name in sorted(own)),
            ranges,
            tuple(self.node(condition, inner) for condition in conditions),
            self.node(body, inner),
        )


def _elements(index: ast.expr) -> list[ast.expr]:
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def _factors(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [*_factors(node.left), *_factors(node.right)]
    return [node]
