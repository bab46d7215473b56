from __future__ import annotations

import contextlib
import io
from dataclasses import replace

import islpy as isl
import pytest

from tcdsl.ir.build import apply, constant, index, integer, size
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Apply, Boundary, Cast, Constant, Expr, IndexValue, Let, Local, Read, SizeValue
from tcdsl.ir.program import Access, AxisExtent, Fill, Keep, Program, Size, Statement, Tensor
from tcdsl.ir.text.domain_text import RESERVED_NAMES
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.verifier.verifier import VerificationError, verify
from tests.range_checks import verify_deeply

VALID = parse_program("""
program valid
input x: float32[N]
input h: float16[N_2]
input ids: int64[M]
input s: float32
size P = N * M
assert N == N_2, "x and h differ"
tensor y: float32[N]
tensor y_2: float32[N] as "y"
tensor t: float16
y[i] = let(z := x[i] * h[i], z + z)       for [i]: 0 <= i < N
y_2[ids[i]] += x[clamp(ids[i])] * 2.0     from y           for [i]: 0 <= i < M  if ids[i] > 0
t[()] >>= get(h[i + 1], s)                from fill(s)     for [i]: 0 <= i < P
update x = y_2
return y_2, t, s
""")
SKIP = (Boundary.SKIP,)
X_I = Read("x", (index("i"),), SKIP, "float32")


def changed(number: int, **parts: object) -> Program:
    statements = list(VALID.statements)
    statements[number] = replace(statements[number], **parts)  # type: ignore[arg-type]
    return replace(VALID, statements=tuple(statements))


def with_value(value: Expr) -> Program:
    return changed(0, value=value)


def test_a_valid_program() -> None:
    verify(VALID)
    verify_deeply(VALID)


