"""The golden fixture itself, in small pytest runs of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    # What else is installed would take half of each run.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    tests = pytester.mkdir("tests")
    for name in ("conftest.py", "golden_texts.py"):
        (tests / name).write_text((HERE / name).read_text())
    (tests / "test_stage.py").write_text("def test_stage(golden):\n    golden('ir/one', 'first\\nsecond')\n")
    pytester.makeini("[pytest]\ntestpaths = tests\npythonpath = .\naddopts = --import-mode=importlib\n")
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    plugins = ("-p", "xdist") if "-n" in arguments else ()
    return project.runpytest_subprocess("-p", "no:cacheprovider", *plugins, *arguments)


def test_a_missing_text_fails_and_is_written_on_request(project: pytest.Pytester) -> None:
    missing = run(project)
    missing.assert_outcomes(failed=1)
    missing.stdout.fnmatch_lines(["*pytest --update-golden to write*", "second"])
    updated = run(project, "--update-golden")
    updated.assert_outcomes(passed=1)
    assert (project.path / "tests/golden/ir/one.txt").read_text() == "first\nsecond\n"
    assert run(project).ret == 0


def test_a_changed_text_fails_with_a_diff(project: pytest.Pytester) -> None:
    path = project.path / "tests/golden/ir/one.txt"
    path.parent.mkdir(parents=True)
    path.write_text("first\nother\n")
    changed = run(project)
    changed.assert_outcomes(failed=1)
    changed.stdout.fnmatch_lines([" first", "-other", "+second"])
    assert path.read_text() == "first\nother\n"


@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_unused_text_fails_a_full_run_only(project: pytest.Pytester, workers: str) -> None:
    run(project, "--update-golden").assert_outcomes(passed=1)
    stale = project.path / "tests/golden/ir/stale.txt"
    stale.write_text("old\n")
    full = run(project, "-n", workers)
    assert full.ret == 1
    full.stdout.fnmatch_lines(["*golden texts that no test uses*", "*stale.txt", "remove them*"])
    if workers == "0":
        assert run(project, "tests/test_stage.py").ret == 0
        assert run(project, "-k", "stage").ret == 0
    assert run(project, "-n", workers, "--update-golden").ret == 0
    assert not stale.exists()


def test_two_comparisons_cannot_share_a_name(project: pytest.Pytester) -> None:
    path = project.path / "tests/test_stage.py"
    path.write_text(path.read_text() + "    golden('ir/one', 'first\\nsecond')\n")
    result = run(project, "--update-golden")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*already used in this run*"])


def test_a_name_cannot_leave_the_folder(project: pytest.Pytester) -> None:
    (project.path / "tests/test_stage.py").write_text("def test_stage(golden):\n    golden('../one', '')\n")
    run(project, "--update-golden").assert_outcomes(failed=1)
