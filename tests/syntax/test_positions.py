"""Random literal functions: the tree is that of the plain form, and every part of it is where it was written."""

from __future__ import annotations

import ast
import warnings

import hypothesis.strategies as st
from hypothesis import given, settings

from tcdsl import literal
from tcdsl.syntax.grammar.literal_operators import ASSIGNMENTS, COMPOSITIONS, INFIX

NAMES = st.sampled_from(["a", "b", "c", "x_1", "p.grad", "config.hid", "é", "f(a, b)", "A[i, j]", "d['k'] [0]"])
NUMBERS = st.sampled_from(["1", "0.5", "2.", ".5", "1e-3"])
STRINGS = st.sampled_from(['"w"', "'b'", '"c =+ a *. ü"', "f'{a} =+ {b!r}'", 'r"\\n[| |]"', '""" !.x """'])
SPACES = st.sampled_from(["", " ", "  ", "\n        ", "  # =+ ü *.\n    ", "\t"])
GAPS = st.sampled_from([" ", "  ", " \\\n  "])
PYTHON_OPERATORS = ["+", "-", "*", "/", "@", "**", "<", "==", "and", "or", "if x else"]


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    """A literal expression; parentheses are around all operands whose grouping could be refused."""
    if depth == 0:
        return draw(st.one_of(NAMES, NUMBERS, STRINGS))
    inner = expressions(depth - 1)
    kind = draw(st.sampled_from(["infix", "python", "number", "einsum", "list", "batch", "call", "declare", "leaf"]))
    left, right = f"({draw(SPACES)}{draw(inner)}{draw(SPACES)})", f"({draw(inner)})"
    match kind:
        case "infix":
            return f"{left}{draw(GAPS)}{draw(st.sampled_from(list(INFIX)))}{draw(GAPS)}{right}"
        case "python":
            return f"{left} {draw(st.sampled_from(PYTHON_OPERATORS))} {right}"
        case "number":
            return draw(st.sampled_from(["!.", "!.."])) + draw(st.one_of(NAMES, st.just("0.5"), st.just(left)))
        case "einsum":
            operator = draw(st.sampled_from(list(COMPOSITIONS)))
            return f'{left} {operator}{draw(GAPS)}"i;j=>ü" ' + ("" if operator == "++" else draw(st.just(right)))
        case "list":
            return f"[{draw(inner)}{draw(SPACES)};{draw(SPACES)}({draw(inner)}, {draw(inner)})]"
        case "batch":
            return f"[|{draw(SPACES)}{draw(inner)};{draw(inner)}{draw(SPACES)}|]"
        case "call":
            return f"g({draw(SPACES)}{draw(inner)}, key={draw(inner)})"
        case "declare":
            value = draw(st.sampled_from(["hid", "config.hid", "dims[0]", "(h, w)", "[1; 2.0]", "[| 1 |]", "0.5", "3"]))
            return f'"w"{draw(GAPS)}{value}'
    return draw(inner)


@st.composite
def statements(draw: st.DrawFn) -> str:
    value = draw(expressions())
    match draw(st.sampled_from(["assign", "label", "declare", "plain", "return", "wildcard", "comment", "if"])):
        case "assign":
            target = draw(st.sampled_from(["c", "C[i, j]", "p.grad", "é"]))
            return f"{target} {draw(st.sampled_from(list(ASSIGNMENTS)))} ({value})"
        case "label":
            label = draw(
                st.sampled_from(['~logic:"@"', "~projections", '~logic:"ü" ~projections:p.q', '~logic:"a" "b"'])
            )
            gap = draw(GAPS)
            return f"c{gap}{draw(st.sampled_from(list(ASSIGNMENTS)))}{gap}({value}){gap}{label}  # ~logic:"
        case "declare":
            return f'"ï" {draw(st.sampled_from(list(ASSIGNMENTS)))} ({value}), i < 3'
        case "plain":
            return f"y = ({value})"
        case "return":
            return f"return ({value})"
        case "wildcard":
            return f"_ = ({value})"
        case "comment":
            return '~~("ü" p  p.grad, "=+")'
    return f"if ({value}): c =+ 1; c =:* ({value})\n    else: c =- 2"


@st.composite
def programs(draw: st.DrawFn) -> str:
    body = "\n    ".join(draw(st.lists(statements(), min_size=1, max_size=4)))
    before = draw(st.sampled_from(["", "é = 'c =+ a'\n", "class C:\n  pass\n", "x =-1; y = 'a' [0]\n"]))
    return f"{before}@op(oob='skip')\ndef f(a, *, b=-1):\n    {body}\nz =+ 1\n"


WORDS = (ast.Name, ast.Constant, ast.Attribute, ast.arg)


@settings(max_examples=35)
@given(programs())
def test_parts_are_where_they_were_written(text: str) -> None:
    plain = literal.desugar(text)
    tree, expected = literal.parse(text), ast.parse(plain)
    assert ast.dump(tree) == ast.dump(expected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as for `1[n]`
        compile(tree, "f.py", "exec")
    assert plain.count("\n") == text.count("\n"), "lines keep their numbers"
    assert literal.desugar(plain) == plain
    for node, written in zip(ast.walk(tree), ast.walk(expected), strict=True):
        if isinstance(node, ast.expr):
            assert (node.lineno, node.col_offset) <= (node.end_lineno or 0, node.end_col_offset or 0)
            found, same = ast.get_source_segment(text, node), ast.get_source_segment(plain, written)
            assert found
            if isinstance(node, ast.Name) and found != node.id:
                # A name that the plain form adds stands for the operator or string that it replaces.
                assert found.strip("'\"") == node.id or not found.isidentifier() or found == "_"
            if isinstance(node, ast.Constant) and same not in ('"."', *(f'"{row}"' for row in ASSIGNMENTS)):
                assert found == same


@settings(max_examples=20)
@given(programs())
def test_what_is_outside_stays(text: str) -> None:
    outside = text.replace("@op(oob='skip')", "@other(oob='skip')")
    try:
        ast.parse(outside)
    except SyntaxError:
        outside = text.split("@op", maxsplit=1)[0] + "z =+ 1\n"
    assert literal.desugar(outside) == outside
    assert literal.desugar(text).endswith("\nz =+ 1\n")
    assert literal.desugar(text).startswith(text.split("@op", maxsplit=1)[0])