INT = constant(1, "int64")
F32 = constant(1.0, "float32")
CASES: dict[str, tuple[Program, str]] = {
    "two tensors": (replace(VALID, inputs=(*VALID.inputs, VALID.inputs[3])), "there are two tensors named s"),
    "two sizes": (replace(VALID, sizes=(*VALID.sizes, VALID.sizes[0])), "there are two sizes named N"),
    "bad name": (
        replace(VALID, inputs=(*VALID.inputs, Tensor("a b", "bool", ()))),
        "the tensor name 'a b' is not an identifier",
    ),
    "keyword": (
        replace(VALID, inputs=(*VALID.inputs, Tensor("lambda", "bool", ()))),
        "the tensor name 'lambda' is not an identifier",
    ),
    "number as a size": (replace(VALID, sizes=(*VALID.sizes, Size("inf", INT))), "the size name inf is a number"),
    "isl's words": (
        replace(VALID, sizes=(*VALID.sizes, Size("floor", INT))),
        "the size name floor is a word of isl's notation",
    ),
    "unknown type": (
        replace(VALID, inputs=(*VALID.inputs, Tensor("q", "complex64", ()))),
        "q has the unknown type complex64",
    ),
    "size of no input": (
        replace(VALID, sizes=(*VALID.sizes, Size("Q", AxisExtent("y", 0)))),
        "the size Q is an extent of y, which is no input",
    ),
    "size of no axis": (
        replace(VALID, sizes=(*VALID.sizes, Size("Q", AxisExtent("x", 1)))),
        "the size Q is axis 1 of x, which does not exist",
    ),
    "size before its definition": (
        replace(VALID, sizes=(Size("Q", apply("add", size("N"), INT)), *VALID.sizes)),
        "the size N does not exist here",
    ),
    "float size": (
        replace(VALID, sizes=(*VALID.sizes, Size("Q", F32))),
        r"it has type float32, not int64: float32\(1.0\)\n    in size Q",
    ),
    "extent of index variables": (
        replace(VALID, inputs=(*VALID.inputs, Tensor("q", "bool", (index("i"),)))),
        r"i is not made of sizes and constants\n    in the shape of q: bool\[i\]",
    ),
    "extent of unknown sizes": (
        replace(VALID, inputs=(*VALID.inputs, Tensor("q", "bool", (size("Q"),)))),
        "the size Q does not exist here",
    ),
    "assertion of no truth value": (
        replace(VALID, assertions=(replace(VALID.assertions[0], condition=INT),)),
        "it has type int64, not bool",
    ),
    "made twice": (
        replace(VALID, statements=(*VALID.statements, VALID.statements[0])),
        "y is made a second time",
    ),
    "an input made": (changed(0, target=Access("x", (index("i"),))), "x is made a second time"),
    "undeclared target": (changed(0, target=Access("q", (index("i"),))), "the target q is not declared"),
    "target's rank": (changed(0, target=Access("y", ())), "y has 1 axes, but 0 indices"),
    "target's index type": (
        changed(0, target=Access("y", (X_I,))),
        "an index of the target has type float32, not int64",
    ),
    "target's index variable": (
        changed(0, target=Access("y", (index("k"),))),
        "the index variable k is not bound by the domain",
    ),
    "never made": (replace(VALID, statements=VALID.statements[:2]), "no statement makes t"),
    "no output": (replace(VALID, outputs=("q",)), "the output q does not exist"),
    "update of no input": (replace(VALID, updates=(("y", "y_2"),)), "y is updated, but is no input"),
    "update with nothing": (replace(VALID, updates=(("x", "q"),)), "x is updated with q, which does not exist"),
    "update of another type": (
        replace(VALID, updates=(("h", "y_2"),)),
        r"h is updated with y_2, but h: float16\[N_2\] and y_2: float32\[N\] as \"y\" differ",
    ),
    "two updates": (replace(VALID, updates=(("x", "y"), ("x", "y_2"))), "x is updated twice"),
    "condition type": (changed(0, condition=X_I), r"the condition has type float32, not bool: x\[i\]"),
    "unknown accumulator": (changed(0, accumulate="average"), "there is no accumulator average"),
    "accumulator's type": (changed(0, accumulate="or"), "or does not accumulate float32"),
    "unknown treatment": (changed(0, oob="ignore"), "there is no treatment 'ignore' of indices out of range"),
    "value's type": (with_value(INT), "the value has type int64, not float32: 1"),
    "value of float16": (changed(2, value=constant(1, "float16")), "the value has type float16, not float32"),
    "plain store by data": (
        changed(1, accumulate="assign"),
        "a plain store through data indices does not ask for unique cells",
    ),
    "keeps nothing": (changed(1, start=Keep("q")), "it starts from q, which does not exist yet"),
    "keeps a later tensor": (changed(0, start=Keep("y_2")), "it starts from y_2, which does not exist yet"),
    "keeps another shape": (changed(1, start=Keep("s")), "it starts from s, but s: float32 and y_2"),
    "fill's type": (changed(1, start=Fill(INT)), "the start has type int64, not float32"),
    "fill of an array": (
        changed(1, start=Fill(replace(X_I, indices=(integer(0),)))),
        "the start reads more than rank-0",
    ),
    "fill with an index variable": (
        changed(1, start=Fill(Cast(index("i"), "float32"))),
        "the index variable i is not bound by the domain",
    ),
    "domain's names": (
        changed(0, domain=Domain(("i", "i"), "{ [i, i] : 0 = 0 }")),
        "there are two index variables named i",
    ),
    "domain hides a size": (
        changed(2, domain=Domain(("i", "N"), "{ [i, N] : 0 = 0 }")),
        "N is an index variable and a size",
    ),
    "domain's sizes": (
        changed(0, domain=Domain(("i",), "[N, Q] -> { [i] : 0 <= i < N + Q }")),
        "the domain names the size Q, which does not exist",
    ),
    "read of nothing": (with_value(replace(X_I, tensor="q")), "q is read, but does not exist yet"),
    "read of a later tensor": (with_value(replace(X_I, tensor="y_2")), "y_2 is read, but does not exist yet"),
    "read of the target": (with_value(replace(X_I, tensor="y")), "y is read, but does not exist yet"),
    "read's rank": (with_value(replace(X_I, indices=())), "x has 1 axes, but 0 indices and 1 boundaries"),
    "read's boundaries": (with_value(replace(X_I, boundaries=())), "x has 1 axes, but 1 indices and 0 boundaries"),
    "read's type": (with_value(replace(X_I, tensor="h", dtype="float16")), "h is float16, but is read as float16"),
    "read's index type": (with_value(replace(X_I, indices=(F32,))), "an index of x has type float32, not int64"),
    "no fill value": (with_value(replace(X_I, boundaries=(Boundary.FILL,))), "has a fill value without a filled axis"),
    "no filled axis": (with_value(replace(X_I, fill=F32)), "has a fill value without a filled axis"),
    "fill value's type": (
        with_value(replace(X_I, boundaries=(Boundary.FILL,), fill=INT)),
        "the fill value of x has type int64, not float32",
    ),
    "unknown size": (with_value(Cast(SizeValue("Q"), "float32")), "the size Q does not exist here"),
    "unknown index variable": (
        with_value(Cast(IndexValue("k"), "float32")),
        "the index variable k is not bound by the domain",
    ),
    "free local": (with_value(Local("z", "float32")), "the local z is not bound by a let around it"),
    "local of another type": (
        with_value(Let("z", INT, Local("z", "float32"))),
        "the local z has type int64, not float32",
    ),
    "local after its let": (
        with_value(Apply("add", (Let("z", F32, Local("z", "float32")), Local("z", "float32")), "float32")),
        "the local z is not bound by a let around it",
    ),
    "local in its own value": (
        with_value(Let("z", Local("z", "float32"), F32)),
        "the local z is not bound by a let around it",
    ),
    "local hides an index variable": (with_value(Let("i", F32, F32)), "the local i has the name of an index variable"),
    "unknown primitive": (with_value(Apply("twice", (F32,), "float32")), "there is no primitive twice"),
    "operands": (
        with_value(Apply("add", (F32, constant(1, "float64")), "float32")),
        r"add \(number\) does not take float32, float64",
    ),
    "arity": (with_value(Apply("add", (F32,), "float32")), "add takes 2 arguments, not 1"),
    "result": (with_value(Apply("lt", (F32, F32), "float32")), "lt gives bool here, not float32"),
    "cast": (with_value(Cast(Cast(F32, "int4"), "float32")), "a cast to the unknown type int4"),
    "constant's kind": (with_value(Constant(1, "float32")), "1 is not a constant of type float32"),
    "constant's range": (
        with_value(Cast(Constant(256, "uint8"), "float32")),
        "256 is out of the range of uint8",
    ),
    "constant of truth": (with_value(Cast(Constant(1, "bool"), "float32")), "1 is not a constant of type bool"),
}


