"""Tables as values, and what shows them: text, HTML for notebooks, rich for terminals.

::

    table = Table("cost of f", ("", "primal"), [("additions", "12")], notes=("no derivatives",))
    print(table)            # columns of text
    rich.print(table)       # as wide as the terminal
    table                   # in a notebook
"""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcdsl.runtime.displays.listings import STYLE

if TYPE_CHECKING:
    import rich.console
    import rich.table

__all__ = ["Table", "Tabular"]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts under names of columns, a title above, and notes below; a text may have several lines.

    The columns at the positions ``left`` are set to the left, the others, of numbers, to the right.
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    notes: tuple[str, ...] = ()
    left: frozenset[int] = frozenset((0,))

    def __str__(self) -> str:
        parts = [self.title] if self.title else []
        if self.rows:
            parts += ["", *self._lines()] if self.title else self._lines()
        if self.notes:
            parts += ["", *self.notes]
        return "\n".join(parts)

    def _lines(self) -> list[str]:
        head = [self.columns] if any(self.columns) else []
        cells = [[text.split("\n") for text in row] for row in (*head, *self.rows)]
        widths = [max(len(line) for row in cells for line in row[k]) for k in range(len(self.columns))]
        lines = []
        for row in cells:
            for n in range(max(map(len, row))):
                texts = [part[n] if n < len(part) else "" for part in row]
                placed = (
                    text.ljust(width) if k in self.left else text.rjust(width)
                    for k, (text, width) in enumerate(zip(texts, widths, strict=True))
                )
                lines.append("  ".join(placed).rstrip())
        return lines

    def _repr_html_(self) -> str:
        def row(texts: Sequence[str], tag: str) -> str:
            kinds = ("" if k in self.left else " class=right" for k in range(len(texts)))
            inner = (html.escape(text).replace("\n", "<br>") for text in texts)
            cells = (f"<{tag}{kind}>{text}</{tag}>" for kind, text in zip(kinds, inner, strict=True))
            return f"<tr>{''.join(cells)}</tr>"

        head = f"<thead>{row(self.columns, 'th')}</thead>" if any(self.columns) else ""
        body = "".join(row(each, "td") for each in self.rows)
        title = f"<p><b>{html.escape(self.title)}</b></p>" if self.title else ""
        notes = "".join(f"<p>{html.escape(each)}</p>" for each in self.notes)
        table = f"<table>{head}<tbody>{body}</tbody></table>" if self.rows else ""
        return f'{STYLE}<div class="tcdsl">{title}{table}{notes}</div>'

    def print(self, console: rich.console.Console) -> None:
        """Print it: on a terminal as wide as that is, and elsewhere as text whose lines stay whole."""
        if console.is_terminal:
            console.print(self)
        else:
            console.print(str(self), markup=False, highlight=False, soft_wrap=True)

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        shown: list[Any] = [Text(self.title, "bold")] if self.title else []
        if self.rows:
            shown.append(self._rich_table())
        return Group(*shown, *map(Text, self.notes))

    def _rich_table(self) -> rich.table.Table:
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        made = RichTable(show_header=any(self.columns), box=box.SIMPLE_HEAD)
        for k, name in enumerate(self.columns):
            made.add_column(Text(name), justify="left" if k in self.left else "right", overflow="fold")
        for row in self.rows:
            made.add_row(*map(Text, row))
        return made


class Tabular(ABC):
    """What is shown as a table wherever it is shown."""

    __slots__ = ()

    @abstractmethod
    def table(self) -> Table:
        """The table."""

    def __str__(self) -> str:
        return str(self.table())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def __rich__(self) -> Any:
        return self.table().__rich__()
