"""Faults of literal text: one message each, at the user's characters, saying what to write."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import tcdsl as tc
from tcdsl import literal
from tcdsl.syntax.grammar.parsing import carrier_text

HEAD = "@cd\ndef f(c, a, b, x, y, p, *, lr, config):\n"

# The statement, with the faulty characters in ⟨⟩; the fact; a part of the hint.
FAULTS = [
    # operators
    ("c ⟨=^+⟩ a", "`=^+` is no assignment operator", "write one of them, or a space after `=`"),
    ("c ⟨=<<⟩ a", "`=<<` is no assignment operator", "the assignment operators are =: =+ =- =* =/ =** =@^"),
    ("c ⟨=:%⟩ a", "`=:%` is no assignment operator", "write one of them"),
    ("c ⟨=+*⟩ a", "`=+*` is no assignment operator", "write one of them"),
    ("c ⟨=!⟩ a", "`=!` is no assignment operator", "write one of them"),
    ("for n in a: c ⟨=^+⟩ 1", "`=^+` is no assignment operator", "write one of them"),
    ("c ⟨=+=⟩ a", "`=+=` is no operator", "write one of them, or spaces between operators"),
    ("y = a ⟨-?⟩ b", "`-?` is no operator", "known are **. *. /. +. -. -@> -/> -?/ -?^ @^ ^^ @- @| <> && || ++ +* *+"),
    ("y = a ⟨??⟩ b", "`??` is no operator", "write one of them"),
    ("y = a ⟨$⟩ b", "`$` is no operator", "write one of them"),
    ("y = ⟨!⟩x", "`!` is no operator", "!.. !."),
    ("y = a ⟨-@<⟩ b", "`-@<` is no operator", "beside Python's, the operators are **. *."),
    ("y = a ⟨<+>⟩ b", "`<+>` is no operator", "spaces between operators"),
    ("y = ⟨!.⟩", "`!.` stands before no name, number or parentheses", "write `!.x`, `!.0.5` or `!.(a + b)`"),
    ("y = a @^ b ⟨^^⟩ c", "`@^` and `^^` bind equally, so it is not clear which comes first", "`(a @^ b) ^^ c`"),
    ("y = a | b ⟨@^⟩ c", "`|` and `@^` bind equally", "write parentheses"),
    ("y = a ⟨<>⟩ b < c", "`<>` in a chain of comparisons", "write parentheses"),
    ("y = a < b ⟨<>⟩ c", "`<>` in a chain of comparisons", "write parentheses"),
    ('y = x ⟨++ "spec"⟩ * 2', "`++` takes the spec string alone", 'write parentheses, as in `(x ++ "...") * y`'),
    ('y = x ⟨*+ "spec"⟩', "`*+` takes two operands, and the second one is missing", 'write `a *+ "..." b`'),
    (
        'y = x ++ "spec" ⟨"b"⟩',
        "`++` takes one operand, and another one stands behind its spec",
        '`a *+ "..." b` for two operands',
    ),
    ('y = x ++ "spec" ⟨a⟩', "`++` takes one operand, and another one stands behind its spec", "the spec as one string"),
    ('y = x *+ "i;" ⟨"i=>i"⟩ a', "a string behind a spec declares a parameter, and", "write the spec as one string"),
    ('y = (x ⟨+* "spec"⟩)', "`+*` takes two operands, and the second one is missing", 'or `a ++ "..."`'),
    # targets
    ("⟨(c, d)⟩ =+ a", "this is no target of `=+`", "write `c =+ ...`, `C[i, j] =+ ...` or a name in quotes"),
    ("⟨f(x)⟩ =+ a", "this does not parse: cannot assign to function call", ""),
    ("c =+ a ⟨=+⟩ b", "`=+` behind another assignment of the same statement", "one statement for each target"),
    ("c = d ⟨=-⟩ a", "`=-` behind another assignment of the same statement", "one statement for each target"),
    ('⟨"1c"⟩ =: a', '"1c" cannot name a tensor', "write a name: letters, digits and underscores"),
    ('⟨f"c"⟩ =: a', 'f"c" cannot name a tensor', "write a name"),
    ("⟨{ c = 3 }⟩ =: a", "{ c = 3 } cannot name a tensor", "write `{ c }`, or `{ c; o = [3] }` with its extents"),
    ("{ c; ⟨i = [3]⟩ } =: a", "`i = [3]` of a target", "write `o = [3]`"),
    ("{ c; ⟨o = [3]⟩ } =+ a", "the extents of a target that `=+` accumulates onto", "write `{ c }`: state has"),
    # functions beside what they are applied to
    ("c =: ⟨relu a⟩", "no operator in `relu a`", "a function is called with parentheses, `relu(a)`"),
    ("c =: a + ⟨exp a⟩ * 2", "no operator in `exp a`", "`exp(a)`"),
    ("c =+ ⟨fma a 2.0 c⟩ if x else a", "no operator in `fma a 2.0 c`", "`fma(a, 2.0, c)`"),
    ("c =: ⟨where (a) c a⟩", "no operator in `where (a) c a`", "`where(a, c, a)`"),
    ("return ⟨exp sin a⟩", "no operator in `exp sin a`", "`exp(sin(a))`"),
    ("return (⟨relu a⟩) * 2", "no operator in `relu a`", "`relu(a)`"),
    ("c =: ⟨sin (cos a)⟩ + 1", "no operator in `sin (cos a)`", "`sin(cos(a))`"),
    ('return ⟨relu "w"⟩ @ a', 'no operator in `relu "w"`', '`relu("w")`'),
    ("c =: ⟨sqrt a.sum()⟩", "no operator in `sqrt a.sum()`", "`sqrt(a.sum())`"),
    ("return a if ⟨relu c⟩ else a", "no operator in `relu c`", "`relu(c)`"),
    # labels
    ("c =+ a ~logic:⟨b⟩", "`~logic:` takes a string", 'write one of "." "@" "T" or a spec such as "ij; jk => ik"'),
    ("c =+ a ⟨~logic⟩:", "`~logic` without a value", "write `~logic:` and what it is"),
    ("c =+ a ⟨~logic⟩", "`~logic` without a value", "write `~logic:` and what it is"),
    ('c =+ a ⟨~rule⟩:"x"', "`~rule` is no label of an assignment", 'write `~logic:"..."` or `~projections:p`'),
    ('c = a ⟨~⟩logic:"@"', "a label belongs to an assignment of the literal spelling", 'write `c =: e ~logic:"..."`'),
    ('c += a ⟨~⟩logic:"@"', "a label belongs to an assignment of the literal spelling", "write"),
    ('return a ⟨~⟩logic:"."', "a label belongs to an assignment of the literal spelling", "write"),
    ('c[i] =+ a ⟨~logic:"@"⟩', "a target with an index list takes no `~logic:`", "leave one out"),
    ('c =+ a ~logic:"@" ⟨~logic:"."⟩', "`~logic` twice", "leave one out"),
    ('c =:+ (a * b ⟨~logic⟩:"@")', "a label inside parentheses", "write it at the end of the assignment"),
    # literals and declarations
    ("y = ⟨[|⟩ 1; 2 ]", "`[|` is not closed by `|]`", "write `[| 1; 2 |]`"),
    ("y = f(a⟨;⟩ b)", "`;` separates the elements of lists, tuples and batches", "write `,` here"),
    ("y = x[a⟨;⟩ b]", "`;` separates the elements of lists, tuples and batches", "write `,` here"),
    ("y = {1⟨;⟩ 2}", "`;` separates the elements of lists, tuples and batches", "write `,` here"),
    ('y = "b" ⟨(o=3, init=0.5)⟩', "options of an inline declaration", 'write `param("b", o=3, init=0.5)`'),
    ('y = ⟨"b" -1.0⟩', '`"b" -1.0` could be a declaration with an initial value, or a sum', 'write `"b" [-1.0]`'),
    ('y = x + ⟨"b" +2⟩', '`"b" +2` could be a declaration with an initial value, or a sum', '`"b" + 2` for a sum'),
    ('y = ⟨"a b"⟩ 3', '"a b" cannot name a parameter', "write a name"),
    # statements
    ("if lr: ⟨_ =⟩ a", "`_ = ...` states constraints, and stands among other statements", "give it a line of its own"),
    ("a; ⟨_ =⟩ b", "`_ = ...` states constraints, and stands among other statements", "give it a line of its own"),
    (
        '~~("a" p, p ⟨=⟩+ 1.0)',
        "an assignment among the words of a comment",
        'write `;` before the statements of its scope: `~~("step"; p =+ 1.0)`',
    ),
    # Python's own
    ("c =+ ⟨a if b⟩", "this does not parse: expected 'else' after 'if' expression", ""),
    ("é = a *. ⟨,⟩", "this does not parse: invalid syntax", ""),
]


@pytest.mark.parametrize(("statement", "fact", "hint"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_faults(statement: str, fact: str, hint: str, tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    written = statement.replace("⟨", "").replace("⟩", "")
    path.write_text(f"{HEAD}    x = 1\n    {written}\n    return x\n", encoding="utf-8")
    with pytest.raises(tc.DslSyntaxError) as raised:
        literal.parse(path.read_text(encoding="utf-8"), str(path))
    message = str(raised.value)
    assert f"code.py:4: {fact}" in message
    assert hint in message
    marked = (
        f"    {written}\n    {' ' * statement.index('⟨')}{'^' * (statement.index('⟩') - statement.index('⟨') - 1)}\n"
    )
    assert marked in message + "\n"
    assert isinstance(raised.value, SyntaxError)


def test_all_faults_are_reported_together() -> None:
    with pytest.raises(tc.DslSyntaxError, match="3 faults") as raised:
        literal.parse(HEAD + "    c =^+ a\n    c = a ?? b; c =+ a ~rule:3\n")
    assert [fault.fact.split()[0] for fault in raised.value.diagnostics] == ["`=^+`", "`~rule`", "`??`"]


def test_a_comment_of_python_in_the_scope_of_a_comment() -> None:
    with pytest.raises(tc.DslSyntaxError, match="a Python comment between the statements of a") as raised:
        literal.parse(HEAD + '    ~~("a"; c =+ 1.0; # why\n       c =+ 2.0)\n', "scope.txt")
    span = raised.value.diagnostics[0].span
    assert span is not None
    assert (span.line, span.column, span.end_line, span.end_column) == (3, 22, 3, 27)


@pytest.mark.parametrize(
    ("text", "message", "line", "offset"),
    [
        (HEAD + "    c =:+ a\nx = = 2\n", "invalid syntax", 4, 5),
        ("x =+ 'a\n" + HEAD + "    c =:+ a\n", "unterminated string literal (detected at line 1)", 1, 6),
        (HEAD + "    c =:+ 'a\n", "unterminated string literal (detected at line 3)", 3, 11),
        (HEAD + "    c =:+ a\n  x = 2\n", "unindent does not match any outer indentation level", 4, None),
        (HEAD + "    c =:+ (a\n    b = [1]\n", "'(' was never closed", 3, 11),
        (HEAD + "    c =:+ (a]\n    b = 1\n", None, 3, 13),
        (HEAD + "    c =:+ a)\n    b = 1\n", "unmatched ')'", 3, 12),
        (HEAD + '    c =:+ a\n    b = """\n', None, 4, None),
    ],
)
def test_faults_of_plain_python_are_pythons(text: str, message: str | None, line: int, offset: int | None) -> None:
    with pytest.raises(SyntaxError) as raised:
        literal.parse(text, "code.py")
    fault = raised.value
    if isinstance(fault, tc.DslSyntaxError):
        assert fault.diagnostics[0].span is not None
        place = fault.diagnostics[0].span.line, fault.diagnostics[0].span.column + 1
        found = fault.diagnostics[0].fact.removeprefix("this does not parse: ")
    else:
        place, found = (fault.lineno or 0, fault.offset or 0), fault.msg
        assert fault.filename == "code.py"
        assert fault.text == text.splitlines(keepends=True)[line - 1]
    assert place[0] == line
    assert offset is None or place[1] == offset
    assert message is None or found == message


