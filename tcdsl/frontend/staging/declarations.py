"""Sizes and targets that are declared: ``C = output(N, M)``, ``O: real[N, X]``, ``A.bind_dims(N, K)``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError, TcdslError
from tcdsl.frontend.staging.run_time_integers import RunsOnTensors, Specialize
from tcdsl.frontend.staging.session import session_of
from tcdsl.frontend.staging.target_states import Declared, Fresh
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize, SymbolicTensor, shape_of
from tcdsl.frontend.symbols.values import Value, int64_constant
from tcdsl.ir.dtypes import DTYPES, is_floating
from tcdsl.ir.expressions import Boundary, Expr
from tcdsl.ir.program import Tensor
from tcdsl.span import Span

__all__ = [
    "BegunInRound",
    "DeclaredInRound",
    "DeclaredTarget",
    "OfARound",
    "Unwritten",
    "given_extent",
    "output",
    "real_type",
]


class _NotWritten:
    # What has no cells yet: any use is an error that says so.
    __slots__ = ()

    def _read(self, *_: object) -> Any:
        raise self.fault()

    def fault(self) -> TcdslError:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._read()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __matmul__ = _read
    __rmatmul__ = __neg__ = __getitem__ = __iter__ = __bool__ = __pow__ = __call__ = __lt__ = __gt__ = __le__ = _read
    __ge__ = __rpow__ = __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __and__ = __or__ = __invert__ = _read
    __abs__ = __len__ = __index__ = __int__ = __float__ = __array_function__ = __pos__ = __contains__ = _read
    __rand__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __divmod__ = _read
    __rdivmod__ = __round__ = __trunc__ = __floor__ = __ceil__ = __complex__ = __delitem__ = __reversed__ = _read

    def __format__(self, spec: str) -> str:
        return str(self._read()) if spec else repr(self)

    def __array_ufunc__(self, *_: object, **_options: object) -> Any:
        return self._read()


def _on_state(operation: Callable[..., Any]) -> Callable[..., Any]:
    # In code on tensors of graphs a name that is read before it is written is state.
    def method(self: Unwritten, *others: Any) -> Any:
        session = session_of("a decorated function")
        if session.context.states is None:
            raise self.fault()
        return operation(session.context.states.read(self.name), *others)

    return method


class Unwritten(_NotWritten):
    """What a target's name holds before its first statement. Any use is an error that says so, unless it is state."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    __add__, __radd__ = _on_state(operator.add), _on_state(lambda state, other: other + state)
    __sub__, __rsub__ = _on_state(operator.sub), _on_state(lambda state, other: other - state)
    __mul__, __rmul__ = _on_state(operator.mul), _on_state(lambda state, other: other * state)
    __truediv__, __rtruediv__ = _on_state(operator.truediv), _on_state(lambda state, other: other / state)
    __pow__, __rpow__ = _on_state(operator.pow), _on_state(lambda state, other: other**state)
    __neg__, __getitem__ = _on_state(operator.neg), _on_state(operator.getitem)
    __lt__, __le__ = _on_state(operator.lt), _on_state(operator.le)
    __gt__, __ge__ = _on_state(operator.gt), _on_state(operator.ge)

    def fault(self) -> TcdslError:
        """The error of reading the name."""
        session = session_of("a decorated function")
        if session.may_be_whole:
            raise RunsOnTensors  # as arrays tensors say what sizes are
        return session.fault(
            DslSyntaxError,
            f"`{self.name}` is read before anything is written to it",
            f"a name that the function writes is its own: write it first, or make `{self.name}` a parameter",
        )


class OfARound(Unwritten):
    """What a name of a round holds after its loop, or one of an arm after its branch. Any use is an error.

    ``fact`` says what the name is, ``hint`` what to write instead, ``span`` is the loop, which is Python's once the
    name is used if it depends on the arguments ``numbers`` alone. A ``loop`` whose first round is Python's may have
    bound the name there: the function is staged again, with a loop that hands it on.
    """

    __slots__ = ("fact", "hint", "loop", "numbers", "span")

    def __init__(
        self,
        name: str,
        fact: str,
        hint: str,
        span: Span | None,
        numbers: frozenset[str],
        loop: object | None = None,
    ) -> None:
        super().__init__(name)
        self.numbers = numbers
        self.loop = loop
        self.fact = fact
        self.hint = hint
        self.span = span

    def fault(self, span: Span | None = None, letter: bool = False) -> TcdslError:
        """The error of reading the name, at ``span`` if it is known better than the line that runs.

        ``letter`` says that it stands where an index variable would.
        """
        session = session_of("a decorated function")
        if self.loop is not None:
            session.loops.outlasts(self.loop, self.name)
        if self.numbers:
            raise Specialize(self.numbers)
        place = span or session.location() or self.span
        more = "; an index variable takes another letter" if letter and "letter" not in self.hint else ""
        return DslSyntaxError.at(self.fact, place, self.hint + more)


