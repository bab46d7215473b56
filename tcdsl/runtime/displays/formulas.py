r"""Programs as formulas: ``C[i, j] += A[i, k] * B[k, j]`` is ``C_{i,j} = \sum_{0 \le k < K} A_{i,k} B_{k,j}`` in TeX.

Formulas are for reading: types are left out, and nothing reads them back. ``x_2``, the second version of ``x``, is
``x^{(2)}``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    Cast,
    Constant,
    Expr,
    IndexValue,
    Let,
    Local,
    Read,
    Reduction,
    SizeValue,
    walk,
)
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import Fill, Keep, Program, Repeat, Statement
from tcdsl.ir.sizes.spoken_sizes import spoken_in
from tcdsl.ir.stages import stages
from tcdsl.ir.text.domain_text import domain_parameters
from tcdsl.ir.text.printer import format_domain

__all__ = ["formula_of_expression", "formula_of_name", "formula_of_statement", "formulas"]

_GREEK = frozenset(
    (
        *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu"),
        *("xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega", "Gamma", "Delta", "Theta"),
        *("Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega"),
    )
)
#: How an accumulator is written over what belongs to one cell.
_LARGE: Mapping[str, str] = {
    "add": r"\sum",
    "subtract": r"-\sum",
    "multiply": r"\prod",
    "max": r"\max",
    "min": r"\min",
    "or": r"\bigvee",
    "and": r"\bigwedge",
}
#: How it joins a cell to what it held, and how tightly that binds.
_JOINED: Mapping[str, str] = {"add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": r"{0} \cdot {1}"}
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _POWER, _ATOM = range(1, 9)
#: The form of a primitive, how tightly it binds, and how tightly its parts must.
_FORMS: Mapping[str, tuple[str, int, tuple[int, ...]]] = {
    "add": ("{0} + {1}", _SUM, (_SUM, _SUM)),
    "sub": ("{0} - {1}", _SUM, (_SUM, _PRODUCT)),
    "neg": ("-{0}", _SUM, (_PRODUCT,)),
    "mul": (r"{0} \, {1}", _PRODUCT, (_PRODUCT, _PRODUCT)),
    "div": (r"\frac{{{0}}}{{{1}}}", _ATOM, (0, 0)),
    "recip": (r"\frac{{1}}{{{0}}}", _ATOM, (0,)),
    "floor_div": (r"\left\lfloor \frac{{{0}}}{{{1}}} \right\rfloor", _ATOM, (0, 0)),
    "mod": (r"{0} \bmod {1}", _PRODUCT, (_POWER, _POWER)),
    "pow": ("{0}^{{{1}}}", _POWER, (_ATOM, 0)),
    "square": ("{0}^{{2}}", _POWER, (_ATOM,)),
    "sqrt": (r"\sqrt{{{0}}}", _ATOM, (0,)),
    "abs": (r"\left| {0} \right|", _ATOM, (0,)),
    "floor": (r"\left\lfloor {0} \right\rfloor", _ATOM, (0,)),
    "ceil": (r"\left\lceil {0} \right\rceil", _ATOM, (0,)),
    "and_": (r"{0} \wedge {1}", _AND, (_AND, _AND)),
    "or_": (r"{0} \vee {1}", _OR, (_OR, _OR)),
    "not_": (r"\neg {0}", _NOT, (_NOT,)),
    "eq": ("{0} = {1}", _COMPARISON, (_SUM, _SUM)),
    "ne": (r"{0} \ne {1}", _COMPARISON, (_SUM, _SUM)),
    "lt": ("{0} < {1}", _COMPARISON, (_SUM, _SUM)),
    "le": (r"{0} \le {1}", _COMPARISON, (_SUM, _SUM)),
    "gt": ("{0} > {1}", _COMPARISON, (_SUM, _SUM)),
    "ge": (r"{0} \ge {1}", _COMPARISON, (_SUM, _SUM)),
    "where": (
        r"\begin{{cases}} {1} & \text{{if }} {0} \\ {2} & \text{{otherwise}} \end{{cases}}",
        _ATOM,
        (0, 0, 0),
    ),
}
#: Functions that have a name of their own in TeX.
_NAMED = frozenset(["exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "max", "min"])
_ARCS = {"asin": r"\arcsin", "acos": r"\arccos", "atan": r"\arctan"}


_UNDERSCORE = r"\_"


def formula_of_name(name: str) -> str:
    r"""``x`` for ``x``, ``x^{(2)}`` for ``x_2``, ``\alpha`` for ``alpha`` and ``\mathit{top}`` for ``top``."""
    stem, mark, number = name.rpartition("_")
    if mark and stem and number.isdecimal():
        return f"{formula_of_name(stem)}^{{({number})}}"
    if name in _GREEK:
        return f"\\{name}"
    return name if len(name) == 1 else rf"\mathit{{{name.replace('_', _UNDERSCORE)}}}"


def formula_of_expression(expr: Expr) -> str:
    """``expr`` without its types."""
    return _bound(expr, 0)


def formula_of_statement(statement: Statement) -> tuple[str, str]:
    """``statement`` as an equation, and where it holds, which is empty for a statement of one cell."""
    target = statement.target
    kept = [node.name for index in target.indices for node in walk(index) if isinstance(node, IndexValue)]
    over = [name for name in statement.domain.variables if name not in kept]
    ranges = _ranges(statement)
    inner = [text for text, names in ranges if names & set(over)]
    outer = [text for text, names in ranges if not names & set(over)]
    conditions = [] if statement.condition is None else [_bound(statement.condition, _AND)]
    (inner if over else outer).extend(conditions)
    where = [f"{formula_of_name(each.name)} = {_bound(each.value, 0)}" for each in _definitions(statement.value)]
    value = _bound(statement.value, _PRODUCT if over else _SUM)
    if over:
        lines = r" \\ ".join(inner)
        value = f"{_large(statement.accumulate)}_{{{rf'{_SUBSTACK}{{{lines}}}' if len(inner) > 1 else lines}}} {value}"
    elif statement.accumulate == "subtract":
        value = f"-{_bound(statement.value, _PRODUCT)}"
    access = _cell(target.tensor, target.indices, ())
    if not all(isinstance(each, IndexValue) for each in target.indices) and statement.accumulate in ACCUMULATORS:
        # Several points may be one cell's.
        sign = rf"\mathrel{{{_OPERATORS.get(statement.accumulate, '')}}}="
        points = r",\; ".join([*[text for text, _ in ranges], *conditions, *where])
        return f"{access} {sign} {_bound(statement.value, _SUM)}", points
    held = ""
    match statement.start:
        case Keep(tensor=tensor):
            held = _cell(tensor, target.indices, ())
        case Fill(value=start):
            held = _bound(start, _SUM)
        case _:
            pass
    if held and statement.accumulate == "assign":
        where.append(rf"\text{{else }} {held}")
    elif held:
        joined = _JOINED.get(statement.accumulate)
        both = rf"{_large(statement.accumulate)}\left({held}, {value}\right)"
        value = joined.format(held, value.removeprefix("-")) if joined else both
    return f"{access} = {value}", r",\; ".join([*outer, *where])


_OPERATORS: Mapping[str, str] = {
    "add": "+",
    "subtract": "-",
    "multiply": r"\times",
    "divide": "/",
    "max": r"\max",
    "min": r"\min",
    "or": r"\vee",
    "and": r"\wedge",
}
_SUBSTACK = r"\substack"


def _large(accumulate: str) -> str:
    return _LARGE.get(accumulate, rf"\operatorname*{{{accumulate.replace('_', ' ')}}}")


def formulas(program: Program) -> list[tuple[str, str]]:
    """The statements of ``program`` in order, each as `formula_of_statement` gives it; loops say how many rounds."""
    spoken = {}
    for name, text in spoken_in(program).items():
        words = _condition_text(text, ())
        spoken[_size(name)] = words if text.isidentifier() else rf"\left({words}\right)"

    def in_words(text: str) -> str:
        for name, words in spoken.items():
            text = text.replace(name, words)
        return text

    return [(in_words(text), in_words(where)) for text, where in _formulas(program)]


def _formulas(program: Program) -> list[tuple[str, str]]:
    made: list[tuple[str, str]] = []
    for stage in stages(program):
        made += map(formula_of_statement, stage.statements)
        if stage.repeat is not None:
            made += _rounds(stage.repeat)
    return made


def _rounds(repeat: Repeat) -> list[tuple[str, str]]:
    begin, end = map(formula_of_expression, repeat.ends)
    number = formula_of_name(repeat.number)
    head = rf"\text{{for }} {number} = {begin}, \dots, {end} - 1:"
    inside = [(rf"\quad {text}", where) for text, where in formulas(repeat.body)]
    handed = ", ".join(
        rf"{formula_of_name(name)} \leftarrow {formula_of_name(new)}" for name, new, _ in repeat.carried if name != new
    )
    results = ", ".join(
        f"{formula_of_name(result)} = {formula_of_name(name)}"
        for result, (name, _, _) in zip(repeat.results, repeat.carried, strict=True)
    )
    return [(head, ""), *inside, (rf"\quad {handed}", ""), (results, rf"\text{{after }} {number}")]


def _ranges(statement: Statement) -> list[tuple[str, set[str]]]:
    # The conditions of the domain, and the index variables in each.
    body = format_domain(statement.domain, domain_parameters(statement.domain.text))
    conditions = body.partition("]:")[2].strip()
    if not conditions or " or " in conditions or "exists" in conditions:
        return [(rf"\text{{{conditions}}}", set())] if conditions else []
    found = []
    for each in re.split(r" and ", conditions):
        names = set(re.findall(r"[^\W\d]\w*", each)) & set(statement.domain.variables)
        found.append((_condition_text(each, statement.domain.variables), names))
    return found


def _condition_text(text: str, variables: Collection[str]) -> str:
    text = re.sub(r"floor\(\((.*?)\)/(\d+)\)", r"\\lfloor (\1)/\2 \\rfloor", text)
    text = re.sub(r"(?<!\\)\b[^\W\d]\w*\b", lambda found: _word(found[0], variables), text)
    return text.replace("<=", r"\le").replace(">=", r"\ge").replace("*", r" \cdot ").replace("%", r"\%")


def _word(word: str, variables: Collection[str]) -> str:
    if word == "mod":
        return r"\bmod"
    return word if word in ("lfloor", "rfloor") else _variable(word) if word in variables else _size(word)


def _variable(name: str) -> str:
    # `j_2` is another j: j with a prime.
    stem, _, number = name.rpartition("_")
    return (
        f"{formula_of_name(stem)}{_PRIME * (int(number) - 1)}" if stem and number.isdecimal() else formula_of_name(name)
    )


_PRIME = "'"


def _size(name: str) -> str:
    # Upright, with the number of an axis, `x_1`, as an index.
    stem, mark, number = name.rpartition("_")
    axis = mark and stem and number.isdecimal()
    return rf"\mathrm{{{(stem if axis else name).replace('_', _UNDERSCORE)}}}" + (f"_{{{number}}}" if axis else "")


def _definitions(expr: Expr) -> list[Let]:
    return [node for node in walk(expr) if isinstance(node, Let)]


def _bound(expr: Expr, binding: int) -> str:
    text, own = _formula(expr)
    return rf"\left( {text} \right)" if own < binding else text


def _formula(expr: Expr) -> tuple[str, int]:
    match expr:
        case Constant(value=value):
            return _number(value)
        case SizeValue(name=name):
            return _size(name), _ATOM
        case IndexValue(name=name):
            return _variable(name), _ATOM
        case Local(name=name):
            return formula_of_name(name), _ATOM
        case Read(tensor=tensor, indices=indices, boundaries=boundaries):
            return _cell(tensor, indices, boundaries), _ATOM
        case Cast(operand=operand):
            return _formula(operand)
        case Let(body=body):
            return _formula(body)
        case Reduction(accumulate=accumulate, value=value):
            return f"{_LARGE.get(accumulate, accumulate)} {_bound(value, _PRODUCT)}", _SUM
        case Apply(primitive=primitive, arguments=arguments):
            return _applied(primitive, arguments)


def _applied(primitive: str, arguments: Sequence[Expr]) -> tuple[str, int]:
    if primitive in _FORMS:
        form, own, wanted = _FORMS[primitive]
        return form.format(*[_bound(each, least) for each, least in zip(arguments, wanted, strict=True)]), own
    if primitive == "fma":
        product, more = _applied("mul", arguments[:2])[0], _bound(arguments[2], _SUM)
        return f"{product} + {more}", _SUM
    row = PRIMITIVES.get(primitive)
    name = _ARCS.get(primitive) or (
        f"\\{primitive}" if primitive in _NAMED else rf"\operatorname{{{primitive.strip('_').replace('_', ' ')}}}"
    )
    if row is not None and row.operator and len(arguments) == 2:
        sign = row.operator.replace("&", r"\&").replace("^", r"\oplus").replace("<<", r"\ll").replace(">>", r"\gg")
        return f"{_bound(arguments[0], _POWER)} \\mathbin{{{sign}}} {_bound(arguments[1], _POWER)}", _SUM
    parts = ", ".join(_bound(each, 0) for each in arguments)
    return rf"{name}\left( {parts} \right)", _ATOM


def _cell(tensor: str, indices: Sequence[Expr], boundaries: Sequence[Boundary]) -> str:
    name = formula_of_name(tensor)
    if not indices:
        return name
    kinds = [*boundaries, *[Boundary.SKIP] * (len(indices) - len(boundaries))]
    texts = [_place(_bound(each, 0), kind) for each, kind in zip(indices, kinds, strict=True)]
    return f"{name}_{{{', '.join(texts)}}}"


def _place(text: str, kind: Boundary) -> str:
    if kind in (Boundary.SKIP, Boundary.CHECK, Boundary.FILL):
        return text
    return rf"\operatorname{{{kind.value}}}({text})"


def _number(value: bool | int | float) -> tuple[str, int]:
    if isinstance(value, bool):
        return rf"\text{{{str(value).lower()}}}", _ATOM
    if math.isinf(value):
        return (r"\infty", _ATOM) if value > 0 else (r"-\infty", _SUM)
    if math.isnan(value):
        return r"\text{nan}", _ATOM
    text = repr(value).removesuffix(".0")
    digits, mark, power = text.partition("e")
    if mark:
        exponent = f"10^{{{int(power)}}}"
        text = exponent if digits == "1" else rf"{digits} \cdot {exponent}"
    return text, (_SUM if text.startswith("-") else _PRODUCT if mark else _ATOM)
