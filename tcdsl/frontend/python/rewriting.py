"""From a decorated function's syntax tree to the function that staging runs.

Tensor statements become calls that record them; ordinary Python stays as it is, except that names bound to whole-array
arithmetic give it their label, and that calls such as ``relu(x)``, ``np.exp(x)`` or ``max(a, b)`` reach the primitives
when their arguments are symbolic. Every construct calls one method of the recorder (`tcdsl.frontend.python.recorder`),
which the rewritten function holds as the closure variable `RECORDER`::

    C[i, j] += A[i, k] * B[k, j]      C = RECORDER.statement(0, {"A": lambda: A, ...}, lambda: (C, (i, j), ...))
    C["@"] += A * B                   C = RECORDER.statement(0, {...}, ..., lambda: ("mul", lambda: A * B, ...))
    z = x[i] * x[i]                   z = RECORDER.local(1, {...}, lambda: x[i] * x[i])
    a, b = x[i], y                    a, b = RECORDER.part(1, {...}, lambda: x[i]), y
    [a, b] + x                        RECORDER.operation("Add", [a, b], x, True, False)
    p -= learning_rate * g            p = RECORDER.augment("p", "-", p, learning_rate * g)
    h = relu(x)                       h = RECORDER.bind("h", {...}, RECORDER.call(relu, x))
    A.bind_dims(N, K)                 N, K = RECORDER.bind_dims(2, {...})
    O: real[N, X]                     O, N, X = RECORDER.annotate(3, {...})
"""

from __future__ import annotations

import ast
import copy

from tcdsl.frontend.logics.slots import PROJECTIONS, SLOTS
from tcdsl.frontend.names.functions import is_language_name
from tcdsl.frontend.names.index_letters import LetterUses
from tcdsl.frontend.python.binding_rewriting import RECORDER, BindingRewriter, Rewritten, recorder_call
from tcdsl.frontend.source.annotations import annotation_names, names_in_extents
from tcdsl.frontend.source.assigned_names import bindings_of, parameters_of
from tcdsl.frontend.source.function_source import FunctionSource
from tcdsl.frontend.source.logic_operands import term_thunk
from tcdsl.frontend.source.operand_syntax import (
    ORDER,
    declared_names,
    is_declaration,
    is_display,
    is_name_text,
    may_be_lists,
)
from tcdsl.frontend.source.spacing import SpacedSign
from tcdsl.frontend.source.statement_targets import is_memory_attribute, is_of_names, may_be_logic, slices_as_calls

__all__ = ["RECORDER", "Rewritten", "rewrite"]

# Calls that look at the frame or the class they stand in must not be wrapped.
_FRAME_CALLS = frozenset(("super", "locals", "globals", "vars", "dir", "eval", "exec"))


