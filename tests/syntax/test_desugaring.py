"""Every construct of the literal spelling has the plain form that the language says."""

from __future__ import annotations

import ast

import pytest

from tcdsl import literal
from tcdsl.syntax.grammar.literal_operators import ASSIGNMENTS, INFIX

HEAD = "@cd\ndef f(c, a, b, x, y, p, *, lr, config):\n"


def plain(statement: str) -> str:
    """The plain form of one statement, in a decorated function."""
    text = HEAD + "".join(f"    {line}\n" for line in statement.splitlines())
    found = literal.desugar(text)
    assert found.startswith(HEAD)
    assert ast.dump(literal.parse(text)) == ast.dump(ast.parse(found))
    assert literal.desugar(found) == found, "the plain form is plain"
    return "\n".join(line.removeprefix("    ") for line in found.removeprefix(HEAD).splitlines())


ASSIGNED = {
    # onto what c holds
    "c =: a": "c = a",
    "c =+ a": "c += a",
    "c =- a": "c -= a",
    "c =* a": "c *= a",
    "c =/ a": "c /= a",
    "c =** a": "c **= a",
    "c =@^ a": "c >>= a",
    "c =^^ a": "c <<= a",
    "c =@- a": "c <<= a",
    "c =|| a": "c |= a",
    "c =&& a": "c &= a",
    "c =?/ a": 'assign(c, "=?/", a)',
    "c =?^ a": 'assign(c, "=?^", a)',
    # from the neutral element
    "c =:+ a": 'assign(c, "=:+", a)',
    "c =:* a": 'assign(c, "=:*", a)',
    "c =:@^ a": 'assign(c, "=:@^", a)',
    "c =:^^ a": 'assign(c, "=:^^", a)',
    "c =:@- a": 'assign(c, "=:^^", a)',
    "c =:|| a": 'assign(c, "=:||", a)',
    "c =:&& a": 'assign(c, "=:&&", a)',
    "c =:- a": 'assign(c, "=:-", a)',
    "c =:/ a": 'assign(c, "=:/", a)',
    "c =:** a": 'assign(c, "=:**", a)',
    "c =:?/ a": 'assign(c, "=:?/", a)',
    "c =:?^ a": 'assign(c, "=:?^", a)',
}


@pytest.mark.parametrize("literal_text", ASSIGNED)
def test_assignment_operators(literal_text: str) -> None:
    assert plain(literal_text) == ASSIGNED[literal_text]


def test_every_assignment_operator_is_tested() -> None:
    assert {text.split()[1] for text in ASSIGNED} == set(ASSIGNMENTS)


LOGIC = {
    'c =:+ a * b ~logic:"@"': 'c["@"] = sum(a * b)',
    'c =+ a * b ~logic:"@"': 'c["@"] += a * b',
    'c =+ a ~logic:f"{lr} => "': 'c[f"{lr} => "] += a',
    'c =: a ~logic:"T"': 'c["T"] = a',
    'p =- lr * p.grad ~logic:"."': 'p["."] -= lr * p.grad',
    'y =:@^ x ~logic:"...|... => 0"': 'y["...|... => 0"] = max(x)',
    'c =?/ a ~logic:"..v..|ijk => ..v..kji"': 'assign(c, "=?/", a, logic="..v..|ijk => ..v..kji")',
    'c =+ a ~logic:"ij"  " => ji"  # turned': 'c["ij"  " => ji"] += a  # turned',
    'c =: a if lr else b ~logic:"."': 'c["."] = a if lr else b',
    'c =:+ (a + b) ~logic:"."': 'c["."] = sum(a + b)',
    'p.grad =+ p.grad.merge ~logic:"."': 'p.grad["."] += p.grad.merge',
    'c =+ a \\\n    ~logic:"."': 'c["."] \\\n += a',
    'c =:+ (a\n  * b) ~logic: \\\n    "."': 'c["."] \\\n = sum(a\n  * b)',
    'c =?/ a \\\n    ~logic:"." \\\n ~projections': 'assign(c, "=?/", a\n, logic="."\n, projections=projections)',
    "c \\\n   =+ a": "c \\\n   += a",
    "c =+ a * b ~projections:p": 'assign(c, "=+", a * b, projections=p)',
    "c =: a ~projections:p.own": 'assign(c, "=:", a, projections=p.own)',
    "v =: v1 ** v2 ~projections": 'assign(v, "=:", v1 ** v2, projections=projections)',
    'c =:+ a ~projections:p ~logic:"."': 'assign(c, "=:+", a, projections=p, logic=".")',
    'c =+ a ~logic:"." ~projections': 'assign(c, "=+", a, logic=".", projections=projections)',
    # fma composes
    "c =: fma(a, b, x)": 'c["@"] = fma(a, b, x)',
    "c =:+ fma(a, b, x)": 'c["@"] = sum(fma(a, b, x))',
    "c =+ fma(a, b, x)": 'c["@"] += fma(a, b, x)',
    "c =:- fma(a, b, x)": 'assign(c, "=:-", fma(a, b, x), logic="@")',
    'c =: fma(a, b, x) ~logic:"."': 'c["."] = fma(a, b, x)',
    "c =+ fma(a, b, x) ~projections:p": 'assign(c, "=+", fma(a, b, x), projections=p)',
    "c[i] =+ fma(a[i], b[i], 1.0)": "c[i] += fma(a[i], b[i], 1.0)",
    # declared targets
    "{ r; o = [3] } =: a": 'r: real[3]; r["."] = a',
    "{ r; o = [3; lr] } =:+ a * b": 'r: real[3, lr]; r["."] = sum(a * b)',
    '{ r; o = (3, 4) } =:+ a * b ~logic:"@"': 'r: real[3, 4]; r["@"] = sum(a * b)',
    "{r;o=lr+1} =:- a": 'r: real[lr+1]; assign(r, "=:-", a)',
    "if lr: { r; o = [3] } =: fma(a, b, x)": 'if lr: r: real[3]; r["@"] = fma(a, b, x)',
}


