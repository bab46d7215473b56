"""What is left of large angles: multiples of pi / 2 taken away exactly, whatever the argument.

The argument is ``M 2**E`` with an integer ``M``, and the product of ``M`` with 192 bits of ``2 / pi`` is exact: the
bits before them give multiples of four right angles, those behind them are too small to matter beside the nearest that
any double comes to a multiple of pi / 2, some 2**-62 (M. H. Payne and R. N. Hanek, Radian reduction for trigonometric
functions, SIGNUM Newsletter 18, 1983). This is integer arithmetic, one number at a time, for arguments that are rare.
"""

from __future__ import annotations

from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.conversions import convert
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar, llvm_type
from tcdsl.targets.cpu.mathematics.double_double import Pair, product, quick_sum
from tcdsl.targets.cpu.mathematics.formats import bits_of, format_of, number_of

__all__ = ["large_angle"]

# 64 bits of zeros, then those of 2 / pi behind the point.
_TWO_OVER_PI = (
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
_HALF_PI = (float.fromhex("0x1.921fb54442d18p+0"), float.fromhex("0x1.1a62633145c07p-54"))
_WORD = ir.IntType(64)


def _bits_of_two_over_pi(first: Scalar) -> list[Scalar]:
    # Three words of them, from the bit of that number on.
    builder = first.builder
    table = _table(builder.module)
    # Arguments that are not large stand beside those that are, and are computed for nothing.
    last = len(_TWO_OVER_PI) - 4
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
        kind = ir.ArrayType(_WORD, len(_TWO_OVER_PI))
        found = ir.GlobalVariable(module, name, "internal constant", ir.ConstantOperand(kind, list(_TWO_OVER_PI)))
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
    total, error = product(high, high.constant(_HALF_PI[0]))
    return convert(n, "uint64"), quick_sum(total, error + (high * _HALF_PI[1] + low * _HALF_PI[0]))
