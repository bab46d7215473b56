"""The cache directory: a second process compiles nothing; damage and races cost time, never results."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tcdsl.codegen import cache_entries, clear_cache
from tcdsl.codegen.store import discard_damaged, machine_code, module_directory, module_stem, write_module

ROOT = Path(__file__).parents[2]

RUN = """
import json, sys, warnings
from pathlib import Path
import numpy as np
from tcdsl.codegen import CodegenOptions, compile_kernel
from tests.codegen.kernels import matmul

def run(directory):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = CodegenOptions(cache_dir=Path(directory))
        compiled = compile_kernel(matmul(), contiguous=(True, True), options=options)
        A = np.arange(12, dtype=np.float32).reshape(3, 4)
        (C,) = compiled.run([A, A.T.copy()], {"N": 3, "P": 4, "M": 3})
    return {
        "right": bool(np.allclose(C, A @ A.T)), "from_disk": compiled.from_disk, "path": str(compiled.path),
        "warnings": [str(w.message) for w in caught], "same": compiled.path.read_text() == compiled.source,
    }
"""


def launch(directory: Path | str, prefix: str = "", **environment: str) -> subprocess.Popen[str]:
    last = "\nprint(json.dumps(run(DIRECTORY)))\n"
    code = f"DIRECTORY = {str(directory)!r}\n" + RUN + textwrap.dedent(prefix) + last
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
    module_directory.cache_clear()
    assert stat.S_IMODE(module_directory(filled).stat().st_mode) == 0o700


DAMAGES = {
    "truncated data": lambda file: file.suffix == ".nbc" and file.write_bytes(file.read_bytes()[:100]),
    "flipped bits": lambda file: file.suffix == ".nbc" and file.write_bytes(bytes(255 - b for b in file.read_bytes())),
    "truncated index": lambda file: file.suffix == ".nbi" and file.write_bytes(file.read_bytes()[:30]),
    "missing data": lambda file: file.suffix == ".nbc" and file.unlink(),
    "changed text": lambda file: file.suffix == ".py" and file.write_text("raise SystemExit('not what was written')"),
}


def test_damage_is_repaired(filled: Path) -> None:
    # One process per damage would be slow: each damages the files, loads them anew, and the last answer is from disk.
    prefix = """
    import glob, importlib, os
    from pathlib import Path
    from tests.codegen.test_store import DAMAGES
    import tcdsl.codegen.compiled as compiled
    directory = DIRECTORY
    answers = {}
    for name, damage in DAMAGES.items():
        for file in Path(directory).rglob("*"):
            if file.is_file():
                damage(file)
        for module in [m for m in sys.modules if m.startswith(("matmul_", "tcdsl_"))]:
            del sys.modules[module]
        compiled._drivers.cache_clear()
        answers[name] = run(directory)
        assert answers[name]["right"] and answers[name]["same"], name
    print(json.dumps(answers))
    for module in [m for m in sys.modules if m.startswith(("matmul_", "tcdsl_"))]:
        del sys.modules[module]
    """
    process = launch(filled, prefix)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    answers, last = (json.loads(line) for line in out.splitlines()[-2:])
    compiled_again = {name: not answer["from_disk"] for name, answer in answers.items()}
    assert all(compiled_again[name] for name in DAMAGES if "text" not in name), compiled_again
    assert last["from_disk"]
    assert all(answer["warnings"] == [] for answer in answers.values())


def test_a_cache_that_numba_cannot_read_is_renewed(filled: Path, tmp_path: Path) -> None:
    # Sealed, so the checksums agree, but not what Numba wants.
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    prefix = """
    from tcdsl.codegen.store import seal
    for module in (Path(DIRECTORY) / "modules").glob("*.py"):
        for file in (module.parent / "__pycache__").glob(f"{module.stem}.*.nb?"):
            file.write_bytes(file.read_bytes()[:-20])
        seal(module)
    """
    answer = result(launch(tmp_path, prefix))
    assert not answer["from_disk"]
    assert result(launch(tmp_path))["from_disk"]


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    answer = result(launch(tmp_path / "file" / "cache"))
    assert not answer["from_disk"]
    assert len(answer["warnings"]) == 1
    assert "compiled kernels cannot be kept" in answer["warnings"][0]
    assert not Path(answer["path"]).exists()  # the replacement went with the process


def test_a_read_only_cache_is_used(filled: Path, tmp_path: Path) -> None:
    # Permissions do not stop an administrator, so the process is told that they do.
    prefix = """
    import tempfile
    real = tempfile.TemporaryFile
    def refuse(*arguments, dir=None, **options):
        if dir is not None and str(dir).startswith(DIRECTORY):
            raise PermissionError(13, "Permission denied", str(dir))
        return real(*arguments, dir=dir, **options)
    tempfile.TemporaryFile = refuse
    """
    answer = result(launch(filled, prefix))
    assert answer["from_disk"]
    assert not answer["path"].startswith(str(filled))


def test_processes_that_start_together(tmp_path: Path) -> None:
    for answer in [result(process) for process in [launch(tmp_path) for _ in range(2)]]:
        assert answer["warnings"] == []
    assert not [file for file in (tmp_path / "modules").iterdir() if "tmp" in file.name or file.name.startswith(".")]


def test_entries_and_clearing(filled: Path, tmp_path: Path) -> None:
    assert cache_entries(tmp_path) == []
    assert clear_cache(tmp_path) == 0
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    entries = cache_entries(tmp_path)
    titles = {entry.title for entry in entries}
    assert "matmul: loop nests generated by tcdsl." in titles
    assert len(entries) == 2
    assert all(entry.size > entry.path.stat().st_size for entry in entries)
    assert clear_cache(tmp_path) == 2
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_the_name_depends_on_everything() -> None:
    stems = {
        module_stem("f", "text"),
        module_stem("f", "text2"),
        module_stem("f", "text", ("nsz",)),
        module_stem("g", "text"),
    }
    assert len(stems) == 4
    assert module_stem("a/b c", "x").startswith("a_b_c_")


def test_unsealed_machine_code_is_discarded(tmp_path: Path) -> None:
    path = write_module(tmp_path, "m_1", "x = 1\n")
    (tmp_path / "__pycache__").mkdir()
    for other in ("m_1.f-1.py311.nbi", "m_10.f-1.py311.nbi"):
        (tmp_path / "__pycache__" / other).write_bytes(b"?")
    assert [file.name for file in machine_code(path)] == ["m_1.f-1.py311.nbi"]
    discard_damaged(path)
    assert [file.name for file in (tmp_path / "__pycache__").iterdir()] == ["m_10.f-1.py311.nbi"]


def test_what_runs_without_numba() -> None:
    code = "from tcdsl.codegen import CodegenOptions, clear_cache; import sys; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
