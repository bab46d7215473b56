"""The digest of sources, by which what is kept on disk is known to be current."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from tcdsl import installation
from tcdsl.installation import FOLDER, sources_digest


def copied(folder: Path) -> Path:
    (folder / "inner").mkdir(parents=True)
    (folder / "a.py").write_text("x = 1")
    (folder / "inner" / "b.py").write_text("y = 2")
    (folder / "inner" / "b.sknd").write_text("# a library in SkriptND")
    return folder


def test_the_digest_is_that_of_names_and_texts(tmp_path: Path) -> None:
    digest = first = sources_digest(str(copied(tmp_path / "one")))
    other = copied(tmp_path / "two")
    (other / "notes.txt").write_text("not a source")
    shutil.copytree(other, tmp_path / "three")
    assert sources_digest(str(other)) == digest
    for source in ("b.py", "b.sknd"):
        (other / "inner" / source).write_text("y = 3")
        sources_digest.cache_clear()
        changed = sources_digest(str(other))
        assert changed != digest
        digest = changed
    (tmp_path / "three" / "a.py").rename(tmp_path / "three" / "c.py")
    assert sources_digest(str(tmp_path / "three")) not in (first, digest)
    assert (Path(FOLDER) / "__init__.py").is_file()


def test_the_digest_of_the_package_is_noted_beside_its_bytecode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied(tmp_path / "package")
    root = f"{folder}{os.sep}"
    computed = sources_digest(root)
    note = Path(cache_from_source(str(folder / "sources.py")) + ".digest")
    note.parent.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(installation, "FOLDER", root)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    def found() -> str:
        sources_digest.cache_clear()
        return sources_digest(root)

    assert found() == computed
    assert not note.exists()  # the files may still be changing
    monkeypatch.setattr(installation, "_SETTLED", 0)
    assert found() == computed
    seen, noted = note.read_text().split()
    assert noted == computed
    note.write_text(f"{seen} other")
    assert found() == "other"
    for damaged in ("", "\n", seen, "\x00\xff"):
        note.write_text(damaged, encoding="latin-1")
        assert found() == computed
    (folder / "inner" / "b.py").write_text("y = 3")
    changed = found()
    assert changed != computed
    assert found() == changed
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    note.unlink()
    assert found() == changed
    assert not note.exists()
    sources_digest.cache_clear()