def test_fma_follows_the_projections_of_its_function() -> None:
    found = literal.desugar("@cd\ndef f(v, v1, v2, v3, *, projections):\n    v =+ fma(v1, v2, v3)\n")
    assert "v += fma(v1, v2, v3)" in found


@pytest.mark.parametrize("literal_text", LOGIC)
def test_logic_and_projections(literal_text: str) -> None:
    assert plain(literal_text) == LOGIC[literal_text]


INDEXED = {
    "C[i, j] =+ a[i, k] * b[k, j]": "C[i, j] += a[i, k] * b[k, j]",
    "C[i, j] =:+ a[i, k] * b[k, j]": 'assign(C[i, j], "=:+", a[i, k] * b[k, j])',
    "C[i, j] =:@^ (a[i, k] + 1), i < 3, (j < 2)": 'assign(C[i, j], "=:@^", (a[i, k] + 1), i < 3, (j < 2))',
    "C[i] =- a[i], i < 3": "C[i] -= a[i], i < 3",
    "C[i] =: a[i]": "C[i] = a[i]",
    "C[i] =:+ a[i]": 'assign(C[i], "=:+", a[i])',
    "C[i] =:+ sum(a[i, k]), i < 3": 'assign(C[i], "=:+", sum(a[i, k]), i < 3)',
    "C[i] =:+ a[i, x]": 'assign(C[i], "=:+", a[i, x])',
    "t[()] =:* a[i]": 'assign(t[()], "=:*", a[i])',
    "C[i] =?/ a[i, k], k < 2": 'assign(C[i], "=?/", a[i, k], k < 2)',
    'd["key"] =+ 1': 'd["key"] += 1',
}


@pytest.mark.parametrize("literal_text", INDEXED)
def test_index_lists(literal_text: str) -> None:
    assert plain(literal_text) == INDEXED[literal_text]


