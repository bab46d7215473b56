"""What staging one round has learned of sizes, as what holds for all rounds."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

import islpy as isl

from tcdsl.errors import ShapeError
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.recordings import Learned
from tcdsl.ir.build import apply
from tcdsl.ir.expressions import Expr, size_names
from tcdsl.ir.program import Assertion, Tensor
from tcdsl.polyhedra.affine import NotAffine, condition_set
from tcdsl.ranges.round_conditions import over_all_rounds, sizes_of_round
from tcdsl.span import Span

__all__ = ["learn_for_all_rounds"]


def learn_for_all_rounds(
    session: Session, since: Learned, counter: Tensor, span: Span | None, where: Expr | None = None
) -> None:
    """Add to the program what a round, whose number is the extent of ``counter``, asks of sizes in every round.

    It is asked ``where`` that condition on sizes holds, if there is one.
    """
    builder = session.builder
    if where is not None and _is_affine(where, builder.known().about(size_names(where))):
        other = apply("not_", where)
        found = [
            replace(each, condition=apply("or_", other, each.condition), assumed=False) for each in since.assertions
        ]
        since = replace(since, assertions=dict.fromkeys(found))
    number = next(iter(size_names(counter.shape[0])), "") if counter.shape else ""
    changing = sizes_of_round(number, since.sizes) if number else frozenset()
    fixed = [size for name, size in since.sizes.items() if name not in changing]
    builder.learn(fixed, [each for each in since.assertions if not size_names(each.condition) & changing])
    asked = [each for each in since.assertions if size_names(each.condition) & changing]
    if asked:
        before = builder.learned()
        # The first says that there are no more rounds.
        builder.learn((since.sizes[name] for name in changing), asked[:1])
        context = builder.known().about(changing.union(*(size_names(each.condition) for each in asked)))
        builder.forget_since(before)
        builder.learn((), _over_rounds(asked[1:], context, changing, span))
    guards = session.guards
    for guard in [each for each in guards if (size_names(each.left) | size_names(each.right)) & changing]:
        del guards[guard]


def _is_affine(condition: Expr, context: isl.Set) -> bool:
    try:
        condition_set(condition, context)
    except NotAffine:
        return False
    return True


def _over_rounds(
    assertions: Iterable[Assertion], context: isl.Set, changing: frozenset[str], span: Span | None
) -> list[Assertion]:
    """What the body asks of sizes in each round, as conditions on the sizes around the loop."""
    kept = []
    for assertion in assertions:
        try:
            condition = over_all_rounds(assertion.condition, context, changing)
        except NotAffine:
            raise ShapeError.at(
                f"it cannot be told for all rounds at once whether {assertion.message.splitlines()[0]}",
                assertion.span or span,
                "use indices that are sums of the number of the round and sizes",
            ) from None
        if condition is not None:
            message = _without_sizes(assertion.message, changing)
            kept.append(replace(assertion, condition=condition, message=message))
    return kept


def _without_sizes(message: str, names: Collection[str]) -> str:
    # A message is filled in at the call, when there is no round.
    for name in names:
        message = message.replace("{" + name + "}", name)
    return message
