"""Random tensor statements: which form, which variables, which value."""

from __future__ import annotations

from tests.oracle.generation import LETTERS, Draft

__all__ = ["write_conditioned", "write_elsewhere", "write_statement"]

_PLAIN = ("+=", "+=", "+=", "=", "=", ">>=", "<<=", "*=", "-=", "|=", "&=")
_WHOLE = ("sum", "sum", "max", "min", "prod")
_FOLDS = ("sum", "sum", "max", "min", "prod", "mean", "argmax")


def write_statement(draft: Draft) -> str:
    """Append one statement (and what it needs before it) to ``draft``; returns the target's name."""
    if draft.chance(8):
        return _on_itself(draft)
    kept = list(LETTERS[: draft.number(0, 2)]) if draft.chance(90) else list(LETTERS[:3])
    reduced = [letter for letter in LETTERS if letter not in kept][: draft.number(0, 2 if len(kept) < 2 else 1)]
    form = draft.choose("plain", "plain", "plain", "reset", "fold")
    if form == "fold" and reduced:
        value, accumulate, whole = _folded(draft, kept, reduced), draft.choose("=", "="), ""
    elif form == "reset" and reduced:
        value, accumulate, whole = _value(draft, kept, reduced), "=", draft.choose(*_WHOLE)
    else:
        accumulate, whole = draft.choose(*_PLAIN), ""
        if accumulate == "=":
            reduced = []
        value = (_truth if accumulate in ("|=", "&=") else _value)(draft, kept, reduced)
    inside = form == "fold"
    conditions = _conditions(draft, kept if inside else [*kept, *reduced])
    if whole:
        value = f"{whole}({value})"
    target, indices, before = _target(draft, kept, accumulate)
    draft.lines += before
    subscript = ", ".join(indices) if indices else "()"
    draft.lines.append(", ".join([f"{target}[{subscript}] {accumulate} {value}", *conditions]))
    return target


def _on_itself(draft: Draft) -> str:
    """A statement that reads other cells of its own target, which was written in part, in full, or before."""
    rows, matrix = draft.number(2, 5), draft.chance(25)
    draft.extents["i"] = rows
    known = [name for name, array in draft.made.items() if array.shape == (rows,) and array.dtype.kind == "f"]
    data = draft.array(draft.dtypes[0], (rows,))
    if known and draft.chance(40):
        target = draft.choose(*known)
    else:
        draft.targets += 1
        target = f"T{draft.targets}"
        size = draft.size(rows) if draft.chance(80) else str(rows)
        draft.lines.append(f"{target} = output({size}{', 2' if matrix else ''})")
        first = draft.choose("0", "0", "0", "i", "2*i", "-1")
        until = draft.choose("", f", i < {draft.number(1, 2)}", ", i % 2 == 0") if "i" in first else ""
        column = f", {draft.choose('0', 'j')}" if matrix else ""
        until += ", j < 2" if "j" in column else ""
        draft.lines.append(f"{target}[{first}{column}] = {data}[{first}]{until}")
    matrix = matrix and target not in known
    column = ", j" if matrix else ""
    shift = draft.choose("i - 1", "i - 1", "i + 1", "i - 2", f"{rows - 1} - i", "clamp(i - 1)", "wrap(i - 1)", "i", "0")
    read = f"{target}[{shift}{column}]"
    form = draft.number(0, 6)
    value = f"{read} + {data}[i]"
    if form == 1:
        value = f"({read} if i > 0 else {data}[i])"
    if form == 2 and not matrix:
        value = f"{data}[i] - sum({target}[k] * (k < i) for k in range({rows}))"
    if form == 3:
        value = f"{data}[i] + {read} * (i > {draft.number(0, 2)})"
    if form == 4:
        value = f"get({read}, 0) * {data}[i]" if "(" not in shift else value
    tail = draft.choose("", "", ", i >= 1", f", 1 <= i < {rows}", f", {data}[i] > 0")
    draft.lines.append(f"{target}[i{column}] {draft.choose('=', '=', '=', '+=')} {value}{tail}")
    return target


