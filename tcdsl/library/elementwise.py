"""Operators of the module `math` that are alike: a template for each family, and a row for each operator.

A row says what the operator is at a point; the text of the operator is the template with that in it.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["elementwise_texts"]

#: Operators of one real tensor.
_OF_REALS = {
    "rcp": "1.0 / x[i..]",
    "sqrt": "sqrt(x[i..])",
    "rsqr": "1.0 / (x[i..] * x[i..])",
    "rsqrt": "1.0 / sqrt(x[i..])",
    **{
        name: f"{name}(x[i..])"
        for name in (
            *("exp", "log", "log2", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan"),
            *("asinh", "acosh", "atanh", "floor", "ceil", "round"),
        )
    },
}
#: Operators of one tensor of numbers.
_OF_NUMBERS = {"neg": "-x[i..]", "sqr": "x[i..] * x[i..]", "abs": "abs(x[i..])", "sign": "sign(x[i..])"}

_UNARY = """operator {name} {{
    {types}@input {{ x: {type}[s..]; }}
    @output {{ y: {type}[s..]; }}
    @lower {{ y[i..] = {value}, i < s; }}
}}
"""

#: Operators of two tensors of numbers that give one of that type; comparisons; operators of truth values.
_ARITHMETIC = {
    "add": "{x} + {y}",
    "sub": "{x} - {y}",
    "mul": "{x} * {y}",
    "div": "{x} / {y}",
    "mod": "{x} % {y}",
    "pow": "{x} ** {y}",
    "min": "{x} <? {y}",
    "max": "{x} >? {y}",
}
_COMPARISONS = {"lt": "<", "gt": ">", "le": "<=", "ge": ">=", "eq": "==", "ne": "!="}
_LOGICAL = {"and": "&&", "or": "||", "xor": "^"}

# Each tensor is given axes of extent 1: `align` in front of it, or -`align` behind it, as many as the longest needs.
_PLACED = """        rank_{x} = r{x} + abs({a}_align ?? 0);
"""
_BEFORE = """        p{x} = ({a}_align < 0 ? rank + {a}_align - r{x} : {a}_align) ?? rank - r{x};
        e{x} = [1 ..(p{x}), s{x}.., 1 ..(rank - p{x} - r{x})];
