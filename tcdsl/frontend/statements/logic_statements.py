"""Assignments in logic notation: ``c["@"] += a * b``, ``assign(c, "=:+", x, logic="T")``, ``v = v1 ** v2`` in slots.

The logic connects the operands of the value's outermost primitive; they themselves are ordinary whole-array arithmetic,
computed before the assignment where it reads a cell more than once.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tcdsl.errors import DslSyntaxError, ShapeError
from tcdsl.frontend.arrays.arithmetic import staged_operand
from tcdsl.frontend.logics.logic_staging import stage_logic
from tcdsl.frontend.logics.projections import Projections
from tcdsl.frontend.logics.slots import PROJECTIONS, SLOTS, mixed_indices, slots_of
from tcdsl.frontend.names.function_scope import FunctionScope
from tcdsl.frontend.names.name_resolution import index_names, is_letter
from tcdsl.frontend.source.logic_operands import Applied, LogicOperand
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.staging.target_states import UNBOUND, Existing, TargetState
from tcdsl.frontend.statements.statement_syntax import Assignment, read_assignment, require_accumulator
from tcdsl.frontend.symbols.recognition import COMBINING
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicTensor
from tcdsl.ir.build import integer
from tcdsl.ir.expressions import Expr, index_variables
from tcdsl.rows.logic import COMPOSE, POINTWISE
from tcdsl.span import Span

__all__ = ["LogicForm", "indexes_tensors", "logic_form", "record_logic", "record_whole"]


@dataclass(frozen=True, slots=True)
class LogicForm:
    """An assignment in logic notation: ``logic`` is a string, or the `Projections` that the statement is given."""

    given: Assignment
    logic: str | Projections
    span: Span | None


def logic_form(node: ast.stmt, scope: FunctionScope) -> LogicForm | None:
    """The form of an assignment whose indices a logic or projections give; ``None`` for any other."""
    given = read_assignment(node, scope)
    logic: str | Projections | None
    if isinstance(node, ast.Expr):
        logic = _logic_of_call(given, scope)
    elif isinstance(given.target, ast.Subscript):
        logic = _written(given.target, scope)
    else:
        logic = _default(given.name, scope)
    if logic is None:
        return None
    require_accumulator(given, scope)
    return LogicForm(given, logic, scope.span(node))


def _logic_of_call(given: Assignment, scope: FunctionScope) -> str | Projections | None:
    # `assign(c, "=:+", a * b, logic="@")`; without a logic a bare name is pointwise, or in its slot.
    target, logic = given.target, _given(given.options, scope)
    written = _written(target, scope)
    if logic is not None and isinstance(target, ast.Subscript) and written is None:
        hint = f"write `assign({given.name}, ...)`, or leave the logic out"
        fact = "an index list and a logic at once"
        raise DslSyntaxError.at(fact, scope.span(target), hint)
    logic = written if logic is None else logic
    if logic is None and not isinstance(target, ast.Name):
        return None
    extra = [option for name, option in given.options.items() if name not in ("logic", PROJECTIONS)]
    if extra or given.conditions:
        hint = "conditions and options belong to index lists, `T[i, j]`"
        fact = "a statement in logic notation has a value and nothing else"
        raise DslSyntaxError.at(fact, scope.span([*extra, *given.conditions][0]), hint)
    return logic if logic is not None else _default(given.name, scope) or POINTWISE


def _given(options: Mapping[str, ast.expr], scope: FunctionScope) -> str | Projections | None:
    # `logic=` and `projections=`; the latter overrides.
    for name, kind in ((PROJECTIONS, Projections), ("logic", str)):
        if name in options:
            value = scope.python_value(options[name])
            if isinstance(value, kind):
                return value
            what = "a string" if kind is str else "what a function's parameter `projections` holds"
            raise DslSyntaxError.at(f"`{name}=` is a {type(value).__name__}", scope.span(options[name]), f"give {what}")
    return None


def _written(target: ast.expr, scope: FunctionScope) -> str | None:
    """The string in a target's subscript: a literal, or what a name or an attribute holds."""
    if not isinstance(target, ast.Subscript):
        return None
    key = target.slice
    match key:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            value = scope.own(name) if len(name) == 1 else scope.value_of(name)
            return value if isinstance(value, str) else None
        case ast.JoinedStr() | ast.Attribute():
            names = [part.id for part in ast.walk(key) if isinstance(part, ast.Name)]
            if all(scope.value_of(name) is not UNBOUND for name in names):
                value = scope.python_value(key)
                return value if isinstance(value, str) else None
    return None


