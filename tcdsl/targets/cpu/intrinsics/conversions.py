"""Conversions between element types, as NumPy's ``astype`` does them on scalars of the code being compiled."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from tcdsl.ir.dtypes import is_boolean, is_floating
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar, llvm_type

__all__ = ["convert", "half_to_single", "single_to_half"]


def convert(x: Scalar, dtype: str) -> Scalar:
    """``x`` as ``dtype``. Values are computed in float32, so a float16 result is a float32 that float16 can hold."""
    if dtype == "float16":
        return half_to_single(single_to_half(_to_single(x)))
    if x.dtype == dtype:
        return x
    if is_boolean(dtype):
        return x.differs(0)
    if x.floating:
        return _float_to_float(x, dtype) if is_floating(dtype) else _float_to_integer(x, dtype)
    builder, target = x.builder, x.kind(dtype)
    if is_floating(dtype):
        return x.like(builder.cast("sitofp" if x.signed else "uitofp", x.value, target), dtype)
    width = llvm_type(dtype).width
    if width <= x.bits:
        return x.like(builder.cast("trunc", x.value, target) if width < x.bits else x.value, dtype)
    return x.like(builder.cast("sext" if x.signed else "zext", x.value, target), dtype)


def _float_to_float(x: Scalar, dtype: str) -> Scalar:
    return x.like(x.builder.cast("fpext" if dtype == "float64" else "fptrunc", x.value, x.kind(dtype)), dtype)


def _float_to_integer(x: Scalar, dtype: str) -> Scalar:
    # What does not fit is undefined in C, so in NumPy too. It converts to a wider signed type and drops the upper bits,
    # so -1.0 becomes 255 as uint8, and the whole range of uint64 takes a second conversion for its upper half.
    if dtype == "uint64":
        half = 2.0**63
        low = x.like(x.builder.cast("fptosi", x.value, x.kind("int64")), "uint64")
        high = x.like(x.builder.cast("fptosi", (x - half).value, x.kind("int64")), "uint64") ^ 2**63
        return (x < half).choose(low, high)
    wide = "int64" if dtype in ("int64", "uint32") else "int32"
    return convert(x.like(x.builder.cast("fptosi", x.value, x.kind(wide)), wide), dtype)


def _to_single(x: Scalar) -> Scalar:
    # Rounding a double to float32 and then to float16 rounds twice. Rounding to odd first makes the second rounding
    # right: where the double is not a float32, take the neighbour towards zero and set its last bit.
    if x.dtype != "float64":
        return convert(x, "float32")
    exact = x.exact()
    nearest = convert(exact, "float32")
    back = convert(nearest, "float64")
    bits = nearest.reinterpret("uint32")
    towards_zero = (back.intrinsic("fabs") > exact.intrinsic("fabs")).choose(bits - 1, bits) | 1
    inexact = (back < exact) | (back > exact)
    return inexact.choose(towards_zero, bits).reinterpret("float32")


@cache
def _has_half_instructions() -> bool:
    # Without them LLVM calls functions of a compiler's run-time library, which the process need not have.
    triple = llvm.get_default_triple()
    return triple.startswith(("aarch64", "arm64")) or bool(llvm.get_host_cpu_features().get("f16c"))


def half_to_single(x: Scalar, software: bool | None = None) -> Scalar:
    """The float32 value of the uint16 bits of a float16."""
    builder = x.builder
    if not (not _has_half_instructions() if software is None else software):
        half = builder.cast("bitcast", x.value, x.kind("float16"))
        return x.like(builder.cast("fpext", half, x.kind("float32")), "float32")
    bits = convert(x, "uint32")
    sign, magnitude = (bits & 0x8000) << 16, bits & 0x7FFF
    # As the bits of a float32 the magnitude is too small by 2**112, subnormal numbers included.
    finite = (magnitude << 13).reinterpret("float32").exact() * 2.0**112
    special = (magnitude << 13) | 0x7F800000
    return ((magnitude >= 0x7C00).choose(special, finite.reinterpret("uint32")) | sign).reinterpret("float32")


def single_to_half(x: Scalar, software: bool | None = None) -> Scalar:
    """The uint16 bits of the float16 nearest to a float32, ties to even."""
    builder = x.builder
    if not (not _has_half_instructions() if software is None else software):
        half = builder.cast("fptrunc", x.value, x.kind("float16"))
        return x.like(builder.cast("bitcast", half, x.kind("uint16")), "uint16")
    bits = x.reinterpret("uint32")
    sign, magnitude = (bits >> 16) & 0x8000, bits & 0x7FFFFFFF
    # Normal numbers: move the exponent, round by carrying into what remains; the carry may reach infinity, rightly.
    normal = (magnitude - (112 << 23) + 0xFFF + ((magnitude >> 13) & 1)) >> 13
    # Subnormal numbers: beside 0.5 the last bit of a float32 is that of the smallest float16.
    subnormal = (magnitude.reinterpret("float32").exact() + 0.5).reinterpret("uint32") - 0x3F000000
    finite = (magnitude < 0x38800000).choose(subnormal, normal)
    large = (magnitude > 0x7F800000).choose(magnitude.constant(0x7E00), 0x7C00)
    return convert((magnitude >= 0x47800000).choose(large, finite) | sign, "uint16")
