from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tcdsl.errors import DslSyntaxError
from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, constant, index, integer, size, truth
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Boundary, Read
from tcdsl.ir.program import Access, Assertion, AxisExtent, Fill, Keep, Neutral, Program, Size, Statement, Tensor
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program, format_statement
from tcdsl.ir.verifier.verifier import verify
from tests.ir.notation import parse_domain
from tests.range_checks import verify_deeply

# Texts that are printed exactly as they stand here.
MATMUL = """\
program matmul
input A: float32[N, K]
input B: float32[B_0, M] as "weights"
assert K == B_0
tensor C: float32[N, M]

C[i, j] += A[i, k] * B[k, j]  for [i, j, k]: 0 <= i < N and 0 <= j < M and 0 <= k < K

return C
"""

SOFTMAX = """\
program nn.softmax
input x: float32[N, M]
tensor m: float32[N]
tensor e: float32[N, M]
tensor s: float32[N]
tensor y: float32[N, M] as "probabilities"

m[i] >>= x[i, j]               for [i, j]: 0 <= i < N and 0 <= j < M
e[i, j] = exp(x[i, j] - m[i])  for [i, j]: 0 <= i < N and 0 <= j < M
s[i] += e[i, j]                for [i, j]: 0 <= i < N and 0 <= j < M
y[i, j] = e[i, j] / s[i]       for [i, j]: 0 <= i < N and 0 <= j < M

return y
"""

CLAUSES = """\
program "step 2"
input p: float32[N]
input ids: int64[K]
input rate: float32
size P = N * K
input w: uint8[P, N + 1, w_2]
tensor p_2: float32[N] as "a \\"label\\", for [all] if: \\\\ ü"
tensor h: float32[4]
tensor t: float32

p_2[ids[i]] -= rate * 0.5  from p  for [i]: 0 <= i < K  if ids[i] > 0 and (ids[i] > 1 if i > 2 else True)  with oob skip
h[2 * i] = p_2[i] if i < N else -inf
    from fill(rate + 1.0)  for [i]: (i) mod 2 = 0 and 0 <= i <= 1  with unique, oob clamp  as "second"
t[()] += rate              for []

update p = p_2
return h, t, p
"""

EXPLICIT_SIZES = """\
program sizes
size M = B.shape[1]
size N = A.shape[0]
size Q = M // 2
input A: float64[N, M, Q + 1]
input B: float64[N, M]

return A
"""

NOTHING = """\
program nothing
"""


@pytest.mark.parametrize("text", [MATMUL, SOFTMAX, CLAUSES, EXPLICIT_SIZES, NOTHING])
def test_programs_print_as_they_are_read(text: str) -> None:
    program = parse_program(text)
    assert format_program(program) == text
    assert repr(parse_program(format_program(program))) == repr(program)


def test_a_program_by_hand_is_the_one_that_is_read() -> None:
    i, j, k = map(index, "ijk")
    shape = (size("N"), size("K"))
    A = Tensor("A", "float32", shape)
    B = Tensor("B", "float32", (size("B_0"), size("M")), label="weights")
    C = Tensor("C", "float32", (size("N"), size("M")))
    skip = (Boundary.SKIP, Boundary.SKIP)
    statement = Statement(
        Access("C", (i, j)),
        "add",
        Neutral(),
        apply("mul", Read("A", (i, k), skip, "float32"), Read("B", (k, j), skip, "float32")),
        parse_domain("[N, M, K] -> { [i, j, k] : 0 <= i < N and 0 <= j < M and 0 <= k < K }"),
    )
    program = Program(
        "matmul",
        (A, B),
        (
            Size("N", AxisExtent("A", 0)),
            Size("K", AxisExtent("A", 1)),
            Size("B_0", AxisExtent("B", 0)),
            Size("M", AxisExtent("B", 1)),
        ),
        (C,),
        (statement,),
        ("C",),
        assertions=(Assertion(apply("eq", size("K"), size("B_0")), "A has {K} columns, B has {B_0} rows"),),
    )
    verify_deeply(program)
    assert parse_program(MATMUL) == program
    assert hash(parse_program(MATMUL)) == hash(program)


def one_statement(statement: Statement, dtype: str = "float64") -> Program:
    x = Tensor("x", "float64", (size("N"), size("M")))
    shape = (size("N"),) * len(statement.target.indices)
    sizes = (Size("N", AxisExtent("x", 0)), Size("M", AxisExtent("x", 1)))
    return Program("one", (x,), sizes, (Tensor("y", dtype, shape),), (statement,), ("y",))


