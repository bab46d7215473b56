"""What notebooks show of a decorated function: its signature, and its statements as formulas for each kind of call.

Formulas are typeset by the notebook (MathJax); where nothing typesets, they are TeX.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

from tcdsl.ir.text.printer import format_tensor
from tcdsl.runtime.displays.formulas import formulas
from tcdsl.runtime.displays.listings import STYLE, listing

if TYPE_CHECKING:
    from tcdsl.runtime.calling.entries import Entry

__all__ = ["function_html"]

#: So many kinds of calls are shown, the latest ones.
_SHOWN = 3
#: And so many statements of each; the others are told of.
_STATEMENTS = 40


def function_html(function: Any, entries: list[Entry]) -> str:
    """The display of ``function``, with the programs that were staged for it."""
    head = f"<b>{html.escape(repr(function)[1:-1])}</b>{html.escape(str(function.signature.shown))}"
    if not entries:
        return f'{STYLE}<div class="tcdsl">{head}{listing(function.written_text())}</div>'
    shown = [_program(each, first=k == 0) for k, each in enumerate(reversed(entries[-_SHOWN:]))]
    left = len(entries) - len(shown)
    more = f"<p>and {left} more: <code>{function.__name__}.cache_info()</code></p>" if left > 0 else ""
    return f'{STYLE}<div class="tcdsl">{head}{"".join(shown)}{more}</div>'


_RELATION = re.compile(r" (?:\\mathrel\{[^}]*\})?= ")


def _aligned(relation: re.Match[str]) -> str:
    return f" &{relation[0].lstrip()}"


def _program(entry: Entry, first: bool) -> str:
    program = entry.executable.program
    given = ", ".join(format_tensor(each) for each in program.inputs if each.name in entry.labels)
    results = ", ".join(format_tensor(program.tensor(name)) for name in dict.fromkeys(program.outputs))
    changed = ", ".join(name for name, _ in program.updates)
    gives = f"{given} → {results}" if results else f"{given}, changes {changed}"
    lines = formulas(program)
    rows = [f"{_RELATION.sub(_aligned, text, count=1)} && {where}" for text, where in lines[:_STATEMENTS]]
    body = r" \\ ".join(rows)
    rest = len(lines) - len(rows)
    more = f"<p>and {rest} more statements: <code>explain()</code></p>" if rest > 0 else ""
    state = " open" if first else ""
    return (
        f"<details{state}><summary>{html.escape(gives)}</summary>"
        f"<p>$\\begin{{aligned}} {html.escape(body)} \\end{{aligned}}$</p>{more}</details>"
    )
