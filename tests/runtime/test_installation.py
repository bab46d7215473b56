"""The digest of sources, by which what is kept on disk is known to be current."""

from __future__ import annotations

import shutil
from pathlib import Path

from tcdsl.installation import FOLDER, sources_digest


def copied(folder: Path) -> Path:
    (folder / "inner").mkdir(parents=True)
    (folder / "a.py").write_text("x = 1")
    (folder / "inner" / "b.py").write_text("y = 2")
    return folder


def test_the_digest_is_that_of_names_and_texts(tmp_path: Path) -> None:
    digest = sources_digest(str(copied(tmp_path / "one")))
    other = copied(tmp_path / "two")
    (other / "notes.txt").write_text("not a source")
    shutil.copytree(other, tmp_path / "three")
    assert sources_digest(str(other)) == digest
    (other / "inner" / "b.py").write_text("y = 3")
    sources_digest.cache_clear()
    assert sources_digest(str(other)) != digest
    (tmp_path / "three" / "a.py").rename(tmp_path / "three" / "c.py")
    assert sources_digest(str(tmp_path / "three")) != digest
    assert (Path(FOLDER) / "__init__.py").is_file()
