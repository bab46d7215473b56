"""Functions of Python in ops: ``tc.interop.host(function, shape=..., vjp=..., jvp=...)``.

In a function that is being staged a call is recorded (`tcdsl.frontend.arrays.host_calls`), with its derivative rules;
elsewhere it is made at once, on arrays, under the same checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from tcdsl.errors import DifferentiationError, DslSyntaxError, DtypeError, ShapeError
from tcdsl.frontend.arrays.host_calls import record_host_call
from tcdsl.frontend.staging.active_session import ACTIVE_SESSION
from tcdsl.frontend.staging.declarations import given_extent
from tcdsl.frontend.staging.session import Session, materialized
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.dtypes import DTYPES, compute_dtype, is_floating
from tcdsl.ir.interpreter.host_code import HostCode
from tcdsl.runtime.calling.arguments import tensor_argument
from tcdsl.runtime.calling.results import copied
from tcdsl.runtime.rules.custom_rules import RuleRecording
from tcdsl.span import Span
from tcdsl.tracebacks import user_facing

__all__ = ["HostFunction"]


class HostFunction:
    """What `tcdsl.interop.host` makes: called with arrays, in an op or outside."""

    def __init__(
        self,
        function: Callable[..., Any],
        shape: Callable[..., Any],
        vjp: Callable[..., Any] | None = None,
        jvp: Callable[..., Any] | None = None,
    ) -> None:
        name = getattr(function, "__name__", type(function).__name__)
        self.__name__ = name if name.isidentifier() else "host_function"
        self.__doc__ = getattr(function, "__doc__", None)
        #: What derivative rules see of a function: it reads nothing around it.
        self.function: Any = _nothing
        self._called, self._shape = function, shape
        self._given = function, shape, vjp, jvp
        self.rules: dict[str, Any] = {}
        if vjp is not None:
            self.rules["pullback"] = _HostRule(self, f"{self.__name__}_vjp", vjp, "pullback")
        if jvp is not None:
            self.rules["pushforward"] = _HostRule(self, f"{self.__name__}_jvp", jvp, "pushforward")
        self._codes: dict[Any, HostCode] = {}

    def rule(self, mode: str) -> Any:
        """The derivative rule of ``mode``."""
        return self.rules[mode]

    @user_facing
    def __call__(self, *arrays: Any) -> Any:
        """The result, or the tuple of results."""
        session = ACTIVE_SESSION.get()
        if session is None:
            given = [tensor_argument(self.__name__, f"argument {k}", k, each).array for k, each in enumerate(arrays)]
            several, declared = self.declared(given)
            code = self.code(self.__name__, self._called, [(str(a.dtype), a.ndim) for a in given], declared)
            found = code.run(given, [tuple(map(int, extents)) for extents, _ in declared])
            return tuple(found) if several else found[0]
        values = [operand(session, each, f"{self.__name__}_{k}") for k, each in enumerate(arrays)]
        recording = RuleRecording(session, self, [(each.label, each) for each in values], {})
        return recording.complete(self._recorded(session, values))

    def _recorded(self, session: Session, values: Sequence[SymbolicTensor]) -> Any:
        several, declared = self.declared(values)
        types = [(each.element_type, each.rank) for each in values]
        code = self.code(self.__name__, self._called, types, declared)
        shapes = [[given_extent(each, session.location()) for each in extents] for extents, _ in declared]
        made = record_host_call(session, code, values, shapes, self.__name__)
        return tuple(made) if several else made[0]

    def declared(self, arrays: Sequence[Any]) -> tuple[bool, list[tuple[tuple[Any, ...], str]]]:
        """What ``shape`` says: whether there are several results, and their shapes and types."""
        said = self._shape(*arrays)
        several = isinstance(said, list) or (isinstance(said, tuple) and bool(said) and all(map(_is_result, said)))
        results = [_result(each) for each in (said if several else [said])]
        floating = [_type_of(each) for each in arrays if is_floating(_type_of(each))]
        usual = str(np.result_type(*floating)) if floating else "float64"
        found = []
        for extents, dtype in results:
            if extents is None:
                fact = f"the shape of the host function `{self.__name__}` is given as {said!r}"
                hint = "`shape` returns a tuple of sizes, (sizes, dtype), or a list of these for several results"
                raise ShapeError.at(fact, hint=hint)
            name = usual if dtype is None else str(np.dtype(dtype))
            if name not in DTYPES:
                raise DtypeError.at(
                    f"the host function `{self.__name__}` declares the type {name}", hint=f"use {', '.join(DTYPES)}"
                )
            found.append((extents, name))
        return several, found

    def code(
        self,
        name: str,
        function: Callable[..., Any],
        types: Sequence[tuple[str, int]],
        declared: Sequence[tuple[Any, str]],
    ) -> HostCode:
        """``function`` for arrays of these types and ranks."""
        made = tuple([(dtype, len(extents)) for extents, dtype in declared])
        key = name, tuple(types), made
        if key not in self._codes:
            native = getattr(function, "native", None)
            found = None if native is None else native(tuple(types), made)
            self._codes[key] = HostCode(name, function, tuple(types), made, found)
        return self._codes[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return HostFunction, self._given

    def __repr__(self) -> str:
        return f"<host function {getattr(self._called, '__name__', self.__name__)}>"


class _HostRule:
    """A derivative that Python computes: a rule as `tcdsl.runtime.rules.custom_rules.Rule` is one."""

    signature: Any = SimpleNamespace(keyword_only=(), takes_any_keyword=False, positional_count=None)
    span: Span | None = None

    def __init__(self, host: HostFunction, name: str, function: Callable[..., Any], mode: str) -> None:
        self.__name__ = name
        self._host, self._function, self._mode = host, function, mode

    def inline(self, *given: Any, **_: Any) -> Any:
        """Record the call of the rule on what `tcdsl.runtime.rules.custom_rules.RuleCall` gives."""
        session = ACTIVE_SESSION.get()
        assert session is not None
        if self._mode == "pullback":
            *inputs, results, seeds = given
        else:
            count = len(given) // 2
            inputs, results, seeds = list(given[:count]), given[count], given[count + 1 :]
        several = isinstance(results, tuple)
        made = [*results] if several else [results]
        seeds = list(seeds) if isinstance(seeds, tuple) else [seeds]
        operands = [*inputs, *[each for each in seeds if each is not None]]
        if isinstance(self._function, HostFunction):
            return self._function(*operands)
        wanted = inputs if self._mode == "pullback" else made
        floating = [is_floating(each.element_type) for each in wanted]
        declared = [
            (each.extents, compute_dtype(each.element_type)) for each, is_ in zip(wanted, floating, strict=True) if is_
        ]
        places = [each is not None for each in seeds]
        function = _flat(self._function, self.__name__, self._mode, len(inputs), places, several, floating)
        code = self._host.code(self.__name__, function, [(each.element_type, each.rank) for each in operands], declared)
        found = iter(record_host_call(session, code, operands, [list(each) for each, _ in declared], self.__name__))
        derivatives = [next(found) if is_ else None for is_ in floating]
        if self._mode == "pullback":
            return tuple(derivatives)
        return tuple(derivatives) if several else derivatives[0]


def _flat(
    function: Callable[..., Any],
    name: str,
    mode: str,
    count: int,
    places: Sequence[bool],
    several: bool,
    floating: Sequence[bool],
) -> Callable[..., Any]:
    # The rule as the program calls it: seeds that are there, and derivatives that there are, in flat lists.
    def called(*arrays: Any) -> Any:
        rest = iter(arrays[count:])
        seeds: list[Any] = [next(rest) if is_ else None for is_ in places]
        if mode == "pullback":
            seeds = [tuple(seeds)] if several else seeds
        found = function(*arrays[:count], *seeds)
        if len(floating) == 1 and not (isinstance(found, tuple | list) and len(found) == 1):
            found = (found,)
        if not isinstance(found, tuple | list) or len(found) != len(floating):
            what = f"{len(found)} values" if isinstance(found, tuple | list) else "one value"
            kind = "one adjoint per input" if mode == "pullback" else "one tangent per result"
            fact = f"`{name}` returns {what}, but there are {len(floating)}"
            raise DifferentiationError.at(fact, hint=f"return a tuple with {kind}, None where there is no derivative")
        kept = [each for each, is_ in zip(found, floating, strict=True) if is_]
        shapes = [np.shape(each) for each in (arrays[:count] if mode == "pullback" else ())]
        wanted = [shape for shape, is_ in zip(shapes, floating, strict=False) if is_] or [()] * len(kept)
        return tuple([np.zeros(shape) if each is None else each for each, shape in zip(kept, wanted, strict=True)])

    if hasattr(function, "native"):
        called.native = partial(function.native, seeds=places, floating=floating)  # type: ignore[attr-defined]
    return called


def operand(session: Session, value: Any, label: str) -> SymbolicTensor:
    """An array or a number as a tensor of the program."""
    if isinstance(value, GraphTensor):
        fact = f"`{label}` is a tensor of a graph, which has no shape yet"
        raise DslSyntaxError.at(fact, session.location(), "call host functions in an @op, on arrays")
    value = materialized(value, label)
    return value if type(value) is SymbolicTensor else copied(session, value, label)


def _nothing() -> None:
    """What reads nothing."""


def _type_of(array: Any) -> str:
    return array.element_type if isinstance(array, SymbolicTensor) else str(array.dtype)


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple) and not any(
        isinstance(each, tuple | list | str | type | np.dtype) for each in value
    )


def _is_result(value: Any) -> bool:
    return _result(value)[0] is not None


def _result(value: Any) -> tuple[tuple[Any, ...] | None, Any]:
    if _is_shape(value):
        return value, None
    if isinstance(value, tuple) and len(value) == 2 and _is_shape(value[0]) and not _is_shape(value[1]):
        return value
    return None, None
