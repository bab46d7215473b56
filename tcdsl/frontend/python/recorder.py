"""What a rewritten function calls: every tensor statement, binding and call of the user's function arrives here."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, MutableMapping, MutableSequence, MutableSet
from functools import partial
from types import FrameType, FunctionType
from typing import Any

import numpy as np

from tcdsl.errors import Diagnostic, DslSyntaxError, DtypeError, TcdslError
from tcdsl.frontend.arrays.arithmetic import combine, element_of, record_elementwise
from tcdsl.frontend.arrays.array_literals import is_literal
from tcdsl.frontend.arrays.array_stores import record_in_view, refuse_bitwise, store_elementwise
from tcdsl.frontend.arrays.unpacking import own_memory
from tcdsl.frontend.names.annotated_targets import Dimensions, bind_dimensions, binds_objects, declared_target
from tcdsl.frontend.names.function_scope import FunctionScope
from tcdsl.frontend.names.held_names import HeldNames
from tcdsl.frontend.points.point_scalars import BareReduction, PointValue
from tcdsl.frontend.python.list_operands import augmented_operand
from tcdsl.frontend.python.operator_recorder import OperatorRecorder
from tcdsl.frontend.python.recorded_statements import (
    Augmentation,
    FunctionEntry,
    RecordedDefinition,
    Rewritten,
    TensorStatement,
)
from tcdsl.frontend.running_loops.loop_recorder import LoopRecorder
from tcdsl.frontend.source.assigned_names import target_of
from tcdsl.frontend.source.logic_operands import LogicOperand
from tcdsl.frontend.source.nested_blocks import own_frame
from tcdsl.frontend.source.python_stores import augmented, store_item
from tcdsl.frontend.source.spacing import refused, signed
from tcdsl.frontend.staging.declarations import BegunInRound, DeclaredInRound, DeclaredTarget, Unwritten
from tcdsl.frontend.staging.declared_parameters import InlineDeclaration, current_parameters, declared_parameter
from tcdsl.frontend.staging.held_memory import held, is_tensor_memory, of_its_own
from tcdsl.frontend.staging.session import Poison, Session, StagingStopped, current_session, materialized, session_of
from tcdsl.frontend.staging.target_states import UNBOUND, Declared, Existing, Fresh, TargetState
from tcdsl.frontend.statements.accesses import axis_nodes
from tcdsl.frontend.statements.local_definitions import evaluate_local, is_local_definition
from tcdsl.frontend.statements.logic_statements import indexes_tensors, logic_form, record_logic, record_whole
from tcdsl.frontend.statements.part_targets import extents_of, is_part, record_part
from tcdsl.frontend.statements.statement_syntax import AUGMENTED
from tcdsl.frontend.statements.tensor_statements import evaluate_statement
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.symbols import OpenArray, SymbolicArray, SymbolicNumber, SymbolicSize, SymbolicTensor, View
from tcdsl.frontend.symbols.weak_targets import in_its_type

__all__ = ["Recorder"]

_CONTAINERS = (MutableMapping, MutableSequence, MutableSet)
_NUMBERS = SymbolicNumber | int | float
_WHOLE = SymbolicArray | SymbolicSize | GraphTensor | np.ndarray | np.generic | _NUMBERS


class Recorder(LoopRecorder, OperatorRecorder):
    """Records the statements of one decorated function into the current session.

    ``in_place`` is true for `@cd`, where names hold memory. The recorder itself keeps no state between calls: what the
    function's own names hold is read in the frame that calls it.
    """

    def __init__(self, function: FunctionType, rewritten: Rewritten, filename: str, in_place: bool) -> None:
        self._function = function
        self._own = rewritten.own_names
        self._targets = rewritten.targets
        arguments = rewritten.definition.args
        self._positional = frozenset(each.arg for each in (*arguments.posonlyargs, *arguments.args))
        self._filename = filename
        self._in_place = in_place

    def _scope(self, frame: FrameType, *parts: Callable[[], Any] | None) -> FunctionScope:
        # ``parts`` are those of the statement, as functions.
        session = session_of("a tensor statement")
        return FunctionScope(session, self._function, self._own, HeldNames(frame, parts), self._filename)

    # -- entry -----------------------------------------------------------------------------------------------

    def enter(self, entry: FunctionEntry) -> Any:
        """What the function's own names hold before its first statement: sizes from annotations, or nothing yet."""
        scope = self._scope(own_frame())
        found: dict[str, object] = {}
        for parameter in entry.parameters:
            value = scope.own(parameter.name)
            if isinstance(value, SymbolicArray):
                bind = partial(bind_dimensions, scope, value, parameter, found)
                if isinstance(self._guarded(scope.session, bind), Poison):
                    # What the annotation would have bound is missing because of this fault alone.
                    found.update({name: Poison() for name in parameter.names if name not in found})
        slots = scope.session.context.slots if entry.projected else {}
        return _one_or_all(
            found[name] if name in found else slots[name] if name in slots else self._before_first_write(scope, name)
            for name in entry.fresh
        )

    def _before_first_write(self, scope: FunctionScope, name: str) -> object:
        states = scope.session.context.states
        known = None if states is None else states.known(name)
        if known is not None:
            return known
        if name in self._targets:
            for outer in (scope.enclosing(name), scope.module(name)):
                if isinstance(outer, _CONTAINERS):
                    return outer
        return Unwritten(name)

    def _guarded(self, session: Session, action: Callable[[], Any], target: object = None) -> Any:
        # A fault is kept and staging goes on, so that all faults of the function are reported together.
        try:
            return in_its_type(target, action)
        except StagingStopped:
            return Poison()
        except TcdslError as error:
            session.faults.extend(error.diagnostics or (Diagnostic(type(error), error.message),))
            return Poison()

    # -- statements

    def statement(
        self,
        statement: TensorStatement,
        ordinary: Callable[[], tuple[Any, Any, Any]] | None,
        term: Callable[[], tuple[Any, ...]] | None = None,
    ) -> Any:
        """``T[...] op= value``: a tensor statement, or ordinary Python if ``T`` holds a dict, a list or the like.

        ``term`` gives the parts of the value where the statement may be one in logic notation.
        """
        node, name = statement.node, statement.name
        scope = self._scope(own_frame(), ordinary, term)
        session = scope.session
        current = scope.holds(name)
        if isinstance(current, Poison):
            return current
        if isinstance(current, OpenArray) and ordinary is not None:
            return self._guarded(session, lambda: store_item(node, *ordinary()))
        if isinstance(current, _CONTAINERS) and self._shadows(scope, statement, current):
            current = Unwritten(name)
        if ordinary is not None and not isinstance(node, ast.Expr) and self._is_ordinary(current):
            return store_item(node, *ordinary())
        if refused(session, node, scope.span):
            return Poison()
        if statement.memory and not (isinstance(current, SymbolicTensor | View) and current.memory):
            fact = f"`{statement.memory}` is no memory that code can store into"
            hint = "bind it to a name and store into that; an array is changed if it is a parameter of a @cd function"
            session.faults.append(Diagnostic(DslSyntaxError, fact, scope.span(target_of(node)), hint=hint))
            return Poison()

        def action() -> Any:
            if session.context.states is not None and not _is_of_rank_0(target_of(node)):
                session.context.states.indexed(current)
            form = None if term is None else logic_form(node, scope)
            if form is None or term is None:
                return self._tensor_statement(scope, statement, current, ordinary)
            value = LogicOperand(term())
            if self._in_place and isinstance(current, Unwritten) and not (form.given.plain or form.given.reset):
                # What it accumulates onto is read before anything is written: state, as after `t += p`.
                element_of(current, session)
            return self._recorded(session, name, current, lambda state: record_logic(session, form, state, value))

        return self._guarded(session, action, current)

    def _shadows(self, scope: FunctionScope, statement: TensorStatement, current: object) -> bool:
        # A container around the function is stored into only where the subscript cannot be that of a tensor.
        name = statement.name
        if name not in self._targets or (current is not scope.enclosing(name) and current is not scope.module(name)):
            return False
        target = target_of(statement.node)
        return not isinstance(target, ast.Subscript) or indexes_tensors(target, scope)

    def _is_ordinary(self, current: object) -> bool:
        tensor = isinstance(current, SymbolicArray | DeclaredTarget | Unwritten | _NUMBERS) or current is UNBOUND
        return not tensor and (isinstance(current, _CONTAINERS) or not hasattr(current, "__array__"))

    def _tensor_statement(
        self,
        scope: FunctionScope,
        statement: TensorStatement,
        current: object,
        ordinary: Callable[[], tuple[Any, Any, Any]] | None,
    ) -> Any:
        session, node, name = scope.session, statement.node, statement.name
        current = self._held(session, name, current)
        is_state = isinstance(current, Unwritten) and session.context.states is not None
        if is_state and ordinary is not None and _is_whole(target_of(node)):
            # `v[...] += g`, which tells the shape as `v += g` does.
            value = ordinary()[2]
            if isinstance(node, ast.AugAssign):
                return self.augment(Augmentation(name, type(node.op)), current, value)
            return self._bound_in_code(name, value, current)
        if ordinary is not None and is_part(node, extents_of(current), scope):
            version = record_part(node, name, current, ordinary, scope)
            return self._stored(current, version) if isinstance(current, SymbolicTensor | View) else self._made(version)
        return self._recorded(session, name, current, lambda state: evaluate_statement(node, state, scope))

    def _held(self, session: Session, name: str, current: object) -> object:
        if isinstance(current, DeclaredInRound):
            current = current.target  # its first statement gives it a type
        if hasattr(current, "__array__") and not isinstance(current, SymbolicArray):
            current = session.capture(current, name)
        if isinstance(current, _NUMBERS):
            current = self._number(session, current, name)
        return self._target(current, name)

    def _target(self, current: Any, name: str) -> Any:
        # What a name holds, as a target: memory and views of it as they are, other arrays as tensors.
        if self._in_place and isinstance(current, View) and current.memory:
            return current
        return materialized(current, name)

    def _recorded(
        self, session: Session, name: str, current: object, record: Callable[[TargetState], SymbolicTensor]
    ) -> SymbolicTensor | View:
        # The new version of the target that `record` makes of what the name holds.
        current = self._held(session, name, current)
        if isinstance(current, View):
            return self._stored(current, record_in_view(current, name, record))
        if isinstance(current, SymbolicTensor):
            state = Existing(current.held(), current.declared, current.sized_in(self._function))
            return self._stored(current, record(state))
        fresh = current.state(name) if isinstance(current, DeclaredTarget) else Fresh(_label(session, name))
        made = self._made(record(fresh), isinstance(fresh, Declared))
        made.sized = (self._function, session.builder.tensor(made.name).span)
        if session.context.states is not None:
            session.context.states.created(name, made)
        return made

    def _made(self, tensor: SymbolicTensor, declared: bool = True) -> SymbolicTensor:
        # A tensor that its first statement has made.
        tensor.memory, tensor.declared = self._in_place, declared
        return tensor

    def _number(self, session: Session, number: Any, name: str) -> SymbolicTensor:
        # A number is a tensor of rank 0; in `@cd` there is no memory behind one that was passed.
        if self._in_place:
            raise DtypeError.at(
                f"`{name}` is a number, which code cannot change in place",
                session.location(),
                f"pass an array of rank 0: `np.array({name})`",
            )
        return record_elementwise(session, *element_of(number, session), name)

    def _stored(self, current: SymbolicTensor | View, version: SymbolicTensor) -> SymbolicTensor | View:
        # A store into what a name holds, of which `version` is the new version.
        if isinstance(current, View):
            current.tensor.become(version)
            return current
        version.declared, version.sized = current.declared, current.sized
        return current.become(version) if self._in_place and current.memory else version

    def _store(self, current: SymbolicTensor | View, accumulate: str, value: Any) -> SymbolicTensor | View:
        if states := session_of("a tensor statement").context.states:
            states.stored(current, value)
        return self._stored(current, store_elementwise(current, accumulate, value))

    def _begun(self, name: str, current: object, accumulate: str, value: Any) -> Any:
        # `r: real[N, M]` and then `r = e` or `r += e`: the statement on all cells that `r["."]` is.
        session = session_of("a tensor statement")
        record = partial(record_whole, session, accumulate, value)
        return self._guarded(session, lambda: self._recorded(session, name, current, record), current)

    def signed(self, sign: str, value: Any) -> Any:
        """The value of ``name =+ value`` or ``name =- value``: Python's, unless it is a tensor."""
        session = session_of("a tensor statement")
        return self._guarded(session, lambda: signed(session, sign, value))

    def local(self, definition: RecordedDefinition, ordinary: Callable[[], object]) -> object:
        """``z = x[i] * x[i]``: a scalar at each point if it has free index variables, else ordinary Python."""
        scope = self._scope(own_frame(), ordinary)
        return self._bound(definition.name, self._defined(scope, definition, ordinary), scope.holds)

    def part(self, definition: RecordedDefinition, ordinary: Callable[[], object]) -> object:
        """One of the values that are unpacked: scalars at a point, or Python's."""
        if current_session() is None:
            return ordinary()
        return self._defined(self._scope(own_frame(), ordinary), definition, ordinary)

    def defines(self, definition: RecordedDefinition, ordinary: Callable[[], object]) -> bool:
        """Whether ``z = a if c else b`` is a local definition, and not a branch."""
        scope = self._scope(own_frame(), ordinary)
        scope.letters = _letters(definition, scope)
        return is_local_definition(definition.node, scope)

    def _defined(self, scope: FunctionScope, definition: RecordedDefinition, ordinary: Callable[[], object]) -> object:
        scope.letters = _letters(definition, scope)
        node, session = definition.node, scope.session
        if not is_local_definition(node, scope):
            return ordinary()
        if refused(session, node, scope.span):
            return Poison()
        return self._guarded(session, lambda: evaluate_local(node, scope))

    # -- names and whole arrays

    def bind(self, name: str, value: Any) -> Any:
        """``name = value``: in `@op` a new value, in `@cd` a store if the name holds memory."""
        frame = own_frame()
        return self._bound(name, value, lambda name: self._scope(frame).holds(name))

    def _bound(self, name: str, value: Any, holds: Callable[[str], object]) -> Any:
        # ``holds`` says what the name held before.
        if isinstance(value, PointValue):
            return value.named(name)
        if isinstance(value, OpenArray):
            value.bound(name)
            return value
        before = holds(name)
        if _is_begun_by(before) and (isinstance(value, _WHOLE) or is_literal(value)):
            return self._begun(name, before, "assign", value)
        if self._in_place:
            return self._bound_in_code(name, value, before)
        if isinstance(value, GraphTensor):
            value.bound(name)
            return value
        if isinstance(value, BareReduction) or not isinstance(value, SymbolicArray | SymbolicNumber):
            return value
        return materialized(value, _label(session_of("a tensor statement"), name))

    def _bound_in_code(self, name: str, value: Any, before: object) -> Any:
        # In code a name that holds memory is stored into.
        if isinstance(value, BareReduction) and not isinstance(before, View | SymbolicTensor):
            return value
        session = session_of("a tensor statement")
        if isinstance(value, GraphTensor):
            value = session.capture(value, name)
        if isinstance(value, DeclaredTarget) and session.context.states is not None and value.extents is None:
            # `m = output()`: from here on the name is state if it is read before it is written.
            known = session.context.states.begun(name, value.init)
            return Unwritten(name) if known is None else known
        if isinstance(value, View) and value.memory and not is_tensor_memory(before):
            return value
        if isinstance(before, View) or is_tensor_memory(before):
            if value is before:
                return before
            if not self._is_bound_anew(session, name, before, value):
                return self._guarded(session, lambda: self._store(before, "assign", value), before)
        self._require_memory(session, name, before, value)
        if session.context.states is not None:
            if isinstance(before, Unwritten) and session.context.states.waits(name, value):
                return before
            session.context.states.created(name, value)
        label = _label(session, name)
        value = materialized(value, label)
        # A fresh name declares a tensor of its own: what it holds does not follow later stores to the original.
        return value.own_memory(label) if isinstance(value, SymbolicTensor) else value

    def _is_bound_anew(self, session: Session, name: str, before: object, value: object) -> bool:
        # As in Python two arrays that are assigned to a local name are two. What was there before this body, a round
        # or an arm, keeps its memory, and so does what a parameter holds.
        own = name not in self._positional and any(before is each for each in session.builder.recording.copies)
        return own and isinstance(value, SymbolicArray)

    def named(self, value: Any, several: bool = False) -> Any:
        """The value of ``w = v`` for a name ``v``: of a view, and of memory in ``w, k = v, 1``, the cells of now."""
        value = own_memory(value) if several else value
        return value.held() if isinstance(value, View) and value.memory else value

    def snapshot(self, values: tuple[Any, ...], names: tuple[str, ...]) -> Any:
        """The right side of ``a, b = b, a``: what memory holds before the first of several stores.

        A name that will be bound to a view gets the view.
        """
        scope = self._scope(own_frame())
        return tuple(
            value if isinstance(value, View) and not is_tensor_memory(scope.holds(name)) else held(value)
            for name, value in zip(names, values, strict=True)
        )

    def unpacked(self, name: str, value: Any) -> Any:
        """``p, q = e`` for a name that nothing else binds: a definition is named, all else is Python's object."""
        return value.named(name) if isinstance(value, PointValue) else value

    def augment(self, statement: Augmentation, current: Any, value: Any) -> Any:
        """``name op= value`` on a bare name: on an array a statement over all its cells, else ordinary Python."""
        name, kind = statement.name, statement.operator
        if isinstance(current, Poison) or isinstance(value, Poison):
            return Poison()
        session = session_of("a tensor statement")
        if _is_begun_by(current) and kind in AUGMENTED:
            return self._begun(name, current, AUGMENTED[kind], value)
        current = self._target(of_its_own(current, name), name)
        if isinstance(current, SymbolicTensor | View) and kind in AUGMENTED:
            if not current.extents:
                refuse_bitwise(session, name, kind, current.element_type)
            return self._guarded(session, lambda: self._store(current, AUGMENTED[kind], value), current)
        if is_literal(current) or isinstance(current, np.ndarray):
            made = augmented_operand(session, kind, current, value)
        elif isinstance(current, Unwritten) and self._in_place and session.context.states is not None:
            # `m += g` on a name that nothing has written: state, of the shape of what is added.
            element_of(current, session)
            made = combine("div", value, 1) if kind is ast.Div else combine("id", value)
        else:
            made = augmented(kind, current, value)
        return self._bound(name, made, lambda _: current)

    def declaration(self, text: str, extents: Any) -> Any:
        """``"b"[hid]``: a parameter where it is an operand, or where Python has nothing for it."""
        return InlineDeclaration.of(text, extents)

    def parameter(self, given: Any) -> Any:
        """``"w".T``, ``"b"[3][0]``: of the parameter, as text has no such thing."""
        return declared_parameter(given, session_of("a parameter").location()) if isinstance(given, str) else given

    def declared(self, name: str, ordinary: Callable[[], object]) -> object:
        """A name that a string declares somewhere in the function: that parameter, or what Python has."""
        parameters = current_parameters()
        if parameters is not None and (found := parameters.find(name)) is not None:
            return found
        try:
            return ordinary()
        except NameError:
            if parameters is None and session_of("a parameter").context.graph is not None:
                raise
            return declared_parameter(name, session_of("a parameter").location())

    def _require_memory(self, session: Session, name: str, current: object, value: object) -> None:
        # Storing an array into a parameter that was given as a number would change nothing that the caller has.
        number = isinstance(current, SymbolicNumber | bool | int | float)
        if name in self._positional and number and isinstance(value, SymbolicArray):
            raise session.fault(
                DtypeError,
                f"`{name}` is a number, but an array is stored into it",
                f"pass an array for `{name}`, or give what is computed here a name of its own",
            )

    def annotate(self, target: Dimensions) -> Any:
        """``O: real[N, X]``: declares a target, or binds the extents of a tensor that exists."""
        scope = self._scope(own_frame())
        current = self._target(scope.holds(target.name), target.name)
        found: dict[str, object] = {target.name: current}
        if isinstance(current, SymbolicArray):
            self._guarded(scope.session, lambda: bind_dimensions(scope, current, target, found))
        else:
            found[target.name] = self._guarded(scope.session, lambda: declared_target(scope, target, found))
        names = dict.fromkeys((target.name, *target.names))
        return _one_or_all(found[name] if name in found else scope.holds(name) for name in names)

    def bind_dims(self, call: Dimensions, ordinary: Callable[[], object]) -> Any:
        """``A.bind_dims(N, K)`` names the extents of a tensor; names bound before must agree. ``ordinary`` calls it."""
        scope = self._scope(own_frame())
        if binds_objects(scope, call):
            self._guarded(scope.session, ordinary)
            return _one_or_all(scope.holds(name) for name in call.names)
        array = scope.python_value(call.node.func.value)  # type: ignore[attr-defined]
        found: dict[str, object] = {}
        if isinstance(array, SymbolicArray):
            self._guarded(scope.session, lambda: bind_dimensions(scope, array, call, found))
        elif not isinstance(array, Poison):
            fact = f"bind_dims of a {type(array).__name__}"
            scope.session.faults.append(
                Diagnostic(DtypeError, fact, scope.span(call.node), hint="call it on a tensor: `A.bind_dims(N, K)`")
            )
        return _one_or_all(found[name] if name in found else scope.holds(name) for name in call.names)

    # -- expressions

    def name(self, name: str) -> object:
        """A name of the language that the function does not bind: closures, globals and builtins come first."""
        return self._scope(own_frame()).language(name)


