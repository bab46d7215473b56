"""Every example in the README and the other pages runs, and prints what the page shows."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tcdsl as tc
from tests.documents import examples, run_example, with_outputs

ROOT = Path(__file__).parent.parent
# Packages that are no part of this one, by the pages that show how to use them.
NEEDED = {"dask.md": ("dask",), "interop.md": ("torch", "jax"), "labels.md": ("xarray", "pandas", "polars", "dask")}
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "lessons").glob("*.md")),
    *sorted((ROOT / "docs" / "sections").glob("*.md")),
    *sorted((ROOT / "tcdsl" / "error_catalogue").glob("*.md")),
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_examples_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    for package in NEEDED.get(path.name, ()):
        pytest.importorskip(package)
    page = path.read_text(encoding="utf-8")
    module = ModuleType("example")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    outputs = []
    # What a page sets holds to its end.
    with tc.config():
        for number, example in enumerate(examples(page)):
            try:
                output = run_example(example, module, tmp_path / str(number))
            except Exception as error:
                raise AssertionError(f"{path.name}, line {example.line}: {error}") from error
            outputs.append((example, output))
    if pytestconfig.getoption("--update-golden"):
        path.write_text(with_outputs(page, outputs), encoding="utf-8")
        return
    for example, output in outputs:
        if example.shown is not None:
            assert output == example.shown, f"{path.name}: what line {example.line}'s example prints has changed"


def test_the_readme_has_examples() -> None:
    assert len(examples((ROOT / "README.md").read_text(encoding="utf-8"))) >= 5


PAGE = """\
```python
x = 1
print("one")
```

```text
two
```

```python raises
import tcdsl
raise tcdsl.TcdslError("no")
```

```text
TcdslError: no
```

```bash
false
```
"""


def test_blocks_are_found_with_what_they_show() -> None:
    first, second = examples(PAGE)
    assert (first.line, first.raises, first.shown) == (2, False, "two\n")
    assert (second.line, second.raises, second.shown) == (11, True, "TcdslError: no\n")


def test_outputs_are_put_into_the_page(tmp_path: Path) -> None:
    module = ModuleType("example")
    ran = [(e, run_example(e, module, tmp_path / str(n))) for n, e in enumerate(examples(PAGE))]
    assert [output for _, output in ran] == ["one\n", "TcdslError: no\n"]
    assert with_outputs(PAGE, ran) == PAGE.replace("two", "one")


def test_examples_may_be_literal(tmp_path: Path) -> None:
    page = "```python literal\nfrom tcdsl import op\n@op\ndef f(x):\n    return x **. 2\nprint(f.interpret(3.0))\n```\n"
    (example,) = examples(page)
    assert run_example(example, ModuleType("example"), tmp_path / "0") == "9.0\n"


def test_an_example_that_should_raise_must(tmp_path: Path) -> None:
    (example,) = examples("```python raises\nx = 1\n```\n")
    with pytest.raises(AssertionError, match="does not"):
        run_example(example, ModuleType("example"), tmp_path / "0")


def test_an_unexpected_error_comes_out(tmp_path: Path) -> None:
    (example,) = examples("```python\nimport tcdsl\nraise tcdsl.ShapeError('no')\n```\n")
    with pytest.raises(tc.ShapeError):
        run_example(example, ModuleType("example"), tmp_path / "0")


def test_links_lead_to_files_and_headings() -> None:
    pages = {page.resolve(): page.read_text("utf-8") for page in [*PAGES, *ROOT.glob("tcdsl/**/README.md")]}
    prose = {page: re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL) for page, text in pages.items()}
    anchors = {
        page: {
            re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-")
            for head in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        }
        for page, text in prose.items()
    }
    for page, text in prose.items():
        for file, anchor in re.findall(r"\]\(([\w./-]*)(?:#([\w-]+))?\)", text):
            target = (page.parent / file).resolve() if file else page
            assert target.exists(), (page.name, file)
            assert not anchor or anchor in anchors[target], (page.name, file, anchor)
