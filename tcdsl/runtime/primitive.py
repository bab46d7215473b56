"""New primitives, from two short pieces of code: what they compute, and their gradient.

::

    @cd
    def power(v, v1, v2, *, projections):
        v = v1 ** v2

    @cd
    def power_gradient(g, t1, t2, g1, *, projections):
        g1 += t2 * t1 ** (t2 - 1) * g

    pointpow = tc.primitive("pointpow", power, power_gradient)
    y = pointpow(x, 3.0)                      # arrays, tensors, and inside decorated functions

The code speaks of the operation's own operands by slot names (`tcdsl.frontend.logics.slots`); ``projections`` says how
their axes meet, and is made from the primitive's logic for the operands of each use.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.logics.logic_staging import PRODUCT, projections_of, stage_logic
from tcdsl.frontend.logics.projections import Projections
from tcdsl.frontend.logics.slots import PROJECTIONS, SLOTS, run_projected
from tcdsl.frontend.staging.session import Session, current_session, session_of
from tcdsl.frontend.staging.target_states import Existing
from tcdsl.frontend.symbols.graph_tensors import algebra_of
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.build import integer
from tcdsl.ir.dtypes import compute_dtype, is_floating
from tcdsl.rows.logic import aligned
from tcdsl.rows.ranks import RowRanks
from tcdsl.runtime.calling.arguments import Signature
from tcdsl.runtime.calling.results import as_tensor, filled
from tcdsl.runtime.calls.staged import StagedOperation
from tcdsl.runtime.function import DecoratedFunction
from tcdsl.runtime.inspection import Inspected
from tcdsl.runtime.rules.custom_rules import PULLBACK, Rule, RuleRecording
from tcdsl.span import Span
from tcdsl.tracebacks import user_facing

__all__ = ["UserPrimitive", "primitive"]

_LARGEST_ARITY = 3
_RESULT, _GRADIENT = ("v", "t", "lhs"), ("g",)


class UserPrimitive(Inspected):
    """A primitive that `primitive` has made: call it with as many operands as its code has slots."""

    staging: StagedOperation

    def __init__(self, name: str, forward: DecoratedFunction, gradient: DecoratedFunction | None, logic: str) -> None:
        self.__name__ = name
        self.logic = logic
        self.function: FunctionType = forward.function
        self._forward = forward
        self._gradient = gradient
        self.arity = max((SLOTS[each] for each in forward.template.parameters if each in SLOTS), default=0)
        #: The derivative rules by mode, for `tcdsl.runtime.rules.custom_rules`.
        self.rules: dict[str, Any] = {} if gradient is None else {PULLBACK: gradient}
        self.staging = StagedOperation(name, [f"x{k}" for k in range(1, self.arity + 1)], self.record)
        self.signature = self.staging.signature

    @user_facing
    def __call__(self, *operands: Any) -> Any:
        """The primitive on arrays, numbers and tensors. `DslSyntaxError` for another number of operands."""
        if len(operands) != self.arity:
            raise DslSyntaxError.at(
                f"the primitive `{self.__name__}` takes {self.arity} operand{'s' * (self.arity != 1)}, "
                f"not {len(operands)}"
            )
        algebra = algebra_of(operands)
        if algebra is not None:
            return algebra.logical(self.__name__, self.logic, operands, self.record)
        session = current_session()
        if session is not None:
            return self.record(session, operands)
        return self.staging.run(self.signature, operands, {})

    def record(self, session: Session, operands: Sequence[Any], sizes: Sequence[int] | None = None) -> SymbolicTensor:
        """Record the statements of one use, with their derivative rule. ``sizes`` are the result's, if given."""
        tensors = [as_tensor(session, each, f"x{k}") for k, each in enumerate(operands, 1)]
        if not self.rules or session.context.traces(self.rules):
            return self._run_forward(session, tensors, sizes)
        use = _Use(self, [tensor.rows for tensor in tensors])
        recording = RuleRecording(session, use, [(tensor.label, tensor) for tensor in tensors], {})
        result = self._run_forward(session, use.with_rows(recording.values), sizes)
        made: SymbolicTensor = recording.complete(result)
        made.rows = result.rows
        return made

    def _run_forward(
        self, session: Session, tensors: Sequence[SymbolicTensor], sizes: Sequence[int] | None
    ) -> SymbolicTensor:
        builder = session.builder
        # The shape of the result is that of a product with this logic; the product itself is no part of the program.
        with builder.nested():
            shaped = stage_logic(session, self.logic, PRODUCT, tensors, "add", reset=True, label=self.__name__)
            rows, dtype = shaped.rows, shaped.element_type
        extents = shaped.extents if sizes is None else tuple(map(integer, sizes))
        memory = filled(session, 0, dtype, extents, self.__name__)
        memory.rows, memory.memory = rows, True
        slots: dict[str, Any] = dict.fromkeys(_RESULT, memory)
        for k, tensor in enumerate(tensors, 1):
            slots.update({f"{name}{k}": tensor for name in ("v", "t", "rhs")})
        unwritten = memory.name
        run_projected(self._forward.template, slots, self._projections(session, tensors, memory))
        if memory.name == unwritten:
            raise DslSyntaxError.at(
                f"the forward code of the primitive `{self.__name__}` stores nothing into `v`, its result",
                self._forward.span,
                "assign the result: `v = v1 * v2`",
            )
        result = SymbolicTensor(builder, memory.name, memory.element_type, memory.extents, self.__name__)
        result.rows = rows
        return result

    def run_gradient(
        self, session: Session, tensors: Sequence[SymbolicTensor], result: SymbolicTensor, cotangent: SymbolicTensor
    ) -> tuple[SymbolicTensor | None, ...]:
        """The adjoints of the operands."""
        assert self._gradient is not None
        slots: dict[str, Any] = {**dict.fromkeys(_RESULT, result), **dict.fromkeys(_GRADIENT, cotangent)}
        adjoints: list[SymbolicTensor | None] = []
        for k, tensor in enumerate(tensors, 1):
            adjoint = None
            if is_floating(tensor.element_type):
                adjoint = filled(session, 0, compute_dtype(tensor.element_type), tensor.extents, f"g{k}")
                adjoint.rows, adjoint.memory = tensor.rows, True
            slots.update({f"{name}{k}": tensor for name in ("v", "t", "rhs")})
            slots[f"g{k}"] = adjoint
            adjoints.append(adjoint)
        run_projected(self._gradient.template, slots, self._projections(session, tensors, result))
        return tuple(adjoints)

    def _projections(self, session: Session, tensors: Sequence[SymbolicTensor], result: SymbolicTensor) -> Projections:
        return projections_of(session, self.logic, tensors, Existing(result))

    def source_text(self) -> str:
        """The code of what it computes."""
        return self._forward.source_text()

    @property
    def span(self) -> Span:
        """Where its code is defined."""
        return self._forward.span

    def __reduce__(self) -> tuple[Any, ...]:
        return UserPrimitive, (self.__name__, self._forward, self._gradient, self.logic)

    def __repr__(self) -> str:
        return f"<primitive {self.__name__}>"


