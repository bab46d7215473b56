"""What isl says of whole programs: accesses are in range, and plain stores write each cell at most once.

It shares nothing with the package's own translation of expressions to sets (`tcdsl.polyhedra.affine`), which it checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import islpy as isl

from tcdsl.errors import Diagnostic, raise_diagnostics
from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    Constant,
    Expr,
    IndexValue,
    Let,
    Local,
    Read,
    SizeValue,
    certain_children,
    is_affine_index,
    size_names,
)
from tcdsl.ir.program import Program, Statement
from tcdsl.ir.text.printer import format_expr, format_statement
from tcdsl.ir.verifier.verifier import VerificationError, verify
from tcdsl.span import Span

Fault = tuple[str, Span | None, tuple[str, ...]]


def verify_deeply(program: Program) -> None:
    """`verify`, and that accesses which are always evaluated are in range, and plain stores one-to-one.

    All sizes count as non-negative, and the assertions hold.
    """
    verify(program)
    raise_diagnostics([Diagnostic(VerificationError, *fault) for fault in _range_faults(program)])


def _range_faults(program: Program) -> Iterator[Fault]:
    """(fact, span, notes) for every access out of range and every cell that a plain store may write twice."""
    context = _context(program)
    for statement in program.statements:
        notes = (f"in {format_statement(statement)}",)
        try:
            domain = statement.domain.set.intersect_params(context)
        except isl.Error as error:
            yield f"isl does not read the domain: {error}", statement.span, notes
            continue
        if domain.dim(isl.dim_type.set) != len(statement.domain.variables):
            yield "the domain has another number of dimensions than of index variables", statement.span, notes
            continue
        for fact, span in _statement_faults(program, statement, domain):
            yield fact, span or statement.span, notes


def _statement_faults(program: Program, statement: Statement, domain: isl.Set) -> Iterator[tuple[str, Span | None]]:
    target = statement.target
    affine = [isl_text(index) if is_affine_index(index) else None for index in target.indices]
    yield from _access_faults(program, domain, statement, target.tensor, target.indices, target.span)
    expressions = [statement.value, *target.indices]
    if statement.condition is not None:
        expressions.append(statement.condition)
    for expr in expressions:
        for read in _certain_reads(expr):
            skipped = [
                index if boundary is Boundary.SKIP else None
                for index, boundary in zip(read.indices, read.boundaries, strict=True)
            ]
            yield from _access_faults(program, domain, statement, read.tensor, skipped, read.span)
    texts = [text for text in affine if text is not None]
    if statement.accumulate == "assign" and not statement.unique and len(texts) == len(affine):
        sizes = frozenset().union(*map(size_names, target.indices))
        cells = f"{_parameters(sizes)}{{ [{', '.join(statement.domain.variables)}] -> [{', '.join(texts)}] }}"
        if not _is_injective(cells, domain):
            yield f"a plain store may write a cell of {target.tensor} twice", target.span


def _access_faults(
    program: Program,
    domain: isl.Set,
    statement: Statement,
    name: str,
    indices: Sequence[Expr | None],
    span: Span | None,
) -> Iterator[tuple[str, Span | None]]:
    # None stands for an axis that needs no check. What isl cannot express is not checked.
    for axis, (index, extent) in enumerate(zip(indices, program.tensor(name).shape, strict=True)):
        if index is None or not is_affine_index(index):
            continue
        position, end = isl_text(index), isl_text(extent)
        if position is None or end is None:
            continue
        variables = ", ".join(statement.domain.variables)
        names = _parameters(size_names(index) | size_names(extent))
        where = _point_of(f"{names}{{ [{variables}] : {position} < 0 or {position} >= {end} }}", domain)
        if where is not None:
            text = format_expr(index)
            yield f"{name} may be accessed out of range: axis {axis}, {text}, as in {where}", span


# The programs of one function, its derivatives in all modes, have most of their accesses in common.


@lru_cache(maxsize=4096)
def _point_of(points: str, domain: isl.Set) -> str | None:
    found = isl.Set(points).intersect(domain)
    return None if found.is_empty() else str(found.sample_point())


@lru_cache(maxsize=4096)
def _is_injective(cells: str, domain: isl.Set) -> bool:
    return bool(isl.Map(cells).intersect_domain(domain).is_injective())


def _certain_reads(expr: Expr) -> list[Read]:
    """The reads that evaluating ``expr`` always makes: not those behind ``where``, ``and_``, ``or_`` or in a fill."""
    return _certain(expr)[0]


def _certain(expr: Expr) -> tuple[list[Read], frozenset[str]]:
    # The certain reads, and the names of `Let`s around it that are certainly needed, each part looked at once.
    match expr:
        case Local(name=name):
            return [], frozenset((name,))
        case Let(name=name, value=value, body=body):
            found, needed = _certain(body)
            if name not in needed:
                return found, needed
            before, others = _certain(value)
            return [*found, *before], (needed - {name}) | others
        case _:
            found = [expr] if isinstance(expr, Read) else []
            needed = frozenset()
            for part in certain_children(expr):
                inside, names = _certain(part)
                found.extend(inside)
                needed |= names
            return found, needed


def _context(program: Program) -> isl.Set:
    # All sizes are non-negative, and the assertions hold as far as isl can express them.
    names = frozenset(size.name for size in program.sizes)
    known = " and ".join(f"{name} >= 0" for name in sorted(names)) or "0 = 0"
    context = isl.Set(f"{_parameters(names)}{{ : {known} }}")
    for assertion in program.assertions:
        text = isl_condition(assertion.condition)
        if text is not None:
            context = context.intersect(isl.Set(f"{_parameters(size_names(assertion.condition))}{{ : {text} }}"))
    return context


def _parameters(names: frozenset[str]) -> str:
    return f"[{', '.join(sorted(names))}] -> " if names else ""


_INFIX = {"add": "+", "sub": "-"}
_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "=", "ne": "!="}


def isl_text(expr: Expr) -> str | None:
    """``expr`` in isl's notation: ``floor((i + 1)/2)``. None if it is not quasi-affine."""
    match expr:
        case Constant(value=value):
            return f"({int(value)})"
        case SizeValue(name=name) | IndexValue(name=name):
            return name
        case Apply(primitive=primitive, arguments=arguments):
            parts = [text for text in map(isl_text, arguments) if text is not None]
            if len(parts) == len(arguments):
                return _isl_apply(primitive, arguments, parts)
    return None