@pytest.mark.parametrize(
    "text",
    [
        "{ [i] : 1 = 0 }",
        "{ [i] : i = 3 }",
        "[N] -> { [i] : 0 <= i < N and (i mod 2 = 0 or i > 5) }",
        "[N] -> { [i] : 0 <= i < N and i mod 3 = 1 }",
        "[N] -> { [i] : (i = 0 and N > 3) or (i > 3 and i < N) }",
        "[M, N] -> { [i] : exists a : i = 7a + M and 0 <= i < N and 2a < N }",
        "[N, M] -> { [i] : 0 <= i and 2 * i < N - M and floor(i / 3) <= 2 }",
    ],
)
def test_domains_read_back(text: str) -> None:
    domain = parse_domain(text)
    program = one_statement(Statement(Access("y", (index("i"),)), "assign", Neutral(), constant(1, "float64"), domain))
    printed = format_program(program)
    assert "->" not in printed
    assert parse_program(printed) == program
    assert parse_program(printed).statements[0].domain.text == domain.text


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        (("i",), "[N, M] -> { [i] : 0 <= i < N }"),
        (("i",), "[N] -> {[i]: 0 <= i < N}"),
        (("a",), "{ [i] : 0 <= i < 3 }"),
        (("i", "j"), "{ [i, i] : 0 <= i < 3 and j = 0 }"),
        ((), "{ : 0 = 0 }"),
        (("i",), "{ S[i] : 0 <= i < 3 }"),
    ],
)
def test_domains_that_are_not_canonical_are_written_in_full(variables: tuple[str, ...], text: str) -> None:
    domain = Domain(variables, text)
    program = one_statement(Statement(Access("y", ()), "add", Neutral(), constant(1, "float64"), domain))
    printed = format_program(program)
    assert f"for ({', '.join(variables)}) in {text}" in printed
    assert parse_program(printed) == program


def test_isl_rewrites_every_domain_of_several_dimensions() -> None:
    domain = parse_domain("[N] -> { [i, j] : (i = 0 and j = 0) or (i > 3 and j = 2 * i and i < N) }")
    statement = Statement(Access("y", (index("i"),)), "add", Neutral(), constant(1, "float64"), domain)
    program = one_statement(statement)
    assert "for [i, j = 2i]: 4 <= i < N; [i = 0, j = 0]" in format_program(program)
    assert parse_program(format_program(program)) == program


@pytest.mark.parametrize("accumulate", list(ACCUMULATORS))
@pytest.mark.parametrize("dtype", ["float64", "bool", "uint8"])
def test_every_accumulator_reads_back(accumulate: str, dtype: str) -> None:
    statement = Statement(Access("y", ()), accumulate, Neutral(), constant(1, dtype), Domain((), "{ [] }"))
    program = one_statement(statement, dtype)
    text = format_program(program)
    assert f"y[()] {ACCUMULATORS[accumulate].symbol} " in text
    assert parse_program(text) == program


@pytest.mark.parametrize(
    "start", [Neutral(), Keep("x"), Fill(constant(-0.0, "float64")), Fill(Read("fill", (), (), "float64"))]
)
def test_every_start_reads_back(start: Neutral | Keep | Fill) -> None:
    statement = Statement(Access("y", ()), "add", start, constant(1, "float64"), Domain((), "{ [] }"))
    program = Program(
        "starts",
        (Tensor("x", "float64", ()), Tensor("fill", "float64", ())),
        (),
        (Tensor("y", "float64", ()),),
        (statement,),
        ("y",),
    )
    assert repr(parse_program(format_program(program))) == repr(program)


@pytest.mark.parametrize(
    "name", ["f", "nn.relu", "<lambda>", "two words", "", '"', "grad(f)", "Größe", "x  #", "return"]
)
def test_every_program_name_reads_back(name: str) -> None:
    program = Program(name, (), (), (), (), ())
    assert parse_program(format_program(program)) == program


def test_tensors_may_have_the_names_of_keywords_of_the_notation() -> None:
    names = ("input", "size", "tensor", "update", "program", "fill", "get", "let", "exp", "inf", "unique", "oob")
    tensors = tuple(Tensor(name, "float64", ()) for name in names)
    statements = tuple(
        Statement(
            Access(f"{name}_2", ()),
            "multiply",
            Keep(name),
            apply("add", Read(name, (), (), "float64"), constant(float("inf"), "float64")),
            Domain((), "{ [] }"),
        )
        for name in names
    )
    outputs = tuple(Tensor(f"{name}_2", "float64", ()) for name in names)
    program = Program("names", tensors, (), outputs, statements, names)
    assert parse_program(format_program(program)) == program
    verify(program)


def test_rank_zero_tensors_hidden_by_sizes_are_read_with_brackets() -> None:
    text = """\
program hidden
input N: float64
input x: float64[N]
tensor y: float64

y[()] += N[()] * x[i]  for [i]: 0 <= i < N

return y
"""
    assert format_program(parse_program(text)) == text


def test_comments_blank_lines_and_continuations() -> None:
    text = """
# a comment
program matmul
input A: float32[
    N, K]

    # another one
input B: float32[B_0,
                 M]   as   'weights'
assert K == B_0, 'messages are read and take no part in equality'
tensor C: float32[N, M]
C[i, j] += (A[i, k]
    # and one inside
    * B[k, j])
    for [i, j, k] : 0 <= i < N and 0 <= j < M
        and 0 <= k < K
return C
"""
    assert parse_program(text) == parse_program(MATMUL)


