"""``%%tc``: a cell of a notebook in the language of Tensor Comprehensions."""

from __future__ import annotations

from typing import Any

from tcdsl.comprehensions import define
from tcdsl.errors import ConfigurationError
from tcdsl.tracebacks import user_facing

__all__ = ["register", "unregister"]


def register(shell: Any) -> None:
    """Let cells of ``shell`` begin with ``%%tc``.

    ::

        %%tc                                        %%tc layers
        def twice(float(N) A) -> (B) {              def twice(float(N) A) -> (B) {
            B(i) = 2 * A(i)                             B(i) = 2 * A(i)
        }                                           }

    On the left the notebook has a function ``twice`` afterwards, on the right an object with ``layers.twice``.
    """

    @user_facing
    def tc(line: str, cell: str) -> None:
        """Define functions in the language of Tensor Comprehensions: ``%%tc``, or ``%%tc name`` for one object."""
        name = line.strip()
        if name and not name.isidentifier():
            raise ConfigurationError(f"%%tc {name}: write `%%tc` alone, or one name for all definitions of the cell")
        definitions = define(cell)
        shell.push({name: definitions} if name else {each: definitions[each] for each in definitions})

    shell.register_magic_function(tc, magic_kind="cell", magic_name="tc")


def unregister(shell: Any) -> None:
    """Forget ``%%tc``."""
    shell.magics_manager.magics["cell"].pop("tc", None)
