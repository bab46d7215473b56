"""Golden texts: what a stage prints, kept in a file, compared in full and rewritten on request.

A run of the whole suite also finds the files that no test uses any more. Works under pytest-xdist, where each worker
reports the names that it used.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Golden", "GoldenSession"]

VALID_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")


class GoldenSession:
    """What one test run knows about golden texts; also a pytest plugin that reports unused files at the end."""

    KEY = pytest.StashKey["GoldenSession"]()

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        self.config = config
        self.folder = folder
        self.update: bool = config.getoption("--update-golden")
        self.used: set[str] = set()
        self.written: set[str] = set()
        self.selected_a_part = False
        self.unused: list[str] = []

    @property
    def is_worker(self) -> bool:
        return hasattr(self.config, "workerinput")

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.txt"

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        names_golden = ("golden" in getattr(item, "fixturenames", ()) for item in items)
        self.selected_a_part = self.selected_a_part or any(names_golden)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        report = getattr(node, "workeroutput", {})
        self.used.update(report.get("golden-used", ()))
        self.written.update(report.get("golden-written", ()))
        self.selected_a_part = self.selected_a_part or report.get("golden-part", True)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.is_worker:
            output = self.config.workeroutput  # type: ignore[attr-defined]
            output["golden-used"] = sorted(self.used)
            output["golden-written"] = sorted(self.written)
            output["golden-part"] = self.selected_a_part
            return
        if exitstatus != pytest.ExitCode.OK or self.selected_a_part or not self._is_whole_suite():
            return
        present = {path.relative_to(self.folder).with_suffix("").as_posix() for path in self.folder.rglob("*.txt")}
        self.unused = sorted(present - self.used)
        if self.update:
            for name in self.unused:
                self.path(name).unlink()
        elif self.unused:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _is_whole_suite(self) -> bool:
        option = self.config.option
        narrowed = option.keyword or getattr(option, "lf", False) or option.collectonly or option.maxfail
        return not narrowed and self.config.args_source is not pytest.Config.ArgsSource.ARGS

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.written:
            terminalreporter.section("golden texts written")
            terminalreporter.line("\n".join(sorted(self.written)))
        if self.unused:
            terminalreporter.section("golden texts that no test uses" + (" (removed)" if self.update else ""))
            terminalreporter.line("\n".join(str(self.path(name)) for name in self.unused))
            if not self.update:
                terminalreporter.line("remove them, or run pytest --update-golden")


class Golden:
    """The fixture's value: ``golden(name, text)``."""

    def __init__(self, session: GoldenSession) -> None:
        self.session = session

    def __call__(self, name: str, text: str) -> None:
        """Compare ``text`` with ``tests/golden/<name>.txt``; fail with a diff, or rewrite under ``--update-golden``."""
        __tracebackhide__ = True
        if not VALID_NAME.fullmatch(name):
            pytest.fail(f"{name!r} cannot name a golden text: letters, digits, '_', '-', '.', and '/' between folders")
        if name in self.session.used:
            pytest.fail(f"the golden text {name!r} is already used in this run: give each comparison a name of its own")
        self.session.used.add(name)
        path = self.session.path(name)
        wanted = text.rstrip("\n") + "\n"
        found = path.read_text(encoding="utf-8") if path.exists() else None
        if found == wanted:
            return
        if self.session.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted, encoding="utf-8")
            self.session.written.add(name)
            return
        if found is None:
            pytest.fail(f"there is no {path}; run pytest --update-golden to write:\n\n{wanted}", pytrace=False)
        lines = difflib.unified_diff(
            found.splitlines(), wanted.splitlines(), f"{name}.txt", "this run", lineterm="", n=4
        )
        difference = "\n".join(lines)
        pytest.fail(f"{path} differs; if the change is right: pytest --update-golden\n\n{difference}", pytrace=False)