class _Use:
    # One use of a primitive as a function with a derivative rule, and as that rule. What stands for the operands in a
    # rule has no rows of its own: they are those of this use.

    def __init__(self, owner: UserPrimitive, rows: Sequence[RowRanks]) -> None:
        self.__name__ = owner.__name__
        self.function = owner.function
        self.rules = owner.rules
        self.signature = Signature(lambda *arguments: None, self.__name__)
        self._owner = owner
        self._rows = rows

    def rule(self, mode: str) -> Rule:
        """The pullback, as a function of the operands, the result and its cotangent."""
        del mode
        return self

    def with_rows(self, tensors: Sequence[SymbolicTensor]) -> list[SymbolicTensor]:
        """The operands, or what stands for them, with the rows of this use."""
        for tensor, rows in zip(tensors, self._rows, strict=True):
            tensor.rows = rows
        return list(tensors)

    def inline(self, *arguments: Any, **_: Any) -> Any:
        """The adjoints."""
        session = session_of("a derivative rule")
        *operands, result, cotangent = arguments
        given = self.with_rows([as_tensor(session, each, f"x{k}") for k, each in enumerate(operands, 1)])
        result.rows = cotangent.rows = aligned(self._owner.logic, tuple(self._rows)).rows
        return self._owner.run_gradient(session, given, result, cotangent)

    @property
    def span(self) -> Span:
        """Where it is defined."""
        return self._owner.span


@user_facing
def primitive(name: str, forward: Any, gradient: Any = None, *, logic: str = ".") -> UserPrimitive:
    """``pointpow = tc.primitive("pointpow", power, power_gradient)``: a primitive of one's own.

    ``forward`` is a `@cd` function with a parameter ``projections`` that stores into ``v``, the result, and reads the
    operands ``v1``, ``v2``, ``v3``. ``gradient``, another one, adds to their gradients ``g1``, ``g2``, ``g3``; it may
    read ``g``, the gradient of the result, ``v``, and ``t1``, ``t2``, ``t3``. Without it, the gradient is derived from
    what ``forward`` says. ``logic`` says how the operands' axes meet: ``"."``, ``"@"``, ``"T"`` or a spec.
    `DslSyntaxError` if these functions are something else.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise DslSyntaxError.at(f"the name of a primitive is an identifier, not {name!r}")
    for role, function in (("forward", forward), ("gradient", gradient)):
        if function is None and role == "gradient":
            continue
        if not isinstance(function, DecoratedFunction) or not function.in_place:
            raise DslSyntaxError.at(
                f"the {role} code of the primitive `{name}` is no @cd function",
                hint="write `@cd def code(v, v1, *, projections): v = ...`",
            )
        if PROJECTIONS not in function.template.parameters:
            raise DslSyntaxError.at(
                f"the {role} code of the primitive `{name}` has no parameter `{PROJECTIONS}`",
                function.span,
                f"write `def {function.__name__}(..., *, {PROJECTIONS})`: it is what slot names speak of",
            )
    made = UserPrimitive(name, forward, gradient, logic)
    if not 1 <= made.arity <= _LARGEST_ARITY:
        raise DslSyntaxError.at(
            f"the forward code of the primitive `{name}` has no operands",
            forward.span,
            "name them v1, v2, v3 as parameters",
        )
    return made
