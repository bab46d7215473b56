"""Names of nested recordings that are over: what still holds them must not be used in the program around."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tcdsl.errors import DifferentiationError, DslSyntaxError
from tcdsl.ir.program import Size, Statement, statement_sizes, tensors_read
from tcdsl.ir.sizes.spoken_sizes import in_words, spoken_sizes

__all__ = ["DIFFERENTIATED", "OF_A_ROUND", "RetiredNames"]

DIFFERENTIATED, OF_A_ROUND = "a function that was differentiated", "a round of a loop"

_HINTS = {
    DIFFERENTIATED: "return it from that function, with has_aux=True if it is not to be differentiated",
    OF_A_ROUND: "bind it before the loop, so that rounds carry it",
}


class RetiredNames:
    """``names.check(statements, sizes)`` raises if one of ``statements`` reads a tensor or a size that is gone."""

    def __init__(self) -> None:
        self._tensors: dict[str, tuple[str, str]] = {}
        self.sizes: dict[str, Size] = {}
        #: What messages call numbers that count rounds, where the loop does not count from 0 by 1.
        self.words: dict[str, str] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def add(self, labels: Mapping[str, str], owner: str) -> None:
        """The tensors of these names, which users know by ``labels``, belonged to ``owner``."""
        self._tensors.update({name: (label, owner) for name, label in labels.items()})

    def spoken(self, sizes: Mapping[str, Size], labels: Mapping[str, str]) -> dict[str, str]:
        """What messages call those of ``sizes``, and of the sizes that are gone, whose names are made up."""
        found = spoken_sizes({**self.sizes, **sizes}.values(), lambda name: labels.get(name, ""))
        return {name: in_words(text, found) for name, text in self.words.items()} | found

    def check(self, statements: Sequence[Statement], sizes: Collection[str]) -> None:
        """Raise `DslSyntaxError` or `DifferentiationError`; ``sizes`` are those that are there."""
        if not self._tensors and not self.sizes:
            return
        for statement in statements:
            for name in tensors_read(statement) & self._tensors.keys():
                label, owner = self._tensors[name]
                kind = DifferentiationError if owner == DIFFERENTIATED else DslSyntaxError
                raise kind.at(f"`{label}` belongs to {owner}, but is used outside", statement.span, _HINTS[owner])
            for name in (statement_sizes(statement) & self.sizes.keys()).difference(sizes):
                raise DslSyntaxError.at(
                    f"a value of a round of a loop, in which `{name}` is a size, is used outside",
                    statement.span,
                    "the body is staged once: collect results by a statement, as in `ys[t, ...] = h`",
                )