"""
#: The cell of a tensor that stands at a point of the result.
_CELL = "{x}[s{x} is 1 ? 0 : k[p{x}:p{x} + r{x}]..]"


def _placed(names: dict[str, str]) -> str:
    """The helper symbols that place tensors, by the prefixes of their attributes, over the axes of a result."""
    parts = [_PLACED.format(x=x, a=a) for x, a in names.items()]
    longest = " >? ".join(f"rank_{x}" for x in names)
    parts.append(f"        rank = {longest};\n")
    parts.extend(_BEFORE.format(x=x, a=a) for x, a in names.items())
    first, *others = names
    shape = f"e{first}"
    for k, x in enumerate(others):
        last = k == len(others) - 1
        parts.append(f"        {'shape' if last else f'shape_{x}'} = {shape} is 1 ? e{x} : {shape};\n")
        shape = f"shape_{x}"
    return "".join(parts)


def _fits(names: dict[str, str]) -> str:
    label = ", ".join(f"'{a}.shape': s{x}" for x, a in names.items())
    shapes = " and ".join(f"{{e{x}}}" for x in names)
    line = '        e{x} is 1 || e{x} == shape: "shapes that do not broadcast: {shapes}", {label};\n'
    return "".join(line.format(x=x, shapes=shapes, label=label) for x in names)


def _aligned(
    name: str,
    types: str,
    inputs: dict[str, str],
    prefixes: dict[str, str],
    order: tuple[str, ...],
    result: str,
    value: str,
) -> str:
    attributes = " ".join(f"{prefixes[x]}_align: optional int;" for x in order)
    declared = " ".join(f"{x}: {kind}[s{x}..(r{x})];" for x, kind in inputs.items())
    dtype = f"    @dtype {{ {types} }}\n" if types else ""
    output, kind = result.split(": ")
    return (
        f"operator {name} {{\n{dtype}    @attrib {{ {attributes} }}\n    @input {{ {declared} }}\n"
        f"    @output {{ {output}: {kind}[shape..]; }}\n    @using {{\n{_placed(prefixes)}    }}\n"
        f"    @assert {{\n{_fits(prefixes)}    }}\n"
        f"    @lower {{ {output}[k..] = {value}, k < shape; }}\n}}\n"
    )


def _binary(name: str, types: str, left: str, right: str, result: str, value: str) -> str:
    x, y = (_CELL.format(x=each) for each in "xy")
    prefixes = {"x": "lhs", "y": "rhs"}
    text = value.replace("{x}", x).replace("{y}", y)
    return _aligned(name, types, {"x": left, "y": right}, prefixes, ("x", "y"), f"z: {result}", text)


_REDUCTION = """operator {name} {{
    {types}@attrib {{ axes: int..(k) = [0:d]; squeeze: bool = false; }}
    @input {{ input: {type}[s..(d)]; }}
    @output {{ output: {type}[squeeze ? s[kept] : (gone ? 1 : s)..]; }}
    @using {{
        gone = [0:d] in (axes < 0 ? axes + d : axes);
        kept = [0:d][!gone];
    }}
    @assert {{
        axes >= -d && axes < d: "there is no axis {{axes}}", input.rank;
        axes != ..: "axes stand twice", axes;
    }}
    @lower {{ output[squeeze ? i[kept] : (gone ? 0 : i)..] {operator} input[i..], i < s; }}
}}
"""
_REDUCTIONS = {"min": "<?=", "max": ">?=", "sum": "+=", "prod": "*="}

_OVER_PACK = """operator {name} {{
    {types}@input {{ xs: {type}[s..]..(n); }}
    @output {{ y: {result}[s..]; }}
    @assert {{ n > 0: "a pack without tensors"; }}
    @lower {{
        {lines}
    }}
}}
"""

_BEST = """operator {name} {{
    @attrib {{ axis: int; squeeze: bool = false; }}
    @input {{ input: real^(rank)[s..(axis < 0 ? axis + rank : axis),z,t..]; }}
    @output {{ output: int[s..,1 ..(!squeeze),t..]; }}
    @assert {{
        axis >= -rank && axis < rank: "there is no axis {{axis}}", input.rank;
        z > 0: "an axis without cells", input.shape;
    }}
    @lower {{
        output[a..,0 ..(!squeeze),c..] = 0, a < s, c < t;
        output[a..,0 ..(!squeeze),c..] := b, a < s, b < z, c < t
            | input[a..,b,c..] {order} input[a..,output[a..,0 ..(!squeeze),c..],c..];
    }}
}}
operator {name}_nd {{
    @attrib {{ axes: int..(k) = [0:d]; squeeze: bool = false; }}
    @input {{ input: real[s..(d)]; }}
    @output {{ output: int[squeeze ? s[kept] : (gone ? 1 : s)..,k]; }}
    @using {{
        gone = [0:d] in (axes < 0 ? axes + d : axes);
        kept = [0:d][!gone];
    }}
    @assert {{
        axes >= -d && axes < d: "there is no axis {{axes}}", input.rank;
        axes != ..: "axes stand twice", axes;
        s[axes] > 0: "an axis without cells", input.shape;
    }}
    @lower {{
        output[squeeze ? i : ([0 ..(d)][kept] <- i)..,:] = 0, i < s[kept];
        output[squeeze ? i[kept] : (gone ? 0 : i)..,:] := i[axes], i < s
            | input[i..] {order} input[i[axes] <- output[squeeze ? i[kept] : (gone ? 0 : i)..,:]..];
    }}
}}
"""


def elementwise_texts() -> Iterator[str]:
    """The texts of all these operators."""
    number = "@dtype { T: num; }\n    "
    yield _UNARY.format(name="iden", types="@dtype { T: type; }\n    ", type="T", value="x[i..]")
    yield _UNARY.format(name="not", types="", type="bool", value="!x[i..]")
    for name, value in _OF_NUMBERS.items():
        yield _UNARY.format(name=name, types=number, type="T", value=value)
    for name, value in _OF_REALS.items():
        yield _UNARY.format(name=name, types="", type="real", value=value)
    for name, value in _ARITHMETIC.items():
        yield _binary(name, "T: num;", "T", "T", "T", value)
    for name, symbol in _COMPARISONS.items():
        base = "type" if name in ("eq", "ne") else "num"
        yield _binary(name, f"X: {base}; Y: {base};", "X", "Y", "bool", f"{{x}} {symbol} {{y}}")
    for name, symbol in _LOGICAL.items():
        yield _binary(name, "", "bool", "bool", "bool", f"{{x}} {symbol} {{y}}")
    cells = {x: _CELL.format(x=x) for x in "abcxy"}
    yield _aligned(
        "select", "T: type;", {"c": "bool", "x": "T", "y": "T"}, {"c": "cond", "x": "lhs", "y": "rhs"},
        ("c", "x", "y"), "z: T", f"{cells['c']} ? {cells['x']} : {cells['y']}",
    )  # fmt: skip
    yield _aligned(
        "axpb", "", {"a": "real", "x": "real", "b": "real"}, {"a": "a", "x": "x", "b": "b"}, ("x", "a", "b"),
        "y: real", f"{cells['a']} * {cells['x']} + {cells['b']}",
    )  # fmt: skip
    yield _aligned(
        "axpby", "", {"a": "real", "x": "real", "b": "real", "y": "real"}, {"a": "a", "x": "x", "b": "b", "y": "y"},
        ("x", "y", "a", "b"), "z: real", f"{cells['a']} * {cells['x']} + {cells['b']} * {cells['y']}",
    )  # fmt: skip
    yield _aligned(
        "clamp", "T: num;", {"x": "T", "a": "T", "b": "T"}, {"x": "val", "a": "min", "b": "max"}, ("x", "a", "b"),
        "y: T", "{x} < {a} ? {a} : {x} > {b} ? {b} : {x}".format(**cells),
    )  # fmt: skip
    for name, operator in _REDUCTIONS.items():
        yield _REDUCTION.format(name=f"{name}_reduce", types=number, type="T", operator=operator)
        start = {"<?=": "y[i..] = xs[0][i..], i < s;\n        ", ">?=": "y[i..] = xs[0][i..], i < s;\n        "}
        lines = f"{start.get(operator, '')}y[i..] {operator} xs[k][i..], k < n, i < s;"
        yield _OVER_PACK.format(name=f"{name}_n", types=number, type="T", result="T", lines=lines)
    for name, operator in {"any": "|=", "all": "&="}.items():
        yield _REDUCTION.format(name=f"{name}_reduce", types="", type="bool", operator=operator)
        lines = f"y[i..] {operator} xs[k][i..], k < n, i < s;"
        yield _OVER_PACK.format(name=f"{name}_n", types="", type="bool", result="bool", lines=lines)
    for name, order in {"argmin": "<", "argmax": ">"}.items():
        yield _BEST.format(name=name, order=order)
        lines = "y[i..] = 0, i < s;\n        "
        lines += f"y[i..] := k, k < n, i < s | xs[k][i..] {order} xs[y[i..]][i..];"
        yield _OVER_PACK.format(name=f"{name}_n", types=number, type="T", result="int", lines=lines)