DECLARED = {
    '"delta" =: p.grad + (!.lr *. p)': "delta = p.grad + (number(lr) * p)",
    "'delta' =+ a": "delta += a",
    '"delta" =:+ a * b ~logic:"@"': 'delta["@"] = sum(a * b)',
    '"delta" =:- a': 'assign(delta, "=:-", a)',
    '{ delta } =:+ a * b ~logic:"@"': 'delta["@"] = sum(a * b)',
    "{delta} =- a": "delta -= a",
    'y = "b" (-0.5)': 'y = param("b", init=(-0.5))',
    'relu("w" @ x + "b" hid)': 'relu("w" @ x + "b"[hid])',
    'y = "b" config.hid_dim': 'y = "b"[config.hid_dim]',
    'y = "b" config.dims[0]': 'y = "b"[config.dims[0]]',
    'y = "b" 3': 'y = "b"[3]',
    'y = "b" (2 * n)': 'y = "b"[2 * n]',
    'y = "b" (h, w)': 'y = param("b", o=(h, w))',
    'y = "b"(h, w)': 'y = param("b", o=(h, w))',
    'y = "b"[h]': 'y = "b"[h]',
    'y = "b" 0.5': 'y = param("b", init=0.5)',
    'y = "b" [-4]': 'y = param("b", init=[-4])',
    'y = "a" [ -4 ] + "b" [ 2 ]': 'y = param("a", init=[ -4 ]) + param("b", init=[ 2 ])',
    'y = "a" [[1; 2]; [3; 4]]': 'y = param("a", init=[[1, 2], [3, 4]])',
    'y = "a" [| 1; 2 |] * x': 'y = param("a", init=batch([ 1, 2 ])) * x',
    "y = (\"hey\" * 'q' 2.0) + 'p' 1.0": "y = (\"hey\" * number(2.0, label='q')) + number(1.0, label='p')",
    "y = 'q' 2": "y = number(2, label='q')",
    'y = "q" 2.0': 'y = param("q", init=2.0)',
    "y = 'qq' 2.0": "y = param('qq', init=2.0)",
    "y = relu({ w } @ x + {b})": 'y = relu("w" @ x + "b")',
    "y = x *. { w }": 'y = x * "w"',
    "y = {w} *+ 'i;i=>i' x": "y = einsum('i;i=>i', \"w\", x)",
    "y = { w = 0.5 } * x": 'y = param("w", init=0.5) * x',
    "y = f({ b; o = [n; m] })": 'y = f(param("b", o = [n, m]))',
    "y = { b  # one\n    =  # two\n    0.0\n    }": 'y = param("b"  # one\n    , init=  # two\n    0.0\n    )',
    "y = { b = 0.0; o = [config.dim] }": 'y = param("b", init=0.0, o = [config.dim])',
    'y = print("text", x) if "a" in x else "b"': 'y = print("text", x) if "a" in x else "b"',
}


@pytest.mark.parametrize("literal_text", DECLARED)
def test_inline_declarations(literal_text: str) -> None:
    assert plain(literal_text) == DECLARED[literal_text]


OPERATORS = {
    "y = a *. b": "y = a * b",
    "y = a /. b +. c -. x **. 2": "y = a / b + c - x ** 2",
    "y = a -@> b": "y = fst(a, b)",
    "y = a -/> b": "y = snd(a, b)",
    "y = a -?/ b": "y = relu_gate(a, b)",
    "y = a -?^ b": "y = sat01_gate(a, b)",
    "y = a @^ b": "y = max(a, b)",
    "y = a ^^ b": "y = min(a, b)",
    "y = a @- b": "y = min(a, b)",
    "y = a <> b": "y = eq(a, b)",
    "y = a || b": "y = or_(a, b)",
    "y = a && b": "y = and_(a, b)",
    "y = x @| batch_n": "y = x[batch_n]",
    "y = (a + b) @| n": "y = (a + b)[n]",
    "y = a + b @| n": "y = (a + b)[n]",
    "y = a -?/ b @| n": "y = relu_gate(a, b)[n]",
    "y = !.lr *. x": "y = number(lr) * x",
    "y = x /. !..config.size": "y = x / number(config.size)",
    "y = !.0.5 * !.(a + b) ** 2 - !.5": "y = number(0.5) * number(a + b) ** 2 - number(5)",
    "y = f(a -?/ b, [a @^ b], {1: a ^^ b})": "y = f(relu_gate(a, b), [max(a, b)], {1: min(a, b)})",
    "y = [i -@> j for i in a if i <> j]": "y = [fst(i, j) for i in a if eq(i, j)]",
    "if a <> b: y = a -@> b": "if eq(a, b): y = fst(a, b)",
    "y = a||b": "y = or_(a, b)",
    "y = a-?/b": "y = relu_gate(a, b)",
    "y = (a\n     -?/ b)": "y = (relu_gate(a\n     , b))",
    "y = (a  # one\n     -?/  # two\n     b)": "y = (relu_gate(a  # one\n     ,  # two\n     b))",
}


@pytest.mark.parametrize("literal_text", OPERATORS)
def test_operators(literal_text: str) -> None:
    assert plain(literal_text) == OPERATORS[literal_text]


def test_every_infix_operator_is_tested() -> None:
    assert all(any(f" {name} " in text for text in OPERATORS) for name in INFIX)


