"""``tcdsl.literal``: modules in the literal spelling.

::

    tc.literal.install("mypackage")      # mypackage and everything below it
    tc.literal.install()                 # modules that say `# tcdsl: literal` in their first comment lines
    import mypackage.model

A module must be imported after that; those that are loaded already stay as they are.
"""

from __future__ import annotations

import sys

from tcdsl.errors import ConfigurationError
from tcdsl.syntax.finder import MARKER, LiteralFinder
from tcdsl.syntax.grammar.parsing import desugared, parse

__all__ = ["MARKER", "desugar", "install", "parse", "uninstall"]


def install(prefix: str | None = None) -> None:
    """Read modules in the literal spelling when they are imported from now on.

    ::

        tc.literal.install("mypackage")  # mypackage, mypackage.layers, ...
        tc.literal.install()             # modules marked by a comment `# tcdsl: literal` at their head

    Doing it again changes nothing. `ConfigurationError` for a prefix that is no module's name.
    """
    if prefix is not None and not all(part.isidentifier() for part in prefix.split(".")):
        raise ConfigurationError(
            f"tc.literal.install({prefix!r}): give the name of a module or package, such as 'mypackage'"
        )
    finder = _installed()
    if finder is None:
        finder = LiteralFinder()
        sys.meta_path.insert(0, finder)
    finder.add(prefix)


def uninstall(prefix: str | None = None) -> None:
    """Take back what ``install`` with the same argument did. Modules that are loaded stay as they are."""
    finder = _installed()
    if finder is not None:
        finder.discard(prefix)
        if finder.is_idle:
            sys.meta_path.remove(finder)


def desugar(text: str, filename: str = "<unknown>") -> str:
    r"""The plain spelling of literal text.

    ::

        desugar("@cd\ndef f(c, a):\n    c =+ a\n")  # "@cd\ndef f(c, a):\n    c += a\n"

    What is outside of functions decorated with ``op`` or ``cd`` stays as it is, byte for byte.
    """
    return desugared(text, filename).text


def _installed() -> LiteralFinder | None:
    return next((finder for finder in sys.meta_path if type(finder) is LiteralFinder), None)
