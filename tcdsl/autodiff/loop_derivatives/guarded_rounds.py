"""Loops over a size that a condition may end before, as loops of all their rounds: ``break`` in ``for t in range(T)``.

::

    repeat y_3 = T times while going with y, x      repeat y_3 = T times with y, x
    | y_2 = y * x[t]                                | repeat y_2 = int64(going) times with t_round, y, x
    | update y = y_2                                | | y_2 = y * x[t]
                                                    | | update y = y_2
                                                    | update y = y_2

So the number of rounds is one of sizes: a tape has room for all, and the number of a round stays affine. Backwards,
rounds that did not run are branches that are not taken.
"""

from __future__ import annotations

from dataclasses import replace

from tcdsl.ir.build import cast, plain_read
from tcdsl.ir.fresh_names import names_of
from tcdsl.ir.program import Repeat, Tensor

__all__ = ["with_guarded_rounds"]


def with_guarded_rounds(repeat: Repeat) -> Repeat:
    """``repeat`` without its condition, which each of its rounds asks."""
    body, condition = repeat.body, repeat.condition
    assert condition is not None
    names = names_of(body)
    inner = replace(body, inputs=(Tensor(names.fresh("round"), "int64", ()), *body.inputs), outputs=())
    results = tuple(replace(body.tensor(name), name=names.fresh(name)) for name, _ in body.updates)
    guarded = Repeat(
        tuple(each.name for each in results),
        cast(plain_read(condition, (), "bool"), "int64"),
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
