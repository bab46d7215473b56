"""Conditions that name a value, ``while (r := step(r)) > e``, as a statement and a condition that names nothing.

::

    if (n := norm(x)) > 1:             n = norm(x)
        x = x / n                      if n > 1:
                                           x = x / n

    while (r := step(r)) > e:          while True:
        s = s + r                          r = step(r)
                                           if not r > e:
                                               break
                                           s = s + r

So the loop, or the branch, may be one that runs. Only what is evaluated first, and in any case, is taken out.
"""

from __future__ import annotations

import ast

__all__ = ["with_names_before", "with_names_inside"]


def with_names_before(node: ast.If) -> list[ast.stmt]:
    """The statements before the branch, and the branch."""
    before, test = _taken_out(node.test)
    if not before or _names(test):
        return [node]
    return [*before, ast.copy_location(ast.If(test, node.body, node.orelse), node)]


def with_names_inside(node: ast.While) -> ast.While:
    """The loop with these statements in its body."""
    before, test = _taken_out(node.test)
    if not before or _names(test) or node.orelse:
        return node
    leaving = ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], [])
    made = ast.While(ast.Constant(True), [*before, leaving, *node.body], [])
    ast.copy_location(leaving, node)
    for part in (leaving.test, leaving.body[0], made.test):
        ast.copy_location(part, node.test)
    return ast.copy_location(made, node)


def _names(test: ast.expr) -> bool:
    return any(isinstance(part, ast.NamedExpr) for part in ast.walk(test))


def _taken_out(test: ast.expr) -> tuple[list[ast.stmt], ast.expr]:
    # What a condition names first, as statements, and the condition after them.
    match test:
        case ast.NamedExpr(target=target, value=value):
            before, value = _taken_out(value)
            named = ast.copy_location(ast.Assign([target], value), test)
            return [*before, named], ast.copy_location(ast.Name(target.id, ast.Load()), target)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            before, left = _taken_out(left)
            return before, ast.copy_location(ast.Compare(left, ops, comparators), test)
        case ast.UnaryOp(op=op, operand=operand):
            before, operand = _taken_out(operand)
            return before, ast.copy_location(ast.UnaryOp(op, operand), test)
        case ast.BinOp(left=left, op=op, right=right):
            before, left = _taken_out(left)
            return before, ast.copy_location(ast.BinOp(left, op, right), test)
        case ast.Call(func=ast.Attribute(value=value, attr=name) as method, args=arguments, keywords=keywords):
            before, value = _taken_out(value)
            found = ast.copy_location(ast.Attribute(value, name, ast.Load()), method)
            return before, ast.copy_location(ast.Call(found, arguments, keywords), test)
        case ast.Call(func=ast.Name() as function, args=[first, *others], keywords=keywords):
            before, first = _taken_out(first)
            return before, ast.copy_location(ast.Call(function, [first, *others], keywords), test)
        case ast.BoolOp(op=op, values=[first, *others]):
            before, first = _taken_out(first)
            return before, ast.copy_location(ast.BoolOp(op, [first, *others]), test)
    return [], test