def _isl_apply(primitive: str, arguments: tuple[Expr, ...], parts: list[str]) -> str | None:
    match primitive, arguments:
        case "neg", _:
            return f"(-{parts[0]})"
        case (("add" | "sub"), _):
            return f"({parts[0]} {_INFIX[primitive]} {parts[1]})"
        case "mul", (Constant(value=value), _):
            # isl reads 2 * i, but not (2) * i.
            return f"({int(value)} * {parts[1]})"
        case "mul", (_, Constant(value=value)):
            return f"({int(value)} * {parts[0]})"
        case "floor_div", (_, Constant(value=value)) if value > 0:
            return f"floor({parts[0]}/{int(value)})"
        case "mod", (_, Constant(value=value)) if value > 0:
            return f"({parts[0]} mod {int(value)})"
        case (("max" | "min"), _):
            return f"{primitive}({parts[0]}, {parts[1]})"
    return None


def isl_condition(expr: Expr) -> str | None:
    """A bool expression in isl's notation. None if it is not made of quasi-affine comparisons."""
    match expr:
        case Constant(value=value):
            return "0 = 0" if value else "0 = 1"
        case Apply(primitive="not_", arguments=(operand,)):
            inner = isl_condition(operand)
            return None if inner is None else f"not ({inner})"
        case Apply(primitive=("and_" | "or_") as primitive, arguments=(left, right)):
            first, second = isl_condition(left), isl_condition(right)
            return None if first is None or second is None else f"(({first}) {primitive[:-1]} ({second}))"
        case Apply(primitive=primitive, arguments=(left, right)) if primitive in _COMPARE:
            one, other = isl_text(left), isl_text(right)
            return None if one is None or other is None else f"{one} {_COMPARE[primitive]} {other}"
    return None
