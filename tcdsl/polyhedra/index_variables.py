"""Index variables under other names and in another order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tcdsl.ir.build import index
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Expr, IndexValue, substitute
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import Statement, map_statement
from tcdsl.polyhedra.spaces import arranged, named

__all__ = ["positional", "renamed", "targets_first"]


def renamed(statement: Statement, variables: Sequence[str]) -> Statement:
    """The statement with its index variables called ``variables``, in the domain's order."""
    own = statement.domain.variables
    if own == tuple(variables):
        return statement
    step: dict[Expr, Expr] = {index(old): index(new) for old, new in zip(own, variables, strict=True)}
    domain = _renamed(statement.domain, tuple(variables))
    return replace(map_statement(statement, lambda expr: substitute(expr, step)), domain=domain)


@lru_cache(maxsize=4096)
def _renamed(domain: Domain, variables: tuple[str, ...]) -> Domain:
    # Statements of equal parts of a program have equal domains.
    return Domain.from_set(named(domain.set, variables))


def positional(statement: Statement) -> Statement:
    """The statement with variables named by position, so that equal statements compare equal; not for printing."""
    return renamed(statement, tuple(f"_{k}" for k in range(len(statement.domain.variables))))


def targets_first(statement: Statement) -> Statement:
    """The statement with its target's plain variables outermost, in the target's order; not for ordered ones."""
    own = statement.domain.variables
    bare = [axis.name for axis in statement.target.indices if isinstance(axis, IndexValue)]
    order = tuple(dict.fromkeys([*bare, *own]))
    if order == own:
        return statement
    return replace(statement, domain=_in_order(statement.domain, order))


@lru_cache(maxsize=4096)
def _in_order(domain: Domain, order: tuple[str, ...]) -> Domain:
    return Domain.from_set(arranged(domain.set, order))
