"""A small program under construction for the tests of range inference, and sketches from short texts.

``Shapes({"A": 2, "B": 2}).sketch("C[i, j] += A[i, k] * B[k, j]")`` is a `Sketch`; the texts are Python expressions
with index notation, read here without the front end. ``sum(...)`` and its kin are nested reductions.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tcdsl.ir.build import apply, cast, constant, index, integer, size
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import (
    Boundary,
    Constant,
    ExplicitRange,
    Expr,
    Let,
    Local,
    Read,
    Reduction,
    SizeValue,
    is_affine_index,
)
from tcdsl.ir.program import Access, Assertion, AxisExtent, Keep, Neutral, Program, Size, Start, Tensor
from tcdsl.polyhedra.size_facts import SizeFacts
from tcdsl.ranges.range_inference import resolve
from tcdsl.ranges.sketches.sketch import Resolved, Sketch, variables_of
from tcdsl.span import Span

__all__ = ["Shapes"]

_ACCUMULATE = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.RShift: "max",
    ast.LShift: "min",
    ast.BitOr: "or",
    ast.BitAnd: "and",
}
_BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "floor_div", ast.Mod: "mod", ast.Div: "div"}
_COMPARE = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
_REDUCTIONS = {
    "sum": "add",
    "prod": "multiply",
    "max": "max",
    "min": "min",
    "any": "or",
    "all": "and",
    "mean": "mean",
    "argmax": "argmax",
    "argmin": "argmin",
}
_BOUNDARIES = {
    "clamp": Boundary.CLAMP,
    "wrap": Boundary.WRAP,
    "reflect": Boundary.REFLECT,
    "symmetric": Boundary.SYMMETRIC,
}


@dataclass
class Shapes:
    """Inputs by name and rank (float64, or with ``dtypes``) and what staging would record of them: a `Scope`."""

    ranks: Mapping[str, int]
    dtypes: Mapping[str, str] = field(default_factory=dict)
    inputs: list[Tensor] = field(default_factory=list)
    sizes: dict[str, Size] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    assertions: list[Assertion] = field(default_factory=list)
    resolved: list[Resolved] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name, rank in self.ranks.items():
            shape = []
            for axis in range(rank):
                self.sizes[f"{name}_{axis}"] = Size(f"{name}_{axis}", AxisExtent(name, axis))
                shape.append(SizeValue(f"{name}_{axis}"))
            tensor = Tensor(name, self.dtypes.get(name, "float64"), tuple(shape))
            self.inputs.append(tensor)
            self.tensors[name] = tensor

    # -- Scope -----------------------------------------------------------------------------------------------------

    def tensor(self, name: str) -> Tensor:
        return self.tensors[name]

    def fresh_name(self, hint: str) -> str:
        name, number = hint, 1
        while name in self.tensors:
            number += 1
            name = f"{hint}_{number}"
        return name

    def opaque_size(self, expr: Expr) -> Expr:
        if isinstance(expr, Constant | SizeValue):
            return expr
        for known in self.sizes.values():
            if known.source == expr:
                return SizeValue(known.name)
        name = f"s{len(self.sizes)}"
        self.sizes[name] = Size(name, expr)
        return SizeValue(name)

    def size(self, name: str) -> Size:
        return self.sizes[name]

    def number(self, name: str) -> None:
        """No input is an integer."""

    def writer(self, name: str) -> None:
        """Here the cells of all tensors count as written."""

    def all_written(self, name: str) -> None:
        """Which is known."""

    def known(self) -> SizeFacts:
        # A size that is an expression may be negative.
        conditions = [
            apply("ge", size(known.name), integer(0))
            for known in self.sizes.values()
            if isinstance(known.source, AxisExtent)
        ]
        return SizeFacts([*conditions, *(assertion.condition for assertion in self.assertions)])

    # -- statements ------------------------------------------------------------------------------------------------

    def resolve(self, sketch: Sketch) -> Resolved:
        """Infer ranges, and record what comes of it."""
        resolved = resolve(sketch, self)
        for tensor in resolved.tensors:
            self.tensors[tensor.name] = tensor
        self.assertions.extend(resolved.assertions)
        self.resolved.append(resolved)
        return resolved

    def add(self, text: str, **options: object) -> Resolved:
        """Resolve the statement ``text``."""
        return self.resolve(self.sketch(text, **options))  # type: ignore[arg-type]

    def program(self, *outputs: str) -> Program:
        """The program so far."""
        statements = tuple(statement for resolved in self.resolved for statement in resolved.statements)
        tensors = tuple(tensor for resolved in self.resolved for tensor in resolved.tensors)
        return Program(
            "test",
            tuple(self.inputs),
            tuple(self.sizes.values()),
            tensors,
            statements,
            outputs or (tensors[-1].name,),
            (),
            tuple(self.assertions),
        )

    def sketch(
        self,
        text: str,
        *,
        extents: Sequence[str | None] | None = None,
        keep: str | None = None,
        filters: Sequence[str] = (),
        unique: bool = False,
        oob: str = "check",
        local: Mapping[str, str] | None = None,
    ) -> Sketch:
        """A sketch from ``T[i] += value, condition``.

        The target is fresh, or declared with ``extents`` (expressions of sizes), or an existing tensor ``keep``.
        ``local`` gives local definitions.
        """
        operator, target, parts = _statement(text)
        reader = _Reader(self, text)
        indices = reader.indices(target)
        for name, value in (local or {}).items():
            reader.locals[name] = reader.value(ast.parse(value, mode="eval").body)
        value = reader.value(parts[0])
        for name in reversed(list(local or {})):
            value = Let(name, reader.locals[name], value)
        conditions = tuple(reader.value(part) for part in parts[1:])
        brackets = tuple(reader.value(ast.parse(part, mode="eval").body) for part in filters)
        assert isinstance(target.value, ast.Name)
        name = self.fresh_name(target.value.id)
        start: Start = Keep(keep) if keep else Neutral()
        if keep:
            mode, shape = "existing", self.tensor(keep).shape
        elif extents is not None:
            mode = "declared" if None not in extents else "fresh"
            shape = tuple(None if e is None else reader.value(ast.parse(e, mode="eval").body) for e in extents)
        else:
            mode, shape = "fresh", (None,) * len(indices)
        found = [n for expr in (*indices, value, *conditions, *brackets) for n in variables_of(expr)]
        return Sketch(
            Access(name, indices, reader.span(target)),
            compute_dtype(value.dtype),
            shape,
            mode,
            operator,
            start,
            value,
            tuple(dict.fromkeys(found)),
            (),
            conditions,
            brackets,
            unique,
            oob,
            span=Span("<text>", 1, 0, 1, len(text)),
        )


def _statement(text: str) -> tuple[str, ast.Subscript, list[ast.expr]]:
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.Assign | ast.AugAssign)
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    assert isinstance(target, ast.Subscript)
    operator = "assign" if isinstance(node, ast.Assign) else _ACCUMULATE[type(node.op)]
    parts = list(node.value.elts) if isinstance(node.value, ast.Tuple) else [node.value]
    return operator, target, parts


class _Reader:
    """Expressions from Python syntax: lower-case names are index variables, upper-case ones sizes."""

    def __init__(self, shapes: Shapes, text: str) -> None:
        self.shapes = shapes
        self.text = text
        self.locals: dict[str, Expr] = {}

    def span(self, node: ast.expr) -> Span:
        return Span("<text>", node.lineno, node.col_offset, node.end_lineno or 1, node.end_col_offset or 0)

    def indices(self, node: ast.Subscript) -> tuple[Expr, ...]:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return tuple(cast(self.value(part), "int64") for part in parts)

    def value(self, node: ast.expr) -> Expr:
        match node:
            case ast.Constant(value=bool() as value):
                return constant(value, "bool")
            case ast.Constant(value=int() as value):
                return integer(value)
            case ast.Constant(value=float() as value):
                return constant(value, "float64")
            case ast.Name(id=name) if name in self.locals:
                return Local(name, self.locals[name].dtype)
            case ast.Name(id=name):
                return size(name) if name in self.shapes.sizes else index(name)
            case ast.Subscript():
                return self.read(node)
            case ast.BinOp(left=left, op=op, right=right):
                return self.arithmetic(_BINARY[type(op)], self.value(left), self.value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return apply("neg", self.value(operand))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return apply("not_", self.value(operand))
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self.comparison([left, *others], ops)
            case ast.BoolOp(op=op, values=values):
                result = self.value(values[0])
                for other in values[1:]:
                    result = apply("and_" if isinstance(op, ast.And) else "or_", result, self.value(other))
                return result
            case ast.IfExp(test=test, body=body, orelse=other):
                return apply("where", self.value(test), *self.same(self.value(body), self.value(other)))
            case ast.Call():
                return self.call(node)
        raise ValueError(ast.dump(node))

    def same(self, left: Expr, right: Expr) -> tuple[Expr, Expr]:
        if left.dtype == right.dtype:
            return left, right
        wide = "float64" if "float64" in (left.dtype, right.dtype) else "int64"
        return cast(left, wide), cast(right, wide)

    def arithmetic(self, primitive: str, left: Expr, right: Expr) -> Expr:
        if primitive == "div":
            return apply(primitive, cast(left, "float64"), cast(right, "float64"))
        return apply(primitive, *self.same(left, right))

    def comparison(self, operands: list[ast.expr], ops: list[ast.cmpop]) -> Expr:
        values = [self.value(operand) for operand in operands]
        result: Expr | None = None
        for left, op, right in zip(values, ops, values[1:], strict=False):
            part = apply(_COMPARE[type(op)], *self.same(left, right))
            result = part if result is None else apply("and_", result, part)
        assert result is not None
        return result

    def read(self, node: ast.Subscript) -> Expr:
        assert isinstance(node.value, ast.Name)
        tensor = self.shapes.tensor(node.value.id)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices, boundaries = [], []
        for part in parts:
            boundary = Boundary.SKIP
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in _BOUNDARIES:
                boundary = _BOUNDARIES[part.func.id]
                part = part.args[0]
            found = cast(self.value(part), "int64")
            if boundary is Boundary.SKIP and not is_affine_index(found):
                boundary = Boundary.CHECK
            indices.append(found)
            boundaries.append(boundary)
        return Read(tensor.name, tuple(indices), tuple(boundaries), compute_dtype(tensor.dtype), span=self.span(node))

    def call(self, node: ast.Call) -> Expr:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if name == "get":
            read = self.value(node.args[0])
            assert isinstance(read, Read)
            fill = cast(self.value(node.args[1]), read.dtype)
            return Read(read.tensor, read.indices, (Boundary.FILL,) * len(read.indices), read.dtype, fill, read.span)
        reduced = len(node.args) == 2 and isinstance(node.args[1], ast.Name) and not isinstance(node.args[0], ast.Name)
        if name in ("min", "max") and len(node.args) == 2 and not reduced:
            return apply(name, *self.same(*map(self.value, node.args)))
        if name in _REDUCTIONS:
            return self.reduction(_REDUCTIONS[name], node)
        return apply(name, *(cast(self.value(arg), "float64") for arg in node.args))

    def reduction(self, accumulate: str, node: ast.Call) -> Expr:
        """``sum(value for k in range(n) if c)``, or ``sum(value, k)`` with the variables written out."""
        argument = node.args[0]
        ranges: list[ExplicitRange] = []
        conditions: list[Expr] = []
        if isinstance(argument, ast.GeneratorExp):
            for comprehension in argument.generators:
                assert isinstance(comprehension.target, ast.Name)
                assert isinstance(comprehension.iter, ast.Call)
                ends = [self.value(end) for end in comprehension.iter.args]
                low = ends[0] if len(ends) == 2 else integer(0)
                ranges.append(ExplicitRange(comprehension.target.id, low, ends[-1]))
                conditions.extend(map(self.value, comprehension.ifs))
            value = self.value(argument.elt)
            variables = tuple(given.variable for given in ranges)
        else:
            value = self.value(argument)
            variables = tuple(part.id for part in node.args[1:] if isinstance(part, ast.Name))
            conditions = [self.value(part) for part in node.args[1:] if not isinstance(part, ast.Name)]
        dtype = value.dtype
        if accumulate in ("argmax", "argmin"):
            dtype = "int64"
        if accumulate == "mean":
            dtype = "float64"
            value = cast(value, dtype)
        return Reduction(accumulate, variables, tuple(ranges), tuple(conditions), value, dtype, (), self.span(node))
