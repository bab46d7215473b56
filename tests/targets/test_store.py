"""The cache directory: a second process compiles nothing; faults of the disk and races cost time, never results."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl.targets.cpu.launcher as launcher
import tcdsl.targets.cpu.machine.machine_code as machine_code
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.lower import lower
from tcdsl.targets.cache.sealed_files import read_sealed, write_sealed
from tcdsl.targets.cache.store import ProgramStore, cache_entries, cache_size, clear_cache, store
from tcdsl.targets.cpu.machine.machine_code import generator_digest, module_stem
from tcdsl.targets.cpu.target import CpuTarget
from tcdsl.targets.loading import load_program
from tcdsl.targets.protocol.target import Build
from tests.targets.compiling import compile_kernel
from tests.targets.kernels import matmul

ROOT = Path(__file__).parents[2]

RUN = """
import json, sys, warnings
from pathlib import Path
import numpy as np
from tcdsl.targets.protocol.target import Build
from tests.targets.compiling import compile_kernel
from tests.targets.kernels import matmul

def run(directory):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = Build((), cache_dir=Path(directory))
        compiled = compile_kernel(matmul(), contiguous=(True, True), options=options)
        A = np.arange(12, dtype=np.float32).reshape(3, 4)
        (C,) = compiled.run([A, A.T.copy()], {"N": 3, "P": 4, "M": 3})
    return {
        "right": bool(np.allclose(C, A @ A.T)), "from_disk": compiled.from_disk, "path": str(compiled.path),
        "warnings": [str(w.message) for w in caught], "same": compiled.path.read_text() == compiled.source,
    }