GROUPED = {
    # power
    "y = a *. b **. c **. x": "y = a * b ** c ** x",
    "y = !.a ** b": "y = number(a) ** b",
    "y = -!.a": "y = -number(a)",
    # as + and -: to the left
    "y = a + b -?/ c - x": "y = relu_gate(a + b, c) - x",
    "y = a -?/ b -@> c": "y = fst(relu_gate(a, b), c)",
    "y = a -?/ (b -@> c)": "y = relu_gate(a, fst(b, c))",
    "y = a * b -/> c @ x": "y = snd(a * b, c @ x)",
    # weaker than arithmetic, stronger than comparisons
    "y = a + b @^ c * x": "y = max(a + b, c * x)",
    "y = a @^ b @^ c": "y = max(max(a, b), c)",
    "y = a ^^ b @- c": "y = min(min(a, b), c)",
    "y = a @^ b < c": "y = max(a, b) < c",
    "y = (a @^ b) ^^ c": "y = min(max(a, b), c)",
    "y = a + b <> c": "y = eq(a + b, c)",
    # as not, and, or
    "y = a < b || c <> x && not a": "y = or_(a < b, and_(eq(c, x), not a))",
    "y = a || b || c": "y = or_(or_(a, b), c)",
    "y = a || b or c": "y = or_(a, b) or c",
    "y = a or b || c": "y = or_(a or b, c)",
    "y = a || (b or c) && x": "y = or_(a, and_(b or c, x))",
    "y = a || b if c || x else a": "y = or_(a, b) if or_(c, x) else a",
}


@pytest.mark.parametrize("literal_text", GROUPED)
def test_precedence(literal_text: str) -> None:
    assert plain(literal_text) == GROUPED[literal_text]


COMPOSED = {
    'y = x ++ "...|... => 0"': 'y = einsum("...|... => 0", x)',
    'y = (x ++ "...|... => 0") /. !..n': 'y = (einsum("...|... => 0", x)) / number(n)',
    'y = a * x ++ "ij => ji" - b': 'y = einsum("ij => ji", a * x) - b',
    'y = a *+ "ij;jk=>ik" b': 'y = einsum("ij;jk=>ik", a, b)',
    'y = a +* "ij;jk=>ik" b': 'y = einsum("ij;jk=>ik", a, b)',
    'y = a *+ "ij;jk=>ik" b *+ "ij;jk=>ik" c': 'y = einsum("ij;jk=>ik", einsum("ij;jk=>ik", a, b), c)',
    'y = a *+ "i;i=>i" b ** 2 * c': 'y = einsum("i;i=>i", a, b ** 2) * c',
    'y = a +* "i;i=>i" b * c': 'y = einsum("i;i=>i", a, b * c)',
    'y = (a + b) *+ "i;i=>i" (b - c)': 'y = einsum("i;i=>i", a + b, b - c)',
    # A string behind the spec declares.
    'y = a *+ "i; j => " "j" + b': 'y = einsum("i; j => ", a, "j") + b',
    'y = a *+ "ab;bc=>ac" "w" 4': 'y = einsum("ab;bc=>ac", a, "w"[4])',
    'y = a *+ "i;j=>ij" "w" 4 *+ "ij;j=>i" "u" * b': 'y = einsum("ij;j=>i", einsum("i;j=>ij", a, "w"[4]), "u") * b',
    'y = a +* "i;j=>ij" "w" [1; 2] * b': 'y = einsum("i;j=>ij", a, param("w", init=[1, 2]) * b)',
    'y = a *+ "i;j=>ij" { w }': 'y = einsum("i;j=>ij", a, "w")',
    "y = a *+ 'i;=>i' 'q' 2.0": "y = einsum('i;=>i', a, number(2.0, label='q'))",
    'y = (a *+ "i;j=>ij"  # spec\n     "w")': 'y = (einsum("i;j=>ij", a,  # spec\n     "w"))',
    # A spec may be formatted.
    'y = x ++ f"{lr} => 0"': 'y = einsum(f"{lr} => 0", x)',
    'y = x *+ rf"{lr};i=>i" a': 'y = einsum(rf"{lr};i=>i", x, a)',
    'y = a ++ "i=>" @| n': 'y = einsum("i=>", a)[n]',
}


@pytest.mark.parametrize("literal_text", COMPOSED)
def test_einsum_operators(literal_text: str) -> None:
    assert plain(literal_text) == COMPOSED[literal_text]


