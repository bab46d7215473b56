"""What a definition becomes: a function like any that `tcdsl.op` gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tcdsl.errors import ConfigurationError, ShapeError
from tcdsl.frontend.comprehensions.bodies import DefinitionBody
from tcdsl.frontend.comprehensions.checked import Checked
from tcdsl.frontend.comprehensions.text.precision import in_double
from tcdsl.frontend.comprehensions.text.syntax import Source
from tcdsl.frontend.source.function_source import FunctionSource
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.locks import computed_once
from tcdsl.runtime.calls.content import Contents
from tcdsl.runtime.explanation import STAGES, Explanation
from tcdsl.tensors.functions.decorators import TensorFunction
from tcdsl.tracebacks import user_facing

__all__ = ["Comprehension", "restored"]


class Comprehension(TensorFunction):
    """A definition in the language of Tensor Comprehensions: arrays in, new arrays out, differentiable.

    ::

        defs = tc.comprehensions.define("def twice(float(N) A) -> (B) { B(i) = 2 * A(i) }")
        defs.twice(A)                     # float32[N] -> float32[N]
        defs.twice.shapes(A)              # (N,), without running
        print(defs.twice.explain("ranges"))
    """

    def __init__(
        self,
        checked: Checked,
        source: Source,
        definitions_of: Callable[[str], Any],
        continued: bool = False,
    ) -> None:
        body = DefinitionBody(checked, source.filename, continued)
        super().__init__(body.function, False)
        self._checked = checked
        self._body = body
        self._source = source
        self._text = source.text
        self._definitions_of = definitions_of

    @property
    def template(self) -> DefinitionBody:
        """What runs while the function is staged."""
        return self._body

    @property
    def warned(self) -> tuple[Any, ...]:
        """The statements that accumulate onto a result that nothing has written."""
        return self._checked.warnings

    @computed_once
    def source(self) -> FunctionSource:
        """The place of the definition."""
        return self._body.definition

    def add_content(self, contents: Contents) -> None:
        """Add all that staging depends on."""
        contents.put("comprehension", self._text, self.__name__, bool(self._body.continued))

    @property
    def stores_out(self) -> bool:
        """Whether nothing is accumulated onto what ``out`` holds."""
        return super().stores_out and (not self._checked.continued or bool(self._body.continued))

    def _called(self, out: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if out is not None and not self.stores_out:
            # What is accumulated onto is read, too: the buffers are arguments, by copies.
            positional = [value for _, value in self.signature.split(arguments, keywords)[0]]
            return self._continuing(*positional, *self._held(out), out=out)
        return super()._called(out, arguments, keywords)

    @computed_once
    def _continuing(self) -> Comprehension:
        return Comprehension(self._checked, self._source, self._definitions_of, continued=True)

    def _held(self, out: Any) -> list[np.ndarray]:
        results = [each.name.name for each in self._checked.definition.results]
        buffers = list(out) if isinstance(out, tuple | list) else [out]
        if len(buffers) != len(results):
            fact = f"{self.__name__}(): out has {len(buffers)} arrays for {len(results)} results"
            raise ConfigurationError(fact)
        return [np.array(buffers[results.index(name)]) for name in self._checked.continued]

    @user_facing
    def shapes(self, /, *arguments: Any) -> Any:
        """The shapes of the results, for arrays or for shapes of arrays, without running: ``f.shapes(A, (3, 4))``.

        One result has one shape, several have a tuple of them. `ShapeError` if the arguments do not fit.
        """
        given = [self._stand_in(k, value) for k, value in enumerate(arguments)]
        call = self.signature.call(given, {})
        entry, arrays = self.staging.entry(call)
        program = entry.executable.program
        sizes = entry.executable.sizes(arrays)
        shapes = tuple(
            tuple(int(evaluate_size(extent, sizes)) for extent in program.tensor(name).shape)
            for name in program.outputs
        )
        return shapes[0] if len(shapes) == 1 else shapes

    def _stand_in(self, position: int, given: Any) -> Any:
        parameters = self._checked.definition.parameters
        if position >= len(parameters) or not isinstance(given, tuple | list):
            return given
        for extent in given:
            if isinstance(extent, bool | np.bool_) or not isinstance(extent, int | np.integer) or extent < 0:
                label = parameters[position].name.name
                fact = f"{self.__name__}.shapes(): the shape of `{label}` has the extent {extent!r}"
                raise ShapeError.at(fact, hint="extents are whole numbers that are not negative")
        return np.broadcast_to(np.zeros((), parameters[position].type.dtype), tuple(given))

    @user_facing
    def explain(self, stage: str = "ir", /, *arguments: Any, **keywords: Any) -> Any:
        """As of any function, and with the stage ``ranges``: the range of each index, statement by statement."""
        if stage not in (*STAGES, "ranges"):
            raise ConfigurationError(f"there is no stage {stage!r}; the stages are {', '.join(STAGES)}, ranges")
        if stage == "ranges":
            return Explanation(self._body.ranges)
        if not arguments and self.staging.last_entry() is None:
            # Types and ranks are declared, and no program depends on sizes.
            types = [self._checked.tensors[name] for name in self._body.parameters]
            given = [np.broadcast_to(np.zeros((), each.dtype), (1,) * each.rank) for each in types]
            self.staging.entry(self.signature.call(given, {}))
        return super().explain(stage, *arguments, **keywords)

    @computed_once
    def in_double(self) -> Comprehension:
        """The same definition in double precision, in which `tcdsl.check_grads` computes."""
        return restored(self._definitions_of, in_double(self._text), self.__name__)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self  # it has no parameter for an instance

    def _with_receiver(self, arguments: tuple[Any, ...]) -> tuple[Comprehension, tuple[Any, ...]]:
        return self, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (self._definitions_of, self._text, self.__name__)

    def __str__(self) -> str:
        return self._body.source

    def __repr__(self) -> str:
        return f"<tc {self._body.source.partition(' {')[0].removeprefix('def ')}>"


def restored(definitions_of: Callable[[str], Any], text: str, name: str) -> Comprehension:
    """The definition ``name`` of a source that was sent to another process."""
    found: Comprehension = definitions_of(text)[name]
    return found
