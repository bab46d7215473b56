"""Loops over a size of which some rounds do not run, as loops of all rounds: ``break`` in ``for t in range(T)``.

::

    repeat y_3 = T times while going with y, x      repeat y_3 = T times with y, x
    | y_2 = y * x[t]                                | repeat y_2 = int64(going) times with t_round, y, x
    | update y = y_2                                | | y_2 = y * x[t]
                                                    | | update y = y_2
                                                    | update y = y_2

So the number of rounds is one of sizes: a tape has room for all, and the number of a round stays affine. Then the loop
forwards ends again where it did, and counts its rounds (`ended_again`), for the loop backwards to begin with the last.
Loops that begin behind 0 have room for rounds from 0 on, too, and begin again where they did.
"""

from __future__ import annotations

from dataclasses import replace

from tcdsl.autodiff.loop_derivatives.reversed_rounds import number_of
from tcdsl.autodiff.statement_derivatives.derivative import Derivative
from tcdsl.ir.build import apply, cast, constant, integer, plain_read, size
from tcdsl.ir.expressions import Expr
from tcdsl.ir.fresh_names import names_of
from tcdsl.ir.program import Repeat, Tensor
from tcdsl.polyhedra.boxes import over_box

__all__ = ["with_all_rounds", "with_guarded_rounds"]


def with_guarded_rounds(repeat: Repeat) -> Repeat:
    """``repeat`` without its condition, which each of its rounds asks."""
    assert repeat.condition is not None
    return _guarded(repeat, plain_read(repeat.condition, (), "bool"))


def ended_again(work: Derivative, loop: Repeat, condition: str) -> tuple[Repeat, str]:
    """A loop of guarded rounds that ends where ``condition`` says, and the tensor that holds how many have run."""
    body = loop.body
    names = names_of(body)
    passed, new = names.fresh("passed"), names.fresh("passed")
    none, rounds = work.declare("passed", "int64", ()), work.declare("rounds", "int64", ())
    work.append(over_box(none, (), (), constant(0, "int64")))
    counting = replace(
        body,
        inputs=(*body.inputs, Tensor(passed, "int64", ())),
        tensors=(*body.tensors, Tensor(new, "int64", ())),
        statements=(
            *body.statements,
            over_box(new, (), (), apply("add", plain_read(passed, (), "int64"), constant(1, "int64"))),
        ),
        updates=(*body.updates, (passed, new)),
        outputs=(condition,),
    )
    return replace(loop, results=(*loop.results, rounds), body=counting, inputs=(*loop.inputs, none)), rounds


def with_all_rounds(repeat: Repeat, begin: str, count: str) -> Repeat:
    """``repeat`` as a loop over all rounds that there may be; the tensors ``begin`` and ``count`` hold its ends."""
    body = repeat.body
    number, most, names = number_of(body), repeat.most, names_of(body)
    assert number is not None
    assert most is not None
    first, end = (Tensor(names.fresh(name), "int64", ()) for name in ("begin", "count"))
    told = replace(
        repeat,
        count=most,
        body=replace(body, inputs=(*body.inputs, first, end)),
        inputs=(*repeat.inputs, begin, count),
        begin=integer(0),
    )
    reached = apply("ge", size(number), plain_read(first.name, (), "int64"))
    left = apply("lt", size(number), plain_read(end.name, (), "int64"))
    return _guarded(told, apply("and_", reached, left))


def _guarded(repeat: Repeat, runs: Expr) -> Repeat:
    body = repeat.body
    names = names_of(body)
    inner = replace(body, inputs=(Tensor(names.fresh("round"), "int64", ()), *body.inputs), outputs=())
    results = tuple(replace(body.tensor(name), name=names.fresh(name)) for name, _ in body.updates)
    guarded = Repeat(
        tuple(each.name for each in results),
        cast(runs, "int64"),
        inner,
        tuple(each.name for each in body.inputs),
        repeat.span,
        repeat.checkpointed,
    )
    outer = replace(
        body,
        tensors=results,
        statements=(),
        outputs=(),
        updates=tuple((name, made.name) for (name, _), made in zip(body.updates, results, strict=True)),
        rules=(),
        repeats=(guarded,),
    )
    return replace(repeat, body=outer)