OTHERS = {
    "y = [ (1, 2, 3); (4, 5, 6) ]": "y = [ (1, 2, 3), (4, 5, 6) ]",
    "y = [| [1; 2]; [3; 4] |]": "y = batch([ [1, 2], [3, 4] ])",
    "y = [||]": "y = batch([])",
    "y = [|a||b|]": "y = batch([or_(a, b)])",
    '~~("learning" "of" p p.grad)': 'comment("learning", "of", p, p.grad)',
    '~~("learning", p)': 'comment("learning", p)',
    '~~("learning" "of" p; p =+ 1.0)': 'comment("learning", "of", p); p += 1.0',
    '~~("a"; p =- x; "d" =: p; c[i] =+ d[i], i < 3)': 'comment("a"); p -= x; d = p; c[i] += d[i], i < 3',
    '~~(p; c =+ a * b ~logic:"@") ; p =* 2.0': 'comment(p); c["@"] += a * b ; p *= 2.0',
    '~~("a"; ~~("b" f(p); p =+ [1; 2]); x =: p)': 'comment("a"); comment("b", f(p)); p += [1, 2]; x = p',
    '~~("a"\n   "b" p;\n   p =+ f(x,\n     y); \\\n q =: p;\n)': (
        'comment("a",\n   "b", p); \\\n   p += f(x,\n     y); \\\n q = p \\\n'
    ),
    'if lr: ~~("a"; c =+ a)': 'if lr: comment("a"); c += a',
    '~~("a" "b";)': 'comment("a", "b")',
    '~~("a"; p =+ 1.0;); q =+ 1.0': 'comment("a"); p += 1.0; q += 1.0',
    '~~("a";); ~~("b"; ~~("c"; p =+ 1.0; ); q =: p ;\n); p =* 2.0': (
        'comment("a"); comment("b"); comment("c"); p += 1.0 ; q = p  \\\n; p *= 2.0'
    ),
    "_ = a @ b": "with constraints_only(): a @ b",
    "_ =: a *. b": "with constraints_only(): a * b",
    "if lr: c =+ a; c =* b\nelse: c =- a": "if lr: c += a; c *= b\nelse: c -= a",
    "for n in range(3): c =+ a": "for n in range(3): c += a",
    "def inner(q =-1): return q -@> a": "def inner(q =-1): return fst(q, a)",
    "c =+ -a": "c += -a",
    "c =: -a": "c = -a",
    "c =:+-a": 'assign(c, "=:+", -a)',
}


@pytest.mark.parametrize("literal_text", OTHERS)
def test_other_constructs(literal_text: str) -> None:
    assert plain(literal_text) == OTHERS[literal_text]


UNTOUCHED = [
    "x=-1",
    "x = -1",
    "x = + a",
    "f(x =+ 1)",
    "g = lambda q =-1: q",
    "d: int =-1",
    's = "c =+ a" + f"{a} =+ {b} *. {x!r}" + """\n*. =:+ [|\n"""',
    "pass  # c =+ a ~logic:",
    "a[i] = b[i] * x[i], i < 3",
    "c = a @ -b",
    "c = d[-1] if a is not None else {**d}",
    "c = d['key'] [0]",
    "c = a .b . c",
    "c = x[..., 1]",
    "c = {a} | {b} - {x}, {a: b}, {a, b}, {*a}, f({a})",
    "c += +a",
    "c = a == b != x",
    "c = ('%s' % a, 'a' 'b', 'x' if a else 'y', b'a' [0], f'a' [0])",
    "c = (*a, *b)",
    "*c, d = a",
    "c = f(*a, **b)",
    "if (n := 3) > 2: pass",
    "match c:\n    case [*_]: c = 1",
    "c = a if b else ~a",
]


@pytest.mark.parametrize("statement", UNTOUCHED)
def test_plain_python_stays(statement: str) -> None:
    assert plain(statement) == statement


OUTSIDE = '''\
"""c =+ a"""
c =+ 1
x = "a" [0]
@other
def f(c):
    c =+ 1
    _ = c
class C:
    @staticmethod
    @tc.op(oob="skip")
    def g(a):
        return a {0} 2
    h =+ 1
@op
def one(a): return a {0} 2
c =+ 1
'''


def test_no_effect_outside_of_decorated_functions() -> None:
    assert literal.desugar(OUTSIDE.format("**.")) == OUTSIDE.format("**")


@pytest.mark.parametrize("decorator", ["op", "cd", "tc.op", "tcdsl.cd", "a.b.op", 'op(oob="skip")', "f.defvjp"])
def test_decorators(decorator: str) -> None:
    text = f"@outer\n@{decorator}\ndef f(a, b):\n    return a *. b\n"
    assert literal.desugar(text) == text.replace("*.", "*")


@pytest.mark.parametrize("decorator", ["opera", "op.other", "cd[0]", "property", "(lambda f: op)"])
def test_other_decorators(decorator: str) -> None:
    text = f"@{decorator}\ndef f(a):\n    a =+ 1\n"
    assert literal.desugar(text) == text


def test_a_decorator_belongs_to_its_function() -> None:
    text = "@op\nclass C:\n    def f(self, c):\n        c =+ 1\n"
    assert literal.desugar(text) == text
