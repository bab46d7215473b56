"""`jacobian` and `hessian`: all derivatives of a function's results, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tcdsl.errors import ConfigurationError, DifferentiationError
from tcdsl.runtime.calling.structure import NOTHING, Structure
from tcdsl.runtime.inspection import Parameters
from tcdsl.runtime.transforms.derivation import Derivation
from tcdsl.runtime.transforms.gradients import (
    DerivedFunction,
    Gradient,
    checked_argnums,
    derived,
    of_arguments,
)
from tcdsl.tracebacks import user_facing

if TYPE_CHECKING:
    from tcdsl.runtime.calling.entries import Traced

__all__ = ["Hessian", "Jacobian", "hessian", "jacobian"]

_MODES = (None, "forward", "reverse")


@dataclass(frozen=True, slots=True)
class Jacobian(Derivation):
    """The derivatives of all outputs by all arguments."""

    title = "jacobian"
    tapes = True
    has_aux: bool
    mode: str | None

    def derive(self, traced: Traced, wrt: Sequence[str], function: str) -> Traced:
        """The program of the blocks, and of the auxiliary results."""
        from tcdsl.autodiff.jacobians.program_jacobians import jacobian as jacobian_program
        from tcdsl.runtime.transforms.derivations import floating_outputs, value_and_aux

        value, aux = value_and_aux(traced, self.has_aux, function, "outputs")
        floating = floating_outputs(traced, value)
        if not any(floating):
            raise DifferentiationError.at(
                f"{function}() returns no floating array, so it has no Jacobian",
                hint="integer and bool tensors have no derivatives: convert with float64(...), or return what they "
                "are computed from",
                notes=(f"it returns {value}",),
            )
        outputs = traced.program.outputs
        chosen = [name for name, real in zip(outputs, floating, strict=False) if real]
        kept = outputs if aux is not None else traced.checks
        program = jacobian_program(traced.program, wrt, chosen, self.mode, keep_outputs=kept)
        by_argument = of_arguments(self.argnums)
        blocks = value.with_leaves(by_argument if real else NOTHING for real in floating)
        beside = program.outputs[value.leaves if aux is not None else 0 : len(kept)]
        program = replace(program, outputs=(*program.outputs[len(kept) :], *beside))
        structure = blocks if aux is None else Structure("tuple", (blocks, aux))
        return replace(traced, program=program, structure=structure)


@dataclass(frozen=True, slots=True)
class Hessian(Derivation):
    """The Jacobian of the gradient, in forward mode over reverse mode."""

    title = "hessian"
    tapes = True
    has_aux: bool

    def derive(self, traced: Traced, wrt: Sequence[str], function: str) -> Traced:
        """The program of the blocks, and of the auxiliary results."""
        slopes = Gradient(self.argnums, self.has_aux, with_value=False).derive(traced, wrt, function)
        return Jacobian(self.argnums, self.has_aux, "forward").derive(slopes, wrt, function)


@user_facing
def jacobian(
    fun: Callable[Parameters, object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    mode: str | None = None,
) -> DerivedFunction[Parameters, Any]:
    """``jacobian(f)(x)[i, k]`` is the derivative of ``f(x)[i]`` by ``x[k]``.

    The result has the structure of the outputs; in the place of each array is one for each of ``argnums``, with the
    output's shape followed by the argument's, and the output's type; ``None`` stands for integer and bool outputs. With
    ``has_aux``, ``fun`` returns ``(outputs, aux)`` and the result is ``(jacobian, aux)``.

    ``mode`` is ``"forward"`` (a column per cell of the argument, all at once), ``"reverse"`` (a row per cell of the
    output), or ``None``: reverse by the arguments of higher rank than every output, else forward. Where a derivative is
    zero by structure, as off the diagonal for an elementwise function, nothing is computed.
    """
    if mode not in _MODES:
        raise ConfigurationError.at(
            f"mode={mode!r}", hint="choose 'forward', 'reverse', or None, which chooses by ranks"
        )
    by = checked_argnums(argnums)
    return derived(fun, Jacobian(by, has_aux, mode), f"Jacobian by {by}")


@user_facing
def hessian(
    fun: Callable[Parameters, object], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> DerivedFunction[Parameters, Any]:
    """``hessian(f)(x)[i, k]`` is the second derivative of ``f``, which returns one number, by ``x[i]`` and ``x[k]``.

    The shape is the argument's, twice. For several ``argnums`` the result is a tuple of tuples: ``result[a][b]`` has
    the shape of argument a, then that of argument b. Forward mode over reverse mode: the Hessian of ``x @ A @ x`` costs
    one addition per cell. With ``has_aux``, ``fun`` returns ``(value, aux)`` and the result is ``(hessian, aux)``.
    """
    by = checked_argnums(argnums)
    return derived(fun, Hessian(by, has_aux), f"Hessian by {by}")
