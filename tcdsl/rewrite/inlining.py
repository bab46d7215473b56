"""A finished program as part of another one: its tensors get new names, its sizes become expressions of the other's."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from tcdsl.ir.expressions import Apply, Expr, IndexValue, Read, SizeValue, size_names, substitute, transform
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import (
    AxisExtent,
    DerivativeRule,
    Keep,
    Program,
    Repeat,
    Statement,
    Tensor,
    map_statement,
)
from tcdsl.ir.stages import stages
from tcdsl.rewrite.renaming import statement_with_tensors_renamed
from tcdsl.rewrite.replaced_sizes import domain_with_sizes
from tcdsl.rewrite.statement_kinds import kind_of_statement
from tcdsl.span import Span

__all__ = ["Host", "append_program"]


class Host(Protocol):
    """The program under construction that takes another one in."""

    def fresh_name(self, hint: str) -> str:
        """``hint``, or ``hint`` with a number if a tensor has that name."""

    def opaque_size(self, expr: Expr) -> Expr:
        """A size that stands for an expression of sizes which domains cannot hold."""

    def require(self, condition: Expr, message: str, span: Span | None = None) -> None:
        """State that a condition on sizes holds at every call."""

    def add_statement(self, statement: Statement, tensor: Tensor) -> None:
        """Add a statement, with the declaration of what it makes."""

    def add_repeat(self, repeat: Repeat, tensors: Sequence[Tensor]) -> None:
        """Add a loop that runs, with the declarations of its results."""

    def add_rule(self, rule: DerivativeRule) -> None:
        """Add the derivative rule of tensors that are there."""


def append_program(
    host: Host, program: Program, inputs: Sequence[Tensor], labels: Mapping[str, str] | None = None
) -> list[Tensor]:
    """Append ``program`` with ``inputs``, tensors of ``host``, as its inputs; the tensors that are its outputs.

    Sizes of ``program`` become expressions of the host's sizes; its assertions and derivative rules become the host's.
    Tensors in ``labels`` are named anew, after what users call them.
    """
    given = dict(zip((tensor.name for tensor in program.inputs), inputs, strict=True))
    names = {name: tensor.name for name, tensor in given.items()}
    sizes: dict[Expr, Expr] = {}
    for size in program.sizes:
        if isinstance(size.source, AxisExtent):
            extent = given[size.source.tensor].shape[size.source.axis]
        else:
            extent = host.opaque_size(substitute(size.source, sizes))
        sizes[SizeValue(size.name)] = extent
    for assertion in program.assertions:
        condition = substitute(assertion.condition, sizes)
        if not _is_trivial(condition):
            host.require(condition, _renamed_message(assertion.message, sizes), assertion.span)
    made: dict[str, Tensor] = {}

    def declared(name: str, beside: Collection[str] = ()) -> Tensor:
        tensor = program.tensor(name)
        label = None if labels is None else labels.get(name)
        names[name] = _fresh(host, name if label is None else label, beside)
        shape = tuple(substitute(extent, sizes) for extent in tensor.shape)
        label = tensor.label if label is None else label if label != names[name] else ""
        made[name] = Tensor(names[name], tensor.dtype, shape, label, tensor.span)
        return made[name]

    for stage in stages(program):
        for statement in stage.statements:
            tensor = declared(statement.target.tensor)
            host.add_statement(_moved(statement, names, sizes, host), tensor)
        if stage.repeat is not None:
            results: list[Tensor] = []
            for name in stage.repeat.results:
                results.append(declared(name, [tensor.name for tensor in results]))
            moved = stage.repeat.with_ends(lambda end: substitute(end, sizes))
            host.add_repeat(moved.with_tensors(names), results)
    for rule in program.rules:
        host.add_rule(rule.with_tensors(names))
    return [made[name] if name in made else given[name] for name in program.outputs]


def _fresh(host: Host, hint: str, beside: Collection[str]) -> str:
    # A host may count names as taken only when their tensors are there; the results of a loop come together.
    name, number = host.fresh_name(hint), 2
    while name in beside:
        name, number = host.fresh_name(f"{hint}_{number}"), number + 1
    return name


def _is_trivial(condition: Expr) -> bool:
    # `N == N`: both sides were extents of their own, and are the same here.
    return isinstance(condition, Apply) and condition.primitive == "eq" and len(set(condition.arguments)) == 1


def _renamed_message(message: str, sizes: Mapping[Expr, Expr]) -> str:
    for old, new in sizes.items():
        if isinstance(old, SizeValue) and isinstance(new, SizeValue):
            message = message.replace("{" + old.name + "}", "{" + new.name + "}")
    return message


def _moved(statement: Statement, names: Mapping[str, str], sizes: Mapping[Expr, Expr], host: Host) -> Statement:
    if not sizes:
        kind_of_statement(statement)  # others that are made of it have it too
        return statement_with_tensors_renamed(statement, names)
    # Index variables that are also sizes here get a number, because domains keep both in one name space.
    taken = {name for size in sizes.values() for name in size_names(size)}
    free = FreshNames((*taken, *statement.domain.variables))
    renaming = {name: free.fresh(name) for name in statement.domain.variables if name in taken}

    def moved(expr: Expr) -> Expr:
        def rule(node: Expr) -> Expr:
            match node:
                case Read(tensor=tensor):
                    return replace(node, tensor=names.get(tensor, tensor))
                case SizeValue():
                    return sizes.get(node, node)
                case IndexValue(name=name):
                    return IndexValue(renaming.get(name, name), node.span)
            return node

        return transform(expr, rule)

    moved_one = map_statement(statement, moved)
    target, start = moved_one.target, moved_one.start
    return replace(
        moved_one,
        target=replace(target, tensor=names[target.tensor]),
        start=Keep(names[start.tensor]) if isinstance(start, Keep) else start,
        domain=domain_with_sizes(statement.domain, sizes, host.opaque_size, renaming),
    )