class _Rewriter(BindingRewriter, ast.NodeTransformer):
    # -- statements
    # ------------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            return self._statement(node, target.value.id)
        if len(node.targets) == 1 and isinstance(target, ast.Subscript) and self._is_memory(target.value):
            return self._memory_statement(node, target)  # type: ignore[return-value]
        if len(node.targets) == 1 and isinstance(target, ast.Name):
            return self._statement(node, target.id) if self._in_slot(target) else self._binding(node, target.id)
        if all(is_of_names(each) for each in node.targets):
            return self._unpacking(node)  # type: ignore[return-value]
        if self._may_define(node.value):
            # `first, *others = pair(x[i])`
            node.value = self._part(node.value, RECORDER, node)
            return node
        return self.generic_visit(node)

    def _statement(self, node: ast.Assign | ast.AugAssign | ast.Expr, name: str) -> ast.stmt:
        number = self._number(copy.deepcopy(node))
        term = self._term(node)
        known = self._thunks(node, (PROJECTIONS,))
        call = recorder_call(
            "statement", number, known, self._ordinary(node), *([] if term is None else [term]), at=node
        )
        return self._store((name,), call, node)

    def _term(self, node: ast.Assign | ast.AugAssign | ast.Expr) -> ast.expr | None:
        # What a logic connects, if the statement may have one.
        if isinstance(node, ast.Expr):
            call = node.value
            assert isinstance(call, ast.Call)
            target, value = call.args[0], call.args[2] if len(call.args) > 2 else None
            named = any(keyword.arg in ("logic", PROJECTIONS) for keyword in call.keywords)
        else:
            target, value, named = node.targets[0] if isinstance(node, ast.Assign) else node.target, node.value, False
        if value is None or not (named or isinstance(target, ast.Name) or may_be_logic(target)):
            return None
        return term_thunk(value, lambda part: self._declaration(self.visit(part)))

    def _in_slot(self, target: ast.Name) -> bool:
        return self.result.projected and target.id in SLOTS

    def _is_memory(self, base: ast.expr) -> bool:
        # What is stored into by `base[i] = e`: in code parts of memory are memory, `a[0][1:] = e`, `a.T[i, 0] = e`.
        return is_memory_attribute(base) or (self.in_place and isinstance(base, ast.Subscript | ast.Attribute))

    def _memory_statement(self, node: ast.Assign | ast.AugAssign | ast.Expr, target: ast.expr) -> list[ast.stmt]:
        # `p.grad[i] += e`, `assign(p.grad, "=:-", e)`: a statement on a name of its own that holds the memory.
        place = f"{RECORDER}{len(self.result.statements)}"
        self.own |= {place}
        memory = target.value if isinstance(target, ast.Subscript) else target
        self.result.places[place] = ast.unparse(memory)
        name = ast.copy_location(ast.Name(place, ast.Load()), memory)
        if isinstance(target, ast.Subscript):
            target.value = name
        else:
            assert isinstance(node, ast.Expr)
            node.value.args[0] = name  # type: ignore[attr-defined]
        held = ast.Assign([ast.Name(place, ast.Store())], self.visit(memory))
        return [ast.fix_missing_locations(ast.copy_location(held, node)), self._statement(node, place)]

    def _augmented_memory(self, node: ast.AugAssign) -> ast.stmt:
        # `p.grad += e`: the memory is what it was, now with other cells, so that Python's own store changes nothing.
        number = self._number(copy.deepcopy(node))
        current = copy.deepcopy(node.target)
        current.ctx = ast.Load()
        call = recorder_call(
            "augment", number, ast.Constant(ast.unparse(node.target)), current, self.visit(node.value), at=node
        )
        return ast.fix_missing_locations(ast.copy_location(ast.Assign([node.target], call), node))

    def _ordinary(self, node: ast.Assign | ast.AugAssign | ast.Expr) -> ast.expr:
        # What Python would do, for targets that hold a dict, a list or the like.
        if isinstance(node, ast.Expr):
            assert isinstance(node.value, ast.Call)
            given = node.value.args
            target, value = given[0], given[2] if len(given) > 2 else ast.Constant(None)
        else:
            target, value = node.targets[0] if isinstance(node, ast.Assign) else node.target, node.value
        if not isinstance(target, ast.Subscript):
            return ast.Constant(None)
        key = slices_as_calls(copy.deepcopy(target.slice))
        parts: list[ast.expr] = [target.value, self.visit(key), self.visit(copy.deepcopy(value))]
        parts = [ast.Name(part.id, ast.Load()) if isinstance(part, ast.Name) else part for part in parts]
        empty = ast.arguments([], [], None, [], [], None, [])
        return ast.Lambda(empty, ast.Tuple(parts, ast.Load()))

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
            number = self._number(copy.deepcopy(node))
            current = ast.Name(name, ast.Load())
            if self._may_define(node.value):
                self._locals.add(name)
            value = self._part(node.value, name, node)
            call = recorder_call("augment", number, ast.Constant(name), current, value, at=node)
            return self._store((name,), call, node)
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        # A declaration: `keep_tensor_annotations` has left no others.
        assert isinstance(node.target, ast.Name)
        names = tuple(dict.fromkeys((node.target.id, *annotation_names(node.annotation))))
        number = self._number(node)
        known = self._thunks(node, (*names, *names_in_extents(node.annotation)))
        declared = self._store(names, recorder_call("annotate", number, known, at=node), node)
        if node.value is None:
            return [declared]
        plain = ast.copy_location(ast.Assign([node.target], node.value), node)
        return [self._binding(plain, node.target.id), declared]

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value
        if isinstance(call, ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "bind_dims":
                names = tuple(dict.fromkeys(arg.id for arg in call.args if isinstance(arg, ast.Name)))
                return self._store(
                    names, recorder_call("bind_dims", self._number(node), self._thunks(node), at=node), node
                )
            if isinstance(call.func, ast.Name) and call.func.id == "assign" and call.args:
                target = call.args[0]
                base = target.value if isinstance(target, ast.Subscript) else target
                if isinstance(base, ast.Name):
                    return self._statement(node, base.id)
                if self._is_memory(base):
                    return self._memory_statement(node, target)  # type: ignore[return-value]
        return self.generic_visit(node)

    # -- expressions
    # -----------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _FRAME_CALLS:
            return node
        function = recorder_call("call", node.func, *map(self._declaration, node.args), at=node)
        function.keywords = node.keywords
        return function

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        written = [is_display(node.left), is_display(node.right)]
        text = any(is_name_text(each) or is_declaration(each) for each in (node.left, node.right))
        self.generic_visit(node)
        node.left, node.right = self._declaration(node.left), self._declaration(node.right)
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
        written = [is_display(node.left), is_display(node.comparators[0])]
        self.generic_visit(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], ORDER) and any(written):
            return self._operation(node, node.ops[0], node.left, node.comparators[0], written)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        operand = node.operand
        written = is_display(operand) or is_name_text(operand) or is_declaration(operand)
        self.generic_visit(node)
        node.operand = self._declaration(node.operand)
        if written and not isinstance(node.op, ast.Not):
            return recorder_call("sign", ast.Constant(type(node.op).__name__), node.operand, at=node)
        return node

    def _declaration(self, node: ast.expr) -> ast.expr:
        # `"b"[hid]` as an operand is a parameter if it meets a tensor.
        if not is_declaration(node):
            return node
        assert isinstance(node, ast.Subscript)
        return recorder_call("declaration", node.value, node.slice, at=node)

    def visit_SpacedSign(self, node: SpacedSign) -> ast.AST:
        sign = "+" if isinstance(node.op, ast.UAdd) else "-"
        return recorder_call("signed", ast.Constant(sign), self.visit(node.operand), at=node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        name = node.target.id
        value = self.visit(node.value)
        node.value = recorder_call("bind", ast.Constant(name), self._thunks(ast.Pass(), (name,)), value, at=node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id not in self.own:
            if node.id in self.result.declared_names:
                empty = ast.arguments([], [], None, [], [], None, [])
                return recorder_call("declared", ast.Constant(node.id), ast.Lambda(empty, node), at=node)
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
    bindings = bindings_of(definition)
    parameters = [argument.arg for argument in parameters_of(definition)]
    annotated = [name for a in parameters_of(definition) if a.annotation for name in annotation_names(a.annotation)]
    bound = bindings.bound | set(parameters)
    fresh = tuple(name for name in (*bindings.targets, *bindings.sizes, *annotated) if name not in bound)
    if in_place:
        fresh = (*fresh, *sorted((bindings.assigned | bindings.augmented) - set(parameters)))
    projected = PROJECTIONS in parameters
    if projected:
        # Slots are there without being bound.
        used = {part.id for each in definition.body for part in ast.walk(each) if isinstance(part, ast.Name)}
        fresh = (*fresh, *sorted((used & SLOTS.keys()) - set(parameters)))
    result = Rewritten(definition, own_names=frozenset(bound | set(fresh)), fresh_names=tuple(dict.fromkeys(fresh)))
    result.targets = frozenset(bindings.targets) - bound - bindings.assigned - bindings.augmented
    result.projected = projected
    result.declared_names = frozenset() if in_place else declared_names(definition) - result.own_names
    result.annotations = {a.arg: a.annotation for a in parameters_of(definition) if a.annotation is not None}
    tensors = frozenset((*parameters, *bindings.assigned, *bindings.targets))
    rewriter = _Rewriter(result.own_names, tensors, LetterUses(definition), result, in_place)
    body: list[ast.stmt] = []
    for statement in definition.body:
        new = rewriter.visit(statement)
        body.extend(new if isinstance(new, list) else [new])
    prologue = recorder_call("enter", rewriter._thunks(ast.Pass(), tuple(parameters)), at=definition.body[0])
    entered = rewriter._store(result.fresh_names, prologue, definition.body[0])
    arguments = definition.args
    result.definition = ast.FunctionDef(
        name=definition.name,
        args=_without_annotations(arguments),
        body=[entered, *body],
        decorator_list=[],
        returns=None,
        type_comment=None,
    )
    ast.copy_location(result.definition, definition)
    ast.fix_missing_locations(result.definition)
    return result


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
