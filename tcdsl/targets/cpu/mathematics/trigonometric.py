"""sin, cos and tan.

``x = n pi / 2 + r`` with ``|r| <= pi / 4``, pi / 2 in parts whose products with ``n`` are exact (W. J. Cody and
W. Waite, 1980): in double precision three parts for ``x`` up to 1e5, in single precision two in double precision for
``x`` up to a million. What is left of pi / 2 is far below what any such ``x`` leaves. Vectors that hold larger numbers
are computed one number at a time, with all digits of pi (`large_angle`). The coefficients of the polynomials make the
greatest relative error least, by Remez' exchange in 160 bits, and were rounded.

Of a large angle multiples of pi / 2 are taken away exactly, whatever the argument. This is ``M 2**E`` with an integer
``M``, and the product of ``M`` with 192 bits of ``2 / pi`` is exact: the bits before them give multiples of four
right angles, those behind them are too small to matter beside the nearest that any double comes to a multiple of pi /
2, some 2**-62 (M. H. Payne and R. N. Hanek, Radian reduction for trigonometric functions, SIGNUM Newsletter 18,
1983). This is integer arithmetic, one number at a time, for arguments that are rare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.conversions import convert
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar, llvm_type
from tcdsl.targets.cpu.mathematics.arithmetic import (
    Pair,
    bits_of,
    format_of,
    magnitude,
    multiply_add,
    number_of,
    polynomial,
    product,
    quick_sum,
    sign_bit,
    sum_of,
    with_sign,
)
from tcdsl.targets.cpu.mathematics.rare_calls import computed_beyond

__all__ = ["cosine", "large_angle", "sine", "tangent"]

# 64 bits of zeros, then those of 2 / pi behind the point.
_TWO_OVER_PI_BITS = (
    0x0000000000000000,
    0xA2F9836E4E441529,
    0xFC2757D1F534DDC0,
    0xDB6295993C439041,
    0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0,
    0x06492EEA09D1921C,
    0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484,
    0xE99C7026B45F7E41,
    0x3991D639835339F4,
    0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F,
    0xEF2F118B5A0A6D1F,
    0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B,
    0x3D0739F78A5292EA,
    0x6BFB5FB11F8D5D08,
    0x56033046FC7B6BAB,
)
_RIGHT_ANGLE = (float.fromhex("0x1.921fb54442d18p+0"), float.fromhex("0x1.1a62633145c07p-54"))
_WORD = ir.IntType(64)


def _bits_of_two_over_pi(first: Scalar) -> list[Scalar]:
    # Three words of them, from the bit of that number on.
    builder = first.builder
    table = _table(builder.module)
    # Arguments that are not large stand beside those that are, and are computed for nothing.
    last = len(_TWO_OVER_PI_BITS) - 4
    start = (first >> 6 > last).choose(last, first >> 6)
    words = []
    for k in range(4):
        place = builder.element(_WORD, table, (start + k).value)
        words.append(first.like(builder.load(_WORD, place), "uint64"))
    shift = first & 63
    return [words[k].intrinsic("fshl", words[k + 1], shift) for k in range(3)]


def _table(module: ir.Module) -> ir.GlobalVariable:
    name = "tcdsl.two_over_pi"
    found = module.symbols.get(name)
    if found is None:
        kind = ir.ArrayType(_WORD, len(_TWO_OVER_PI_BITS))
        found = ir.GlobalVariable(module, name, "internal constant", ir.ConstantOperand(kind, list(_TWO_OVER_PI_BITS)))
    table: ir.GlobalVariable = found
    return table


def _turns(whole: Scalar, words: list[Scalar]) -> Scalar:
    # The leading 128 bits of a product of 192.
    long = convert(whole, "uint128")
    first, second, third = (convert(word, "uint128") for word in words)
    lower = long * second + ((long * third) >> 64)
    return ((long * first) << 64) + lower


def _leading_zeros(x: Scalar) -> Scalar:
    kind = llvm_type(x.dtype)
    count = ir.FunctionType(kind, [kind, ir.IntType(1)])
    function = x.builder.module.intrinsic("llvm.ctlz", [kind], count)
    return x.like(x.builder.call(function, [x.value, ir.ConstantOperand(ir.IntType(1), 1)]))


def _number(bits: Scalar) -> Scalar:
    return convert(convert(bits, "int64"), "float64")


def large_angle(size: Scalar) -> tuple[Scalar, Pair]:
    """The last bits of ``n``, and ``r`` with ``size = n pi / 2 + r``, for float64 from 2**16 on."""
    form = format_of(size)
    bits = bits_of(size)
    whole = (bits & ((1 << form.fraction) - 1)) | (1 << form.fraction)
    # Bits whose product with the argument is 4 and more are left out; the table begins with 64 that do not count.
    first = (bits >> form.fraction) - (form.bias + form.fraction + 2 - 64)
    turns = _turns(whole, _bits_of_two_over_pi(first))
    # Two bits are before the point; the nearest whole number of right angles is taken away.
    n = (turns + (1 << 125)) >> 126
    part = turns - (n << 126)
    negative = (part >> 127).differs(0)
    part = negative.choose(-part, part)
    zeros = _leading_zeros(part)
    part = part << zeros
    scale = number_of((form.bias - 51 - convert(zeros, "uint64")) << form.fraction)
    scale = negative.choose(-scale, scale)
    high = _number(part >> 75) * scale
    low = _number((part >> 22) & (2**53 - 1)) * (scale * 2.0**-53)
    total, error = product(high, high.constant(_RIGHT_ANGLE[0]))
    return convert(n, "uint64"), quick_sum(total, error + (high * _RIGHT_ANGLE[1] + low * _RIGHT_ANGLE[0]))


_TWO_OVER_PI = float.fromhex("0x1.45f306dc9c883p-1")
_HALF_PI = tuple(map(float.fromhex, ("0x1.921fb54440000p+0", "0x1.68c234c4c0000p-39", "0x1.98a2e03707345p-77")))
_HALF_PI_FOR_SINGLE = tuple(map(float.fromhex, ("0x1.921fb544p+0", "0x1.0b4611a626331p-34")))
_GREATEST: Mapping[str, float] = MappingProxyType({"float32": 2.0**20, "float64": 1e5})

_SINE: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "float32": (-0.16666655, 0.008332176, -0.00019516976),
        "float64": (
            -0.16666666666666632, 0.00833333333332237, -0.0001984126982977074, 2.755731367851843e-06,
            -2.5050755937577462e-08, 1.5896665071652074e-10,
        ),
    }
)  # fmt: skip
_COSINE: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "float32": (0.041666653, -0.0013887652, 2.4463501e-05),
        "float64": (
            0.0416666666666666, -0.0013888888888874066, 2.4801587289443638e-05, -2.7557314340676316e-07,
            2.087572162326166e-09, -1.1359559205158141e-11,
        ),
    }
)  # fmt: skip


def _reduced(size: Scalar) -> tuple[Scalar, Pair]:
    # The last bits of n, as an integer, and r, for sizes that are not too large.
    if size.dtype == "float32":
        wide = convert(size, "float64")
        shifter = format_of(wide).shifter
        n = multiply_add(wide, _TWO_OVER_PI, shifter) - shifter
        first, second = _HALF_PI_FOR_SINGLE
        exact = multiply_add(n, -second, multiply_add(n, -first, wide))
        r = convert(exact, "float32")
        more = convert(exact - convert(r, "float64"), "float32")
        return bits_of(convert(n, "float32") + format_of(size).shifter), (r, more)
    shifter = format_of(size).shifter
    shifted = multiply_add(size, _TWO_OVER_PI, shifter)
    n = shifted - shifter
    first, second, third = _HALF_PI
    high, low = sum_of(multiply_add(n, -first, size), n * -second)
    return bits_of(shifted), sum_of(high, multiply_add(n, -third, low))


def _sine(r: Pair) -> Pair:
    high, low = r
    z = high * high
    return high, high * z * polynomial(z, _SINE[high.dtype]) + low


def _cosine(r: Pair) -> Pair:
    high, low = r
    z = high * high
    half = 0.5 * z
    first, lost = quick_sum(high.constant(1), -half)
    return first, lost + (z * z * polynomial(z, _COSINE[high.dtype]) - high * low)


def _quarter(bits: Scalar, which: int) -> Scalar:
    # Whether a bit of n is set.
    return (bits & which).differs(0)


def _sign_of(bits: Scalar, which: int, x: Scalar) -> Scalar:
    # The bit of n at the place of the sign.
    return (bits << (x.bits - which)) & format_of(x).sign


_Formula = Callable[[Scalar, Pair, Scalar], Scalar]


def _exact(name: str, formula: _Formula) -> Callable[[Scalar], Scalar]:
    # The formula takes the last bits of n, r, and x for its sign.
    def of_large(x: Scalar) -> Scalar:
        wide = convert(x, "float64")
        bits, r = large_angle(magnitude(wide))
        # Infinity gives NaN.
        return convert(formula(bits, r, wide) + (wide - wide), x.dtype)

    def of_any(x: Scalar) -> Scalar:
        # First, while there is little else that a call would have to save.
        end = _GREATEST[x.dtype]
        size = magnitude(x)
        found = computed_beyond(end, name, of_large, x)
        return (size > end).choose(found, formula(*_reduced(size), x))

    return of_any


def _sine_of(bits: Scalar, r: Pair, x: Scalar) -> Scalar:
    (sine, more), (cosine, rest) = _sine(r), _cosine(r)
    other = _quarter(bits, 1)
    result = other.choose(cosine, sine) + other.choose(rest, more)
    return with_sign(result, _sign_of(bits, 2, x) ^ sign_bit(x))


def _cosine_of(bits: Scalar, r: Pair, x: Scalar) -> Scalar:
    (sine, more), (cosine, rest) = _sine(r), _cosine(r)
    other = _quarter(bits, 1)
    result = other.choose(sine, cosine) + other.choose(more, rest)
    return with_sign(result, _sign_of(bits + 1, 2, x))


def _tangent_of(bits: Scalar, r: Pair, x: Scalar) -> Scalar:
    sine, cosine = quick_sum(*_sine(r)), quick_sum(*_cosine(r))
    other = _quarter(bits, 1)
    top, top_error = (other.choose(a, b) for a, b in zip(cosine, sine, strict=True))
    bottom, bottom_error = (other.choose(a, b) for a, b in zip(sine, cosine, strict=True))
    inverse = 1 / bottom
    quotient = top * inverse
    result = top / bottom + (top_error - quotient * bottom_error) * inverse
    return with_sign(result, _sign_of(bits, 1, x) ^ sign_bit(x))


sine = _exact("sin", _sine_of)
"""The sine."""

cosine = _exact("cos", _cosine_of)
"""The cosine."""

tangent = _exact("tan", _tangent_of)
"""The tangent."""