@pytest.mark.parametrize("case", CASES)
def test_faults(case: str) -> None:
    program, message = CASES[case]
    with pytest.raises(VerificationError, match=message):
        verify(program)


def test_all_faults_are_reported_with_their_statement() -> None:
    program = replace(with_value(INT), outputs=("q",))
    with pytest.raises(VerificationError) as caught:
        verify(program)
    facts = [diagnostic.fact for diagnostic in caught.value.diagnostics]
    assert facts == ["the value has type int64, not float32: 1", "the output q does not exist"]
    assert caught.value.diagnostics[0].notes == ("in y[i] = int64(1)  for [i]: 0 <= i < N",)
    assert caught.value.diagnostics[1].notes == ()


def deep(statement: str, *lines: str) -> None:
    header = ["program deep", "input x: float32[N]", "input w: float32[M]", "input flags: bool[N_2]", *lines]
    program = parse_program("\n".join([*header, "tensor y: float32[N]", statement]))
    verify(program)
    verify_deeply(program)


FINE = [
    "y[i] += x[i - 1]  for [i]: 1 <= i < N",
    "y[i // 2] += x[i]  for [i]: 0 <= i < N",
    "y[i % 3] += x[0]  for [i]: 0 <= i and 3 <= N and i < 100",
    "y[max(i, 0)] += x[min(i, N - 1) - 0]  for [i]: 0 <= i < N",
    "y[-i] = x[N - 1 + i]  for [i]: -N < i <= 0",
    "y[i] = x[i + 1] if i + 1 < N else 0.0  for [i]: 0 <= i < N",
    "y[i] = float32(i + 1 < N and x[i + 1] > 0.0 or x[i] > 0.0)  for [i]: 0 <= i < N",
    "y[i] = x[clamp(i + 1)] + get(x[i - 1], x[0])  for [i]: 0 <= i < N",
    "y[i] = let(z := x[i + 1], z if i + 1 < N else 0.0)  for [i]: 0 <= i < N",
    "y[2 * i] = 1.0  for [i]: 0 <= 2i < N",
    "y[i + 3 * j] = 1.0  for [i, j]: 0 <= i <= 2 and 0 <= j and 3j <= -3 + N",
    "y[i] = 1.0  for [i, j]: 0 <= i < N and j = 2i",
    "y[0] += 1.0  for [i, j]: 0 <= i < N and 0 <= j < N",
    "y[i * N] += x[i * N]  for [i]: 0 <= i < N",
]


@pytest.mark.parametrize("statement", FINE)
def test_accesses_in_range(statement: str) -> None:
    deep(statement)


OUTSIDE: list[tuple[str, str]] = [
    ("y[i] += x[i - 1]  for [i]: 0 <= i < N", "x may be accessed out of range: axis 0, i - 1"),
    ("y[i] += x[i + 1]  for [i]: 0 <= i < N", r"x may be accessed out of range: axis 0, i \+ 1"),
    ("y[i + 1] += x[i]  for [i]: 0 <= i < N", r"y may be accessed out of range: axis 0, i \+ 1"),
    ("y[i] += w[i]  for [i]: 0 <= i < N", "w may be accessed out of range: axis 0, i"),
    ("y[i % 3] += 1.0  for [i]: 0 <= i < M", "y may be accessed out of range: axis 0, i % 3"),
    ("y[0] += 1.0  for []", "y may be accessed out of range: axis 0, 0"),
    ("y[i] += 1.0  for [i]: 0 <= i < N  if flags[i]", "flags may be accessed out of range: axis 0, i"),
    ("y[i] += 1.0 if x[i + 1] > 0.0 else 2.0  for [i]: 0 <= i < N", "x may be accessed out of range"),
    ("y[i] += float32(x[i + 1] > 0.0 and True)  for [i]: 0 <= i < N", "x may be accessed out of range"),
    ("y[i] += x[int64(x[i + 1])]  for [i]: 0 <= i < N", "x may be accessed out of range"),
    ("y[i] += let(z := x[i + 1], z + z)  for [i]: 0 <= i < N", "x may be accessed out of range"),
    ("y[i] += let(v := x[i + 1], let(w := v, exp(w)))  for [i]: 0 <= i < N", "x may be accessed out of range"),
    ("y[i] = 1.0  for [i, j]: 0 <= i < N and 0 <= j <= 1", "a plain store may write a cell of y twice"),
    ("y[0] = 1.0  for [i]: 0 <= i < N", "a plain store may write a cell of y twice"),
    ("y[i // 2] = 1.0  for [i]: 0 <= i < N", "a plain store may write a cell of y twice"),
    ("y[i + 2 * j] = 1.0  for [i, j]: 0 <= i <= 2 and 0 <= j and 2j <= -3 + N", "a plain store may write"),
]


