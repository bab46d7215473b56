"""The texts of all faults that the package can report, read from its sources: f-strings, with `…` for what differs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import tcdsl as tc
from tcdsl import errors

__all__ = ["Text", "texts_of_faults"]

PACKAGE = Path(tc.__file__).parent

# What a parameter of functions that report is called.
FACT = "fact"
VARIES = "…"

Text = tuple[str, str, str]
"""The file, with the line; the class if it stands there; the text."""

Bindings = Mapping[str, Sequence[ast.expr]]


def _kinds() -> set[str]:
    named = {name: getattr(errors, name) for name in errors.__all__}
    return {name for name, each in named.items() if isinstance(each, type) and issubclass(each, tc.TcdslError)}


def texts_of_faults(folders: Sequence[str], but: Sequence[str] = ()) -> list[Text]:
    """The texts in the sources below these folders of the package, without those below ``but``."""
    files = sorted(path for folder in folders for path in _files(PACKAGE / folder))
    kept = [path for path in files if not path.relative_to(PACKAGE).as_posix().startswith(tuple(but) or "\0")]
    return [found for path in kept for found in _texts(path)]


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _files(place: Path) -> Iterator[Path]:
    return iter([place]) if place.is_file() else place.rglob("*.py")


@cache
def _reporting() -> dict[str, set[int]]:
    """Functions with a parameter `fact`, by name: where a call has it."""
    found: dict[str, set[int]] = {}
    for path in PACKAGE.rglob("*.py"):
        if FACT not in path.read_text("utf-8"):
            continue
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.FunctionDef):
                names = [each.arg for each in node.args.args if each.arg not in ("self", "cls")]
                if FACT in names:
                    found.setdefault(node.name, set()).add(names.index(FACT))
    return found


def _texts(path: Path) -> Iterator[Text]:
    tree = _tree(path)
    kinds = _kinds()
    around: dict[ast.AST, ast.AST] = {}
    for function in ast.walk(tree):  # from the outside in: the innermost function stays
        if isinstance(function, ast.FunctionDef):
            around.update(dict.fromkeys(ast.walk(function), function))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            kind, facts = _facts(node, kinds)
            if not facts:
                continue
            bindings = _bindings(around.get(node), tree)
            place = f"{path.relative_to(PACKAGE).as_posix()}:{node.lineno}"
            # Functions of one name may have it in different places: the first text is it, and a hint comes later.
            found = next(filter(None, (_written(fact, bindings) for fact in facts)), [])
            yield from ((place, kind, text.partition("\n")[0]) for text in dict.fromkeys(found))


def _facts(call: ast.Call, kinds: set[str]) -> tuple[str, list[ast.expr]]:
    match call.func:
        case ast.Name(id=name) if name in kinds:
            return name, call.args[:1]
        case ast.Attribute(value=ast.Name(id=name), attr="at") if name in kinds:
            return name, call.args[:1]
        case ast.Name(id="Diagnostic"):
            kind = call.args[0].id if call.args and isinstance(call.args[0], ast.Name) else ""
            return kind if kind in kinds else "", call.args[1:2]
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _reporting():
            given = [each.id for each in call.args if isinstance(each, ast.Name) and each.id in kinds]
            named = [each.value for each in call.keywords if each.arg == FACT]
            places = sorted(_reporting()[name])
            texts = [call.args[place] for place in places if place < len(call.args)]
            said = [each for each in texts if not (isinstance(each, ast.Name) and each.id in kinds)]
            return "".join(given[:1]), named or said
    return "", []


def _bindings(function: ast.AST | None, tree: ast.Module) -> Bindings:
    found: dict[str, list[ast.expr]] = {}
    nodes = [*tree.body, *(ast.walk(function) if function is not None else ())]
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                found_in = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    found_in = list(zip(target.elts, node.value.elts, strict=False))
                for name, value in found_in:
                    if isinstance(name, ast.Name):
                        found.setdefault(name.id, []).append(value)
    return found


def _written(node: ast.expr, bindings: Bindings, depth: int = 0) -> list[str]:
    if depth > 4:
        return []
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            return ["".join(part.value if isinstance(part, ast.Constant) else VARIES for part in parts)]
        case ast.IfExp(body=first, orelse=second):
            return _written(first, bindings, depth + 1) + _written(second, bindings, depth + 1)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            begins = _written(left, bindings, depth + 1) or [VARIES]
            return [begin + end for begin in begins for end in _written(right, bindings, depth + 1) or [VARIES]]
        case ast.Name(id=name):
            return [text for value in bindings.get(name, ()) for text in _written(value, bindings, depth + 1)]
    return []