def test_format_statement_stands_alone() -> None:
    statement = parse_program(SOFTMAX).statements[1]
    assert format_statement(statement) == "e[i, j] = exp(x[i, j] - m[i])  for [i, j]: 0 <= i < N and 0 <= j < M"


def test_long_clauses_get_lines_of_their_own() -> None:
    condition = apply("and_", truth(True), truth(True))
    for _ in range(5):
        condition = apply("or_", apply("lt", index("i"), size("M")), apply("and_", condition, condition))
    bounds = " and ".join(f"i + {k}M < {k * k} + {k}N" for k in range(2, 9))
    domain = parse_domain(f"[M, N] -> {{ [i] : 0 <= i < N and {bounds} }}")
    value = Read("x", (index("i"), integer(0)), (Boundary.SKIP,) * 2, "float64")
    statement = Statement(Access("y", (index("i"),)), "add", Neutral(), value, domain, condition, label="long")
    program = one_statement(statement)
    lines = format_program(program).split("\n")
    (start,) = (k for k, line in enumerate(lines) if line == "y[i] += x[i, 0]")
    assert lines[start + 1].startswith("    for [i]: ")
    assert lines[start + 2].startswith("    if ")
    assert lines[start + 3] == '    as "long"'
    assert parse_program("\n".join(lines)) == program


FAULTS = {
    "": "a program starts with the line: program NAME",
    "program\n": "the program has no name",
    "program f\ninput A float32[N]": "a tensor is declared as NAME: DTYPE",
    "program f\ninput A: float33[N]": "'float33[N]' is not a type and a shape",
    "program f\ninput 1A: float32[N]": "a name is expected here, not '1A'",
    "program f\ninput A: float32[N + K]": "the name N is not defined",
    "program f\ntensor A: float32[N]": "the name N is not defined",
    "program f\nsize N": "a size is defined as NAME = EXPRESSION",
    "program f\nsize N = 2 *": "this is not an expression",
    'program f\nassert 1 == 2, "a", "b"': "an assertion is written assert CONDITION",
    "program f\nassert 1 == 2, message": "a text in quotes is expected here",
    "program f\nupdate p": "an update is written update INPUT = TENSOR",
    "program f\nreturn A B": "a name is expected here, not 'A B'",
    "program f\nnonsense": "a statement is written TENSOR[INDEX, ...] += VALUE",
    "program f\ny[i] = 1  for [i]: i = 0": "there is no tensor named y",
    "program f\ntensor y: int64[3]\ny[i] = 1": "the statement has no domain",
    "program f\ntensor y: int64[3]\ny[i] : 1  for [i]: i = 0": "an accumulator is expected here, one of = += -=",
    "program f\ntensor y: int64[3]\ny[i] = 1 for i: i = 0": "a domain is written [VARIABLE, ...]: CONSTRAINTS",
    "program f\ntensor y: int64[3]\ny[i] = 1 for [i]: i = 0 with speed": "the options are: unique, oob check",
    "program f\ntensor y: int64[3]\ny[i] = 1 for [i]: i = 0 for [i]: i = 1": "a second clause with for",
    "program f\ntensor y: int64[3]\ny[i] = 1 for [i]: i = 0 as label": "a text in quotes is expected here",
    "program f\ntensor y: int64[3]\ny[i] = q for [i]: i = 0": "the name q is not defined",
    "program f\ntensor y: int64[3]\ny[i] = 1.5 for [i]: i = 0": "1.5 is not a number of type int64",
    "program f\ntensor y: int64[3]\ny[k] = 1 for [i]: i = 0": "the name k is not defined",
}


@pytest.mark.parametrize("text", FAULTS)
def test_faults_are_explained(text: str) -> None:
    with pytest.raises(DslSyntaxError, match=re.escape(FAULTS[text])):
        parse_program(text)


def test_a_fault_shows_its_line_and_place() -> None:
    text = MATMUL.replace("B[k, j]", "D[k, j]")
    with pytest.raises(DslSyntaxError) as caught:
        parse_program(text)
    line = text.split("\n")[6]
    assert str(caught.value).split("\n") == [
        "<text>:7: there is no tensor named D",
        f"    {line}",
        "    " + " " * line.index("D[") + "^",
    ]
    assert caught.value.diagnostics[0].span is not None
    assert caught.value.diagnostics[0].span.line == 7


def test_the_representation_loads_without_isl() -> None:
    code = (
        "import sys\n"
        "from tcdsl.ir.interpreter.interpreter import interpret\n"
        "from tcdsl.ir.sizes.size_binding import bind_sizes\n"
        "from tcdsl.ir.text.parser import parse_program\n"
        "from tcdsl.ir.text.printer import format_program\n"
        "from tcdsl.ir.verifier.verifier import verify\n"
        f"program = parse_program({MATMUL!r})\n"
        "format_program(program), verify(program), bind_sizes(program, [(2, 3), (3, 4)])\n"
        "print([name for name in ('islpy', 'numba', 'rich') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
