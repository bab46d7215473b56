"""The element types of Tensor Comprehensions, and what type two of them have together.

An integer and a floating type meet in the floating one, the wider floating type wins, and a signed and an unsigned
integer meet in the signed one of the larger width.
"""

from __future__ import annotations

from tcdsl.ir.dtypes import is_boolean, is_floating

__all__ = ["ELEMENT_TYPES", "at_least_float", "fits", "joined", "promoted"]

#: What the language writes, and the name of the type.
ELEMENT_TYPES = {
    "bool": "bool",
    "byte": "uint8",
    "double": "float64",
    "float": "float32",
    "half": "float16",
    **{f"float{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"{kind}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}


def _bits(dtype: str) -> int:
    return int("".join(filter(str.isdigit, dtype)))


def joined(left: str, right: str) -> str:
    """The type that holds values of both: ``joined("int32", "float16")`` is float16."""
    if left == right or is_boolean(right):
        return left
    if is_boolean(left):
        return right
    if is_floating(left) != is_floating(right):
        return left if is_floating(left) else right
    bits = max(_bits(left), _bits(right))
    if is_floating(left):
        return f"float{bits}"
    return f"uint{bits}" if left.startswith("uint") and right.startswith("uint") else f"int{bits}"


def promoted(*dtypes: str) -> str:
    """The type in which arithmetic on values of these types is done: as in C, truth values are integers there."""
    found = "bool"
    for dtype in dtypes:
        found = joined(found, dtype)
    return "int32" if is_boolean(found) else found


def at_least_float(*dtypes: str) -> str:
    """The type of a built-in function's result: floating, and float32 at least."""
    found = promoted(*dtypes)
    return found if found == "float64" else "float32"


def fits(source: str, target: str) -> bool:
    """Whether a tensor of type ``target`` takes values of type ``source`` without a cast: nothing is narrowed."""
    return joined(source, target) == target
