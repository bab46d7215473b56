"""Long work shows itself, where somebody looks; short work and pipes stay silent."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from contextlib import redirect_stderr
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import tcdsl as tc
from tcdsl import progress
from tcdsl.progress import advance, shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    import rich.console
    import rich.status  # noqa: F401  # imported on first use, which takes a while

    monkeypatch.setenv("TERM", "xterm")
    for variable in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(progress, "_PATIENCE", 0.05)
    monkeypatch.setattr(progress, "_EVERY", 0.01)
    # Capturing puts a stream of its own there after fixtures are made: tests redirect it themselves.
    return Terminal()


def appears(text: str, terminal: Terminal, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and text not in terminal.getvalue():
        time.sleep(0.01)


def work(terminal: Terminal, seconds: float = 0.2) -> None:
    with shown("compiling [red]f"):
        advance("1 of 9 nests")
        appears("1 of 9 nests", terminal, seconds)
        with shown("another"):  # part of the first
            advance("9 of 9 nests")
            appears("9 of 9 nests", terminal, seconds)


def test_a_line_in_a_terminal(terminal: Terminal) -> None:
    with redirect_stderr(terminal):
        work(terminal, 20.0)
    text = terminal.getvalue()
    assert "compiling [red]f: 1 of 9 nests" in text
    assert "compiling [red]f: 9 of 9 nests" in text
    assert "another" not in text
    assert text.endswith("\x1b[2K")  # the line is gone


def test_short_work_is_silent(terminal: Terminal) -> None:
    with redirect_stderr(terminal), shown("compiling f"):
        advance("1 of 1 nests")
    assert terminal.getvalue() == ""


def test_silent_on_request(terminal: Terminal) -> None:
    with redirect_stderr(terminal), tc.config(progress=False):
        work(terminal)
    assert terminal.getvalue() == ""


def fail(kind: type[BaseException], terminal: Terminal) -> None:
    appears(kind.__name__, terminal, 20.0)
    raise kind


def test_errors_and_interruptions_pass(terminal: Terminal) -> None:
    for kind in (KeyboardInterrupt, ValueError):
        with redirect_stderr(terminal), pytest.raises(kind), shown(f"compiling {kind.__name__}"):
            fail(kind, terminal)
    assert terminal.getvalue().endswith("\x1b[2K")
    advance("nothing is shown")


@pytest.mark.parametrize("stream", [None, io.StringIO(), "closed"])
def test_pipes_and_missing_streams_stay_silent(terminal: Terminal, stream: Any) -> None:
    if stream == "closed":
        stream = Terminal()
        stream.close()
    with redirect_stderr(stream):
        work(terminal)
    assert terminal.getvalue() == ""
    assert stream is None or stream.closed or stream.getvalue() == ""


def test_nothing_is_imported_for_it() -> None:
    code = "import sys, tcdsl.progress; assert not {'rich', 'IPython'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_line_in_a_notebook() -> None:
    cell = """
import time
from tcdsl import progress
progress._PATIENCE = 0.05
with progress.shown("compiling f"):
    progress.advance("3 of 9 nests")
    time.sleep(1.5)
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    seen: list[str] = []

    class Client(NotebookClient):
        def process_message(self, message: Any, *arguments: Any) -> Any:
            seen.append(str(message["content"].get("data", {}).get("text/plain")))
            return super().process_message(message, *arguments)

    Client(notebook, timeout=60).execute()
    assert "compiling f: 3 of 9 nests" in seen
    assert [output.data["text/plain"] for output in notebook.cells[0].outputs] == [""]
