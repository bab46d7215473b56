"""What staging one round has learned of sizes, as what holds for all rounds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import islpy as isl

from tcdsl.errors import ShapeError
from tcdsl.frontend.running_loops.round_counts import RoundCount
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.recordings import Learned
from tcdsl.ir.build import all_of, apply, integer
from tcdsl.ir.conjunctions import conjuncts
from tcdsl.ir.expressions import Apply, Expr, SizeValue, size_names, substitute, transform
from tcdsl.ir.program import Assertion, AxisExtent, Size, Tensor
from tcdsl.ir.sizes.known_sizes import never_negative
from tcdsl.ir.sizes.loop_sizes import is_equality
from tcdsl.ir.sizes.spoken_sizes import in_words
from tcdsl.ir.text.expression_printer import format_expr
from tcdsl.polyhedra.affine import NotAffine, condition_set, knowing
from tcdsl.polyhedra.linear import linear_expression, linear_form
from tcdsl.ranges.round_conditions import largest_over_rounds, over_all_rounds, sizes_of_round
from tcdsl.span import Span

__all__ = ["learn_for_all_rounds"]


def learn_for_all_rounds(
    session: Session, since: Learned, counter: Tensor, span: Span | None, rounds: RoundCount
) -> None:
    """Add to the program what a round, whose number is the extent of ``counter``, asks of sizes in every round.

    Arms of branches ask it where what they say of sizes holds, loops where there is a round.
    """
    builder = session.builder
    said = [] if rounds.where is None else conjuncts(rounds.where)
    where = [each for each in said if _is_affine(each, builder.known().about(size_names(each)))]
    if where:
        other = apply("not_", all_of(where))
        found = [
            replace(each, condition=apply("or_", other, each.condition), assumed=False) for each in since.assertions
        ]
        since = replace(since, assertions={each: size_names(each.condition) for each in found})
    number = next(iter(size_names(counter.shape[0])), "") if counter.shape else ""
    changing = sizes_of_round(number, since.sizes) if number else frozenset()
    fixed = [size for name, size in since.sizes.items() if name not in changing]
    lasting = [each for each, names in since.assertions.items() if not names & changing]
    builder.learn(fixed, _where_a_round_runs(session, lasting, rounds))
    asked = [each for each, names in since.assertions.items() if names & changing]
    if asked:
        names = changing.union(*(size_names(each.condition) for each in asked))
        around = builder.known().about(names - changing)
        before = builder.learned()
        # The first says that there are no more rounds.
        builder.learn((since.sizes[name] for name in changing), asked[:1])
        ends = _ends_of_quotients(session, since.sizes, number, rounds.count, changing)
        context = reduce(knowing, ends, builder.known().about(names))
        named = builder.forget_since(before).sizes
        texts = {name: _spoken(session, name, since.sizes) for name in changing}
        found = _over_rounds(asked[1:], (context, around), texts, builder.spoken(), span)
        used = frozenset().union(*(size_names(each.condition) for each in found))
        builder.learn((size for name, size in named.items() if name in used), found)
    _enlarge_open_sizes(session, since, changing, span)
    guards = session.guards
    for guard in [each for each in guards if (size_names(each.left) | size_names(each.right)) & changing]:
        del guards[guard]


def _enlarge_open_sizes(session: Session, since: Learned, changing: frozenset[str], span: Span | None) -> None:
    # Open extents are what all rounds need.
    builder = session.builder
    asked = [each for each, names in since.assertions.items() if names & changing]
    for size in since.enlarged:
        assert not isinstance(size.source, AxisExtent)
        needed = size.source
        if size_names(needed) & changing:
            before = builder.learned()
            builder.learn((since.sizes[name] for name in changing), asked[:1])
            names = changing.union(size_names(needed), *(size_names(each.condition) for each in asked[:1]))
            left_out = changing.union(filter(builder.is_open, builder.size_names()))
            try:
                needed = largest_over_rounds(needed, builder.known().about(names), left_out)
            except NotAffine:
                fact = f"it cannot be told for all rounds at once how large the open extent `{size.name}` has to be"
                hint = "declare an extent into which all rounds fit, as in `real[N + 1]`"
                raise ShapeError.at(fact, span, hint) from None
            finally:
                builder.forget_since(before)
        builder.enlarge(size.name, needed, size.name, span)


def _ends_of_quotients(
    session: Session, sizes: Mapping[str, Size], number: str, count: Expr, changing: frozenset[str]
) -> list[Expr]:
    # In rounds 0 <= t < T of a loop (t + a) // K goes from a // K to (T - 1 + a) // K, which sizes around can say.
    builder, found = session.builder, []
    ends = integer(0), apply("sub", count, integer(1))
    for name in sorted(changing):
        match sizes[name].source:
            case Apply(primitive="floor_div", arguments=(dividend, divisor)) if not size_names(divisor) & changing:
                terms, _ = linear_form(dividend)
                scale = terms.get(SizeValue(number), 0)
                if (
                    size_names(dividend) & changing != {number}
                    or not scale
                    or not never_negative(divisor, builder.never_negative)
                ):
                    continue
                low, high = (
                    builder.opaque_size(apply("floor_div", linear_expression(*linear_form(end)), divisor))
                    for end in (substitute(dividend, {SizeValue(number): t}) for t in ends[:: 1 if scale > 0 else -1])
                )
                found += [apply("le", low, SizeValue(name)), apply("le", SizeValue(name), high)]
            case _:
                pass
    return found


def _where_a_round_runs(session: Session, assertions: Sequence[Assertion], rounds: RoundCount) -> list[Assertion]:
    # What is the same in all rounds. That shapes fit is asked in any case: it is known of all that follows.
    known, none = session.builder.known(), apply("le", rounds.count, integer(0))
    others = [each for each in assertions if not is_equality(each.condition)]
    if not rounds.sized or not others or not _is_affine(none, known.about(size_names(none))) or known.never(none):
        return list(assertions)
    return [
        each
        if is_equality(each.condition)
        else replace(each, condition=apply("or_", none, each.condition), assumed=False)
        for each in assertions
    ]


def _is_affine(condition: Expr, context: isl.Set) -> bool:
    try:
        condition_set(condition, context)
    except NotAffine:
        return False
    return True


def _over_rounds(
    assertions: Iterable[Assertion],
    known: tuple[isl.Set, isl.Set],
    changing: Mapping[str, str],
    spoken: Mapping[str, str],
    span: Span | None,
) -> list[Assertion]:
    """What the body asks of sizes in each round, as conditions on the sizes around the loop.

    ``known`` are what is known in a round, and what is known around the loop. Messages say of sizes that are
    ``changing`` from round to round what is given.
    """
    kept = []
    for assertion in assertions:
        try:
            condition = over_all_rounds(assertion.condition, *known, changing)
        except NotAffine:
            raise ShapeError.at(
                f"it cannot be told for all rounds at once whether {assertion.message.splitlines()[0]}",
                assertion.span or span,
                "use indices that are sums of the number of the round and sizes",
            ) from None
        if condition is not None:
            message = in_words(_without_sizes(assertion.message, changing), spoken)
            kept.append(replace(assertion, condition=condition, message=message))
    return kept


def _spoken(session: Session, name: str, sizes: Mapping[str, Size]) -> str:
    # How a size is written: names of quotients and remainders are made up.
    def written(expr: Expr) -> Expr:
        found = sizes.get(expr.name) if isinstance(expr, SizeValue) else None
        if found is None or isinstance(found.source, AxisExtent):
            return expr
        return transform(session.builder.divided.as_written(found.source), written)

    return format_expr(transform(SizeValue(name), written))


def _without_sizes(message: str, texts: Mapping[str, str]) -> str:
    # A message is filled in at the call, when there is no round: no size of one has a value.
    for name, text in texts.items():
        valued = re.escape(f"{name} = {{{name}}}")
        message = re.sub(rf", {valued}(?=[,\n]|$)", "", message)
        message = re.sub(rf"\bwith {valued}, (?=\w+ = )", "with ", message)
        message = re.sub(rf", with {valued},?", "", message)
        message = re.sub(rf"{valued}|{{{name}}}|\b{name}\b", text, message)
    return message
