"""The table from the names of generated code to what they compute: one formula per function, on scalars of any fitting
type.

A row of `tcdsl.ir.primitives` names these functions in its ``code``. A formula has one parameter for each operand, and
computes with `Scalar`s, which write LLVM instructions: Python's operators, and methods for the rest (``a.equals(b)``,
``c.choose(a, b)``, ``x.intrinsic("sqrt")``). exp, sin and the like are in
`tcdsl.targets.cpu.mathematics.elementary_functions`. What NaN, infinities, zeros and overflow give is NumPy's.

Processors do not divide integers of more than 64 bits: `long_division` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar, llvm_type

__all__ = ["FORMULAS", "long_division", "repeated_product", "whole_power"]


def long_division(a: Scalar, b: Scalar, narrow: Callable[[Scalar, Scalar], Scalar], result: str) -> Scalar:
    """The ``quotient``, rounded down, or the ``rest`` of two wide signed integers; 0 if ``b`` is 0.

    Where int64 holds both, ``narrow`` computes it.
    """
    builder = a.builder
    fits = _fits(a) & _fits(b)
    wide, short, done = (builder.append_block() for _ in range(3))
    builder.cbranch(fits.value, short, wide)
    builder.position_at_end(short)
    word = llvm_type("int64")
    one, other = (x.like(builder.cast("trunc", x.value, word), "int64") for x in (a, b))
    quick = builder.cast("sext", narrow(one, other).value, llvm_type(a.dtype))
    after_short = builder.block
    builder.branch(done)
    builder.position_at_end(wide)
    long = _signed(a, b, result)
    after_wide = builder.block
    builder.branch(done)
    builder.position_at_end(done)
    found = builder.phi(llvm_type(a.dtype))
    found.add_incoming(quick, after_short)
    found.add_incoming(long.value, after_wide)
    return a.like(found)


def _fits(x: Scalar) -> Scalar:
    # Whether int64 holds it; its least value is left out, since the processor traps on it divided by -1.
    return (x > -(2**63)) & (x < 2**63)


def _signed(a: Scalar, b: Scalar, result: str) -> Scalar:
    unsigned = f"u{a.dtype}"
    zero = b.equals(0)
    divisor = zero.choose(1, b)
    sizes = [(x < 0).choose(-x, x) for x in (a, divisor)]
    quotient, rest = _unsigned_quotient(*(x.like(x.value, unsigned) for x in sizes))
    quotient, rest = (x.like(x.value, a.dtype) for x in (quotient, rest))
    opposite = (a < 0) ^ (divisor < 0)
    inexact = rest.differs(0)
    if result == "quotient":
        below = opposite & inexact
        found = opposite.choose(-quotient, quotient)
        return zero.choose(0, below.choose(found - 1, found))
    rest = (a < 0).choose(-rest, rest)
    return zero.choose(0, (opposite & inexact).choose(rest + divisor, rest))


def _unsigned_quotient(a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    # Bit by bit, as on paper.
    builder = a.builder
    kind = llvm_type(a.dtype)
    before = builder.block
    body, done = builder.append_block(), builder.append_block()
    builder.branch(body)
    builder.position_at_end(body)
    phis = [builder.phi(kind) for _ in ("quotient", "rest", "bit")]
    for phi, start in zip(phis, (0, 0, kind.width - 1), strict=True):
        phi.add_incoming(a.constant(start).value, before)
    quotient, rest, bit = (a.like(phi) for phi in phis)
    rest = (rest << 1) | ((a >> bit) & 1)
    more = rest >= b
    rest = more.choose(rest - b, rest)
    quotient = (quotient << 1) | more.choose(a.constant(1), 0)
    for phi, following in zip(phis, (quotient, rest, bit - 1), strict=True):
        phi.add_incoming(following.value, body)
    builder.cbranch(bit.equals(0).value, done, body)
    builder.position_at_end(done)
    return quotient, rest


def _absolute(x: Scalar) -> Scalar:
    if x.floating:
        return x.intrinsic("fabs")
    return (x < 0).choose(-x, x) if x.signed else x


def _sign(x: Scalar) -> Scalar:
    if not (x.floating or x.signed):
        return (x > 0).choose(1, x)
    # NaN stays, and -0.0 becomes 0.0.
    return (x > 0).choose(1, (x < 0).choose(-1, x + 0))


def _maximum(a: Scalar, b: Scalar) -> Scalar:
    if a.floating:
        return _extreme(a, b, "maximum")
    return (a > b).choose(a, b).never_less(max((each for each in (a.least, b.least) if each is not None), default=None))


def _minimum(a: Scalar, b: Scalar) -> Scalar:
    if a.floating:
        return _extreme(a, b, "minimum")
    return (a < b).choose(a, b).never_less(None if a.least is None or b.least is None else min(a.least, b.least))


def _extreme(a: Scalar, b: Scalar, name: str) -> Scalar:
    # llvm.maximum gives NaN if either is NaN and vectorizes, which a comparison and a choice does not. Of six
    # instructions, where one of AVX-512 does all but NaN, and knows signs of zeros.
    width = a.bits * a.lanes
    if not a.builder.module.avx512 or width not in (128, 256, 512):
        return a.intrinsic(name, b)
    kind, lanes, whole = a.value.type, ir.IntType(max(8, a.lanes)), ir.IntType(32)
    given = [a.value, b.value, ir.ConstantOperand(whole, 5 if name == "maximum" else 4)]
    given += [a.value, ir.ConstantOperand(lanes, -1)]
    if width == 512:
        given.append(ir.ConstantOperand(whole, 4))
    symbol = f"llvm.x86.avx512.mask.range.p{'s' if a.bits == 32 else 'd'}.{width}"
    function = a.builder.module.intrinsic(symbol, [], ir.FunctionType(kind, [each.type for each in given]))
    return (a.differs(a) | b.differs(b)).choose(a + b, a.like(a.builder.call(function, given)))


def _late_extreme(a: Scalar, b: Scalar, name: str) -> Scalar:
    """The "maximum" or "minimum" of two floats, of which ``b`` comes late: a comparison and two operations wait for it.

    LLVM's own looks at the sign of ``b`` first, and takes three times as long on processors that have no instruction
    for it; but what accumulates it makes vectors of.
    """
    if not a.floating or a.lanes or not a.builder.module.avx512:
        return FORMULAS[name](a, b)
    if isinstance(b.value, ir.ConstantOperand):
        a, b = b, a
    word, sign = f"uint{a.bits}", 1 << (a.bits - 1)
    known = a.reinterpret(word)
    # Where both are zeros, or b is NaN, it is b. A maximum has no sign if a has none, and a minimum has one if a has.
    if name == "maximum":
        found = (a > b).choose(a, b).reinterpret(word) & (known | (sign - 1))
    else:
        found = (a < b).choose(a, b).reinterpret(word) | (known & sign)
    return a.differs(a).choose(a, found.reinterpret(a.dtype))


def _late_extreme_of_sum(a: Scalar, early: Scalar, late: Scalar, name: str) -> Scalar:
    """The "maximum" or "minimum" of ``a`` and ``early + late``, of which ``late`` comes late: two steps wait for it."""
    if not a.floating or a.lanes or not a.builder.module.avx512:
        return FORMULAS[f"late_{name}"](a, early + late)
    # A NaN of the first operand is one of the sum's too, which then is chosen. So is a zero without a sign, if the
    # maximum has none: early + 0.0 is no -0.0, and early - 0.0 is early.
    if name == "minimum":
        word, sign = f"uint{a.bits}", 1 << (a.bits - 1)
        b = a.differs(a).choose(a, early) + late
        return ((a < b).choose(a, b).reinterpret(word) | (a.reinterpret(word) & sign)).reinterpret(a.dtype)
    b = a.differs(a).choose(a, early + a.constant(0).intrinsic("copysign", a)) + late
    return (a > b).choose(a, b)


def _sum_of_late_extreme(early: Scalar, a: Scalar, b: Scalar, name: str) -> Scalar:
    """``early`` and the "maximum" or "minimum" of ``a`` and ``b``, of which ``b`` comes late; ``early`` is never -0.0.

    A NaN of ``a`` is one of the other term too, and which zero the extreme is makes no difference.
    """
    if not a.floating or a.lanes or not a.builder.module.avx512:
        return early + FORMULAS[f"late_{name}"](a, b)
    return a.differs(a).choose(a, early) + ((a > b) if name == "maximum" else (a < b)).choose(a, b)


def _relu(x: Scalar) -> Scalar:
    return _maximum(x, x.constant(0))


def _sat01(x: Scalar) -> Scalar:
    return _minimum(_relu(x), x.constant(1))


def _shift(divisor: Scalar) -> int | None:
    # How many bits lower it shifts, rounding down, if it is a constant power of 2.
    value = divisor.value
    while isinstance(value, ir.ConstantOperand) and value.parts:
        value = value.parts[0]
    number = value.least if isinstance(value, ir.ConstantOperand) else None
    return None if number is None or number <= 0 or number & (number - 1) else number.bit_length() - 1


def _floor_div(a: Scalar, b: Scalar) -> Scalar:
    if a.floating:
        return _float_floor_div(a.exact(), b.exact())
    if a.bits > 64:
        return long_division(a, b, _floor_div, "quotient")
    if (bits := _shift(b)) is not None:
        return (a >> bits).never_less(None if a.least is None else a.least >> bits)
    if b.least is not None and b.least > 0:
        quotient = a.quotient(b)
        if a.least is not None and a.least >= 0:
            return quotient.never_less(0)
        return (a - quotient * b < 0).choose(quotient - 1, quotient)
    zero = b.equals(0)
    if not a.signed:
        return zero.choose(0, a.quotient(zero.choose(1, b)))
    # The processor traps on x / 0 and on the least value divided by -1.
    minus = b.equals(-1)
    divisor = (zero | minus).choose(1, b)
    quotient = a.quotient(divisor)
    rest = a - quotient * divisor
    below = rest.differs(0) & ((rest < 0) ^ (divisor < 0))
    quotient = below.choose(quotient - 1, quotient)
    return zero.choose(0, minus.choose(-a, quotient))


def _float_floor_div(a: Scalar, b: Scalar) -> Scalar:
    # The algorithm of NumPy (and Python): the exact remainder first, so that the quotient is the nearest whole number.
    rest = a.remainder(b)
    quotient = (a - rest) / b
    below = rest.differs(0) & ((rest < 0) ^ (b < 0))
    quotient = below.choose(quotient - 1, quotient)
    whole = quotient.intrinsic("floor")
    whole = (quotient - whole > 0.5).choose(whole + 1, whole)
    plain = a / b
    whole = quotient.equals(0).choose(quotient.constant(0).intrinsic("copysign", plain), whole)
    return b.equals(0).choose(plain, whole)


def _mod(a: Scalar, b: Scalar) -> Scalar:
    if a.floating:
        a, b = a.exact(), b.exact()
        rest = a.remainder(b)
        wrong_sign = (rest < 0) ^ (b < 0)
        rest_of_sign = wrong_sign.choose(rest + b, rest)
        return rest.equals(0).choose(rest.intrinsic("copysign", b), rest_of_sign)
    if a.bits > 64:
        return long_division(a, b, _mod, "rest")
    if (bits := _shift(b)) is not None:
        return (a & ((1 << bits) - 1)).never_less(0)
    if b.least is not None and b.least > 0:
        rest = a.remainder(b)
        if a.least is not None and a.least >= 0:
            return rest.never_less(0)
        return (rest < 0).choose(rest + b, rest)
    zero = b.equals(0)
    if not a.signed:
        return zero.choose(0, a.remainder(zero.choose(1, b)))
    divisor = (zero | b.equals(-1)).choose(1, b)
    rest = a.remainder(divisor)
    wrong_sign = rest.differs(0) & ((rest < 0) ^ (divisor < 0))
    return wrong_sign.choose(rest + divisor, rest)


def whole_power(a: Scalar, b: Scalar) -> Scalar:
    """``a`` to the power of ``b``, both integers."""
    result = _power_loop(a, b)
    if not a.signed:
        return result
    # A negative exponent: only 1 and -1 have whole inverses.
    odd = (b & 1).differs(0)
    inverse = a.equals(1).choose(a.constant(1), a.equals(-1).choose(odd.choose(a, 1), 0))
    return (b < 0).choose(inverse, result)


def _power_loop(a: Scalar, b: Scalar) -> Scalar:
    # Square and multiply, as many rounds as the exponent has bits; none if it is negative.
    builder = a.builder
    before = builder.block
    head, body, done = (builder.append_block() for _ in range(3))
    builder.branch(head)
    builder.position_at_end(head)
    kind = llvm_type(a.dtype)
    phis = [builder.phi(kind) for _ in ("result", "base", "exponent")]
    for phi, start in zip(phis, (a.constant(1), a, b), strict=True):
        phi.add_incoming(start.value, before)
    result, base, exponent = (a.like(phi) for phi in phis)
    builder.cbranch((exponent > 0).value, body, done)
    builder.position_at_end(body)
    product = (exponent & 1).differs(0).choose(result * base, result)
    for phi, following in zip(phis, (product, base * base, exponent >> 1), strict=True):
        phi.add_incoming(following.value, body)
    builder.branch(head)
    builder.position_at_end(done)
    return result


def repeated_product(x: Scalar, exponent: int) -> Scalar:
    """``x`` to a constant integral power, by as few multiplications as squaring needs."""
    if exponent < 0 and x.floating:
        return 1 / repeated_product(x, -exponent)
    result, square = None, x
    rest = exponent
    while rest > 0:
        if rest & 1:
            result = square if result is None else result * square
        rest >>= 1
        if rest:
            square = square * square
    return x.constant(1) if result is None else result


def _left_shift(a: Scalar, b: Scalar) -> Scalar:
    # NumPy shifts everything out where C leaves the result undefined; a negative count is a large unsigned one.
    fits = _unsigned(b) < a.bits
    return fits.choose(a << fits.choose(b, 0), 0)


def _right_shift(a: Scalar, b: Scalar) -> Scalar:
    fits = _unsigned(b) < a.bits
    return a >> fits.choose(b, a.bits - 1) if a.signed else fits.choose(a >> fits.choose(b, 0), 0)


def _unsigned(x: Scalar) -> Scalar:
    return x.like(x.value, x.dtype.removeprefix("u").replace("int", "uint"))


def _gate(open_: Scalar, value: Scalar) -> Scalar:
    return open_.choose(value, 0)


def _llvm(name: str) -> Callable[..., Scalar]:
    return lambda x: x.intrinsic(name)


FORMULAS: Mapping[str, Callable[..., Scalar]] = MappingProxyType(
    {
        **{name: _llvm(name) for name in ("floor", "ceil", "rint", "sqrt")},
        "absolute": _absolute,
        "sign": _sign,
        "square": lambda x: x * x,
        "relu": _relu,
        "sat01": _sat01,
        "recip": lambda x: 1 / x,
        "recip_sqrt": lambda x: 1 / x.intrinsic("sqrt"),
        "fst": lambda a, b: a,
        "snd": lambda a, b: b,
        "maximum": _maximum,
        "minimum": _minimum,
        "late_maximum": lambda a, b: _late_extreme(a, b, "maximum"),
        "late_minimum": lambda a, b: _late_extreme(a, b, "minimum"),
        "sum_of_late_maximum": lambda early, a, b: _sum_of_late_extreme(early, a, b, "maximum"),
        "sum_of_late_minimum": lambda early, a, b: _sum_of_late_extreme(early, a, b, "minimum"),
        "late_maximum_of_sum": lambda a, early, late: _late_extreme_of_sum(a, early, late, "maximum"),
        "late_minimum_of_sum": lambda a, early, late: _late_extreme_of_sum(a, early, late, "minimum"),
        "floor_div": _floor_div,
        "mod": _mod,
        "relu_gate": lambda a, b: _gate(a > 0, b),
        "sat01_gate": lambda a, b: _gate((a > 0) & (a < 1), b),
        "bit_not": lambda x: ~x,
        "left_shift": _left_shift,
        "right_shift": _right_shift,
    }
)
