"""The catalogue of errors has all that the package says, nothing else, and examples of it."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import error_catalogue, op
from tcdsl.error_catalogue import entries, entry_of, is_like, known_text
from tcdsl.tools.command_line import main
from tests.documents import examples
from tests.errors.texts_of_faults import texts_of_faults

PAGES = sorted(path for path in Path(error_catalogue.__file__).parent.glob("*.md") if path.name != "README.md")

# What users meet. The two languages with texts of their own have pages that say their rules; the rest is between rooms.
FOLDERS = [
    *("autodiff", "blocks", "config.py", "errors.py", "frontend", "interop", "ir/interpreter", "ir/sizes", "library"),
    *("lowering/linking", "lowering/loop_passes", "pass_names.py", "polyhedra", "ranges", "rewrite", "rows", "runtime"),
    *("syntax", "target_names.py", "targets/cpu/call", "targets/numba", "targets/registry.py", "tensors", "tools"),
    *("tracebacks.py", "train"),
]
# What Python's own `inspect` says of arguments.
OF_PYTHON = {
    "X(): too many positional arguments",
    "X(): missing a required argument: X",
    "X(): got an unexpected keyword argument X",
    "X() got an unexpected keyword argument X",
}
# No faults, but what is in them, and text that is made for compilers.
PARTS = {"as a length", "changing", "…returned", "there is no entry … in the catalogue of errors"}
OTHERS = ("frontend/comprehensions", "frontend/skriptnd")


def test_the_catalogue_has_what_the_package_says_and_nothing_else() -> None:
    texts = texts_of_faults(FOLDERS)
    telling = {text: place for place, _, text in texts if not place.startswith(OTHERS) and known_text(text) >= 8}
    missing = {text: place for text, place in telling.items() if entry_of(text.replace("…", "X")) is None}
    missing = {text: place for text, place in missing.items() if text not in PARTS}
    assert len({text for _, _, text in texts}) > 500
    assert not missing, "\n".join(f"{place}  {text}" for text, place in missing.items())

    said = {text.replace("…", "X") for _, _, text in texts} | OF_PYTHON
    said |= {fact_of(message) for page in PAGES for message in shown(page).values()}
    # Some are put together from several texts.
    package = "".join(path.read_text("utf-8") for path in Path(tc.__file__).parent.rglob("*.py"))
    source = re.sub(r'"\s+f?"', "", package)
    messages = [message for each in entries().values() for message in each.messages]
    unsaid = [each for each in messages if not all(part in source for part in each.split("…"))]
    dead = [each for each in unsaid if not any(is_like(text, each) for text in said)]
    assert not dead, "\n".join(dead)


def shown(page: Path) -> dict[str, str]:
    """What the examples of a page show, by the names of entries."""
    text = page.read_text(encoding="utf-8")
    at = [(text.count("\n", 0, found.start()), found[1]) for found in re.finditer(r"^## (.+)$", text, re.MULTILINE)]
    named = {each.title: each.name for each in entries().values()}
    under = {each: [title for line, title in at if line < each.line][-1:] for each in examples(text) if each.raises}
    return {named[title[0]]: each.shown or "" for each, title in under.items()}


def fact_of(message: str) -> str:
    return re.sub(r"^\w+: (?:\d+ faults\n\n)?(\S+:\d+: |<.*?>\S+ )?", "", message).partition("\n")[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_examples_show_the_messages_of_their_entries(page: Path) -> None:
    examples_of = shown(page)
    for name, message in examples_of.items():
        if name == "a-check-of-your-own-does-not-hold":  # it has the user's own message
            continue
        fact = fact_of(message)
        found = entry_of(fact)
        assert found is not None, (name, fact)
        assert found.name == name, (name, fact, found.name)
    without = {each.name for each in entries().values() if each.page == page.stem} - examples_of.keys()
    assert without <= {
        "a-fault-of-tcdsl-itself",
        "an-array-lies-elsewhere",
        "a-package-is-missing",
        "labels-do-not-fit",
        "work-on-chunks-cannot-be-cut",
    }


def test_tracebacks_end_with_the_entry() -> None:
    @op
    def product(a: object, b: object) -> object:
        c[i, j] += a[i, k] * b[k, j]
        return c

    with pytest.raises(tc.ShapeError) as caught:
        product(np.ones((2, 3)), np.ones((4, 5)))
    assert caught.value.entry == "two-extents-differ"
    assert traceback.format_exception(caught.value)[-1] == "more: python -m tcdsl help two-extents-differ\n"
    caught.value.add_note("mine")
    assert caught.value.__notes__ == ["more: python -m tcdsl help two-extents-differ", "mine"]
    assert tc.TcdslError("something else").__notes__ == []


def test_the_command_prints_an_entry(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "two-extents-differ"]) == 0
    printed = capsys.readouterr().out
    assert "Two extents differ" in printed
    assert "C[i, j] += A[i, k] * B[k, j]" in printed
    assert main(["help"]) == 0
    assert "two-extents-differ" in capsys.readouterr().out
    assert main(["help", "two-extent-differ"]) == 1
    assert "did you mean `two-extents-differ`?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fact", "message", "alike"),
    [
        ("the index `i`", "the index `…`", True),
        ("the index `i` of an array", "the index `…`", False),
        ("an axis, an axis", "an axis…an axis", True),
        ("ab", "…", False),
        ("longer text", "longer …longer text", False),
    ],
)
def test_messages_are_found_by_what_does_not_differ(fact: str, message: str, alike: bool) -> None:
    assert is_like(fact, message) is alike


def test_of_several_messages_the_longest_tells() -> None:
    reads = "reads what other points of this statement write and nothing has written before"
    found = entry_of(f"`s[t - 1]` {reads}")
    assert found is not None
    assert found.name == "a-statement-reads-what-it-writes"
