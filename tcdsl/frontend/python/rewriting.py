"""From a decorated function's syntax tree to the function that staging runs.

Tensor statements become calls that record them; ordinary Python stays as it is, except that names bound to whole-array
arithmetic give it their label, and that calls such as ``relu(x)``, ``np.exp(x)`` or ``max(a, b)`` reach the primitives
when their arguments are symbolic. Every construct calls one method of the recorder (`tcdsl.frontend.python.recorder`),
which the rewritten function holds as the closure variable `RECORDER`::

    C[i, j] += A[i, k] * B[k, j]      C = RECORDER.statement(STATEMENT, lambda: (C, (i, j), ...))
    C["@"] += A * B                   C = RECORDER.statement(STATEMENT, ..., lambda: ("mul", lambda: A * B, ...))
    z = x[i] * x[i]                   z = RECORDER.local(STATEMENT, lambda: x[i] * x[i])
    a, b = x[i], y                    a, b = RECORDER.part(STATEMENT, lambda: x[i]), y
    [a, b] + x                        RECORDER.operation("Add", [a, b], x, True, False)
    p -= learning_rate * g            p = RECORDER.augment(STATEMENT, p, learning_rate * g)
    h = relu(x)                       h = RECORDER.bind("h", RECORDER.called(relu)(x))
    A.bind_dims(N, K)                 N, K = RECORDER.bind_dims(STATEMENT, lambda: A.bind_dims(N, K))
    O: real[N, X]                     O, N, X = RECORDER.annotate(STATEMENT)
    for t in range(T):                for t in RECORDER.rounds(STATEMENT, RECORDER.iterated(range, T)):
    while r > e:                      for _ in RECORDER.while_rounds(STATEMENT, lambda: r > e):
    if c:                             for arm in RECORDER.arms(STATEMENT, lambda: c):

``STATEMENT`` is an item of a closure variable too, one for each statement
(`tcdsl.frontend.python.recorded_statements`). What the function's own names hold, the recorder reads in the functions
that it is given, or in the frame that calls it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tcdsl.frontend.logics.slots import PROJECTIONS, SLOTS
from tcdsl.frontend.names.annotated_targets import Dimensions
from tcdsl.frontend.names.language_functions import is_language_name
from tcdsl.frontend.names.name_resolution import is_letter
from tcdsl.frontend.python.binding_rewriting import RECORDER, FunctionNames, recorder_call
from tcdsl.frontend.python.cell_targets import with_cells_apart
from tcdsl.frontend.python.declared_texts import ORDER, asks_numbers, declared_names, is_declaration, may_declare
from tcdsl.frontend.python.loop_rewriting import LoopRewriter, as_branch
from tcdsl.frontend.python.recorded_statements import Augmentation, FunctionEntry, Rewritten, TensorStatement
from tcdsl.frontend.python.single_returns import with_single_return
from tcdsl.frontend.source.annotations import annotation_names, parsed_annotation
from tcdsl.frontend.source.assigned_names import (
    bindings_of,
    is_memory_attribute,
    is_of_names,
    may_be_logic,
    parameters_of,
    slices_as_calls,
    target_of,
    value_of,
)
from tcdsl.frontend.source.changes_in_place import names_from_outside, names_of_nested_functions
from tcdsl.frontend.source.function_source import FunctionSource
from tcdsl.frontend.source.logic_operands import term_thunk
from tcdsl.frontend.source.rewritten_functions import DEFINITION, is_result, thunk
from tcdsl.frontend.source.spacing import SpacedSign
from tcdsl.frontend.source.syntax_trees import copied

__all__ = ["RECORDER", "rewrite"]

# Calls that look at the frame or the class they stand in must not be wrapped.
_FRAME_CALLS = frozenset(("super", "locals", "globals", "vars", "dir", "eval", "exec"))


class _Rewriter(LoopRewriter, ast.NodeTransformer):
    # -- statements ------------------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        target = node.targets[0]
        if isinstance(target, ast.Name) and is_result(target.id):
            node.value = self._seen(self._returned(node.value, node), node)
            return node
        if len(node.targets) == 1 and isinstance(target, ast.Name) and self._chooses(target, node.value):
            return self._choice(node, target.id)  # type: ignore[return-value]
        if len(node.targets) == 1 and isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            return self._statement(node, target.value.id)
        if len(node.targets) == 1 and isinstance(target, ast.Subscript) and self._is_memory(target.value):
            return self._memory_statement(node, target)  # type: ignore[return-value]
        if len(node.targets) == 1 and isinstance(target, ast.Name):
            return self._statement(node, target.id) if self._in_slot(target) else self._binding(node, target.id)
        if all(is_of_names(each) for each in node.targets):
            return self._unpacking(node)  # type: ignore[return-value]
        told = self.outside_change(node)
        if self._may_define(node.value):
            # `first, *others = pair(x[i])`
            node.value = self._part(node.value, RECORDER, node)
            node.targets = [self.visit(each) for each in node.targets]
        else:
            self.generic_visit(node)
        return [*told, node] if told else node  # type: ignore[return-value]

    def _chooses(self, target: ast.Name, value: ast.expr) -> bool:
        return isinstance(value, ast.IfExp) and not self._in_slot(target)

    def _choice(self, node: ast.Assign, name: str) -> list[ast.stmt]:
        # `y = a if c else b` of whole values is a branch; of scalars at a point it is a local definition.
        branch = as_branch(copied(node))
        if not self._may_define(node.value):
            return self._visited([branch])
        bound = self._binding(node, name)
        assert isinstance(bound, ast.Assign)
        assert isinstance(bound.value, ast.Call)
        statement, ordinary = bound.value.args
        kept = self._store((DEFINITION,), ordinary, branch)
        bound.value.args[1] = ast.Name(DEFINITION, ast.Load())
        defines = recorder_call("defines", copied(statement), ast.Name(DEFINITION, ast.Load()), at=branch)
        made = ast.If(defines, [bound], self._visited([branch]))
        return [ast.fix_missing_locations(ast.copy_location(each, branch)) for each in (kept, made)]

    def _statement(self, node: ast.stmt, name: str, memory: str = "") -> ast.stmt:
        given = [self._statement_name(TensorStatement(node, name, memory)), self._ordinary(node)]
        term = self._term(node)
        call = recorder_call("statement", *given, *([] if term is None else [term]), at=node)
        return self._store((name,), call, node)

    def _term(self, node: ast.stmt) -> ast.expr | None:
        # What a logic connects, if the statement may have one.
        target, value = target_of(node), value_of(node)
        options = node.value.keywords if isinstance(node, ast.Expr) else []  # type: ignore[attr-defined]
        named = any(keyword.arg in ("logic", PROJECTIONS) for keyword in options)
        if value is None or not (named or isinstance(target, ast.Name) or may_be_logic(target)):
            return None
        if not named and isinstance(target, ast.Subscript) and self._is_index(target.slice):
            return None
        return term_thunk(value, self.visit)

    def _is_index(self, key: ast.expr) -> bool:
        return isinstance(key, ast.Name) and is_letter(key.id) and key.id not in self.own

    def _in_slot(self, target: ast.Name) -> bool:
        return self.names.projected and target.id in SLOTS

    def _is_memory(self, base: ast.expr) -> bool:
        # What is stored into by `base[i] = e`: in code parts of memory are memory, `a[0][1:] = e`, `a.T[i, 0] = e`.
        return is_memory_attribute(base) or (self.in_place and isinstance(base, ast.Subscript | ast.Attribute))

    def _memory_statement(self, node: ast.stmt, target: ast.expr) -> list[ast.stmt]:
        # `p.grad[i] += e`, `assign(p.grad, "=:-", e)`: a statement on a name of its own that holds the memory.
        place = f"{RECORDER}{len(self.statements)}"
        self.own |= {place}
        memory = target.value if isinstance(target, ast.Subscript) else target
        text = ast.unparse(memory)
        name = ast.copy_location(ast.Name(place, ast.Load()), memory)
        if isinstance(target, ast.Subscript):
            target.value = name
        else:
            node.value.args[0] = name  # type: ignore[attr-defined]
        held = self._store((place,), self.visit(memory), node)
        return [held, self._statement(node, place, text)]

    def _augmented(self, node: ast.AugAssign, name: str, current: ast.expr, value: ast.expr) -> ast.Call:
        statement = self._statement_name(Augmentation(name, type(node.op)))
        return recorder_call("augment", statement, current, value, at=node)

    def _augmented_memory(self, node: ast.AugAssign) -> ast.stmt:
        # `p.grad += e`: the memory is what it was, now with other cells, so that Python's own store changes nothing.
        current = copied(node.target)
        current.ctx = ast.Load()
        call = self._augmented(node, ast.unparse(node.target), current, self.visit(node.value))
        return ast.fix_missing_locations(ast.copy_location(ast.Assign([node.target], call), node))

    def _ordinary(self, node: ast.stmt) -> ast.expr:
        # What Python would do, for targets that hold a dict, a list or the like.
        target = target_of(node)
        if not isinstance(target, ast.Subscript):
            return ast.Constant(None)
        assert isinstance(target.value, ast.Name)
        key = self.visit(slices_as_calls(copied(target.slice)))
        value = self.visit(copied(value_of(node) or ast.Constant(None)))
        parts = [ast.Name(part.id, ast.Load()) if isinstance(part, ast.Name) else part for part in (key, value)]
        return thunk(ast.Tuple([ast.Name(target.value.id, ast.Load()), *parts], ast.Load()))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if isinstance(node.target, ast.Subscript) and isinstance(node.target.value, ast.Name):
            return self._statement(node, node.target.value.id)
        if isinstance(node.target, ast.Subscript) and self._is_memory(node.target.value):
            return self._memory_statement(node, node.target)  # type: ignore[return-value]
        if is_memory_attribute(node.target):
            return self._augmented_memory(node)
        if isinstance(node.target, ast.Name) and self._in_slot(node.target):
            return self._statement(node, node.target.id)
        if isinstance(node.target, ast.Name):
            name = node.target.id
            if self._may_define(node.value):
                self._locals.add(name)
            value = self._part(node.value, name, node)
            return self._store((name,), self._augmented(node, name, ast.Name(name, ast.Load()), value), node)
        told = self.outside_change(node)
        self.generic_visit(node)
        return [*told, node] if told else node  # type: ignore[return-value]

    def visit_Return(self, node: ast.Return) -> ast.AST:
        node.value = None if node.value is None else self._seen(self._returned(node.value, node), node)
        return node

    def _seen(self, value: ast.expr, node: ast.stmt) -> ast.expr:
        # What a round or an arm has bound has no value here: that is said of this place, not of the call.
        return recorder_call("returns", value, at=node) if self.loops else value

    def visit_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        # A declaration: `keep_tensor_annotations` has left no others.
        assert isinstance(node.target, ast.Name)
        kind, extents = parsed_annotation(node.annotation) or ("real", [])
        statement = Dimensions(node, node.target.id, kind, tuple(extents))
        call = recorder_call("annotate", self._statement_name(statement), at=node)
        declared = self._store(tuple(dict.fromkeys((statement.name, *statement.names))), call, node)
        if node.value is None:
            return [declared]
        plain = ast.copy_location(ast.Assign([node.target], node.value), node)
        return [self._binding(plain, node.target.id), declared]

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value
        if isinstance(call, ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "bind_dims":
                statement = Dimensions(call, ast.unparse(call.func.value), "any", tuple(call.args))
                ordinary = thunk(self.generic_visit(copied(call)))  # type: ignore[arg-type]
                bound = recorder_call("bind_dims", self._statement_name(statement), ordinary, at=node)
                return self._store(statement.names, bound, node)
            if isinstance(call.func, ast.Name) and call.func.id == "assign" and call.args:
                target = call.args[0]
                base = target.value if isinstance(target, ast.Subscript) else target
                if isinstance(base, ast.Name):
                    return self._statement(node, base.id)
                if self._is_memory(base):
                    return self._memory_statement(node, target)  # type: ignore[return-value]
        return self.generic_visit(node)

    # -- expressions -----------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> ast.AST:
        label = self._bare_reduction(node)
        if not label:
            return self._call(node)
        # `y * y[argmin(x[i])]`: a bare reduction that has no name.
        return self._local("part", copied(node), self._call(node), label, node)

    def _call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        self.outside_call(node)
        if isinstance(node.func, ast.Name) and node.func.id in _FRAME_CALLS:
            return node
        node.func = recorder_call("called", node.func, at=node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        written = [is_display(node.left), is_display(node.right)]
        text = may_declare(node.left) or may_declare(node.right)
        self.generic_visit(node)
        if any(written) or text or may_be_lists(node):
            return self._operation(node, node.op, node.left, node.right, written)
        return node

    def _operation(
        self, node: ast.expr, kind: ast.AST, left: ast.expr, right: ast.expr, written: list[bool]
    ) -> ast.Call:
        # An operator whose operands may be lists, which are arrays or Python's: staging knows.
        # Chains of operators are long: only what is new here gets its place, and operands are not walked again.
        call = recorder_call("operation", at=node)
        name = ast.copy_location(ast.Constant(type(kind).__name__), node)
        call.args = [name, left, right, *(ast.copy_location(ast.Constant(each), node) for each in written)]
        return call

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) > 1:
            return super().visit_Compare(node)
        sides = node.left, node.comparators[0]
        written = list(map(is_display, sides))
        declares = any(map(is_declaration, sides)) or (asks_numbers(node.ops[0]) and any(map(may_declare, sides)))
        self.generic_visit(node)
        if isinstance(node.ops[0], ORDER) and (any(written) or declares):
            return self._operation(node, node.ops[0], node.left, node.comparators[0], written)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        declares = may_declare(node.value) and not hasattr(str, node.attr)
        self.generic_visit(node)
        if declares:
            node.value = recorder_call("parameter", node.value, at=node.value)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        operand = node.operand
        written = is_display(operand) or may_declare(operand)
        if isinstance(node.op, ast.Not) and not written:
            return recorder_call("negation", self.visit(operand), at=node)
        self.generic_visit(node)
        if written and not isinstance(node.op, ast.Not):
            return recorder_call("sign", ast.Constant(type(node.op).__name__), node.operand, at=node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        base = node.value
        array = isinstance(base, ast.Name)
        number = isinstance(node.slice, ast.Constant)
        declares = is_declaration(base)
        is_text = is_declaration(node) and isinstance(node.ctx, ast.Load)
        self.generic_visit(node)
        if is_text:
            return recorder_call("declaration", node.value, node.slice, at=node)
        if declares:
            # `"b"[3][0]`: a part of the parameter.
            node.value = recorder_call("parameter", node.value, at=base)
        if not array or number or not isinstance(node.ctx, ast.Load):
            return node
        # `table[t]`: NumPy does not ask a number of the program what it is.
        return recorder_call("item", node.value, slices_as_calls(node.slice), at=node)

    def visit_SpacedSign(self, node: SpacedSign) -> ast.AST:
        sign = "+" if isinstance(node.op, ast.UAdd) else "-"
        return recorder_call("signed", ast.Constant(sign), self.visit(node.operand), at=node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        name = node.target.id
        value = self.visit(node.value)
        node.value = recorder_call("bind", ast.Constant(name), value, at=node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id not in self.own:
            if node.id in self.names.declared:
                return recorder_call("declared", ast.Constant(node.id), thunk(node), at=node)
            if is_language_name(node.id):
                return recorder_call("name", ast.Constant(node.id), at=node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node  # a nested function is ordinary Python

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node


def rewrite(source: FunctionSource, in_place: bool = False) -> Rewritten:
    """Rewrite the definition of a decorated function; see the module's docstring for what becomes what.

    With ``in_place``, as in `@cd`, every name that an assignment binds is known from the start: code may read it before
    it writes it.
    """
    definition = source.definition
    definition.body = with_single_return(with_cells_apart(definition.body, in_place))
    bindings = bindings_of(definition.body)
    parameters = [argument.arg for argument in parameters_of(definition)]
    annotated = [name for a in parameters_of(definition) if a.annotation for name in annotation_names(a.annotation)]
    outside = names_from_outside(definition.body)
    bound = (bindings.bound | set(parameters)) - outside
    fresh = tuple(
        name for name in (*bindings.targets, *bindings.sizes, *annotated) if name not in bound and name not in outside
    )
    if in_place:
        fresh = (*fresh, *sorted((bindings.assigned | bindings.augmented) - {*parameters, *outside}))
    projected = PROJECTIONS in parameters
    if projected:
        # Slots are there without being bound.
        used = {part.id for each in definition.body for part in ast.walk(each) if isinstance(part, ast.Name)}
        fresh = (*fresh, *sorted((used & SLOTS.keys()) - set(parameters)))
    own = frozenset((*bound, *fresh))
    targets = frozenset(bindings.targets) - bound - bindings.assigned - bindings.augmented
    tensors = frozenset((*parameters, *bindings.assigned, *bindings.targets, *(bindings.augmented if in_place else ())))
    declared = frozenset() if in_place else declared_names(definition) - own
    nested = names_of_nested_functions(definition) & own
    names = FunctionNames(own, tensors, targets, declared, projected, nested, outside)
    rewriter = _Rewriter(definition, names, in_place)
    body = []
    for statement in definition.body:
        new = rewriter.visit(statement)
        body.extend(new if isinstance(new, list) else [new])
    entry = FunctionEntry(tuple(dict.fromkeys(fresh)), tuple(_annotated(definition.args)), projected)
    prologue = recorder_call("enter", rewriter._statement_name(entry), at=definition.body[0])
    entered = rewriter._store(entry.fresh, prologue, definition.body[0])
    made = ast.FunctionDef(
        name=definition.name,
        args=_without_annotations(definition.args),
        body=[entered, *body],
        decorator_list=[],
        returns=None,
        type_comment=None,
    )
    return Rewritten(ast.copy_location(made, definition), rewriter.statements, rewriter.own, targets)


def _annotated(arguments: ast.arguments) -> Iterator[Dimensions]:
    for parameter in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        parsed = parsed_annotation(parameter.annotation)
        if parsed is not None:
            yield Dimensions(parameter, parameter.arg, parsed[0], tuple(parsed[1]))


def _without_annotations(arguments: ast.arguments) -> ast.arguments:
    # Defaults are taken from the original function; annotations are never evaluated again.
    def plain(argument: ast.arg) -> ast.arg:
        return ast.copy_location(ast.arg(argument.arg, None, None), argument)

    none = ast.Constant(None)
    return ast.arguments(
        posonlyargs=[plain(a) for a in arguments.posonlyargs],
        args=[plain(a) for a in arguments.args],
        vararg=plain(arguments.vararg) if arguments.vararg else None,
        kwonlyargs=[plain(a) for a in arguments.kwonlyargs],
        kw_defaults=[None if d is None else none for d in arguments.kw_defaults],
        kwarg=plain(arguments.kwarg) if arguments.kwarg else None,
        defaults=[none for _ in arguments.defaults],
    )


def is_display(node: ast.AST) -> bool:
    """Whether this is a list, a tuple or a batch that is written where it is used."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "batch"
    return isinstance(node, ast.List | ast.Tuple)


def may_be_lists(node: ast.BinOp) -> bool:
    """Whether this may join or repeat lists, as far as the text shows."""
    constants = [each.value for each in (node.left, node.right) if isinstance(each, ast.Constant)]
    if isinstance(node.op, ast.Mult):
        return not any(isinstance(value, float) for value in constants)
    return isinstance(node.op, ast.Add) and not constants
