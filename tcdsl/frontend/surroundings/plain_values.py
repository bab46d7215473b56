"""Numbers, texts and the like: values that never change, and are the same if they have the same type and value."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

__all__ = ["PLAIN", "exact", "same_plain"]

#: The types of values that have no parts.
PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), range)


def same_plain(seen: Any, now: Any) -> bool:
    """Whether two values that are no containers are the same: 1 and 1.0 are not, nor the zeros; not-a-number is.

    So are values of Python's library and of NumPy, such as dates and fractions, if they are equal and written alike.
    """
    if seen is now:
        return True
    kind = type(seen)
    if kind is not type(now):
        return False
    if kind in PLAIN:
        return bool(exact(seen) == exact(now))
    if isinstance(seen, np.generic):
        return bool(seen.dtype == now.dtype and (seen.tobytes() == now.tobytes() or (_is_nan(seen) and _is_nan(now))))
    # Dates, fractions, paths and types of cells.
    if str(kind.__module__).partition(".")[0] in _VALUES and any("__eq__" in vars(each) for each in kind.__mro__[:-1]):
        try:
            return bool(seen == now) and repr(seen) == repr(now)
        except Exception:  # a comparison that raises says that the values are not plainly equal
            return False
    return False


_VALUES = sys.stdlib_module_names | {"numpy"}


def _is_nan(value: Any) -> bool:
    return bool(value.dtype.kind in "fc" and np.isnan(value))


def exact(value: Any) -> Any:
    """``value`` as a key that tells numbers apart that are equal, and knows not-a-number.

    Of what has parts, the key is the hash: whether two of them are the same, their classes do not tell.
    """
    kind = type(value)
    if kind is float:
        return kind, "nan" if math.isnan(value) else value.hex()
    if kind is complex:
        return kind, exact(value.real), exact(value.imag)
    if kind is tuple:
        return kind, tuple(map(exact, value))
    if kind is frozenset:
        return kind, frozenset(map(exact, value))
    if kind is range:
        return kind, (value.start, value.stop, value.step)
    return kind, value if kind in PLAIN else hash(value)
