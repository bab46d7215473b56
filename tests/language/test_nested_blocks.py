"""Long chains of `elif`, deep nests of `if`, loops and branches in turn: as many as Python takes."""

import importlib.util
import itertools
import traceback
from pathlib import Path

import numpy as np
import pytest

import tcdsl as tc
from tests.long_variants import few

HEAD = "import numpy as np\nimport tcdsl as tc\nfrom tcdsl import op, cd\n\ndef plain(x, k):\n"
NUMBERS = itertools.count()


def functions_of(folder: Path, body: str, decorator: str = "op") -> tuple:
    """The op of a body of `def f(x, k)`, and the same function of Python."""
    text = HEAD + body + f"\n@{decorator}\ndef f(x, k):\n{body}"
    path = folder / f"nested_{next(NUMBERS)}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f, module.plain


def chain(tests: int, arm: str, last: str) -> str:
    """A chain of `elif`."""
    lines = (f"    {'elif' if n else 'if'} k[0] == {n}:\n        {arm.format(n=n)}\n" for n in range(tests))
    return "".join(lines) + f"    else:\n        {last}\n"


def nest(heads: list[str], inner: str) -> str:
    """Blocks in blocks, with a statement in each."""
    lines = []
    for depth, head in enumerate(heads):
        lines += ["    " * (depth + 1) + head, "    " * (depth + 2) + inner.format(n=depth)]
    return "\n".join(lines) + "\n"


CHAINS = {
    "one name, also before": "    y = x * 1.0\n" + chain(60, "y = y * {n}.5 + x[1]", "y = -y") + "    return y\n",
    "new names": chain(40, "y = x * {n}.5; z = y + 1.0", "y = x; z = x * 2.0") + "    return y * z\n",
    "returns": chain(40, "return x * {n}.5", "return -x"),
    "numbers": "    s = 0.0\n" + chain(24, "s = {n}.5", "s = 7.0") + "    return x * s\n",
    "faults only if reached": chain(24, "return x * x[{n} % 3]", "assert k[0] > 30; return x"),
}


@pytest.mark.parametrize("name", few(CHAINS, {"returns", "numbers", "faults only if reached"}))
def test_chains_of_elif(tmp_path: Path, name: str) -> None:
    f, plain = functions_of(tmp_path, CHAINS[name])
    x = np.array([1.0, 2.0, 3.0])
    for k in (0, 21, 39, 59, 150):
        np.testing.assert_allclose(f(x, np.array([k])), plain(x, np.array([k])))
    np.testing.assert_allclose(f.interpret(x, np.array([21])), plain(x, np.array([21])))


def test_derivatives_of_a_chain(tmp_path: Path) -> None:
    f, _ = functions_of(tmp_path, chain(22, "return x * x[{n} % 3]", "return -x"))
    x, seed = np.array([1.0, 2.0, 3.0]), np.ones(3)
    for k, n in ((0, 0), (20, 20), (21, 21)):
        wanted = np.full(3, x[n % 3])
        wanted[n % 3] += x.sum()
        np.testing.assert_allclose(tc.vjp(f, x, np.array([k]))[1](seed)[0], wanted)


NESTS = {
    "50 branches": "    y = x * 1.0\n"
    + nest([f"if k[0] > {n}:" for n in range(50)], "y = y * 1.01 + {n}")
    + "    return y\n",
    "19 loops": "    y = x * 1.0\n"
    + nest([f"for t{n} in range(k[0]):" for n in range(19)], "y = y + 1")
    + "    return y\n",
    "19 loops and branches in turn": "    y = x * 1.0\n"
    + nest(
        [f"for t{n // 2} in range(k[0]):" if n % 2 == 0 else f"if k[0] + 20 > {n}:" for n in range(38)], "y = y + {n}"
    )
    + "    return y\n",
    "loops that are left": "    y = x * 1.0\n"
    + nest([f"while y[0] < {300 - n}.0:" for n in range(14)], "y = y + 1\n")
    + "    " * 15
    + "if y[1] > 40:\n"
    + "    " * 16
    + "break\n    return y\n",
    "names of the function": "    n = s = 0\n    y = x * 1.0\n"
    + nest([f"if k[0] >= {-n}:" for n in range(20)], "n += 1; s = [y, n][1]; (a, b) = y, y + 1; y = a * 0.5 + b * 0.5")
    + "    return y * n + s\n",
}