def indexes_tensors(target: ast.Subscript, scope: FunctionScope) -> bool:
    """Whether a subscript is one of a tensor's target: ``()``, a logic, or a list with a free index variable."""
    text = _written(target, scope)
    if text is not None:
        return text in (".", "@", "T") or "=>" in text
    key = target.slice
    if isinstance(key, ast.Tuple) and not key.elts:
        return True
    names = index_names((key,), ast.Constant(None), (), scope)
    return any(is_letter(name) or scope.value_of(name) is UNBOUND for name in names)


def _default(name: str, scope: FunctionScope) -> Projections | None:
    # In a function with projections, assignments to slots use them.
    if name not in SLOTS:
        return None
    value = scope.own(PROJECTIONS)
    return value if isinstance(value, Projections) else None


def record_logic(session: Session, form: LogicForm, state: TargetState, term: LogicOperand) -> SymbolicTensor:
    """Record the assignment and return the new version of its target."""
    accumulate, reset, logic = form.given.accumulate, form.given.reset, form.logic
    if form.given.plain and not reset:
        reduced = term.reduction()
        if reduced is not None and reduced[0] in COMBINING:
            accumulate, reset, term = COMBINING[reduced[0]], True, reduced[1]
    applied = term.applied()
    if isinstance(logic, Projections):
        logic = _in_slots(session, form, logic, state, applied)
    primitive, operands = applied.primitive, applied.operands
    if (logic, primitive) == (COMPOSE, "fma") and form.given.plain and not reset:
        # `c["@"] = fma(a, b, d)` adds d once, each term of a sum of such adds it.
        left, right, added = (staged_operand(each, session) for each in operands)
        primitive, operands, logic = "id", (session.builder.algebra.matrix_product(left, right) + added,), POINTWISE
    return stage_logic(session, logic, primitive, operands, accumulate, reset=reset, target=state, span=form.span)


def record_whole(session: Session, accumulate: str, value: object, state: TargetState) -> SymbolicTensor:
    """Record ``target["."] <accumulate>= value`` and return the new version of the target."""
    return stage_logic(session, POINTWISE, "id", (value,), accumulate, target=state)


def _in_slots(
    session: Session, form: LogicForm, projections: Projections, state: TargetState, applied: Applied
) -> Projections:
    """The projections with the index lists of the slots that the target and the operands are in."""
    lists = (projections.target, *projections.operands)

    def fault(fact: str, hint: str = "") -> Exception:
        return ShapeError.at(fact, form.span, hint)

    def indices(slot: int, rank: int, what: str) -> tuple[Expr, ...]:
        if slot >= len(lists):
            raise fault(f"{what} is in slot {slot}, but the operation has {len(lists) - 1} operands")
        if len(lists[slot]) != rank:
            raise fault(f"{what} has rank {rank}, but the operation's tensor in its slot has rank {len(lists[slot])}")
        return lists[slot]

    extents, name = state.extents, form.given.name
    slot = SLOTS.get(name)
    if slot is None or extents is None:
        raise fault(
            f"`{name}` is not in a slot of the projections",
            "store into one of lhs, t, v, g, rhs1, t1, v1, g1, ..., or give the assignment a logic of its own",
        )
    operands = []
    for k, (operand, names) in enumerate(zip(applied.operands, applied.names, strict=True), 1):
        slots = slots_of(names)
        rank = operand.rank if isinstance(operand, SymbolicArray) else len(getattr(operand, "shape", ()))
        what = f"operand {k} of `{applied.primitive}`"
        # Slots of one cell everywhere, and slots with the same indices, may meet in one operand.
        spread = [each for each in sorted(slots) if each < len(lists) and any(map(index_variables, lists[each]))]
        spread = spread or sorted(slots)
        slots = frozenset(spread[:1]) if len({lists[each] for each in spread if each < len(lists)}) <= 1 else slots
        if len(slots) > 1:
            by_name = {name: lists[SLOTS[name]] for name in names if SLOTS.get(name, len(lists)) < len(lists)}
            mixed = mixed_indices(session, operand, names, by_name)
            if mixed is not None:
                operands.append(mixed)
                continue
            raise fault(
                f"the tensors in {what} are in different slots",
                "store it in a tensor of its own first, by an assignment with a logic",
            )
        if slots:
            operands.append(indices(next(iter(slots)), rank, what) if rank else ())
        elif all(extent == 1 for extent in getattr(operand, "shape", ())):
            # A number, or a tensor of one cell, is everywhere the same.
            operands.append((integer(0),) * rank)
        else:
            raise fault(
                f"{what} has no slot",
                "use the slot names rhs1, t1, v1, g1 and so on, or give the assignment a logic of its own",
            )
    target = indices(slot, len(extents), f"`{name}`")
    rows = state.tensor.rows if isinstance(state, Existing) else projections.rows
    return replace(projections, target=target, operands=tuple(operands), rows=rows)
