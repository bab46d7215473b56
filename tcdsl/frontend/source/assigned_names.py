"""The names that the body of a decorated function binds itself, and the bare targets of its tensor statements."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from tcdsl.frontend.source.annotations import annotation_names

__all__ = ["Bindings", "bindings_of", "parameters_of"]


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
