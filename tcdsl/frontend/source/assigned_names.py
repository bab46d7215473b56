"""What the statements of a decorated function write, as its syntax tree says: names that its body binds itself, the
targets of its tensor statements, and what these are given.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from tcdsl.frontend.source.annotations import annotation_names

__all__ = [
    "Bindings",
    "binder_of",
    "binding_of",
    "bindings_of",
    "is_memory_attribute",
    "is_of_names",
    "may_be_logic",
    "parameters_of",
    "slices_as_calls",
    "target_of",
    "value_of",
]


@dataclass(slots=True)
class Bindings:
    """What the statements of a body bind.

    ``bound`` are names that Python binds, ``assigned`` and ``augmented`` those bound by ``=`` and by ``+=`` and its
    kin, ``targets`` the names before subscripts that are stored into, ``sizes`` those that annotations and
    ``bind_dims`` give.
    """

    bound: set[str] = field(default_factory=set)
    assigned: set[str] = field(default_factory=set)
    augmented: set[str] = field(default_factory=set)
    targets: dict[str, None] = field(default_factory=dict)
    sizes: dict[str, None] = field(default_factory=dict)


def bindings_of(body: Sequence[ast.stmt]) -> Bindings:
    """What the body of a function, or of a loop, binds."""
    visitor = _Visitor()
    for statement in body:
        visitor.visit(statement)
    return visitor


def binding_of(statement: ast.stmt) -> set[str]:
    """The names that a statement binds itself, without those in it."""
    visitor = _Visitor()
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        visitor.visit(statement)
    for part in ast.iter_child_nodes(statement):
        if not isinstance(part, ast.stmt | ast.ExceptHandler | ast.match_case):
            visitor.visit(part)
    return visitor.bound


def binder_of(definition: ast.FunctionDef, name: str, line: int) -> ast.AST | None:
    """What binds ``name`` in front of a line, as the text says: a statement, or a parameter whose annotation does."""
    found: ast.AST | None = None
    for parameter in parameters_of(definition):
        if parameter.annotation is not None and name in annotation_names(parameter.annotation):
            found = parameter
    for node in ast.walk(definition):
        if isinstance(node, ast.stmt) and node is not definition and node.lineno < line:
            visitor = _Visitor()
            for part in ast.iter_child_nodes(node):
                if not isinstance(part, ast.stmt):
                    visitor.visit(part)
            if isinstance(node, ast.AnnAssign):
                visitor.visit_AnnAssign(node)
            later = isinstance(found, ast.stmt) and found.lineno > node.lineno
            if name in visitor.bound | visitor.sizes.keys() and not later:
                found = node
    return found


def parameters_of(definition: ast.FunctionDef) -> list[ast.arg]:
    """All parameters of a function."""
    arguments = definition.args
    extra = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *extra]


class _Visitor(Bindings, ast.NodeVisitor):
    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store | ast.Del):
            self.bound.add(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.assigned.update(target.id for target in node.targets if isinstance(target, ast.Name))
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.augmented.add(node.target.id)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            self.targets[node.value.id] = None
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "bind_dims":
            self.sizes.update((arg.id, None) for arg in node.args if isinstance(arg, ast.Name))
        if isinstance(node.func, ast.Name) and node.func.id == "assign" and node.args:
            target = node.args[0]
            base = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(base, ast.Name):
                self.targets[base.id] = None
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.bound.add(node.target.id)
            self.assigned.add(node.target.id)
            self.sizes.update(dict.fromkeys(annotation_names(node.annotation)))
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.bound.add(node.name)
        for decorator in node.decorator_list:
            self.visit(decorator)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.bound.add(node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        return

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.bound.add((alias.asname or alias.name).split(".")[0])

    visit_ImportFrom = visit_Import  # noqa: N815  # ast's name

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.bound.add(node.name)
        self.generic_visit(node)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        # Their targets live in a scope of their own; only walrus assignments bind outside.
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr) and isinstance(inner.target, ast.Name):
                self.bound.add(inner.target.id)

    visit_ListComp = visit_SetComp = _comprehension  # noqa: N815  # ast's names
    visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815


def target_of(node: ast.stmt) -> ast.expr:
    """The target of an assignment, an augmented one, or a call of ``assign``."""
    if isinstance(node, ast.Expr):
        found: ast.expr = node.value.args[0]  # type: ignore[attr-defined]
    else:
        found = node.targets[0] if isinstance(node, ast.Assign) else node.target  # type: ignore[attr-defined]
    return found


def value_of(node: ast.stmt) -> ast.expr | None:
    """What it writes; ``None`` for a call of ``assign`` that does not say it."""
    if isinstance(node, ast.Expr):
        return next(iter(node.value.args[2:]), None)  # type: ignore[attr-defined]
    found: ast.expr = node.value  # type: ignore[attr-defined]
    return found


_MEMORY = frozenset(("value", "grad", "merge"))


def is_memory_attribute(node: ast.AST) -> bool:
    """Whether a node is `p.value`, `p.grad`, `p.grad.merge`: the memory of a tensor, if ``p`` is one."""
    return isinstance(node, ast.Attribute) and node.attr in _MEMORY


def is_of_names(target: ast.expr) -> bool:
    """Whether a target is names alone, however they are nested; what a starred name takes is a list."""
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(is_of_names, target.elts))
    return isinstance(target, ast.Name)


def may_be_logic(target: ast.expr) -> bool:
    """Whether the subscript could be a string: one that is written there, or what a name holds."""
    if not isinstance(target, ast.Subscript):
        return False
    key = target.slice
    if isinstance(key, ast.Constant):
        return isinstance(key.value, str)
    return isinstance(key, ast.Name | ast.Attribute | ast.JoinedStr)


def slices_as_calls(key: ast.expr) -> ast.expr:
    """``key`` where `a:b` may not stand: `slice(a, b, None)`."""
    if isinstance(key, ast.Slice):
        bounds: list[ast.expr] = [
            ast.Constant(None) if part is None else part for part in (key.lower, key.upper, key.step)
        ]
        return ast.Call(ast.Name("slice", ast.Load()), bounds, [])
    if isinstance(key, ast.Tuple):
        return ast.Tuple([slices_as_calls(part) for part in key.elts], ast.Load())
    return key
