"""Quantized tensors: exact values, and derivatives that pass straight through.

What quantizes rounds, so that its derivative is 0 almost everywhere. Training takes another one, that of the same
operator without its roundings: 1 where values are inside the range, 0 where they are cut off (the straight-through
estimator of Bengio, Leonard and Courville, arXiv:1308.3432).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from tcdsl.errors import DslSyntaxError, ShapeError, suggestion
from tcdsl.frontend.skriptnd.arithmetic import Arithmetic
from tcdsl.frontend.skriptnd.tensor_recording import TensorRecording
from tcdsl.frontend.skriptnd.text.syntax import Quantization
from tcdsl.frontend.skriptnd.values import Pack, ScalarValue, TensorValue, shown
from tcdsl.frontend.words.declared_stores import cell_of, cell_variables
from tcdsl.ir.build import apply, constant, index
from tcdsl.ir.expressions import Expr
from tcdsl.span import Span

__all__ = ["QUANTIZING", "Quantizer", "StraightArithmetic", "straight_through"]

#: The module of the library whose operators have these derivatives wherever they are called.
QUANTIZING = "quant"

_ROUNDINGS = ("round", "floor", "ceil")


@dataclass(slots=True)
class StraightArithmetic(Arithmetic):
    """``StraightArithmetic("float32", "float32", decisions)``: nothing is rounded, and integers are reals."""

    def data(self, value: Any, span: Span | None = None) -> Expr:
        """A value as an expression of the type that reals have."""
        if type(value) is int:
            return constant(float(value), self.real, span)
        return super(StraightArithmetic, self).data(value, span)

    def called(self, name: str, value: Any, span: Span | None) -> Any:
        """A built-in function; what rounds gives back what it takes."""
        if name in _ROUNDINGS and isinstance(value, ScalarValue):
            return value
        return super(StraightArithmetic, self).called(name, value, span)

    def _on_data(self, operator: str, left: Any, right: Any, kind: str, span: Span | None) -> ScalarValue:
        if operator not in ("<?", ">?"):
            return super(StraightArithmetic, self)._on_data(operator, left, right, kind, span)
        # The ends belong to the range: there, too, the derivative is that of what is cut off.
        cut, end = (left, right) if isinstance(left, ScalarValue) else (right, left)
        pair = (self.data(cut, span), self.data(end, span))
        inside = apply("ge" if operator == ">?" else "le", *pair)
        return ScalarValue(apply("where", inside, *pair), kind)

    _divided: ClassVar[Mapping[str, Callable[[Expr, Expr], Expr]]] = {
        **Arithmetic._divided,
        **dict.fromkeys(("/", "\\"), partial(apply, "div")),
    }


def straight_through(recording: TensorRecording, exact: TensorValue, smooth: TensorValue) -> TensorValue:
    """``exact`` with the derivative of ``smooth``."""
    dtype = recording.arithmetic.dtype(exact.type)
    cells = [*map(index, cell_variables(len(exact.shape)))]
    value, slope = (cell_of(recording.written(each).tensor, cells, dtype) for each in (exact, smooth))
    # The difference is 0, so that the value stays exact.
    moved = apply("sub", slope, apply("stop_gradient", slope))
    made = apply("add", apply("stop_gradient", value), moved)
    return recording.stored(exact.name, exact.type, exact.shape, made)


@dataclass(slots=True)
class Quantizer:
    """``Quantizer("conv.filter", node, attributes, region)``: a line of `@quantize`, for the tensor of that label."""

    label: str
    node: Quantization
    attributes: dict[str, Any]
    #: The block whose names the line may use.
    region: Any
    _used: bool = False

    def applied(self, value: Any, composition: Any) -> Any:
        """The tensor, or the pack of tensors, quantized."""
        self._used = True
        if isinstance(value, Pack):
            return Pack.of((self.applied(each, composition) for each in value), None, value.length)
        # Unless the graph is quantized this is only looked at, and adds no variables.
        exact = self._quantized(value, composition if composition.quantized else composition.quiet())
        if composition.session is None or self.node.call.operator.startswith(f"{QUANTIZING}."):
            return exact
        return straight_through(composition, exact, self._quantized(value, composition.straight()))

    def _quantized(self, value: TensorValue, composition: Any) -> TensorValue:
        name, span = self.node.call.operator, self.node.call.span
        inner = self.region.inner({self.node.tensor: value}, self.label)
        evaluator = replace(inner.evaluator, arithmetic=composition.arithmetic, position=None)
        results = replace(inner, composition=composition, evaluator=evaluator).operation(self.node.call, "")
        if len(results) != 1 or not isinstance(results[0], TensorValue):
            raise DslSyntaxError.at(f"`{name}` quantizes, and gives {len(results)} results", span)
        made = results[0]
        if made.type != value.type or not composition.same_shape(made.shape, value.shape, span):
            fact = f"`{name}` makes {made.type}{shown(made.shape)} of {value.type}{shown(value.shape)}"
            raise ShapeError.at(fact, span, "what quantizes keeps type and shape")
        return made

    def require_use(self, labels: set[str]) -> None:
        """Raise unless there was a tensor of that label; ``labels`` are those that there were."""
        if self._used:
            return
        hint = suggestion(self.label, sorted(labels), "those of an operator have labels where it is `public`")
        raise DslSyntaxError.at(f"there is no tensor `{self.node.tensor}` to quantize", self.node.span, hint)
