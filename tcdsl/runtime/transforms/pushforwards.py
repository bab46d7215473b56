"""`jvp` and `hvp`: derivatives along directions, in forward mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcdsl.errors import ConfigurationError, DataIndexError, RaisedError
from tcdsl.frontend.staging.active_session import ACTIVE_SESSION
from tcdsl.ir.dtypes import is_floating
from tcdsl.runtime.calling.arguments import Signature, tensor_argument
from tcdsl.runtime.calling.structure import LEAF, NOTHING, Structure
from tcdsl.runtime.calls.content import Contents
from tcdsl.runtime.calls.table import CallTable
from tcdsl.runtime.transforms.derivation import Derivation, kept, name_of, require_values
from tcdsl.runtime.transforms.gradients import Gradient
from tcdsl.tracebacks import user_facing

if TYPE_CHECKING:
    from tcdsl.frontend.staging.session import Session
    from tcdsl.ir.program import Tensor
    from tcdsl.rows.ranks import RowRanks
    from tcdsl.runtime.calling.entries import Entry, Traced
    from tcdsl.runtime.rules.directions import Direction
    from tcdsl.runtime.transforms.derivations import DerivativeStaging

__all__ = ["Pushforward", "argument_dtype", "hvp", "jvp"]


@dataclass(frozen=True, slots=True)
class Pushforward(Derivation):
    """Outputs and their derivatives along a tangent for each of ``argnums``."""

    title = "jvp"
    has_aux: bool = False
    with_value: bool = True

    def derive(self, traced: Traced, wrt: Sequence[str], function: str) -> Traced:
        """The program of outputs, tangents and auxiliary results; its last inputs are the tangents."""
        from tcdsl.autodiff import tangent
        from tcdsl.runtime.transforms.derivations import floating_outputs, value_and_aux

        value, aux = value_and_aux(traced, self.has_aux, function, "outputs")
        floating = floating_outputs(traced, value)
        outputs = traced.program.outputs
        chosen = [name for name, real in zip(outputs, floating, strict=False) if real]
        program = tangent(traced.program, wrt, outputs=chosen, keep_outputs=self.with_value or traced.checks)
        tangents = program.outputs[len(program.outputs) - len(chosen) :]
        pushed = value.with_leaves(LEAF if real else NOTHING for real in floating)
        if not self.with_value:
            program = replace(program, outputs=(*tangents, *program.outputs[: len(traced.checks)]))
            return replace(traced, program=program, structure=pushed)
        kept = program.outputs[: len(outputs)]
        parts = (value, pushed) if aux is None else (value, pushed, aux)
        program = replace(program, outputs=(*kept[: value.leaves], *tangents, *kept[value.leaves :]))
        return replace(traced, program=program, structure=Structure("tuple", parts))


@dataclass(frozen=True, slots=True)
class HessianProduct(Derivation):
    """The derivative of the gradient by ``argnums`` along tangents of those ``moved``: forward over reverse."""

    title = "hvp"
    tapes = True
    moved: tuple[int, ...] = ()

    def derive(self, traced: Traced, wrt: Sequence[str], function: str) -> Traced:
        """The program of the products, one for each argument."""
        slopes = Gradient(self.argnums, has_aux=False, with_value=False).derive(traced, wrt, function)
        every = (self.argnums,) if isinstance(self.argnums, int) else self.argnums
        pushed = [name for position, name in zip(every, wrt, strict=True) if position in self.moved]
        return Pushforward(self.moved, with_value=False).derive(slopes, pushed, function)


@user_facing
def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """``outputs, tangents_out = jvp(f, (x, w), (dx, dw))``: the derivative of ``f`` at ``(x, w)`` along ``(dx, dw)``.

    A tangent has the shape of its argument and a type that converts to its type. ``None`` for a tangent means an
    argument that is not moved; integer and bool arguments take nothing else (or zeros). ``tangents_out`` has the
    structure of the outputs, with ``None`` in the places of integers and bools. With ``has_aux``, ``fun`` returns
    ``(outputs, aux)`` and the result is ``outputs, tangents_out, aux``. `ShapeError` and `DtypeError` for tangents that
    do not fit.
    """
    primals, tangents = _pairs("jvp", fun, primals, tangents)
    return _pushed("jvp", fun, primals, tangents, lambda _, moved: Pushforward(moved, has_aux))


@user_facing
def hvp(fun: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """``hvp(f, (x,), (v,))``: the Hessian of ``f``, which returns one number, times ``v``, without the Hessian.

    Forward mode over reverse mode: a small multiple of the work of ``f``. ``primals`` and ``tangents`` are tuples, and
    so is the result, with ``None`` for integer and bool arguments; or all three are single arrays. ``None`` for a
    tangent means an argument that is not moved; the product has its part for that one too.
    """
    single = not isinstance(primals, tuple | list)
    primals, tangents = _pairs("hvp", fun, (primals,) if single else primals, (tangents,) if single else tangents)
    if _are_alike(primals, tangents):
        products = _pushed("hvp", fun, primals, tangents, HessianProduct)
        return products[0] if single else products
    moved = [is_floating(argument_dtype(fun, k, primal)) for k, primal in enumerate(primals)]
    found = iter(_pushed("hvp", fun, primals, tangents, HessianProduct))
    results = tuple(next(found) if real else None for real in moved)
    return results[0] if single else results


def _pairs(derivative: str, fun: Any, primals: Any, tangents: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    require_values(derivative, fun)
    for name, values in (("primals", primals), ("tangents", tangents)):
        if not isinstance(values, tuple | list):
            raise ConfigurationError.at(
                f"tc.{derivative} takes its {name} as a tuple, not as an object of type {type(values).__name__}",
                hint=f"write tc.{derivative}(f, (x,), (dx,)): one entry per argument",
            )
    if len(primals) != len(tangents):
        raise ConfigurationError.at(
            f"tc.{derivative} of {name_of(fun)}() has {len(primals)} primals and {len(tangents)} tangents",
            hint="pass one tangent per argument, None for those that do not move",
        )
    return tuple(primals), tuple(tangents)


def argument_dtype(fun: Any, position: int, value: Any) -> str:
    """The element type of an argument; Python's numbers are int64, float64 and bool, what is left out is None."""
    from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber

    if isinstance(value, SymbolicArray):
        return str(value.dtype)
    if isinstance(value, SymbolicNumber):
        return {"int": "int64", "float": "float64"}.get(value.weak_kind, value.weak_kind)
    if value is None:
        return "None"
    return tensor_argument(name_of(fun), f"argument {position}", position, value).dtype


