"""`grad` and `value_and_grad`, with JAX's signatures, and what all derivatives that are functions have in common.

A function is an `@op`, or any Python function (lambdas included) that calls ops and does whole-array arithmetic. It is
staged as a whole; the derivative is a program like any other, so it prints, compiles, and has derivatives itself.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Generic

from tcdsl.errors import ConfigurationError, DataIndexError, DifferentiationError, RaisedError, ShapeError
from tcdsl.frontend.names.absent_attributes import missing_attribute
from tcdsl.frontend.staging.active_session import ACTIVE_SESSION
from tcdsl.locks import COMPILING, computed_once
from tcdsl.runtime.calling.structure import LEAF, Structure
from tcdsl.runtime.calls.content import Contents
from tcdsl.runtime.calls.table import CallTable
from tcdsl.runtime.inspection import Inspected, Parameters, Result
from tcdsl.runtime.transforms.derivation import Argnums, Derivation, kept, name_of, require_values, signature_of
from tcdsl.tracebacks import hide_library_frames, told_of_a_wrong_call, user_facing, with_large_stack

if TYPE_CHECKING:
    from tcdsl.frontend.symbols.symbols import SymbolicTensor
    from tcdsl.rows.ranks import RowRanks
    from tcdsl.runtime.calling.entries import Traced
    from tcdsl.runtime.transforms.derivations import DerivativeStaging

__all__ = [
    "DerivedFunction",
    "Gradient",
    "checked_argnums",
    "derived",
    "grad",
    "of_arguments",
    "value_and_grad",
]


class DerivedFunction(Inspected, Generic[Parameters, Result]):
    """A derivative that is a function: called like the function itself, on arrays or inside a decorated function."""

    def __init__(self, function: Callable[Parameters, object], derivation: Derivation, kind: str) -> None:
        functools.update_wrapper(self, function, updated=())
        self.__name__ = name_of(function)
        self.function = function
        self._kind = kind
        self._derivation = derivation
        self.signature = signature_of(function)
        self.calls = CallTable(self)

    def __getattr__(self, name: str) -> Any:
        raise missing_attribute("a derivative", name, self)

    @computed_once
    def staging(self) -> DerivativeStaging:
        """The staged programs."""
        # A fork waits for whoever holds it, and a module that is half imported is never finished in the child.
        with COMPILING:
            from tcdsl.runtime.transforms.derivations import kept_staging

            staging = kept_staging(self.function, self._derivation)
            self.calls.staged |= staging.calls.staged
            staging.calls = self.calls
            return staging

    def __call__(self, /, *positional: Parameters.args, **named: Parameters.kwargs) -> Result:
        """The derivative, arranged as JAX does."""
        arguments: Any = positional
        keywords: Any = named
        result: Result
        try:
            session = ACTIVE_SESSION.get()
            if session is None:
                if (keywords or self.signature.has_arrays) and len(arguments) < self.signature.most_positional:
                    arguments, keywords = self.signature.placed(arguments, keywords)
                again = self.calls.again
                done = (again and again(arguments, keywords, None)) or self.calls.found(arguments, keywords)
                result = self.staging.run_anew(self.signature, arguments, keywords) if done is None else done[0]
                return result
            from tcdsl.frontend.staging.subprograms import symbolic
            from tcdsl.runtime.transforms.derivations import put

            part, traced, given = self.staging.inline(session, arguments, keywords)
            rows = self._rows(given, part.output_rows)
            result = traced.structure.build(symbolic(session.builder, put(session, part, traced), rows))
            return result
        except (DataIndexError, RaisedError, ShapeError) as error:
            from tcdsl.runtime.transforms.derivations import fault_of_values

            inside = ACTIVE_SESSION.get() is not None
            found = error if inside else fault_of_values(self.function, arguments, keywords, error)
            hide_library_frames(found)
            raise found from None
        except RecursionError as error:
            return with_large_stack(functools.partial(self, *arguments, **keywords), error)
        except Exception as error:
            if (told := told_of_a_wrong_call(error)) is not None:
                raise told from None
            hide_library_frames(error)
            raise

    def _rows(
        self, arguments: Sequence[SymbolicTensor | None], outputs: Sequence[RowRanks | None]
    ) -> Sequence[RowRanks | None]:
        # A gradient has the rows of its argument.
        derivation = self.staging.derivation
        if not isinstance(derivation, Gradient):
            return ()
        positions = derivation.positions(name_of(self.function), len(arguments))
        found = [argument.rows for argument in (arguments[k] for k in positions) if argument is not None]
        if derivation.with_value:
            return (*outputs, *found)
        return (*found, *outputs[1:])

    def add_content(self, contents: Contents) -> None:
        """Add the function and what is derived from it."""
        derivation = self._derivation
        contents.put(type(derivation).__name__, *(getattr(derivation, each.name) for each in fields(derivation)))
        contents.put("rule", getattr(self.function, "oob", "check"), name_of(self.function))
        contents.add(self.function)

    def written_text(self) -> str:
        """The source of the function that is differentiated, as the user wrote it."""
        return self.function.written_text() if isinstance(self.function, Inspected) else self.source_text()

    def source_text(self) -> str:
        """The source of the function that is differentiated."""
        if isinstance(self.function, Inspected):
            return self.function.source_text()
        return inspect.getsource(self.function)

    def __reduce__(self) -> tuple[Any, ...]:
        return derived, (self.function, self._derivation, self._kind)

    def _repr_html_(self) -> str:
        # Beside its function, if that shows itself.
        shown = getattr(self.function, "_repr_html_", None)
        own = super()._repr_html_()
        if shown is None:
            return own
        return f'<div class="tcdsl beside"><div>{shown()}</div><div>{own}</div></div>'

    def __repr__(self) -> str:
        return f"<{self._kind} of {name_of(self.function)}>"


def derived(
    function: Callable[Parameters, object], derivation: Derivation, kind: str
) -> DerivedFunction[Parameters, Any]:
    """The derivative of ``function``: one object, as long as the function lives."""
    require_values(derivation.title, function)
    return kept(function, (DerivedFunction, derivation), lambda: DerivedFunction(function, derivation, kind))


def checked_argnums(argnums: Any) -> Argnums:
    """``argnums`` as an int or a tuple of ints. `ConfigurationError` for anything else."""
    if isinstance(argnums, int) and not isinstance(argnums, bool):
        return argnums
    if isinstance(argnums, Sequence) and all(isinstance(k, int) and not isinstance(k, bool) for k in argnums):
        return tuple(argnums)
    raise ConfigurationError.at(
        f"argnums={argnums!r} is neither a position nor a sequence of positions",
        hint="count positional arguments from 0, as in argnums=0 or argnums=(0, 2)",
    )


def of_arguments(argnums: Argnums) -> Structure:
    """One array per argument that a derivative is by: an array for a position, a tuple for several."""
    return LEAF if isinstance(argnums, int) else Structure("tuple", (LEAF,) * len(argnums))


@dataclass(frozen=True, slots=True)
class Gradient(Derivation):
    """The gradient of a loss of one element."""

    title = "grad"
    tapes = True
    has_aux: bool
    with_value: bool

    def derive(self, traced: Traced, wrt: Sequence[str], function: str) -> Traced:
        """The program of the gradient, and of the values that are returned with it."""
        from tcdsl.autodiff import gradient
        from tcdsl.runtime.transforms.derivations import value_and_aux

        loss, aux = value_and_aux(traced, self.has_aux, function, "loss")
        if loss.kind != "leaf":
            raise _no_loss(function, loss)
        program = gradient(traced.program, wrt, keep_outputs=self.with_value or self.has_aux or traced.checks)
        found, gradients = program.outputs[len(program.outputs) - len(wrt) :], of_arguments(self.argnums)
        values = program.outputs[: len(program.outputs) - len(wrt)]
        if self.with_value:
            results = traced.structure.leaves
            program = replace(program, outputs=(*values[:results], *found, *values[results:]))
            return replace(traced, program=program, structure=Structure("tuple", (traced.structure, gradients)))
        program = replace(program, outputs=(*found, *(values[1:] if self.has_aux else values)))
        structure = gradients if aux is None else Structure("tuple", (gradients, aux))
        return replace(traced, program=program, structure=structure)


def _no_loss(function: str, structure: Structure) -> Exception:
    several = structure.kind != "constant"
    described = f"a {structure.kind} of {len(structure.parts)}" if several else "no array"
    return DifferentiationError.at(
        f"{function}() returns {described}, not a loss of one element",
        hint="return one number, `(loss, aux)` with has_aux=True, or use tc.vjp with a cotangent per output or "
        "tc.jacobian",
        notes=(f"it returns {structure}",),
    )


@user_facing
def grad(
    fun: Callable[Parameters, object], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> DerivedFunction[Parameters, Any]:
    """``grad(loss)(w, x)``: the gradient of a loss of one element by the arguments ``argnums``.

    With ``has_aux``, ``fun`` returns ``(loss, aux)`` and the result is ``(gradient, aux)``. The gradient has the
    argument's type and shape. `DifferentiationError` for integer and bool arguments, `ShapeError` for a loss of several
    elements.
    """
    derivation = Gradient(checked_argnums(argnums), has_aux, with_value=False)
    return derived(fun, derivation, f"gradient by {derivation.argnums}")


@user_facing
def value_and_grad(
    fun: Callable[Parameters, Result], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> DerivedFunction[Parameters, tuple[Result, Any]]:
    """``loss, dw = value_and_grad(loss)(w, x)``: the value and the gradient, computed by one program."""
    derivation = Gradient(checked_argnums(argnums), has_aux, with_value=True)
    return derived(fun, derivation, f"value and gradient by {derivation.argnums}")