@pytest.mark.parametrize(("statement", "message"), OUTSIDE)
def test_accesses_out_of_range(statement: str, message: str) -> None:
    with pytest.raises(VerificationError, match=message) as caught:
        deep(statement)
    assert "in y[" in str(caught.value)


@pytest.mark.parametrize(
    ("assertion", "statement"),
    [
        ('assert N <= M, "short"', "y[i] += w[i]  for [i]: 0 <= i < N"),
        ('assert not (N > M), "short"', "y[i] += w[i]  for [i]: 0 <= i < N"),
        ('assert N == 3 and M == 4 or N == 5 and M == 5, "odd"', "y[i] += w[i]  for [i]: 0 <= i < N"),
        ('assert N != 0, "empty"', "y[0] += 1.0  for []"),
        ('assert 2 * N >= 1 and N * N < 9, "empty"', "y[0] += 1.0  for []"),
        ('assert 1 <= N, "empty"', "y[0] += 1.0  for []"),
    ],
)
def test_assertions_are_known(assertion: str, statement: str) -> None:
    if "N * N" in assertion:  # no quasi-affine condition: it is not used, as a whole
        with pytest.raises(VerificationError, match="out of range"):
            deep(statement, assertion)
    else:
        deep(statement, assertion)
    with pytest.raises(VerificationError, match="out of range"):
        deep(statement)


@pytest.mark.parametrize("options", ["with unique", "with unique, oob skip"])
def test_unique_stores_are_checked_at_run_time(options: str) -> None:
    deep(f"y[i // 2] = 1.0  for [i]: 0 <= i < N  {options}")


def test_domains_that_isl_does_not_read() -> None:
    domain = Domain(("i",), "{ [i] : 0 <= }")
    statement = Statement(Access("y", (index("i"),)), "add", VALID.statements[0].start, F32, domain)
    program = Program("p", (), (), (Tensor("y", "float32", (integer(3),)),), (statement,), ())
    verify(program)
    with pytest.raises(VerificationError, match="isl does not read the domain"):
        verify_deeply(program)
    wrong = replace(program, statements=(replace(statement, domain=Domain(("i",), "{ [i, j] : 0 <= i < j < 3 }")),))
    with pytest.raises(VerificationError, match="another number of dimensions"):
        verify_deeply(wrong)


@pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
def test_reserved_names_are_those_that_isl_does_not_read_back(name: str) -> None:
    with pytest.raises(isl.Error), contextlib.redirect_stderr(io.StringIO()):
        isl.Set(f"[{name}] -> {{ [i] : 0 <= i < {name} }}")


def test_sizes_that_an_assertion_makes_equal_are_one() -> None:
    text = """\
program accumulated
input w: float64[N]
input x: float64[M]
{}tensor y: float64[M]

y[i] += x[i]  from w  for [i]: 0 <= i < M

return y
"""
    verify(parse_program(text.format("assert N == M\n")))
    with pytest.raises(VerificationError, match=r"it starts from w, but w: float64\[N\] and y: float64\[M\] differ"):
        verify(parse_program(text.format("")))


def test_long_chains_of_local_values_are_checked_in_linear_time() -> None:
    chain = "".join(f"t{k} := t{k - 1} * t{k - 1}, " for k in range(1, 100))
    text = """\
program chain
input x: float64[N]
tensor y: float64[N]

y[i] = let(t0 := x[{}], {}t99 + t98)  for [i]: 0 <= i < N

return y
"""
    verify_deeply(parse_program(text.format("i", chain)))
    with pytest.raises(VerificationError, match="x may be accessed out of range"):
        verify_deeply(parse_program(text.format("i + 1", chain)))
    # What nothing needs is not evaluated.
    verify_deeply(parse_program(text.format("i + 1", chain).replace("t99 + t98", "1.0")))
