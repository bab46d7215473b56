"""Random numbers: a function of the call's key, of where it is drawn, and of the cell.

The bits of a cell are those of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
So derivatives, which compute with the same key, meet the same numbers, in whatever order cells are computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from tcdsl.frontend.skriptnd.arithmetic import Arithmetic
from tcdsl.frontend.skriptnd.tensor_recording import cell_of, cell_variables, recorded_store
from tcdsl.frontend.skriptnd.values import TensorValue
from tcdsl.frontend.surroundings.draws import KEY_TYPE
from tcdsl.ir.build import apply, cast, constant, index
from tcdsl.ir.expressions import Expr, Read

if TYPE_CHECKING:
    from tcdsl.frontend.staging.session import Session

__all__ = ["DISTRIBUTIONS", "drawn"]

_STEP = 0x9E3779B97F4A7C15  # 2 ** 64 divided by the golden ratio
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
#: How many bits the mantissa of a type has.
_DIGITS = {"float32": 24, "float64": 53}

#: ``draw(arithmetic, type, bits, attributes)``: the value of a cell, where ``bits(k)`` are its k-th random bits.
Distribution = Callable[[Arithmetic, str, Callable[[int], Expr], Mapping[str, Any]], Expr]


def drawn(
    session: Session, arithmetic: Arithmetic, result: TensorValue, draw: Distribution, attributes: Mapping[str, Any]
) -> TensorValue:
    """Record a tensor of random numbers of the type and shape of ``result``; each has numbers of its own."""
    extents = [*map(arithmetic.size, result.shape)]
    cells = [*map(index, cell_variables(len(extents)))]
    stream = _stream(session)

    def bits(k: int) -> Expr:
        # The number of the cell: streams of one tensor follow each other in it.
        position = reduce(partial(_behind, extents), range(len(cells)), _bits(0))
        place = apply("add", apply("mul", position, _bits(2)), _bits(k))
        value = _mixed(apply("add", stream, apply("mul", place, _bits(_STEP))))
        return cell_of(recorded_store(session, "bits", KEY_TYPE, extents, value), cells, KEY_TYPE)

    def _behind(extents: Sequence[Expr], before: Expr, axis: int) -> Expr:
        return apply("add", apply("mul", before, cast(extents[axis], KEY_TYPE)), cast(cells[axis], KEY_TYPE))

    value = draw(arithmetic, result.type, bits, attributes)
    made = recorded_store(session, result.name, arithmetic.dtype(result.type), extents, value)
    return TensorValue(result.name, result.type, result.shape, made)


def _stream(session: Session) -> Expr:
    # What the numbers of one tensor begin with: another one for each tensor, and in each round of the loops around it.
    session.draws += 1
    value = apply("add", cell_of(session.key(), (), KEY_TYPE), apply("mul", _bits(session.draws), _bits(_STEP)))
    for loop in session.running:
        value = apply("add", _mixed(value), apply("mul", cast(_number(loop.counter), KEY_TYPE), _bits(_STEP)))
    return cell_of(recorded_store(session, "stream", KEY_TYPE, (), _mixed(value)), (), KEY_TYPE)


def _number(counter: Any) -> Expr:
    # That of a round, which is a size where the number of rounds is one.
    return counter.shape[0] if counter.shape else Read(counter.name, (), (), counter.dtype)


def _bits(value: int) -> Expr:
    return constant(value, KEY_TYPE)


def _mixed(value: Expr) -> Expr:
    for distance, factor in _ROUNDS:
        value = apply("mul", apply("bit_xor", value, apply("shift_right", value, _bits(distance))), _bits(factor))
    return apply("bit_xor", value, apply("shift_right", value, _bits(31)))


def _unit(dtype: str, bits: Expr) -> Expr:
    # Numbers in [0, 1): those of float32 are the beginnings of those of float64.
    digits = _DIGITS[dtype]
    found = cast(apply("shift_right", bits, _bits(64 - digits)), dtype)
    return apply("mul", found, constant(2.0**-digits, dtype))


def _uniform(arithmetic: Arithmetic, kind: str, bits: Callable[[int], Expr], given: Mapping[str, Any]) -> Expr:
    low, high = arithmetic.data(given["min"]), arithmetic.data(given["max"])
    if kind == "int":
        wide = [cast(each, "int64") for each in (low, high)]
        width = cast(apply("sub", wide[1], wide[0]), KEY_TYPE)
        return cast(apply("add", wide[0], cast(apply("mod", bits(0), width), "int64")), low.dtype)
    return apply("add", low, apply("mul", apply("sub", high, low), _unit(low.dtype, bits(0))))


def _normal(arithmetic: Arithmetic, kind: str, bits: Callable[[int], Expr], given: Mapping[str, Any]) -> Expr:
    # Box and Muller: a radius, whose logarithm is not that of 0, and an angle.
    real = arithmetic.real
    radius = apply("log", apply("sub", constant(1.0, real), _unit(real, bits(0))))
    angle = apply("mul", constant(2 * math.pi, real), _unit(real, bits(1)))
    value = apply("mul", apply("sqrt", apply("mul", constant(-2.0, real), radius)), apply("cos", angle))
    return apply("add", arithmetic.data(given["mean"]), apply("mul", arithmetic.data(given["std"]), value))


def _bernoulli(arithmetic: Arithmetic, kind: str, bits: Callable[[int], Expr], given: Mapping[str, Any]) -> Expr:
    return apply("lt", _unit(arithmetic.real, bits(0)), arithmetic.data(given["prob"]))


#: The operators of the module `rand`.
DISTRIBUTIONS: Mapping[str, Distribution] = {
    "rand.uniform": _uniform,
    "rand.normal": _normal,
    "rand.bernoulli": _bernoulli,
}
