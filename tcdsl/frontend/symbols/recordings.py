"""What is recorded: statements and loops, and what was learned of sizes on the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.expressions import size_names
from tcdsl.ir.program import Assertion, DerivativeRule, Repeat, Size, Statement, Tensor

__all__ = ["Learned", "Recording"]


@dataclass(slots=True)
class Recording:
    """Statements in the order of execution, loops, the tensors that they make, and the derivative rules of these.

    ``placeholders`` are tensors without cells, which the statements may read. ``open_sizes`` are the sizes that were
    open before its first statement.
    """

    open_sizes: frozenset[str] = frozenset()
    statements: list[Statement] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    rules: list[DerivativeRule] = field(default_factory=list)
    placeholders: list[Tensor] = field(default_factory=list)
    repeats: list[Repeat] = field(default_factory=list)
    #: What declared tensors begin with that a loop was the first to write.
    starts: dict[str, bool | int | float] = field(default_factory=dict)
    #: The memory into which something was stored, by id, and the version and type of its tensor before that.
    stored: dict[int, tuple[SymbolicTensor, str, str]] = field(default_factory=dict)
    #: Memory that was made as a copy of what other memory, which may be older, held.
    copies: list[SymbolicTensor] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Learned:
    """Sizes and assertions, in order, these with the names of the sizes in them, and which of the sizes are open.

    ``enlarged`` are open sizes that were there before, as large as they have become.
    """

    sizes: dict[str, Size]
    assertions: dict[Assertion, frozenset[str]]
    open_sizes: frozenset[str]
    enlarged: tuple[Size, ...] = ()

    def since(self, before: Learned, inputs: Iterable[Tensor]) -> Learned:
        """What was learned after ``before``, but for the extents of ``inputs``, which stay."""
        own = {name for tensor in inputs for extent in tensor.shape for name in size_names(extent)}
        return Learned(
            {name: size for name, size in self.sizes.items() if name not in before.sizes and name not in own},
            {each: names for each, names in self.assertions.items() if each not in before.assertions},
            self.open_sizes - before.open_sizes,
            tuple(size for name, size in self.sizes.items() if before.sizes.get(name, size) != size),
        )