def write_elsewhere(draft: Draft) -> str:
    """Append a statement at other places of a tensor that holds cells: shifted, strided, fixed, chosen by data.

    Returns the target's name.
    """
    rows = draft.number(2, 5)
    draft.extents["i"] = rows
    data, matrix = draft.array(draft.dtypes[0], (rows,)), draft.array(draft.dtypes[0], (2, rows))
    places = ("i", "i + 1", "2*i", "2*i + 1", f"{rows - 1} - i", "i // 2", "i % 2", "1")
    form = draft.number(0, 3)
    if form == 0:
        target = draft.array(draft.dtypes[0], (max(1, rows + draft.number(-1, 3)),))
    else:
        draft.targets += 1
        target = f"T{draft.targets}"
        if form == 1:
            draft.lines.append(f"{target} = output({rows + draft.number(-1, 3)})")
        sign = draft.choose("=", "=", "+=")
        place = draft.choose(*(places[:5] if sign == "=" else places))
        whole = form == 1 and draft.chance(30)
        draft.lines.append(f"{target}[{'0' if whole else place}] {sign} {'2' if whole else f'{data}[i]'}")
    place = draft.choose(*places)
    if draft.chance(12):
        ids = draft.array("int64", (rows,))
        draft.arrays[ids] = draft.random.integers(0, 2, rows)
        place = f"{ids}[i]"
    read = draft.choose("i", "i", "i", "i + 1", "i - 1", "clamp(i + 1)")
    tail = draft.choose("", "", "", ", i >= 1", ", i < 2", ", 2*i < 5", f", {data}[i] > 0")
    if draft.chance(60):
        tail += draft.choose("", "", ", j > 0", ", j <= i")
        value = f"{draft.choose('sum', 'sum', 'max', 'prod')}({matrix}[j, {read}])"
        draft.lines.append(f"{target}[{place}] = {value}{tail}")
    else:
        draft.lines.append(f"{target}[{place}] += {data}[{read}]{tail}")
    return target


def write_conditioned(draft: Draft) -> str:
    """Append a statement whose conditions speak of variables that its value has in reductions, or nowhere.

    Returns the target's name.
    """
    kept = ["i"] if draft.chance(60) else []
    asked = ["j"] if draft.chance(80) else ["j", "l"]
    inner = draft.choose("k", "k", "k", asked[-1])
    kind = draft.choose("sum", "sum", "max", "mean", "prod", "argmax")
    reads = [*(name for name in (*kept, *asked) if draft.chance(60)), inner]
    value = f"{kind}({draft.read(list(dict.fromkeys(reads)), [])})"
    form = draft.number(0, 9)
    if form == 0:
        value = f"{kind}({draft.read([inner], [])} for {inner} in range({draft.number(1, 3)}))"
    elif form < 3:
        value = draft.choose("1", "2", draft.read(kept, []) if kept else "1")
    elif form < 5:
        value = f"{draft.read([*kept, *asked[:1]], [])} * {value}"
    elif form == 5 and kind == "mean" and any(f"{mark}{inner}" in value for mark in "[ *("):
        draft.lines.append(f"z = {value}")
        value = "z"
    accumulate = draft.choose("+=", "+=", "-=", ">>=", "<<=", "*=", "=", "=")
    if accumulate != "=" and draft.chance(70):
        value = f"{draft.choose('2', '1')} {draft.choose('*', '+')} {value}"
    conditions = []
    for name in asked:
        others = [name, *kept]
        data = f"{draft.read([name, *kept][: draft.number(1, 2)], [])} > {draft.number(-1, 0)}"
        folded = (
            f"{draft.choose('sum', 'max')}({draft.read([name, draft.choose('k', 'm')], [])}) > {draft.number(0, 1)}"
        )
        conditions.append(
            draft.choose(data, data, data, folded, f"{name} < {draft.number(1, 3)}", draft.condition(others))
        )
    if draft.chance(30):
        conditions.append(draft.condition([*kept, *asked]))
    target, indices, before = _target(draft, kept, accumulate)
    draft.lines += before
    subscript = ", ".join(indices) if indices else "()"
    draft.lines.append(", ".join([f"{target}[{subscript}] {accumulate} {value}", *conditions]))
    return target


def _split(draft: Draft, names: list[str]) -> list[list[str]]:
    # Which variables each read mentions: together all of them, most of them more than once.
    groups: list[list[str]] = []
    left = list(names)
    while left:
        count = draft.number(1, min(2, len(left)))
        groups.append(left[:count])
        left = left[count:]
    if names and draft.chance(50):
        groups.append([draft.choose(*names) for _ in range(draft.number(1, 2))])
    if len(groups) > 1 and draft.chance(60):
        groups[0] = [*groups[0], groups[1][0]] if groups[1][0] not in groups[0] else groups[0]
    return groups or [[]]


def _reads(draft: Draft, kept: list[str], reduced: list[str]) -> list[str]:
    names = [*kept, *reduced]
    return [draft.read(group, names) for group in _split(draft, names)]


def _real(draft: Draft) -> bool:
    return draft.dtypes[0].startswith("float")


def _dressed(draft: Draft, read: str, names: list[str]) -> str:
    # One operand: as it is, or under a function, or beside a number.
    form = draft.number(0, 15)
    if form < 10 or not names:
        return read
    if form == 10:
        return f"abs({read})"
    if form == 11:
        return f"({read} + {draft.choose('1', '2', '0.5') if _real(draft) else draft.choose('1', '2')})"
    if form == 12:
        return f"({read} * {draft.choose(*names)})"
    if form == 13 and _real(draft):
        return f"{draft.choose('exp', 'tanh', 'sin')}({read})"
    if form == 14:
        return f"max({read}, {draft.choose('0', '1')})"
    return f"(-{read})" if form == 15 and draft.dtypes[0] != "uint8" else read