@dataclass(frozen=True, slots=True, repr=False)
class DeclaredTarget(_NotWritten):
    """A target declared before its first statement.

    ``extents`` is ``None`` where `output` was called without any: they are inferred. ``dtype`` of ``None`` is the type
    of what is written. ``init`` says how state starts.
    """

    extents: tuple[Expr, ...] | None
    dtype: str | None = None
    span: Span | None = None
    init: Any = None

    def fault(self) -> TcdslError:
        """The error of reading the target, unless Python has left out what writes to it: then it is as declared."""
        session = session_of("a declared target")
        session.loops.left_as_declared(self, session.python_loops())
        return DslSyntaxError.at(
            "a declared target is read or returned before anything is written to it",
            self.span,
            "write it first: `C[i, j] = 0.0` fills it; what code on arrays keeps from call to call is a "
            "parameter, for which the call passes a buffer",
        )

    @property
    def shape(self) -> Any:
        """What is declared, of which nothing has to be written."""
        if self.extents is None:
            return self._read()
        return shape_of(session_of("a declared target").builder, self.extents)

    @property
    def ndim(self) -> Any:
        """How many axes are declared."""
        return len(self.shape)

    def __len__(self, *_: object) -> Any:
        return session_of("a declared target").builder.algebra.length(self)

    def __repr__(self) -> str:
        return "<declared target>"

    def __setitem__(self, key: object, value: object) -> None:
        raise session_of("a store").fault(
            DslSyntaxError,
            "Python stores into a declared target, which has no cells yet",
            "begin it by a statement of its own in this function, one target in each: `y[0] = a`, then `y[-1] = b`",
        )

    def state(self, name: str) -> Declared | Fresh:
        """What a statement on ``name`` needs to know."""
        if self.extents is None:
            return Fresh(name)
        return Declared(self.extents, self.dtype, name, real_type(session_of("a declared target").builder.inputs))


class DeclaredInRound(SymbolicTensor):
    """A declared ``target`` that a round may read before it writes it: its cells are those of rounds before.

    While its type is ``open``, because no statement has said it, its cells are as weak as whole numbers of Python.
    """

    __slots__ = ("open", "target")

    def __init__(self, tensor: SymbolicTensor, target: DeclaredTarget, open: bool) -> None:
        super().__init__(tensor.builder, tensor.name, tensor.element_type, tensor.extents, tensor.label)
        self.target = target
        self.open = open

    def cell(
        self,
        indices: Sequence[Expr],
        span: Span | None = None,
        boundaries: Sequence[Boundary] | None = None,
        fill: Expr | None = None,
    ) -> Value:
        """The value of the cell at ``indices``."""
        found = super().cell(indices, span, boundaries, fill)
        return replace(found, weak="int") if self.open else found


class BegunInRound(SymbolicTensor):
    """The cells of a target that was declared before a loop or branch: its first statement may be one of this round."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: SymbolicTensor) -> None:
        super().__init__(tensor.builder, tensor.name, tensor.element_type, tensor.extents, tensor.label)
        self.declared = tensor.declared
        self.tensor = tensor


def real_type(inputs: Sequence[Tensor]) -> str:
    """What ``real`` is where only numbers of Python are written: the floating type of the arrays given."""
    given = {tensor.dtype for tensor in inputs if tensor.shape and is_floating(tensor.dtype)}
    return str(np.result_type(*given)) if given else "float64"


def output(*extents: Any, dtype: str | None = None, init: Any = None) -> Any:
    """``C = output(N, M)`` declares a target with these extents; ``C = output()`` leaves them to be inferred.

    ``output((N, M))`` says the same, as NumPy's functions do, and ``output(())`` declares a tensor of rank 0. Extents
    are sizes or integers; ``dtype`` is the type of what is written unless given. The first statement on ``C`` starts it
    from the accumulator's neutral element, and cells out of the statement's range keep that (``language`` rule 3).

    In code on tensors ``m = output(init=1.0)`` introduces state that starts with this number, with an array, or with
    what a tensor then holds.
    """
    session = session_of("output()")
    if dtype is not None and dtype not in (*DTYPES, "real"):
        hint = f"write one of {', '.join(DTYPES)}, or real"
        raise session.fault(DtypeError, f"{dtype!r} as an element type", hint)
    if init is not None and session.context.states is None:
        fact = "`output(init=...)` begins state, which code on tensors keeps from run to run"
        raise session.fault(DslSyntaxError, fact, "on arrays make it a parameter, and pass the buffer")
    if init is not None and extents:
        fact = "`output(init=...)` with extents: state has those of what is stored into it"
        raise session.fault(DslSyntaxError, fact, "write `output(init=1.0)`, or `output(init=np.full_like(p, 1.0))`")
    if not extents:
        return DeclaredTarget(None, dtype, session.location(), init)
    if len(extents) == 1 and isinstance(extents[0], tuple | list):
        extents = tuple(extents[0])
    return DeclaredTarget(
        tuple(given_extent(value, session.location()) for value in extents), dtype, session.location()
    )


def given_extent(value: object, span: Span | None) -> Expr:
    """What a user gives as an extent, a size or an integer, as an expression."""
    match value:
        case SymbolicSize():
            return value.expr
        case SymbolicNumber(weak_kind="float"):
            raise DtypeError.at("an extent that is a float", span, "`//` divides sizes to an integer: `N // 2`")
        case SymbolicNumber():
            integers = session_of("output()").integers
            size = integers.size(value.expr, bound=True)
            if size is not None:
                return size
            known = integers.extent(value.expr)
            return given_extent(int(value) if known is None else known, span)
        case bool():
            pass
        case SymbolicArray() if (end := session_of("output()").integers.end(value)) is not None:
            return end
        case _ if hasattr(value, "__index__"):
            number = value.__index__()
            if number < 0:
                raise ShapeError.at(f"an extent of {number}", span, "extents are 0 or more")
            return int64_constant(number, span)
    raise DslSyntaxError.at(
        f"a {type(value).__name__} as an extent", span, "use integers and sizes such as `A.shape[0]`"
    )
