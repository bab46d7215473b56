"""Annotations of tensors, ``A: "real[N, K]"``, name a type and extents. All others are Python's own.

::

    def f(A: "float32[N, K]", names: tuple[str, ...]):      # A's type and sizes; names is none of ours
        O: real[N, K + 1]                                   # declares the target O
        parts: list[int] = []                               # plain Python
"""

from __future__ import annotations

import ast
import builtins
import re
from types import FunctionType
from typing import Annotated, Any

from tcdsl.errors import Diagnostic, DslSyntaxError, raise_diagnostics
from tcdsl.frontend.source.function_source import span_of
from tcdsl.frontend.source.syntax_trees import OwnStatements
from tcdsl.ir.dtypes import DTYPES

__all__ = [
    "annotation_names",
    "evaluable_annotations",
    "keep_tensor_annotations",
    "parameter_size_names",
    "parsed_annotation",
]

_KINDS = frozenset(("real", "any", *DTYPES))
_BEGINS_LIKE_A_TENSOR = re.compile(rf"\s*({'|'.join(sorted(_KINDS))})\s*\[")
_OF_NO_AXES = re.compile(r"\[\s*\]$")
# Types of Python's that users write for element types, and what they mean.
_OF_PYTHON = {"int": "int64", "float": "real"}


def parsed_annotation(annotation: ast.expr | None) -> tuple[str, list[ast.expr]] | None:
    """The type name and the extents of ``real[N, K]`` or ``"float32[N, K]"``; ``None`` for any other annotation.

    A string may say ``"int64[]"`` of rank 0, for ``int64[()]``.
    """
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            inner = ast.parse(_OF_NO_AXES.sub("[()]", annotation.value.strip()), mode="eval").body
        except SyntaxError:
            return None
        for node in ast.walk(inner):
            ast.copy_location(node, annotation)
        return parsed_annotation(inner)
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.value, ast.Name):
        return None
    extents = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    return annotation.value.id, list(extents)


def annotation_names(annotation: ast.expr) -> tuple[str, ...]:
    """The plain names among the extents of ``real[N, K + 1]`` (or of its string form), in order."""
    parsed = parsed_annotation(annotation)
    if parsed is None:
        return ()
    return tuple(extent.id for extent in parsed[1] if isinstance(extent, ast.Name))


def evaluable_annotations(function: FunctionType) -> dict[str, Any]:
    """The annotations of ``function`` for who evaluates them: ``Annotated[Any, "real[N]"]`` for ``"real[N]"``."""
    try:
        given = function.__annotations__
    except NameError:
        return {}  # names of the language without quotes, which Python 3.14 evaluates when it is asked
    return {name: _evaluable(each, function) for name, each in given.items()}


def _evaluable(annotation: Any, function: FunctionType) -> Any:
    text = annotation.strip("'\" ") if isinstance(annotation, str) else ""
    kind = re.match(r"\w*", text)
    if kind is None or kind.group() not in _KINDS:
        return annotation
    known = kind.group() in function.__globals__ or hasattr(builtins, kind.group())
    return annotation if known and text == kind.group() else Annotated[Any, text]


def keep_tensor_annotations(definition: ast.FunctionDef, function: FunctionType, filename: str) -> None:
    """Take the annotations that are Python's own out of the definition of ``function``.

    ``list[int]`` and ``NDArray[np.float64]`` are, because the function's surroundings know their names; an unknown
    name, ``flaot32[N]``, stays, to be reported. `DslSyntaxError` for strings that begin like an annotation of a tensor
    and are not one: ``"real[N K]"``.
    """
    ordinary = _Ordinary(function, filename)
    arguments = definition.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None and not ordinary.is_of_a_tensor(argument.annotation):
            argument.annotation = None
    definition.body = [ordinary.visit(statement) for statement in definition.body]
    raise_diagnostics(ordinary.faults)


class _Ordinary(OwnStatements):
    # `parts: list[int] = []` becomes `parts = []`.
    def __init__(self, function: FunctionType, filename: str) -> None:
        self.faults: list[Diagnostic] = []
        self._known = frozenset((*function.__globals__, *function.__code__.co_freevars, *vars(builtins))) - _KINDS
        self._filename = filename

    def is_of_a_tensor(self, annotation: ast.expr | None) -> bool:
        parsed = parsed_annotation(annotation)
        if parsed is not None and parsed[0] in _OF_PYTHON and annotation is not None:
            text = annotation.value if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
            meant = re.sub(r"^\s*\w+", _OF_PYTHON[parsed[0]], str(text))
            self._refuse(annotation, f"`{parsed[0]}` is no element type", f"write `{meant}`")
            return True
        if parsed is not None:
            return parsed[0] not in self._known
        if isinstance(annotation, ast.Constant) and _BEGINS_LIKE_A_TENSOR.match(str(annotation.value)):
            fact = f"the annotation {annotation.value!r} cannot be read"
            self._refuse(annotation, fact, "write a type and the extents, `real[N, K + 1]`")
            return True  # it stays, to be refused the next time too
        return False

    def _refuse(self, annotation: ast.expr, fact: str, hint: str) -> None:
        self.faults.append(Diagnostic(DslSyntaxError, fact, span_of(annotation, self._filename), hint=hint))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:  # noqa: N802  # a name of `ast`
        if self.is_of_a_tensor(node.annotation) and isinstance(node.target, ast.Name):
            return node
        # Without a value, `x: int` says what is assigned later; Python never evaluates it.
        plain = ast.Pass() if node.value is None else ast.Assign([node.target], node.value)
        return ast.fix_missing_locations(ast.copy_location(plain, node))


def parameter_size_names(definition: ast.FunctionDef) -> dict[str, tuple[str | None, ...]]:
    """What annotations, ``N, K = A.shape`` and ``A.bind_dims(N, K)`` call the extents of parameters."""
    arguments = definition.args
    parameters = [*arguments.posonlyargs, *arguments.args]
    found: dict[str, tuple[str | None, ...]] = {}
    for parameter in parameters:
        parsed = parsed_annotation(parameter.annotation)
        if parsed is not None and parameter.annotation is not None and annotation_names(parameter.annotation):
            found[parameter.arg] = tuple(e.id if isinstance(e, ast.Name) else None for e in parsed[1])
    names = {parameter.arg for parameter in parameters}
    for node in ast.walk(definition):
        match node:
            case ast.Assign(
                targets=[ast.Tuple(elts=targets)], value=ast.Attribute(value=ast.Name(id=base), attr="shape")
            ):
                entries = targets
            case ast.Assign(
                targets=[ast.Name() as target],
                value=ast.Subscript(
                    value=ast.Attribute(value=ast.Name(id=base), attr="shape"), slice=ast.Constant(value=int(axis))
                ),
            ):
                known = list(found.get(base, ()))
                known.extend([None] * (axis + 1 - len(known)))
                known[axis] = known[axis] or target.id
                if base in names:
                    found[base] = tuple(known)
                continue
            case ast.Call(func=ast.Attribute(value=ast.Name(id=base), attr="bind_dims"), args=entries):
                pass
            case _:
                continue
        if base in names and base not in found:
            found[base] = tuple(e.id if isinstance(e, ast.Name) else None for e in entries)
    return found
