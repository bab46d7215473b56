"""The tables of the page on the literal spelling hold every operator, with the plain form that it has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tcdsl import literal
from tcdsl.syntax.grammar.literal_operators import ASSIGNMENTS, COMPOSITIONS, INFIX

PAGE = (Path(__file__).parent.parent.parent / "docs" / "literal.md").read_text(encoding="utf-8")
CODE = re.compile(r"`([^`]*)`")


def rows() -> list[tuple[str, str]]:
    """The rows of the tables that show literal and plain text: the first code in each of their first two cells."""
    found = []
    for table in PAGE.split("| literal | plain |")[1:]:
        for line in table.split("\n\n")[0].splitlines()[2:]:
            cells = [cell.replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)]
            found.append((CODE.findall(cells[1])[0], CODE.findall(cells[2])[0]))
    return found


def plain(text: str) -> str:
    statement = text if re.search(r"(^|\s)=|^~~", text) else f"y = {text}"
    found = literal.desugar(f"@op\ndef f(x):\n    {statement}\n").splitlines()[2].strip()
    return found if statement is text else found.removeprefix("y = ")


@pytest.mark.parametrize(("written", "shown"), rows(), ids=[row[0] for row in rows()])
def test_the_tables_are_right(written: str, shown: str) -> None:
    if written == "{ w }":
        written, shown = "{ w } @ x", '"w" @ x'
    found = plain(written.replace("o = [h", "o=[h").replace("[| 1; 2 |]", "[|1; 2|]"))
    assert found == shown


def test_the_tables_are_complete() -> None:
    written = " ".join(text for text, _ in rows())
    for operator in (*ASSIGNMENTS, *INFIX, *COMPOSITIONS, "!.", "~~"):
        assert operator in written
    assert len(rows()) >= len(ASSIGNMENTS) + len(INFIX) + len(COMPOSITIONS)
