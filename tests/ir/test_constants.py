from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from tcdsl.ir.build import apply, constant
from tcdsl.ir.expressions import Constant, IndexValue, SizeValue


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (constant(0.0, "float32"), constant(0.0, "float32"), True),
        (constant(0.0, "float32"), constant(-0.0, "float32"), False),
        (constant(-0.0, "float32"), constant(-0.0, "float32"), True),
        (constant(0.0, "float32"), constant(0.0, "float64"), False),
        (Constant(math.nan, "float64"), Constant(float(np.float64("nan")), "float64"), True),
        (Constant(math.nan, "float64"), Constant(math.nan, "float32"), False),
        (constant(1, "bool"), constant(1, "int64"), False),
        (constant(2**63, "uint64"), constant(2**63 + 1, "uint64"), False),
        (constant(math.inf, "float64"), constant(-math.inf, "float64"), False),
    ],
)
def test_constants_are_equal_if_they_are_the_same_number(one: Constant, other: Constant, equal: bool) -> None:
    assert (one == other) is equal
    assert not equal or hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(one)) == one


def test_nodes_of_other_kinds_differ() -> None:
    assert constant(1, "int64") != 1
    assert SizeValue("i") != IndexValue("i")


def test_a_choice_between_zeros_stays() -> None:
    condition = apply("lt", IndexValue("i"), SizeValue("N"))
    zero, negative = constant(0.0, "float64"), constant(-0.0, "float64")
    assert apply("where", condition, zero, zero) == zero
    assert apply("where", condition, zero, negative) != zero
