"""``%load_ext tcdsl`` in a real shell, and in a notebook that is executed."""

from __future__ import annotations

import atexit
import inspect
import os
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc

interactiveshell = pytest.importorskip("IPython.core.interactiveshell")
ROOT = Path(__file__).parent.parent.parent

CELL = """\
import numpy as np
import tcdsl as tc

# comments stay
@tc.op
def gated(x, *, n=1):
    y = x *. 2 -?/ abs(x)  # twice
    _ = x +. y
    return [y][n - 1]
"""


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    found = interactiveshell.InteractiveShell()
    found.history_manager.enabled = False
    found.run_line_magic("load_ext", "tcdsl")
    yield found
    found.run_line_magic("unload_ext", "tcdsl")
    # What it would do when the process ends, it does now.
    found.atexit_operations()
    atexit.unregister(found.atexit_operations)


def run(shell: Any, cell: str) -> Any:
    result = shell.run_cell(cell, store_history=True)
    result.raise_error()
    return result.result


PRODUCT = """\
import numpy as np
import tcdsl as tc
@tc.cd
def add_product(c, a, b):
    c[i, j] =+ a[i, k] *. b[k, j]
c = np.ones((2, 2))
add_product(c, np.eye(2), np.ones((2, 2)))
c
"""


def test_cells_may_be_literal(shell: Any) -> None:
    np.testing.assert_allclose(run(shell, PRODUCT), [[2.0, 2.0], [2.0, 2.0]])


def test_source_is_the_literal_text(shell: Any) -> None:
    run(shell, CELL.replace("    _ = x +. y\n", ""))
    source = inspect.getsource(shell.user_ns["gated"].function)
    assert "    y = x *. 2 -?/ abs(x)  # twice\n" in source
    assert source == str(shell.user_ns["gated"].explain("source"))


def test_tracebacks_show_the_literal_text(shell: Any) -> None:
    run(shell, CELL.replace("    _ = x +. y\n", ""))
    result = shell.run_cell("gated(np.ones(2), n=5)", store_history=True)
    shown = "".join(traceback.format_exception(result.error_in_exec))
    assert "    return [y][n - 1]\n           ^^^^^^^^^^" in shown
    run(shell, "@tc.op\ndef bad(x, *, n):\n    y = x *. 2 -?/ x *. [1, 2][n]\n    return y\n")
    result = shell.run_cell("bad(np.ones(2), n=5)", store_history=True)
    shown = "".join(traceback.format_exception(result.error_in_exec))
    assert "    y = x *. 2 -?/ x *. [1, 2][n]\n" + " " * 24 + "^^^^^^^^^" in shown


def test_errors_of_the_language_point_into_the_cell(shell: Any) -> None:
    run(shell, PRODUCT)
    result = shell.run_cell("add_product(c, np.ones((2, 3)), np.ones((2, 2)))", store_history=True)
    assert isinstance(result.error_in_exec, tc.ShapeError)
    assert "    c[i, j] =+ a[i, k] *. b[k, j]\n" in str(result.error_in_exec)
    assert "              ^" in str(result.error_in_exec)


def test_the_same_cell_twice_and_its_plain_form(shell: Any) -> None:
    literal = "@tc.op\ndef f(x):\n    return x *. 3\n"
    run(shell, "import numpy as np, tcdsl as tc")
    for cell in (literal, literal, literal.replace("*.", "*"), literal):
        run(shell, cell)
        assert inspect.getsource(shell.user_ns["f"].function) == cell
        assert run(shell, "f(np.ones(1))") == [3.0]