EVERYTHING = """\
@cd
def f(c, a, *, p=1):
    c =:+ a *+ "ij=>i" {w} ~logic:"@" ~projections
    ~~("x" p  p.grad; "e" =: a; c =+ { e; o=[1] };
       c =: (a;
         b))
    "d" =?/ [| [1; 2]; (!.0.5, !..n) |] @| n, i < 3
    _ = "b" (h, w) + "a" [-4] - 'q' 2.0 + { b = 0.5; o = [n] }
    if a <> b && c || d: c =- 1; c =@^ f'{a}' -?/ (b @^ ("w" config.dims[0]))
    lambda q =-1: \"\"\"x\"\"\"; async def g(): return x ++ "i" .b
"""


def test_unfinished_text_fails_with_syntax_errors() -> None:
    for end in range(len(EVERYTHING) + 1):
        for text in (EVERYTHING[:end], EVERYTHING[:end] + "\n", EVERYTHING[:end] + ")"):
            assert isinstance(carrier_text(text), str)
            with contextlib.suppress(SyntaxError):
                literal.parse(text)


def test_a_failed_import_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib
    import sys

    from tcdsl.frontend.source import texts as source

    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "literal_fault.py"
    path.write_text("from tcdsl import cd\ntouched = 1\n" + HEAD + "    c =^+ a\n")
    literal.install("literal_fault")
    before = dict(source._PARSERS)
    try:
        with pytest.raises(tc.DslSyntaxError, match=r"literal_fault.py:5: `=\^\+`"):
            importlib.import_module("literal_fault")
    finally:
        literal.uninstall("literal_fault")
    assert "literal_fault" not in sys.modules
    assert before == source._PARSERS