def _letters(definition: RecordedDefinition, scope: FunctionScope) -> frozenset[str]:
    # Those that a local definition may take for index variables outside of subscripts.
    return definition.letters | {
        letter
        for letter, bases in definition.bases.items()
        if scope.is_index_letter(letter) or any(map(scope.may_be_tensor, bases))
    }


def _is_of_rank_0(target: ast.expr) -> bool:
    # `t[()]`, or a bare name.
    return not (isinstance(target, ast.Subscript) and axis_nodes(target.slice))


def _is_whole(target: ast.expr) -> bool:
    # `t[...]` or `t[:, :]`.
    axes = axis_nodes(target.slice) if isinstance(target, ast.Subscript) else []
    return bool(axes) and all(
        (isinstance(each, ast.Constant) and each.value is Ellipsis)
        or (isinstance(each, ast.Slice) and each.lower is each.upper is each.step is None)
        for each in axes
    )


def _is_begun_by(current: object) -> bool:
    # Whether a name holds a target that is declared, and that nothing has written yet.
    if isinstance(current, DeclaredTarget):
        return current.extents is not None
    return isinstance(current, DeclaredInRound | BegunInRound)


def _one_or_all(values: Iterable[object]) -> object:
    found = tuple(values)  # what is stored into one name, or into several
    return found[0] if len(found) == 1 else found


def _label(session: Session, name: str) -> str:
    # What code on tensors declares carries the label of the tensor that it is for.
    return name if session.context.states is None else session.context.states.label(name)
