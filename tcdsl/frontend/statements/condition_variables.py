"""Whose the index variables of conditions are, where they are not on the target.

::

    t[()] += log(sum(exp(x[i, k]))), m[i] > 0     i is the statement's, so that the sum is over k alone
    R[j] = mean(A[i, j]), i > j                   i is that of the reduction, which is the whole value of `=`
    Y[i, j] = E[i, j] / sum(E[i, l]), l <= i      an error: neither is said

Variables inside of reductions that stand in a condition are theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from tcdsl.errors import Diagnostic, DslSyntaxError
from tcdsl.frontend.points.definitions import GENERATED, Definition, index_names, outside_names
from tcdsl.frontend.statements.reductions import Loops
from tcdsl.ir.expressions import Cast, Expr, IndexValue, Local, Read, Reduction, walk
from tcdsl.span import Span

__all__ = ["Open", "as_generator", "listed", "placed_conditions", "readable"]


@dataclass(frozen=True, slots=True)
class Open:
    """A statement as it was read: expressions whose reductions do not know their variables yet.

    ``accumulate`` is ``assign`` for a plain ``=`` whose value is no reduction that starts its cells anew. ``spans`` are
    the places of the target and of the whole statement.
    """

    accumulate: str
    indices: tuple[Expr, ...]
    value: Expr
    conditions: tuple[Expr, ...]
    loops: Loops = field(default_factory=Loops)
    spans: tuple[Span | None, Span | None] = (None, None)


def readable(name: str) -> str:
    """The name that the user has written for a variable."""
    return name.split(GENERATED, maxsplit=1)[0]


def placed_conditions(statement: Open, known: Mapping[str, Definition], fault: Callable[[Diagnostic], None]) -> Open:
    """``statement`` with its conditions where they belong: all that are left are its own, and so are their variables.

    ``known`` are the local definitions that it mentions.
    """
    return _Placing(statement, known, fault).placed()


@dataclass(frozen=True, slots=True)
class _Placing:
    statement: Open
    known: Mapping[str, Definition]
    fault: Callable[[Diagnostic], None]

    def placed(self) -> Open:
        statement = self.statement
        plain = statement.accumulate == "assign"
        on_target = self.outside(statement.indices)
        loops = statement.loops.variables
        new = self.outside(statement.conditions).keys() - {*on_target, *self.outside((statement.value,)), *loops}
        hidden = new & self.generated()
        if hidden:
            self.fault_generated(hidden)
        elif plain and (reduction := self.only_reduction(statement.value)) is not None:
            return self.into_the_reduction(reduction, on_target)
        elif new and plain:
            self.fault_plain(new)
        elif new and loops:
            self.fault_not_generated(new)
        else:
            return statement
        kept = tuple(each for each in statement.conditions if new.isdisjoint(self.outside((each,))))
        return replace(statement, conditions=kept)

    def outside(self, expressions: Iterable[Expr]) -> dict[str, None]:
        return dict.fromkeys(name for expr in expressions for name in outside_names(expr, self.known))

    def into_the_reduction(self, reduction: Reduction, on_target: Mapping[str, None]) -> Open:
        # `R[j] = mean(A[i, j]), i > j`: what mentions a variable of the reduction says which values it takes.
        statement = self.statement
        own = self.outside((reduction.value, *statement.conditions)).keys() - on_target.keys()
        inside = tuple(each for each in statement.conditions if own.intersection(index_names(each, self.known)))
        left = tuple(each for each in statement.conditions if each not in inside)
        value = self.with_conditions(statement.value, inside) if inside else statement.value
        return replace(statement, value=value, conditions=left)

    def only_reduction(self, value: Expr) -> Reduction | None:
        match value:
            case Local(name=name) if name in self.known:
                return self.only_reduction(self.known[name].value.expr)
            case Cast(operand=operand):
                return self.only_reduction(operand)
            case Reduction() if not value.variables:
                return value
        return None

    def with_conditions(self, value: Expr, conditions: Sequence[Expr]) -> Expr:
        match value:
            case Local(name=name):
                return self.with_conditions(self.known[name].value.expr, conditions)
            case Cast(operand=operand):
                return replace(value, operand=self.with_conditions(operand, conditions))
        assert isinstance(value, Reduction)
        return replace(value, conditions=(*value.conditions, *conditions))

    # -- faults ----------------------------------------------------------------------------------------------

    def generated(self) -> set[str]:
        """The variables of the generators that stand in the statement itself."""
        found = set(self.statement.loops.variables)
        for node in walk(self.statement.value):
            if isinstance(node, Reduction) and _within(node.span, self.statement.spans[1]):
                found.update(node.variables)
        return {readable(name) for name in found}

    def report(self, names: Set[str], which: str, hint: str) -> None:
        said = [name for name in self.outside(self.statement.conditions) if name in names]
        (first, *_) = self.mentioning(names)
        are = "are" if len(said) > 1 else "is"
        fact = f"the condition mentions {listed(said)}, which {which.format(are=are)}"
        self.fault(Diagnostic(DslSyntaxError, fact, first.span, hint=hint))

    def mentioning(self, names: Set[str]) -> list[Expr]:
        return [each for each in self.statement.conditions if not names.isdisjoint(self.outside((each,)))]

    def fault_generated(self, names: Set[str]) -> None:
        hint = "write the condition as an `if` of the generator, or use other letters in one of the two"
        self.report(names, "a generator of the value binds for itself", hint)

    def fault_not_generated(self, names: Set[str]) -> None:
        clauses = " ".join(f"for {name} in range(n)" for name in sorted(names))
        self.report(
            names, "{are} neither on the target nor bound by the generator", f"add `{clauses}` to the generator"
        )

    def fault_plain(self, names: Set[str]) -> None:
        conditions = self.mentioning(names)
        every = ", ".join(map(condition_text, conditions))
        known = self.outside((*self.statement.indices, self.statement.value))
        mentioning, inside = False, ""
        for each in self.reductions(self.statement.value):
            own = [name for name in self.outside((each.value,)) if name not in known]
            mentioning = mentioning or not names.isdisjoint(own)
            if names <= {*own}:
                inside = f"write {as_generator(each, own, conditions)} to reduce over those values, or "
                break
        if not mentioning and len(conditions) == 1:
            inside = f"write `any({every})` for whether there is one, or "
        target = _text(self.statement.spans[0], "y[i]")
        combined = f"say how the values for all {listed(sorted(names))} combine, as in `{target} += ..., {every}`"
        self.report(names, "{are} not on the target of `=`", inside + combined)

    def reductions(self, value: Expr) -> Iterator[Reduction]:
        for node in walk(value):
            if isinstance(node, Reduction) and not node.variables:
                yield node
            elif isinstance(node, Local) and node.name in self.known:
                yield from self.reductions(self.known[node.name].value.expr)


def as_generator(reduction: Reduction, names: Sequence[str], conditions: Sequence[Expr]) -> str:
    """How ``reduction`` over ``names`` under conditions is written: ``sum(E[i, l] for l in range(n) if l <= i)``."""
    loops = "".join(f" for {name} in range({_extent(reduction, name)})" for name in names)
    tests = "".join(f" if {condition_text(each)}" for each in conditions)
    return f"`{_text(reduction.span, 'sum(...)').removesuffix(')')}{loops}{tests})`"


def condition_text(condition: Expr) -> str:
    """How a condition is written."""
    return _text(condition.span, "condition")


def listed(names: Sequence[str]) -> str:
    """The names as in a sentence."""
    return ", ".join(f"`{name}`" for name in names)


def _extent(reduction: Reduction, name: str) -> str:
    # How the extent over which a variable runs is written.
    for read in walk(reduction.value):
        text = _text(read.span, "") if isinstance(read, Read) else ""
        if isinstance(read, Read) and "[" in text:
            for axis, index in enumerate(read.indices):
                if isinstance(index, IndexValue) and index.name == name:
                    return f"{text.split('[', maxsplit=1)[0]}.shape[{axis}]"
    return "n"


def _within(span: Span | None, statement: Span | None) -> bool:
    if span is None or statement is None or span.filename != statement.filename:
        return False
    begin, end = (statement.line, statement.column), (statement.end_line, statement.end_column)
    return begin <= (span.line, span.column) <= end


def _text(span: Span | None, otherwise: str) -> str:
    return (span.text if span is not None else "") or otherwise