@pytest.mark.parametrize("name", few(NESTS, {"50 branches", "19 loops and branches in turn", "loops that are left"}))
def test_nests(tmp_path: Path, name: str) -> None:
    body = NESTS[name]
    f, plain = functions_of(tmp_path, body)
    x = np.array([1.0, 2.0, 3.0])
    for k in (0, 1) if "for" in body else (0, 7, 15, 41):
        np.testing.assert_allclose(f(x, np.array([k])), plain(x, np.array([k])))


def test_memory_in_deep_nests_of_code(tmp_path: Path) -> None:
    body = nest([f"if k[0] > {n}:" for n in range(30)], "x[{n} % 3] += {n}")
    f, plain = functions_of(tmp_path, body, "cd")
    for k in (0, 12, 40):
        got, wanted = np.zeros(3), np.zeros(3)
        f(got, np.array([k]))
        plain(wanted, np.array([k]))
        np.testing.assert_allclose(got, wanted)


def test_faults_in_deep_nests_name_their_line(tmp_path: Path) -> None:
    deep = nest([f"if k[0] > {n}:" for n in range(30)], "x = x + {n}") + "    " * 31 + "x = x + fault\n    return x\n"
    f, _ = functions_of(tmp_path, deep)
    with pytest.raises(NameError, match="fault") as caught:
        f(np.ones(3), np.array([1]))
    lines = [(entry.name, entry.line) for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert lines[-1] == ("f", "x = x + fault")
    assert [name for name, _ in lines].count("f") == 1


def test_staging_takes_each_arm_a_constant_number_of_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tcdsl.frontend.running_loops.running_loop import RunningLoop

    begun = []
    begin = RunningLoop._begin
    monkeypatch.setattr(RunningLoop, "_begin", lambda self: begun.append(self) or begin(self))
    for body in (CHAINS["returns"], CHAINS["one name, also before"], CHAINS["new names"], NESTS["50 branches"]):
        begun.clear()
        f, _ = functions_of(tmp_path, body)
        f.program(np.ones(3), np.array([1]))
        assert len(begun) <= 4 * body.count("if k[0]")


def test_derivatives_of_nests_trim_a_loop_once_for_each_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tcdsl.rewrite import loop_trimming

    trimmed = []
    trim = loop_trimming._trimmed
    monkeypatch.setattr(loop_trimming, "_trimmed", lambda *given: trimmed.append(given) or trim(*given))
    depth = 20
    body = "    y = x[0] * 1.0\n" + nest([f"if k[0] > {n}:" for n in range(depth)], "y = y + {n}")
    for n in reversed(range(depth)):
        body += "    " * (n + 1) + f"else:\n{'    ' * (n + 2)}y = y * {n}\n"
    f, plain = functions_of(tmp_path, body + "    return y\n")
    x, k = np.array([2.0]), np.array([12])
    np.testing.assert_allclose(tc.grad(f)(x, k), plain(x + 1, k) - plain(x, k))
    assert len(trimmed) <= 3 * depth**2


@pytest.mark.usefixtures("own_cache")
def test_choices_in_choices_are_rewritten_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tcdsl.frontend.python.loop_rewriting import LoopRewriter

    rewritten = []
    rewrite = LoopRewriter.visit_IfExp
    monkeypatch.setattr(LoopRewriter, "visit_IfExp", lambda self, node: rewritten.append(node) or rewrite(self, node))
    depth = 40
    value = "".join(f"{n}.5 * x[i] if x[i] < {n} else (" for n in range(depth)) + "0.0" + ")" * depth
    f, _ = functions_of(tmp_path, f"    y[i] = {value}\n    return y\n")
    x = np.array([-1.0, 12.25, 50.0])
    np.testing.assert_allclose(f(x, np.array([0])), [-0.5, 13.5 * 12.25, 0])
    assert len(rewritten) == depth
