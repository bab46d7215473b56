"""What bodies of loops ask of the sizes around them: what holds in every round is checked once, at the call.

A body with ``x: float64[N]`` and ``y: float64[N]`` asks the tensors that it is given to be equally long, if a round
runs. What depends on the number of a round is known to hold, by whoever made the loop: so is what is asked where that
number says whether there is a round at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tcdsl.ir.build import all_of, apply, integer
from tcdsl.ir.conjunctions import conjuncts
from tcdsl.ir.expressions import Apply, Cast, Expr, SizeValue, reads, size_names, substitute
from tcdsl.ir.program import Assertion, AxisExtent, Program, Repeat

__all__ = ["assertions_with_loops", "is_equality"]


def assertions_with_loops(program: Program) -> tuple[Assertion, ...]:
    """The assertions of ``program``, and those of the bodies of its loops in its own sizes."""
    if not program.repeats:
        return program.assertions
    own: dict[Expr, Expr] = {SizeValue(size.name): SizeValue(size.name) for size in program.sizes}
    return (*program.assertions, *dict.fromkeys(_of_loops(program, own, (), True)))


def _of_loops(
    program: Program, sizes: Mapping[Expr, Expr], none: tuple[Expr, ...], always: bool
) -> Iterator[Assertion]:
    # ``sizes`` are expressions for the sizes of ``program``, of those that depend on no round. One of ``none`` holds if
    # the loops around have no round; that nothing else made of sizes says so is ``always``.
    for repeat in program.repeats:
        ends = list(_no_round(repeat.count))
        known = [each for each in ends if _is_known(each, sizes)]
        around = (*none, *(substitute(each, dict(sizes)) for each in known))
        inside, every = _sizes(program, repeat, sizes), always and len(known) == len(ends)
        for assertion in _asked(program, repeat, sizes, inside, every):
            condition = assertion.condition
            for each in reversed(around):
                condition = apply("or_", each, condition)
            yield Assertion(condition, assertion.message, assertion.span or repeat.span, assumed=False)
        yield from _of_loops(repeat.body, inside, around, every)


def is_equality(condition: Expr) -> bool:
    """Whether a condition says that shapes fit, which is known of all that follows."""
    return isinstance(condition, Apply) and condition.primitive == "eq"


def _no_round(count: Expr) -> Iterator[Expr]:
    # The conditions on sizes by each of which there is no round.
    if isinstance(count, Cast) and count.operand.dtype == "bool":
        parts = [apply("not_", each) for each in conjuncts(count.operand)]
    else:
        parts = [apply("le", count, integer(0))]
    yield from (each for each in parts if not any(True for _ in reads(each)))


def _is_known(expr: Expr, sizes: Mapping[Expr, Expr]) -> bool:
    return all(SizeValue(name) in sizes for name in size_names(expr))


def _sizes(program: Program, repeat: Repeat, sizes: Mapping[Expr, Expr]) -> dict[Expr, Expr]:
    given = _given(program, repeat)
    found: dict[Expr, Expr] = {}
    for size in repeat.body.sizes:
        match size.source:
            case AxisExtent(tensor=tensor, axis=axis):
                extent, known = (given[tensor][axis], sizes) if tensor in given else (SizeValue(size.name), {})
            case extent:
                known = found
        if _is_known(extent, known):
            found[SizeValue(size.name)] = substitute(extent, dict(known))
    return found


def _given(program: Program, repeat: Repeat) -> dict[str, tuple[Expr, ...]]:
    # The shape of what each input of the body is given, in the sizes of ``program``; the number of the round is left
    # out.
    inputs = zip(repeat.body.inputs[1:], repeat.inputs, strict=True)
    return {tensor.name: program.tensor(name).shape for tensor, name in inputs}


def _asked(
    program: Program, repeat: Repeat, sizes: Mapping[Expr, Expr], inside: Mapping[Expr, Expr], every: bool
) -> Iterator[Assertion]:
    body, given = repeat.body, _given(program, repeat)
    for assertion in body.assertions:
        if _is_known(assertion.condition, inside) and (every or is_equality(assertion.condition)):
            yield Assertion(substitute(assertion.condition, dict(inside)), "", assertion.span)
    for tensor in body.inputs[1:]:
        pairs = zip(tensor.shape, given[tensor.name], strict=True)
        known = [(one, other) for one, other in pairs if _is_known(one, inside) and _is_known(other, sizes)]
        ends = [(substitute(one, dict(inside)), substitute(other, dict(sizes))) for one, other in known]
        different = [apply("eq", one, other) for one, other in ends if one != other]
        if different:
            label = tensor.label or tensor.name
            message = f"the shape of {label} does not fit the loop that reads or changes it"
            yield Assertion(all_of(different), message, tensor.span)
