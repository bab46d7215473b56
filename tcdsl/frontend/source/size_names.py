"""What a function calls the extents of its parameters, read from its syntax tree, so that programs use the same
names.
"""

from __future__ import annotations

import ast

from tcdsl.frontend.source.annotations import annotation_names, parsed_annotation

__all__ = ["parameter_size_names"]


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
