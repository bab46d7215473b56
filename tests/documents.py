"""Reads the examples in a Markdown page and runs them as a reader would: one after the other, in one namespace.

A block marked ``python`` is run; ``python raises`` must raise a `TcdslError`; ``python literal`` is in the literal
spelling. If a ``text`` block follows, it shows to the letter what the example prints, or the error.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import tcdsl as tc
from tcdsl.syntax.literal_code import compile_literal

__all__ = ["Example", "examples", "run_example", "with_outputs"]

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """One block: ``shown`` is the text block that follows it directly, and ``place`` that text's range in the page."""

    code: str
    line: int
    raises: bool
    literal: bool
    shown: str | None
    place: tuple[int, int]


def examples(page: str) -> list[Example]:
    """The Python blocks of ``page`` in order."""
    found = []
    blocks = list(FENCE.finditer(page))
    for number, block in enumerate(blocks):
        language, *marks = block[1].split() or [""]
        if language != "python":
            continue
        following = blocks[number + 1] if number + 1 < len(blocks) else None
        adjacent = (
            following is not None and following[1] == "text" and not page[block.end() : following.start()].strip()
        )
        shown = following[2] if adjacent and following is not None else None
        place = following.span(2) if adjacent and following is not None else (0, 0)
        line = page.count("\n", 0, block.start()) + 2
        found.append(Example(block[2], line, "raises" in marks, "literal" in marks, shown, place))
    return found


def run_example(example: Example, module: ModuleType, folder: Path) -> str:
    """Run ``example`` in ``module``'s namespace, from a file in ``folder``; what it printed, or its error's message."""
    # Decorated functions read their source, so the code must be in a file; its name is what error messages show. The
    # folders of a page's examples are numbered, and lie in one folder.
    folder.mkdir()
    path = folder / "example.py"
    path.write_text(example.code)
    printed = io.StringIO()
    sys.modules[module.__name__] = module
    module.__file__ = str(path)
    try:
        with contextlib.redirect_stdout(printed):
            if example.literal:
                code = compile_literal(example.code, str(path))
            else:
                code = compile(example.code, str(path), "exec", dont_inherit=True)
            exec(code, module.__dict__)
    except tc.TcdslError as error:
        if not example.raises:
            raise
        printed.write(f"{type(error).__name__}: {error}\n")
    else:
        if example.raises:
            raise AssertionError("the page says that this example raises, but it does not")
    lines = re.sub(re.escape(f"{folder.parent}/") + r"[0-9]+/", "", printed.getvalue()).splitlines()
    return "\n".join(line.rstrip() for line in lines).rstrip("\n") + "\n"


def with_outputs(page: str, outputs: list[tuple[Example, str]]) -> str:
    """``page`` with the text blocks of these examples replaced."""
    for example, output in reversed(outputs):
        if example.shown is not None:
            begin, end = example.place
            page = page[:begin] + output + page[end:]
    return page
