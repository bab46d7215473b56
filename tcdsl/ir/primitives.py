"""The table of primitives: one row says everything that the system knows about one scalar function.

To add a primitive, add a row, and a formula for the function that its ``code`` calls
(`tcdsl.targets.cpu.intrinsics.formulas`): the language recognizes its name, the interpreter evaluates ``evaluate``,
differentiation uses ``derivatives``, and the tests that the row needs are generated from it.

A derivative is text in the language itself. ``a``, ``b``, ``c`` are the arguments, ``y`` is the result and ``g`` the
derivative of the loss by the result; the row for the k-th argument gives what is added to the derivative by that
argument. A number takes the type of what stands beside it. ``"0"`` means that the derivative is zero wherever it exists
(rounding, comparison). ``None`` in place of the tuple means that there is no rule.

Sources: the primitives of OCANNL's tables (`relu_gate`, `sat01_gate`, `fst`, `snd`, `recip`, ...), derivatives from any
table of derivatives; ties of `max` and `min` share equally; `abs`, `relu` and `sat01` have derivative 0 at their kinks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

__all__ = ["LAZY", "PRIMITIVES", "Primitive"]


@dataclass(frozen=True, slots=True)
class Primitive:
    """One row of the table.

    ``kind`` says which types it takes and gives:

    ============  ==========================================  =============================
    kind          arguments                                   result
    ============  ==========================================  =============================
    ``real``      one floating type (integers are converted)  the same
    ``number``    one type, not bool                          the same
    ``any``       one type                                    the same
    ``compare``   one type                                    bool
    ``logical``   bool                                        bool
    ``bits``      one integer type, or bool                   the same
    ``integer``   one integer type                            the same
    ``select``    bool, then one type twice                   that type
    ============  ==========================================  =============================

    ``evaluate`` takes NumPy scalars. ``code`` is the Python expression of the generated code, with ``{0}``, ``{1}``,
    ``{2}`` for the arguments, by default a call of the row's name; the functions in it are those of
    `tcdsl.targets.cpu.intrinsics.formulas`. ``operator`` is
    the Python operator, if the language writes it as one. ``index`` marks what may stand in an affine index.
    ``interval`` is where tests may sample arguments.
    """

    name: str
    arity: int
    kind: str
    evaluate: Callable[..., Any]
    derivatives: tuple[str, ...] | None
    code: str = ""
    operator: str = ""
    index: bool = False
    interval: tuple[float, float] = (-2.0, 2.0)

    def __post_init__(self) -> None:
        if not self.code:
            parameters = ", ".join(f"{{{k}}}" for k in range(self.arity))
            object.__setattr__(self, "code", f"{self.name}({parameters})")


def _power(a: Any, b: Any) -> Any:
    # NumPy refuses integers to negative integer powers; generated code must agree, and gives 0 (1 or -1 for units).
    if np.issubdtype(np.asarray(a).dtype, np.integer) and b < 0:
        if abs(int(a)) == 1:
            return type(a)(int(a) ** (int(-b) % 2 + 2))
        return type(a)(0)
    return np.power(a, b)


def _maximum(a: Any, b: Any) -> Any:
    # Of two zeros the positive one; which one NumPy gives depends on their order and on the processor.
    found = np.maximum(a, b)
    return np.where((a == 0) & (b == 0), a + b, found)[()] if found.dtype.kind == "f" else found


def _minimum(a: Any, b: Any) -> Any:
    found = np.minimum(a, b)
    return np.where((a == 0) & (b == 0), -(-a - b), found)[()] if found.dtype.kind == "f" else found


def _sigmoid(a: Any) -> Any:
    return 1 / (1 + np.exp(-a))


def _gelu(a: Any) -> Any:
    return 0.5 * a * (1 + math.erf(a / math.sqrt(2)))


_ROWS = (
    # unary, any type
    Primitive("id", 1, "any", lambda a: a, ("g",), code="{0}"),
    Primitive("stop_gradient", 1, "any", lambda a: a, ("0",), code="{0}"),
    Primitive("neg", 1, "number", np.negative, ("-g",), code="-{0}", operator="-", index=True),
    Primitive("abs", 1, "number", np.abs, ("g * sign(a)",), code="absolute({0})"),
    Primitive("square", 1, "number", np.square, ("2 * g * a",)),
    Primitive("relu", 1, "number", lambda a: _maximum(a, 0), ("relu_gate(a, g)",)),
    Primitive("sat01", 1, "number", lambda a: np.minimum(_maximum(a, type(a)(0)), type(a)(1)), ("sat01_gate(a, g)",)),
    Primitive("sign", 1, "number", np.sign, ("0",)),
    # unary, real
    Primitive("floor", 1, "real", np.floor, ("0",)),
    Primitive("ceil", 1, "real", np.ceil, ("0",)),
    Primitive("round", 1, "real", np.rint, ("0",), code="rint({0})"),
    Primitive("exp", 1, "real", np.exp, ("g * y",)),
    Primitive("exp2", 1, "real", np.exp2, ("g * y * log(2)",)),
    Primitive("expm1", 1, "real", np.expm1, ("g * (y + 1)",)),
    Primitive("log", 1, "real", np.log, ("g / a",), interval=(0.1, 3.0)),
    Primitive("log2", 1, "real", np.log2, ("g / (a * log(2))",), interval=(0.1, 3.0)),
    Primitive("log1p", 1, "real", np.log1p, ("g / (1 + a)",), interval=(-0.8, 3.0)),
    Primitive("sin", 1, "real", np.sin, ("g * cos(a)",)),
    Primitive("cos", 1, "real", np.cos, ("-(g * sin(a))",)),
    Primitive("tan", 1, "real", np.tan, ("g * (1 + y * y)",), interval=(-1.2, 1.2)),
    Primitive("asin", 1, "real", np.arcsin, ("g * recip_sqrt(1 - a * a)",), interval=(-0.9, 0.9)),
    Primitive("acos", 1, "real", np.arccos, ("-(g * recip_sqrt(1 - a * a))",), interval=(-0.9, 0.9)),
    Primitive("atan", 1, "real", np.arctan, ("g / (1 + a * a)",)),
    Primitive("sinh", 1, "real", np.sinh, ("g * cosh(a)",)),
    Primitive("cosh", 1, "real", np.cosh, ("g * sinh(a)",)),
    Primitive("tanh", 1, "real", np.tanh, ("g * (1 - y * y)",)),
    Primitive("asinh", 1, "real", np.arcsinh, ("g * recip_sqrt(a * a + 1)",)),
    Primitive("acosh", 1, "real", np.arccosh, ("g * recip_sqrt(a * a - 1)",), interval=(1.2, 3.0)),
    Primitive("atanh", 1, "real", np.arctanh, ("g / (1 - a * a)",), interval=(-0.8, 0.8)),
    Primitive("sqrt", 1, "real", np.sqrt, ("g / (2 * y)",), interval=(0.1, 3.0)),
    Primitive("recip", 1, "real", np.reciprocal, ("-(g * y * y)",), interval=(0.2, 2.0)),
    Primitive("recip_sqrt", 1, "real", lambda a: 1 / np.sqrt(a), ("g * y / (-2 * a)",), interval=(0.2, 2.0)),
    Primitive("sigmoid", 1, "real", _sigmoid, ("g * y * (1 - y)",)),
    Primitive("softplus", 1, "real", lambda a: np.logaddexp(a, 0), ("g * sigmoid(a)",)),
    Primitive("erf", 1, "real", lambda a: np.float64(math.erf(a)), ("g * exp(-(a * a)) * (2 / sqrt(pi))",)),
    Primitive("gelu", 1, "real", _gelu, ("g * (0.5 * (1 + erf(a / sqrt(2))) + a * exp(-0.5 * a * a) / sqrt(2 * pi))",)),
    Primitive("silu", 1, "real", lambda a: a * _sigmoid(a), ("g * (sigmoid(a) * (1 + a * (1 - sigmoid(a))))",)),
    # logic and comparison
    Primitive("not_", 1, "logical", np.logical_not, None, code="not {0}", operator="not"),
    Primitive("and_", 2, "logical", np.logical_and, None, code="{0} and {1}", operator="and"),
    Primitive("or_", 2, "logical", np.logical_or, None, code="{0} or {1}", operator="or"),
    Primitive("lt", 2, "compare", np.less, ("0", "0"), code="{0} < {1}", operator="<"),
    Primitive("le", 2, "compare", np.less_equal, ("0", "0"), code="{0} <= {1}", operator="<="),
    Primitive("gt", 2, "compare", np.greater, ("0", "0"), code="{0} > {1}", operator=">"),
    Primitive("ge", 2, "compare", np.greater_equal, ("0", "0"), code="{0} >= {1}", operator=">="),
    Primitive("eq", 2, "compare", np.equal, ("0", "0"), code="{0} == {1}", operator="=="),
    Primitive("ne", 2, "compare", np.not_equal, ("0", "0"), code="{0} != {1}", operator="!="),
    # binary arithmetic
    Primitive("fst", 2, "any", lambda a, b: a, ("g", "0")),
    Primitive("snd", 2, "any", lambda a, b: b, ("0", "g")),
    Primitive("add", 2, "number", np.add, ("g", "g"), code="{0} + {1}", operator="+", index=True),
    Primitive("sub", 2, "number", np.subtract, ("g", "-g"), code="{0} - {1}", operator="-", index=True),
    Primitive("mul", 2, "number", np.multiply, ("g * b", "g * a"), code="{0} * {1}", operator="*", index=True),
    Primitive(
        "div", 2, "real", np.divide, ("g / b", "-(g / b * y)"), code="{0} / {1}", operator="/", interval=(0.2, 2.0)
    ),
    Primitive("floor_div", 2, "number", np.floor_divide, ("0", "0"), operator="//", index=True),
    Primitive("mod", 2, "number", np.remainder, ("g", "-(g * floor(a / b))"), operator="%", index=True),
    Primitive(
        "pow",
        2,
        "number",
        _power,
        ("g * b * pow(a, b - 1) if b != 0 or a != 0 else 0", "g * y * log(a) if a > 0 else 0"),
        code="power({0}, {1})",
        operator="**",
        interval=(0.2, 2.0),
    ),
    Primitive("relu_gate", 2, "number", lambda a, b: np.where(a > 0, b, 0), ("0", "relu_gate(a, g)")),
    Primitive("sat01_gate", 2, "number", lambda a, b: np.where((a > 0) & (a < 1), b, 0), ("0", "sat01_gate(a, g)")),
    Primitive(
        "max",
        2,
        "number",
        _maximum,
        ("g if a > b else 0.5 * g if a == b else 0", "g if b > a else 0.5 * g if a == b else 0"),
        code="maximum({0}, {1})",
        index=True,
    ),
    Primitive(
        "min",
        2,
        "number",
        _minimum,
        ("g if a < b else 0.5 * g if a == b else 0", "g if b < a else 0.5 * g if a == b else 0"),
        code="minimum({0}, {1})",
        index=True,
    ),
    Primitive("atan2", 2, "real", np.arctan2, ("g * b / (a * a + b * b)", "-(g * a / (a * a + b * b))")),
    # bits
    Primitive("bit_and", 2, "bits", np.bitwise_and, None, code="{0} & {1}", operator="&"),
    Primitive("bit_or", 2, "bits", np.bitwise_or, None, code="{0} | {1}", operator="|"),
    Primitive("bit_xor", 2, "bits", np.bitwise_xor, None, code="{0} ^ {1}", operator="^"),
    Primitive("bit_not", 1, "bits", np.invert, None, operator="~"),
    Primitive("shift_left", 2, "integer", np.left_shift, None, code="left_shift({0}, {1})", operator="<<"),
    Primitive("shift_right", 2, "integer", np.right_shift, None, code="right_shift({0}, {1})", operator=">>"),
    # ternary
    Primitive(
        "where",
        3,
        "select",
        lambda c, a, b: a if c else b,
        ("0", "g if a else 0", "0 if a else g"),
        code="{1} if {0} else {2}",
    ),
    Primitive("fma", 3, "number", lambda a, b, c: a * b + c, ("g * b", "g * a", "g"), code="{0} * {1} + {2}"),
)

PRIMITIVES: Mapping[str, Primitive] = MappingProxyType({row.name: row for row in _ROWS})

LAZY = frozenset(("where", "and_", "or_"))
"""The primitives that evaluate their arguments from left to right, and the later ones only where they are needed."""
