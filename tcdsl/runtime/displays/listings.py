"""Programs and code for notebooks: in a monospaced font, with colours, in parts that fold.

Colours are those of the notebook where it says them, and otherwise follow the reader's choice of a light or dark page.
"""

from __future__ import annotations

import html
import re

__all__ = ["STYLE", "listing"]

#: Names of a notebook's colours, and what they are elsewhere: on a light page, on a dark one.
_COLOURS = {
    "keyword": ("--jp-mirror-editor-keyword-color", "#00752f", "#7ee2a8"),
    "number": ("--jp-mirror-editor-number-color", "#666666", "#b8c0cc"),
    "string": ("--jp-mirror-editor-string-color", "#a3271f", "#ffb3a7"),
    "comment": ("--jp-mirror-editor-comment-color", "#36707a", "#8fc7d2"),
}


def _colours(dark: bool) -> str:
    return "".join(
        f".tcdsl .{name}{{color:var({variable},{colours[dark]})}}" for name, (variable, *colours) in _COLOURS.items()
    )


STYLE = (
    "<style>.tcdsl pre,.tcdsl summary{"
    "font-family:var(--jp-code-font-family,Menlo,Consolas,'DejaVu Sans Mono',monospace);"
    "font-size:var(--jp-code-font-size,13px);line-height:1.35;white-space:pre;margin:0}"
    ".tcdsl{overflow-x:auto;overflow-y:hidden}"
    ".tcdsl details{margin:.4em 0}.tcdsl summary{cursor:pointer;display:list-item}"
    ".tcdsl table{border-collapse:collapse}.tcdsl td,.tcdsl th{text-align:left;padding:.15em .8em;vertical-align:top}"
    ".tcdsl .right{text-align:right;font-variant-numeric:tabular-nums}.tcdsl p{margin:.4em 0}"
    ".beside.tcdsl{display:flex;flex-wrap:wrap;gap:0 1em}"
    ".beside .tcdsl{padding-right:2em}svg.tcdsl{max-width:100%;height:auto}"
    f"{_colours(False)}@media (prefers-color-scheme:dark){{{_colours(True)}}}</style>"
)
_WORDS = (
    *(
        "and",
        "as",
        "assert",
        "break",
        "continue",
        "def",
        "else",
        "for",
        "from",
        "if",
        "import",
        "in",
        "input",
        "lambda",
    ),
    *("not", "or", "parallel", "program", "repeat", "return", "size", "tensor", "times", "update", "vector"),
    *("while", "with"),
)
_TOKEN = re.compile(
    r"(?P<comment>#[^\n]*)|(?P<string>\"[^\"\n]*\"|'[^'\n]*')"
    rf"|(?P<keyword>\b(?:{'|'.join(_WORDS)})\b)|(?P<number>\b\d+(?:\.\d*)?(?:e[+-]?\d+)?\b)"
)
#: A part with more lines than these folds.
_SHORT = 3


def listing(text: str) -> str:
    """``text`` in HTML. Its parts, which blank lines divide, fold if they have more than a few lines."""
    parts = [part for part in re.split(r"\n\s*\n", text.strip("\n")) if part.strip()]
    return f'{STYLE}<div class="tcdsl">{"".join(map(_part, parts))}</div>'


def _part(text: str) -> str:
    first, _, rest = text.partition("\n")
    if text.count("\n") < _SHORT:
        return f"<pre>{_coloured(text)}</pre>"
    return f"<details open><summary>{_coloured(first)}</summary><pre>{_coloured(rest)}</pre></details>"


def _coloured(text: str) -> str:
    made, end = [], 0
    for found in _TOKEN.finditer(text):
        made.append(html.escape(text[end : found.start()]))
        made.append(f'<span class="{found.lastgroup}">{html.escape(found[0])}</span>')
        end = found.end()
    return "".join([*made, html.escape(text[end:])])
