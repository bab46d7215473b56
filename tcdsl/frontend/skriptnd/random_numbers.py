"""Random numbers: a function of the call's key, of where they are drawn, and of the cell.

The bits of a cell are those of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
So derivatives, which compute with the same key, meet the same numbers, in whatever order cells are computed.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from tcdsl.frontend.skriptnd.tensor_recording import TensorRecording
from tcdsl.frontend.skriptnd.values import TensorValue
from tcdsl.frontend.surroundings.draws import KEY_TYPE
from tcdsl.frontend.words.declared_stores import cell_of, cell_variables, recorded_store
from tcdsl.ir.build import apply, cast, constant, index
from tcdsl.ir.expressions import Expr, Read

if TYPE_CHECKING:
    from tcdsl.frontend.staging.session import Session

__all__ = ["UNIFORM", "drawn"]

#: The operator whose numbers are drawn here; others are made of them.
UNIFORM = "rand.uniform"

_STEP = 0x9E3779B97F4A7C15  # 2 ** 64 divided by the golden ratio
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
#: How many bits the mantissa of a type has.
_DIGITS = {"float32": 24, "float64": 53}


def drawn(recording: TensorRecording, result: TensorValue, low: Any, high: Any) -> TensorValue:
    """Record a tensor of numbers from ``low`` up to ``high``, of the type and shape of ``result``."""
    arithmetic, session = recording.arithmetic, recording.session
    assert session is not None
    extents = [*map(arithmetic.size, result.shape)]
    cells = [*map(index, cell_variables(len(extents)))]

    def behind(before: Expr, axis: int) -> Expr:
        return apply("add", apply("mul", before, cast(extents[axis], KEY_TYPE)), cast(cells[axis], KEY_TYPE))

    place = apply("mul", reduce(behind, range(len(cells)), _bits(0)), _bits(_STEP))
    value = _mixed(apply("add", _stream(session), place))
    bits = cell_of(recorded_store(session, "bits", KEY_TYPE, extents, value), cells, KEY_TYPE)
    value = _between(arithmetic.data(low), arithmetic.data(high), bits)
    return recording.stored(result.name, result.type, result.shape, value)


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


def _between(low: Expr, high: Expr, bits: Expr) -> Expr:
    if low.dtype not in _DIGITS:
        first, end = (cast(each, "int64") for each in (low, high))
        width = cast(apply("sub", end, first), KEY_TYPE)
        return cast(apply("add", first, cast(apply("mod", bits, width), "int64")), low.dtype)
    # Numbers in [0, 1): those of float32 are the beginnings of those of float64.
    digits = _DIGITS[low.dtype]
    unit = cast(apply("shift_right", bits, _bits(64 - digits)), low.dtype)
    unit = apply("mul", unit, constant(2.0**-digits, low.dtype))
    return apply("add", low, apply("mul", apply("sub", high, low), unit))