def _pushed(
    derivative: str,
    fun: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    derivation: Callable[[tuple[int, ...], tuple[int, ...]], Derivation],
) -> Any:
    """The derivative of ``fun`` along those of ``tangents`` that are given.

    ``derivation`` is of the positions of floating arguments, and of those that are moved.
    """
    session = ACTIVE_SESSION.get()
    calls: _PushedCalls | None = None
    if session is None and _are_alike(primals, tangents):
        every = tuple(range(len(primals)))
        by = derivation(every, every)
        calls = kept(fun, (_PushedCalls, by), lambda: _PushedCalls(fun, by, len(primals)))
        done = calls.calls.run((*primals, *tangents), {})
        if done is not None:
            return done[0]
    from tcdsl.runtime.rules.directions import Direction
    from tcdsl.runtime.transforms.derivations import fault_of_values, kept_staging

    floating: list[int] = []
    directions: dict[int, Direction] = {}
    for k, (primal, given) in enumerate(zip(primals, tangents, strict=True)):
        direction = Direction.tangent(derivative, name_of(fun), k, argument_dtype(fun, k, primal))
        if not is_floating(direction.dtype):
            direction.nothing(given)
            continue
        floating.append(k)
        if given is not None:
            directions[k] = direction
    staging = kept_staging(fun, derivation(tuple(floating), tuple(directions)))
    if session is not None:
        return _pushed_inline(session, staging, primals, {k: (d, tangents[k]) for k, d in directions.items()})
    call = staging.signature.call(primals, {})
    seeds = [d.array(tangents[k], call.at(k).array.shape) for k, d in directions.items()]
    entry, arrays = staging.entry(call, seeds)
    try:
        result = entry.run(arrays)
    except (DataIndexError, RaisedError) as error:
        raise fault_of_values(fun, primals, {}, error) from None
    if calls is not None:
        calls.remember(entry, (*primals, *tangents))
    return result