def _joined(draft: Draft, parts: list[str], names: list[str]) -> str:
    result = parts[0]
    for part in parts[1:]:
        form = draft.number(0, 9)
        if form < 5:
            result = f"{result} * {part}"
        elif form < 7:
            result = f"({result} + {part})"
        elif form == 7:
            result = f"({result} - {part})"
        elif form == 8:
            result = f"{draft.choose('max', 'min')}({result}, {part})"
        elif names:
            test = draft.condition(names)
            result = f"({result} if {test} else {part})" if draft.chance(60) else f"where({test}, {result}, {part})"
        else:
            result = f"({result} + {part})"
    return result


def _value(draft: Draft, kept: list[str], reduced: list[str]) -> str:
    names = [*kept, *reduced]
    reads = _reads(draft, kept, reduced)
    if names and draft.chance(10):
        draft.local += 1
        local = f"{'zvu'[draft.local % 3]}"
        draft.lines.append(f"{local} = {reads[0]} * {reads[0]}")
        reads = [local, *reads[1:], local] if draft.chance(50) else [local, *reads[1:]]
    parts = [_dressed(draft, read, names) for read in reads]
    value = _joined(draft, parts, names)
    if names and draft.chance(15):
        value = f"{value} * ({draft.condition(names)})"
    return value


def _truth(draft: Draft, kept: list[str], reduced: list[str]) -> str:
    if draft.chance(70):
        return f"{_value(draft, kept, reduced)} {draft.choose('>', '<=')} {draft.number(-1, 1)}"
    comparisons = [f"{read} > {draft.number(-1, 1)}" for read in _reads(draft, kept, reduced)]
    if len(comparisons) == 1:
        return comparisons[0]
    return draft.choose(" and ", " or ").join(f"({comparison})" for comparison in comparisons)


def _folded(draft: Draft, kept: list[str], reduced: list[str]) -> str:
    """``A[i] * sum(B[i, k])``, with a generator now and then."""
    own = reduced[:1]
    kind = draft.choose(*_FOLDS)
    if kind == "argmax" and draft.extent(own[0]) == 0:
        kind = "sum"
    if draft.chance(40):
        stop = draft.number(1, 3)
        draft.extents[own[0]] = stop
        inner = _value(draft, kept, own)
        tail = f" if {draft.condition([*own, *kept])}" if draft.chance(20) else ""
        fold = f"{kind}({inner} for {own[0]} in range({stop}){tail})"
    else:
        fold = f"{kind}({_value(draft, kept, own)})"
    outside = [draft.read([name], kept) for name in kept] if kept and draft.chance(70) else []
    if not outside:
        return f"{draft.choose('2', '1')} * {fold}"
    return f"{' * '.join(outside)} {draft.choose('*', '+', '-')} {fold}"


def _conditions(draft: Draft, names: list[str]) -> list[str]:
    if not names or draft.chance(60):
        return []
    return [draft.condition(names) for _ in range(draft.number(1, 2))]


def _target(draft: Draft, kept: list[str], accumulate: str) -> tuple[str, list[str], list[str]]:
    """The target's name, its indices, and the lines that declare it."""
    form = draft.choose("fresh", "fresh", "declared", "existing")
    indices, shape = [], []
    for name in kept:
        draw = draft.number(0, 9)
        if form != "fresh" and draw == 9 and accumulate != "=" and draft.extent(name):
            rows = draft.number(1, 4)
            ids = draft.array("int64", (draft.extent(name),))
            draft.arrays[ids] = draft.random.integers(0, rows, draft.extent(name))
            index, extent = f"{ids}[{name}]", rows
        elif draw < 7:
            index, extent = name, draft.extent(name)
        else:
            index, extent = draft.index(name, kept)
        if form != "fresh" and extent and draft.chance(6):
            index, extent = f"({name} + {draft.number(0, 2)}) % {draft.size(draft.extent(name))}", draft.extent(name)
        elif form != "fresh" and accumulate != "=" and extent and draft.chance(8):
            index = f"{draft.choose('clamp', 'wrap', 'reflect', 'symmetric')}({index} + {draft.number(0, 2)})"
            extent = draft.number(1, 4)
        indices.append(index)
        shape.append(extent)
    if draft.chance(6):
        indices.append("0")
        shape.append(2)
    if form == "existing" and shape and draft.chance(12):
        shape[0] = max(0, shape[0] - draft.choose(1, 1, 2, -1))
    known = [name for name, array in draft.made.items() if array.shape == tuple(shape)]
    if form == "existing" and known and draft.chance(70):
        return draft.choose(*known), indices, []
    if form == "existing":
        return draft.array("bool" if accumulate in ("|=", "&=") else draft.dtypes[0], tuple(shape)), indices, []
    draft.targets += 1
    target = f"T{draft.targets}"
    if form == "fresh":
        return target, indices, []
    extents = ", ".join(str(max(0, extent + draft.choose(0, 0, 1, -1))) for extent in shape)
    if shape and _real(draft) and accumulate not in ("|=", "&=") and draft.chance(25):
        return target, indices, [f"{target}: real[{extents}]"]
    return target, indices, [f"{target} = output({extents})"] if shape else []
