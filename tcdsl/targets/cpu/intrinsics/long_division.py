"""Division of integers of more than 64 bits, which processors do not have."""

from __future__ import annotations

from collections.abc import Callable

from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar, llvm_type

__all__ = ["long_division"]


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
    quotient, rest = _unsigned(*(x.like(x.value, unsigned) for x in sizes))
    quotient, rest = (x.like(x.value, a.dtype) for x in (quotient, rest))
    opposite = (a < 0) ^ (divisor < 0)
    inexact = rest.differs(0)
    if result == "quotient":
        below = opposite & inexact
        found = opposite.choose(-quotient, quotient)
        return zero.choose(0, below.choose(found - 1, found))
    rest = (a < 0).choose(-rest, rest)
    return zero.choose(0, (opposite & inexact).choose(rest + divisor, rest))


def _unsigned(a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
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