"""


def launch(directory: Path, **environment: str) -> subprocess.Popen[str]:
    last = "\nprint(json.dumps(run(DIRECTORY)))\n"
    code = f"DIRECTORY = {str(directory)!r}\n" + RUN + last
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def result(process: subprocess.Popen[str]) -> dict[str, object]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    answer = json.loads(out.splitlines()[-1])
    assert answer["right"]
    assert answer["same"]
    return answer


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("filled")
    assert not result(launch(directory))["from_disk"]
    return directory


def test_a_second_process_loads_from_disk(filled: Path) -> None:
    # Even where the user points Numba elsewhere, or turns it off: what is ours stays together and compiled.
    before = {file: file.stat().st_mtime_ns for file in filled.rglob("*") if file.is_file()}
    answer = result(launch(filled, NUMBA_CACHE_DIR=str(filled / "numba"), NUMBA_DISABLE_JIT="1"))
    assert answer["from_disk"]
    assert answer["warnings"] == []
    assert {file: file.stat().st_mtime_ns for file in filled.rglob("*") if file.is_file()} == before


def test_the_directory_is_private(filled: Path) -> None:
    assert stat.S_IMODE((filled / "modules").stat().st_mode) == 0o700
    (filled / "modules").chmod(0o755)
    assert stat.S_IMODE(ProgramStore(filled / "modules").directory.stat().st_mode) == 0o700


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """``again(directory)`` runs the kernel as a process of its own would; whether from disk, and what it warned of."""

    def run(directory: Path) -> tuple[bool, list[str]]:
        store.cache_clear()
        launcher.drivers_in.cache_clear()
        monkeypatch.setattr(ProgramStore, "_warned", False)
        machine_code._NESTS.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            options = Build((), cache_dir=directory)
            compiled = compile_kernel(matmul(), contiguous=(True, True), options=options)
            A = np.arange(12, dtype=np.float32).reshape(3, 4)
            (C,) = compiled.run([A, A.T.copy()], {"N": 3, "P": 4, "M": 3})
        np.testing.assert_array_equal(C, A @ A.T)
        assert {warning.filename for warning in caught} <= {__file__, compile_kernel.__code__.co_filename}
        return compiled.from_disk, [str(warning.message) for warning in caught]

    yield run
    store.cache_clear()
    launcher.drivers_in.cache_clear()


def codes(directory: Path) -> list[Path]:
    found = sorted((directory / "modules").glob("*.code"))
    assert len(found) == 2
    return found


def swap(directory: Path) -> None:
    one, other = codes(directory)
    one.rename(directory / "aside")
    other.rename(one)
    (directory / "aside").rename(other)


def replace(file: Path, make: Any) -> None:
    file.unlink()
    make(file)


def rewrite(directory: Path, change: Any) -> None:
    for file in codes(directory):
        file.write_bytes(change(file.read_bytes()))


def seal_nonsense(directory: Path) -> None:
    # Whole, but no code.
    for file in codes(directory):
        write_sealed(file, read_sealed(file)[:-20])


REPAIRED = {
    "truncated": lambda directory: rewrite(directory, lambda data: data[:100]),
    "empty": lambda directory: rewrite(directory, lambda data: b""),
    "flipped bits": lambda directory: rewrite(directory, lambda data: bytes(255 - b for b in data)),
    "one bit": lambda directory: rewrite(directory, lambda data: data[:900] + bytes([data[900] ^ 1]) + data[901:]),
    "longer": lambda directory: rewrite(directory, lambda data: data + b"?"),
    "swapped": swap,
    "dangling links": lambda directory: replace(codes(directory)[0], lambda file: file.symlink_to("nowhere")),
    "pipes": lambda directory: replace(codes(directory)[0], os.mkfifo),
    "sealed nonsense": seal_nonsense,
}


@pytest.mark.parametrize("damage", REPAIRED.values(), ids=REPAIRED.keys())
def test_damaged_entries_are_made_again(filled: Path, tmp_path: Path, again: Any, damage: Any) -> None:
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    assert again(tmp_path) == (True, [])
    damage(tmp_path)
    _, warned = again(tmp_path)
    assert len(warned) == 1
    assert "compiled programs cannot be kept in" in warned[0]
    assert "`python -m tcdsl cache clear` removes damaged entries" in warned[0]
    assert again(tmp_path) == (True, [])


def test_missing_entries_are_made_again(filled: Path, tmp_path: Path, again: Any) -> None:
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    for file in codes(tmp_path):
        file.unlink()
    assert again(tmp_path) == (False, [])
    assert again(tmp_path) == (True, [])


def test_directories_in_the_place_of_entries(filled: Path, tmp_path: Path, again: Any) -> None:
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    for file in codes(tmp_path):
        replace(file, Path.mkdir)
    from_disk, warned = again(tmp_path)
    assert not from_disk
    assert len(warned) == 1
    clear_cache(tmp_path)
    assert again(tmp_path) == (False, [])


def no_space(*arguments: object, **options: object) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


class FullFile(io.BytesIO):
    def write(self, data: Any) -> int:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")


FULL = {
    "no file can be made": (tempfile, "mkstemp", no_space),
    "nothing can be written": (os, "fdopen", lambda descriptor, mode: os.close(descriptor) or FullFile()),
    "nothing can be renamed": (os, "replace", no_space),
}


@pytest.mark.parametrize("fault", FULL.values(), ids=FULL.keys())
def test_a_full_disk(tmp_path: Path, again: Any, monkeypatch: pytest.MonkeyPatch, fault: Any) -> None:
    (tmp_path / "modules").mkdir()
    monkeypatch.setattr(*fault)
    from_disk, warned = again(tmp_path)
    assert not from_disk
    assert len(warned) == 1
    assert re.search("No space left on device|Disk quota exceeded", warned[0])
    assert list((tmp_path / "modules").iterdir()) == []


def test_a_directory_that_cannot_be_made(tmp_path: Path, again: Any) -> None:
    (tmp_path / "file").write_text("not a directory")
    from_disk, warned = again(tmp_path / "file" / "cache")
    assert not from_disk
    assert len(warned) == 1
    assert "file" in warned[0]


def test_a_read_only_cache_is_used(filled: Path, again: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Permissions do not stop an administrator, so nothing may be tried.
    monkeypatch.setattr(tempfile, "mkstemp", no_space)
    assert again(filled) == (True, [])


def test_a_directory_that_is_removed_while_programs_run(tmp_path: Path, again: Any) -> None:
    again(tmp_path)
    shutil.rmtree(tmp_path / "modules")
    place = store(tmp_path)
    place.write("entry.code", b"content")
    assert place.read("entry.code") == b"content"
    assert stat.S_IMODE((tmp_path / "modules").stat().st_mode) == 0o700


def test_nothing_is_read_that_others_may_have_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProgramStore, "_warned", False)
    ProgramStore(tmp_path).write("entry.code", b"content")
    monkeypatch.setattr(Path, "chmod", no_space)
    os.chmod(tmp_path, 0o777)  # `Path.chmod` is out of order
    with pytest.warns(RuntimeWarning, match="others may write in"):
        assert ProgramStore(tmp_path).read("entry.code") is None


def test_processes_that_start_together(tmp_path: Path) -> None:
    for answer in [result(process) for process in [launch(tmp_path) for _ in range(2)]]:
        assert answer["warnings"] == []
    assert not [file for file in (tmp_path / "modules").iterdir() if "tmp" in file.name or file.name.startswith(".")]


def test_entries_and_clearing(filled: Path, tmp_path: Path) -> None:
    assert cache_entries(tmp_path) == []
    assert clear_cache(tmp_path) == 0
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    program = parse_program(
        "program double\ninput x: float64[N]\ntensor y: float64[N]\ny[i] = x[i] * 2.0  for [i]: 0 <= i < N\nreturn y\n"
    )
    load_program(CpuTarget(), program, lambda: lower(program), Build((True,), cache_dir=tmp_path))
    (entry,) = cache_entries(tmp_path)
    assert entry.title == "double"
    assert cache_size(tmp_path) == sum(file.stat().st_size for file in (tmp_path / "modules").iterdir())
    assert clear_cache(tmp_path) == 1
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_the_name_depends_on_everything() -> None:
    stems = {
        module_stem("f", "text"),
        module_stem("f", "text2"),
        module_stem("g", "text"),
    }
    assert len(stems) == 3
    assert module_stem("a/b c", "x").startswith("a_b_c_")


def test_the_name_depends_on_what_generated_code_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    # The text of a module names functions of this package, and says nothing of what they do.
    folders = []
    monkeypatch.setattr(
        "tcdsl.targets.cpu.machine.machine_code.sources_digest", lambda folder: folders.append(Path(folder)) or "digest"
    )
    generator_digest.__wrapped__()
    (folder,) = folders
    assert (folder / "intrinsics" / "formulas.py").is_file()


def test_what_runs_without_numba() -> None:
    code = "import sys, tcdsl.targets.cpu.target, tcdsl.targets.cache.store; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