def test_cells_of_both_spellings_without_numbers(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # As in Jupyter, a cell has the same name whenever it is run.
    monkeypatch.setattr(shell.compile, "get_code_name", lambda raw, transformed, number: f"<cell {hash(raw)}>")
    literal = "@tc.op\ndef f(x):\n    return x *. 3\n"
    run(shell, "import numpy as np, tcdsl as tc")
    run(shell, "kept = []")
    functions = []
    for magic in ("%%time\n", "", "%%capture\n", ""):
        for cell in (literal, literal.replace("*.", "*"), literal, literal.replace("*.", "*")):
            run(shell, f"{magic}{cell}kept.append(f.function)\nNone")
            functions.append((shell.user_ns["kept"][-1], cell))
        for function, text in functions:
            assert inspect.getsource(function) == text


MAGICS = """\
%config InteractiveShell.xmode = 'Plain'
files = !echo "it's (fine"
%timeit -n1 -r1 \\
    1 + 1
text = '''
%d (
!.x =+ 1
'''
import numpy as np, tcdsl as tc
@tc.op
def f(x):
    y = x -?/ x
    return y
number = 7 % 4
f?
"""


def test_magics_work_beside_literal_functions(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, MAGICS)
    assert shell.user_ns["files"] == ["it's (fine"]
    assert shell.user_ns["text"] == "\n%d (\n!.x =+ 1\n"
    assert shell.user_ns["number"] == 3
    assert "    y = x -?/ x\n" in inspect.getsource(shell.user_ns["f"].function)
    np.testing.assert_allclose(run(shell, "f(np.array([-1.0, 2.0]))"), [0.0, 2.0])


def test_cell_magics(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, "import numpy as np, tcdsl as tc")
    run(shell, "%%capture out\n@tc.op\ndef f(x):\n    return x *. 3\nprint(f(np.ones(1)))\n")
    assert shell.user_ns["out"].stdout == "[3.]\n"


MAGICS_OF_CELLS = ["%%time", "%%timeit -n1 -r2", "%%capture out", "%%prun -q", "%%time\n\n", "%%capture\n%%time"]
SPELLED = {"plain": "    y = x * 3 - relu(x)  # kept\n", "literal": "    y = x *. 3 -. relu(x)  # kept\n"}


@pytest.mark.parametrize("spelling", SPELLED)
@pytest.mark.parametrize("magic", MAGICS_OF_CELLS)
def test_functions_of_cells_that_a_magic_runs(
    shell: Any, capsys: pytest.CaptureFixture[str], magic: str, spelling: str
) -> None:
    if spelling == "plain":
        run(shell, "%unload_ext tcdsl")
    run(shell, "import numpy as np, tcdsl as tc\nkept = []")
    source = "@tc.op\ndef f(x):\n" + SPELLED[spelling] + "    return y\n"
    helper = "def bent(v):\n    return v * 2 if v > 1 else v\n"
    more = "@tc.op\ndef g(x):\n    z[i] = bent(x[i])\n    return z\ndef late():\n" + source.replace("@tc", "    @tc")
    more = more.replace("\ndef f", "\n    def k").replace(SPELLED[spelling], "    " + SPELLED[spelling])
    more = more.replace("    return y\n", "        return y\n    return k\n")
    kept = "kept.extend([f, g, late])\nassert f(np.ones(2))[0] == 2\nNone\n"
    run(shell, magic + "\n" + helper + source + more + kept)
    f, g, late = run(shell, "kept")[-3:]
    assert g(np.array([1.0, 2.0])).tolist() == [1, 4]
    if magic != "%%prun -q":  # which runs a text, the plain one
        assert inspect.getsource(f.function) == source
    run(shell, magic + "\n@tc.op\ndef other(x):\n    return x + 1\nkept.append(other)\nother(np.ones(1))")
    # Where the function stands in a cell that ran before, it is decorated from that.
    assert late()(np.ones(2)).tolist() == [2, 2]
    bad = "\n@tc.op\ndef bad(a):\n    s[j] = a[i, j]\n    return s\nbad(np.ones((2, 2)))\n"
    result = shell.run_cell(magic + bad, store_history=True)
    shown = result.error_in_exec
    if "capture" not in magic:
        assert isinstance(shown, tc.DslSyntaxError)
        assert re.match(rf"<ipython-input-{result.execution_count}-\w+>:\d: .*\n    s\[j\] = a\[i, j\]\n", str(shown))


@pytest.mark.parametrize("spelling", ["plain", "literal"])
@pytest.mark.parametrize("magic", ["%%time", "%%timeit -n1 -r1", "%%prun -q"])
def test_cells_that_are_edited_and_run_again(
    shell: Any, capsys: pytest.CaptureFixture[str], magic: str, spelling: str
) -> None:
    if spelling == "plain":
        run(shell, "%unload_ext tcdsl")
    run(shell, "import numpy as np, tcdsl as tc\nkept = []\na, b = 2.0, 3.0")
    values = ["x[i] * 2", "x[i] * 3", "x[i] * a", "x[i] * b", "abs(x[i])", "exp(x[i])"]
    for value in values:
        text = f"@tc.op\ndef f(x):\n    y[i] = {value}\n    return y\nkept.append(f.interpret(-np.ones(1))[0])\nNone\n"
        run(shell, magic + "\n" + text)
    np.testing.assert_allclose(run(shell, "kept")[-6:], [-2.0, -3.0, -2.0, -3.0, 1.0, np.exp(-1.0)])


@pytest.mark.parametrize(
    "cell",
    ["x =-1", "s = '@op'\nx =-1", "@staticmethod\ndef f(c):\n    c =-1\n    return c\nx = f.__func__(0)"],
)
def test_cells_without_decorated_functions_stay(shell: Any, cell: str) -> None:
    assert shell.transform_cell(cell) == cell + "\n"
    run(shell, cell)
    assert shell.user_ns["x"] == -1


ENDS = ["", "\n", "\n\n", "\n    ", " + (", " + (\n", ")", "\n    if c:", '\n    """', "\n%x\n", "\n    c \\"]


@pytest.mark.parametrize("end", ENDS)
def test_a_console_knows_when_a_function_is_complete(shell: Any, end: str) -> None:
    text = "@tc.cd\ndef f(c):\n    c {} c" + end
    assert shell.check_complete(text.format("=@^")) == shell.check_complete(text.format(">>="))


def test_a_console_knows_faults(shell: Any) -> None:
    assert shell.check_complete("@tc.cd\ndef f(c):\n    c =^+ c\n\n")[0] == "invalid"


def test_faults_are_shown(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    result = shell.run_cell("import tcdsl as tc\n@tc.cd\ndef f(c):\n    c =^+ c\n", store_history=True)
    assert isinstance(result.error_before_exec, tc.DslSyntaxError)
    assert str(result.error_before_exec).startswith(
        "In[1]:4: `=^+` is no assignment operator\n    c =^+ c\n      ^^^\n"
    )
    assert "`=^+` is no assignment operator" in capsys.readouterr().out
    assert "f" not in shell.user_ns


def test_python_shows_its_own_errors(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    result = shell.run_cell("import tcdsl as tc\n@tc.cd\ndef f(c):\n    c =+ c\nx = = 2\n", store_history=True)
    assert type(result.error_before_exec) is SyntaxError
    assert result.error_before_exec.lineno == 5


def test_loading_twice_and_unloading(shell: Any) -> None:
    before = len(shell.input_transformers_cleanup), len(shell.ast_transformers)
    tc.load_ipython_extension(shell)
    assert (len(shell.input_transformers_cleanup), len(shell.ast_transformers)) == before
    tc.unload_ipython_extension(shell)
    assert shell.transform_cell(PRODUCT) == PRODUCT
    tc.unload_ipython_extension(shell)
    assert (len(shell.input_transformers_cleanup), len(shell.ast_transformers)) == (before[0] - 1, before[1] - 1)
    tc.load_ipython_extension(shell)
    assert (len(shell.input_transformers_cleanup), len(shell.ast_transformers)) == before


def test_in_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    show = "import inspect\nprint(inspect.getsource(add_product.function).splitlines()[2])\nprint(c)"
    cells = ["%load_ext tcdsl", PRODUCT, show, "add_product(c, np.ones((2, 3)), np.ones((2, 2)))"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.cells[-1].metadata["tags"] = ["raises-exception"]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep))
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert notebook.cells[2].outputs[0]["text"] == "    c[i, j] =+ a[i, k] *. b[k, j]\n[[2. 2.]\n [2. 2.]]\n"
    error = notebook.cells[3].outputs[0]
    assert error["ename"] == "ShapeError"
    assert "c[i, j] =+ a[i, k] *. b[k, j]" in error["evalue"]


FAULTY = {
    "syntax": "@tc.op\ndef faulty(a):\n    s[j] = a[i, j]\n    return s\n",
    "shape": "@tc.op\ndef faulty(a):\n    s[j] += a[i, j] + a[j, i]\n    return s\n",
}


@pytest.mark.parametrize("mode", ["Context", "Plain"])
@pytest.mark.parametrize("fault", FAULTY)
def test_errors_are_shown_with_the_users_frames_alone(
    shell: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fault: str, mode: str
) -> None:
    # IPython itself shows nothing of the call for what is a SyntaxError, but frames of its own and an empty file.
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    shell.run_line_magic("xmode", mode)
    run(shell, "import numpy as np\nimport tcdsl as tc\n" + FAULTY[fault])
    capsys.readouterr()
    result = shell.run_cell("def call():\n    return faulty(np.ones((2, 3)))\ncall()", store_history=True)
    shown = capsys.readouterr()
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown.out + shown.err)
    assert isinstance(result.error_in_exec, tc.TcdslError)
    assert f"{type(result.error_in_exec).__name__}: " in text
    assert str(result.error_in_exec) in text
    for line in ("call()", "return faulty(np.ones((2, 3)))"):
        assert line in text
    for name in ("interactiveshell", "<string>", "tcdsl/", "Custom TB"):
        assert name not in text


def test_handlers_of_others_stay(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    seen = []
    shell.set_custom_exc((SyntaxError,), lambda shell, kind, error, traceback, tb_offset=None: seen.append(error))
    run(shell, "import numpy as np\nimport tcdsl as tc\n" + FAULTY["syntax"])
    shell.run_cell("faulty(np.ones((2, 3)))", store_history=True)
    assert [type(error) for error in seen] == [tc.DslSyntaxError]
