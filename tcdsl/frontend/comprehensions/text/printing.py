"""Sources as text that is read back as the same source: a statement on each line, brackets where they are needed."""

from __future__ import annotations

import numpy as np

from tcdsl.frontend.comprehensions.text.element_types import ELEMENT_TYPES
from tcdsl.frontend.comprehensions.text.syntax import (
    Binary,
    Call,
    Choice,
    Convert,
    Definition,
    DefinitionCall,
    ElementType,
    Exists,
    Expression,
    Extent,
    LocalDefinition,
    Name,
    Number,
    Range,
    Result,
    Source,
    Statement,
    Unary,
)

__all__ = ["format_definition", "format_expression", "format_source", "format_statement", "type_name"]

_LEVELS = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"))
_LEVEL = {operator: level for level, operators in enumerate(_LEVELS, 1) for operator in operators}
_UNARY = len(_LEVELS) + 1
_NAMES = {"float32": "float", "float64": "double"} | {
    dtype: name for name, dtype in ELEMENT_TYPES.items() if name == dtype and dtype not in ("float32", "float64")
}


def format_source(source: Source) -> str:
    """All definitions, an empty line between two of them."""
    return "\n".join(map(format_definition, source.definitions))


def format_definition(definition: Definition) -> str:
    """One definition, with a line break at its end."""
    parameters = ", ".join(f"{_type(each.type)} {each.name.name}" for each in definition.parameters)
    results = ", ".join(map(_result, definition.results))
    lines = [f"def {definition.name.name}({parameters}) -> ({results}) {{"]
    lines += [f"    {format_statement(statement)}" for statement in definition.statements]
    return "\n".join((*lines, "}", ""))


def type_name(dtype: str) -> str:
    """What the language calls a type: float, double, int32, ..."""
    return _NAMES[dtype]


def _type(given: ElementType) -> str:
    sizes = ", ".join(size.name if isinstance(size, Name) else str(size.value) for size in given.sizes)
    return f"{type_name(given.dtype)}({sizes})" if sizes else type_name(given.dtype)


def _result(result: Result) -> str:
    return result.name.name if result.type is None else f"{_type(result.type)} {result.name.name}"


def format_statement(statement: Statement | DefinitionCall) -> str:
    """One statement on one line."""
    if isinstance(statement, DefinitionCall):
        targets = ", ".join(target.name for target in statement.targets)
        arguments = ", ".join(argument.name for argument in statement.arguments)
        return f"{targets} = {statement.function.name}({arguments})"
    target = statement.target.name.name
    if not statement.target.bare:
        target += f"({', '.join(each.name for each in statement.target.indices)})"
    text = f"{target} {statement.operator} {format_expression(statement.value)}"
    if statement.annotation is not None:
        arguments = ", ".join(map(format_expression, statement.annotation.arguments))
        text += f" <=> {statement.annotation.name.name}({arguments})"
    return text + (f" where {', '.join(map(_clause, statement.clauses))}" if statement.clauses else "")


def _clause(clause: Range | LocalDefinition | Exists) -> str:
    match clause:
        case Range(variable=variable, low=low, high=high):
            return f"{variable.name} in {format_expression(low)}:{format_expression(high)}"
        case LocalDefinition(name=name, value=value):
            return f"{name.name} = {format_expression(value)}"
        case Exists(value=value):
            return f"exists {format_expression(value)}"


def format_expression(node: Expression) -> str:
    """An expression."""
    match node:
        case Number(value=value, is_float=is_float):
            return _real(float(value)) if is_float else str(value)
        case Name(name=name):
            return name
        case Extent(tensor=tensor, axis=axis):
            return f"{tensor.name}.{axis}"
        case Call(name=name, arguments=arguments):
            return f"{name.name}({', '.join(map(format_expression, arguments))})"
        case Convert(dtype=dtype, operand=operand):
            return f"{type_name(dtype)}({format_expression(operand)})"
        case Unary(operator=operator, operand=operand):
            return f"{operator}{_inner(operand, _UNARY)}"
        case Binary(operator=operator, left=left, right=right):
            level = _LEVEL[operator]
            return f"{_inner(left, level)} {operator} {_inner(right, level + 1)}"
        case Choice(condition=condition, chosen=chosen, other=other):
            return f"{_inner(condition, 1)} ? {format_expression(chosen)} : {format_expression(other)}"


def _inner(node: Expression, level: int) -> str:
    match node:
        case Choice():
            own = 0
        case Binary(operator=operator):
            own = _LEVEL[operator]
        case _:
            own = _UNARY
    text = format_expression(node)
    return f"({text})" if own < level else text


def _real(value: float) -> str:
    # As few digits as give the number back.
    short = np.format_float_positional(value, trim="-") if 1e-4 <= abs(value) < 1e16 or value == 0 else repr(value)
    return short if "." in short or "e" in short else f"{short}.0"