def _pushed_inline(
    session: Session,
    staging: DerivativeStaging,
    primals: Sequence[Any],
    directions: Mapping[int, tuple[Direction, Any]],
) -> Any:
    from tcdsl.frontend.staging.subprograms import symbolic
    from tcdsl.runtime.transforms.derivations import put

    part, traced, given = staging.inline(session, primals, {})
    arguments = {k: tensor for k, tensor in enumerate(given) if tensor is not None}
    seeds = traced.program.inputs[len(traced.program.inputs) - len(directions) :]
    more = {
        seed.name: direction.tensor(session, value, arguments[k].extents)
        for seed, (k, (direction, value)) in zip(seeds, directions.items(), strict=True)
    }
    made = put(session, part, traced, more)
    rows = _rows(
        staging.derivation, traced.structure, made, part.output_rows, [tensor.rows for tensor in arguments.values()]
    )
    return traced.structure.build(symbolic(session.builder, made, rows))


def _rows(
    derivation: Derivation,
    structure: Structure,
    made: Sequence[Tensor],
    outputs: Sequence[RowRanks | None],
    arguments: Sequence[RowRanks],
) -> Sequence[RowRanks | None]:
    # A tangent has the rows of its output, a product with the Hessian those of its argument.
    if not isinstance(derivation, Pushforward):
        return arguments
    count = structure.parts[0].leaves
    floating = [k for k, tensor in enumerate(made[:count]) if is_floating(tensor.dtype)]
    return (*outputs[:count], *(outputs[k] for k in floating), *outputs[count:])


# -- calls like earlier ones, or kept on disk --


def _are_alike(primals: Sequence[Any], tangents: Sequence[Any]) -> bool:
    """Whether all primals are floating arrays, and each tangent has the shape and the type of its primal."""
    return all(
        type(primal) is np.ndarray is type(tangent)
        and primal.dtype.kind == "f"
        and primal.dtype == tangent.dtype
        and primal.shape == tangent.shape
        for primal, tangent in zip(primals, tangents, strict=True)
    )


class _PushedCalls:
    """The calls of ``derivation`` of ``function``, by all of its ``count`` arguments, on tensors `_are_alike`."""

    def __init__(self, function: Callable[..., Any], derivation: Derivation, count: int) -> None:
        self._function, self._derivation = function, derivation
        self.__name__ = f"{derivation.title}_{name_of(function)}"
        operands = (*(f"x{k}" for k in range(count)), *(f"d_x{k}" for k in range(count)))
        self.signature = Signature.of_operands(operands, self.__name__)
        self.calls = CallTable(self)

    def remember(self, entry: Entry, arguments: tuple[Any, ...]) -> None:
        """Serve calls like this one, which ``entry`` has served, in this process and in later ones."""
        count = len(arguments) // 2
        if entry.inputs[:count] != tuple(range(count)) or entry.constants or len(entry.inputs) > count:
            return  # it reads arrays around the function, or is made for numbers
        call = self.signature.call(arguments, {})
        self.calls.remember(replace(entry, inputs=tuple(range(len(arguments)))), call, arguments, {})

    def add_content(self, contents: Contents) -> None:
        """Add the function and what is derived from it."""
        derivation = self._derivation
        contents.put("along", *(getattr(derivation, each.name) for each in fields(derivation)))
        contents.put("rule", derivation.title, getattr(self._function, "oob", "check"), name_of(self._function))
        contents.add(self._function)
