"""A definition as what a decorated function has for a body: something that runs on symbolic arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tcdsl.frontend.comprehensions.checked import Checked
from tcdsl.frontend.comprehensions.inputs import input_tensor
from tcdsl.frontend.comprehensions.outcomes import Outcome
from tcdsl.frontend.comprehensions.range_texts import format_ranges
from tcdsl.frontend.comprehensions.recording import ComprehensionRecording
from tcdsl.frontend.comprehensions.text.printing import format_definition
from tcdsl.frontend.comprehensions.text.syntax import Name
from tcdsl.frontend.source.other_languages import captured, defined_by_text, function_of_text
from tcdsl.frontend.staging.session import Session, session_of
from tcdsl.frontend.surroundings.reachable import Surroundings
from tcdsl.frontend.symbolic_operators import WholeArrays
from tcdsl.frontend.symbols.symbols import SymbolicTensor

__all__ = ["DefinitionBody"]


class DefinitionBody:
    """``DefinitionBody(checked, filename).run(None, A, B)`` records the statements in the current session.

    With ``continued`` it takes, behind its arguments, the tensors that its continued results accumulate onto.
    """

    def __init__(self, checked: Checked, filename: str, continued: bool = False) -> None:
        definition = checked.definition
        self.checked = checked
        self.filename = filename
        self.source = format_definition(definition)
        self.continued = checked.continued if continued else ()
        self.parameters = (*(each.name.name for each in definition.parameters), *self.continued)
        self.size_names: dict[str, Sequence[str | None]] = {
            each.name.name: [size.name if isinstance(size, Name) else None for size in each.type.sizes]
            for each in definition.parameters
        }
        #: What stands for the decorated function, and for its source.
        name, span = definition.name.name, definition.span
        self.function = function_of_text(name, self.parameters)
        self.definition = defined_by_text(name, filename, span, self.parameters, self.source)
        self.surroundings = Surroundings(self.function, self.definition.definition, frozenset())
        #: The range of each index, statement by statement, as text.
        self.ranges = ""

    def run(self, instance: Any, /, *arguments: Any, **keywords: Any) -> Any:
        """Record the statements: the tensor of the result, or a tuple of them."""
        session = session_of("a definition")
        name = self.checked.name
        places = {each.name.name: each.span for each in self.checked.definition.parameters}
        tensors: list[SymbolicTensor] = []
        for label, given in zip(self.parameters, arguments, strict=True):
            given = captured(session, given, label)
            span = self.checked.definition.name.span
            place = places.get(label, span)
            tensors.append(input_tensor(session, given, self.checked.tensors[label], label, name, span, place))
        count = len(self.checked.definition.parameters)
        buffers = dict(zip(self.continued, tensors[count:], strict=True))
        recording = ComprehensionRecording(session, self.checked, buffers)
        results = recording.run(tensors[:count])
        self.ranges = format_ranges(recording)
        return results[0] if len(results) == 1 else results

    def check(self, outcomes: Mapping[str, Outcome]) -> Outcome:
        """Infer all ranges for arrays of any sizes: raises what is wrong whatever the sizes are.

        ``outcomes`` are those of the definitions that are called.
        """
        session = Session(self.checked.name, WholeArrays())
        with session.active():
            builder = session.builder
            arrays = []
            for name in self.parameters:
                wanted = self.checked.tensors[name]
                arrays.append(builder.input(name, wanted.dtype, wanted.rank, self.size_names.get(name, ())))
            recording = ComprehensionRecording(session, self.checked, outcomes=outcomes)
            results = recording.run(arrays)
            self.ranges = format_ranges(recording)
            return Outcome.found(builder, arrays, results, recording.begins, recording.tested)
