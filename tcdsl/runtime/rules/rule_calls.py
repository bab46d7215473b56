"""Calls of derivative rules: what a rule receives, and what it returns, checked against what it is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tcdsl.errors import Diagnostic, DifferentiationError
from tcdsl.frontend.arrays.arithmetic import element_of, record_elementwise
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.runtime.calling.arguments import Signature
from tcdsl.runtime.calling.results import filled
from tcdsl.runtime.calling.structure import Structure
from tcdsl.runtime.rules.directions import Direction
from tcdsl.span import Span

__all__ = ["PULLBACK", "PUSHFORWARD", "Rule", "RuleCall"]

PULLBACK, PUSHFORWARD = "pullback", "pushforward"
_RESULTS = {PULLBACK: "adjoint", PUSHFORWARD: "tangent"}


class Rule(Protocol):
    """A function that gives a derivative, as `tcdsl.runtime.function.DecoratedFunction` is one."""

    __name__: str
    signature: Signature

    def inline(self, *arguments: Any, **keywords: Any) -> Any:
        """Run as part of the function that is being staged."""

    @property
    def span(self) -> Span:
        """Where it is defined."""


class RuleCall:
    """One call of the rule for ``mode`` of a function called ``function``."""

    def __init__(self, session: Session, rule: Rule, mode: str, function: str) -> None:
        self._session = session
        self._rule = rule
        self._mode = mode
        self._function = function

    def __call__(
        self,
        values: Sequence[Any],
        results: Sequence[Any],
        structure: Structure,
        seeds: Sequence[Any],
        configuration: Mapping[str, Any],
    ) -> list[Any]:
        """What the rule returns: for a pullback one adjoint per argument, else one tangent per result."""
        last = [structure.build(seeds)] if self._mode == PULLBACK else list(seeds)
        arguments = [*values, structure.build(results), *last]
        names = self._rule.signature.keyword_only
        taken = self._rule.signature.takes_any_keyword
        given = {name: value for name, value in configuration.items() if name in names or taken}
        expected = self._rule.signature.positional_count
        if expected is not None and expected != len(arguments):
            raise self._fault(
                f"takes {expected} positional arguments, but is called with {len(arguments)}: {self._parts()}",
                "the keyword-only arguments of the function are passed to those rules that name them",
            )
        found = self._rule.inline(*arguments, **given)
        return self._per_argument(found, len(values)) if self._mode == PULLBACK else self._per_result(found, structure)

    def _per_argument(self, found: Any, count: int) -> list[Any]:
        if count == 1 and not (isinstance(found, tuple | list) and len(found) == 1):
            found = (found,)
        if not isinstance(found, tuple | list) or len(found) != count:
            what = f"{len(found)} values" if isinstance(found, tuple | list) else "one value"
            raise self._fault(
                f"returns {what}, but `{self._function}` has {count} positional arguments",
                "return a tuple with one adjoint per argument, None for those without a derivative",
            )
        return list(found)

    def _per_result(self, found: Any, structure: Structure) -> list[Any]:
        matched = structure.match(found)
        if isinstance(matched, str):
            raise self._fault(
                f"returns tangents that are not built like the results of `{self._function}`, which are {structure}",
                "return one tangent per result, nested alike, None for those without a derivative",
            )
        return matched

    def result(self, value: Any, tensor: SymbolicTensor) -> str:
        """The tensor of the derivative by ``tensor`` that the rule has returned as ``value``; ``None`` is zeros."""
        session = self._session
        dtype = compute_dtype(tensor.element_type)
        label = f"{'d' if self._mode == PULLBACK else 't'}_{tensor.label}"
        if value is None:
            return filled(session, 0, dtype, tensor.extents, label).name
        owner = f"`{tensor.label}`, the {'argument' if self._mode == PULLBACK else 'result'}"
        direction = Direction(_RESULTS[self._mode], f"{owner} of `{self._function}`", dtype)
        made = direction.tensor(session, value, tensor.extents)
        if made.shape != tensor.extents or made not in session.builder.recording.tensors:
            # Of the very shape of what it belongs to, and a tensor of its own.
            given = SymbolicTensor(session.builder, made.name, made.dtype, tensor.extents, label)
            return record_elementwise(session, element_of(given, session)[0], tensor.extents, label).name
        return made.name

    def _parts(self) -> str:
        last = "the cotangents of the result" if self._mode == PULLBACK else "one tangent per argument"
        return f"the arguments of `{self._function}`, its result, and {last}"

    def _fault(self, fact: str, hint: str) -> Exception:
        return Diagnostic(
            DifferentiationError,
            f"the {self._mode} rule `{self._rule.__name__}` of `{self._function}` {fact}",
            self._rule.span,
            hint=hint,
        ).error()
