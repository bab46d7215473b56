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

    while k < n and (v := x[k]) > 0:   while True:
        k = k + 1                          if not k < n:
                                               break
                                           v = x[k]
                                           if not v > 0:
                                               break
                                           k = k + 1

So the loop, or the branch, may be one that runs. Only what is evaluated first, and in any case, is taken out; of
``and`` from each side, with an ``else`` for each.
"""

from __future__ import annotations

import ast

from tcdsl.frontend.source.syntax_trees import copied

__all__ = ["with_names_before", "with_names_inside"]


def with_names_before(node: ast.If) -> list[ast.stmt]:
    """The statements before the branch, and the branch."""
    parts = _sides(node.test)
    if not any(before for before, _ in parts) or any(_names(test) for _, test in parts):
        return [node]
    body = node.body
    for before, test in reversed(parts):
        orelse = [copied(each) for each in node.orelse]
        body = [*before, ast.copy_location(ast.If(test, body, orelse), node)]
    return body


def with_names_inside(node: ast.While) -> ast.While:
    """The loop with these statements in its body."""
    parts = _sides(node.test)
    if not any(before for before, _ in parts) or any(_names(test) for _, test in parts) or node.orelse:
        return node
    body = [part for before, test in parts for part in (*before, _leaving(test, node))]
    made = ast.While(ast.copy_location(ast.Constant(True), node.test), [*body, *node.body], [])
    return ast.copy_location(made, node)


def _leaving(test: ast.expr, node: ast.While) -> ast.stmt:
    negation = ast.copy_location(ast.UnaryOp(ast.Not(), test), node.test)
    return ast.copy_location(ast.If(negation, [ast.copy_location(ast.Break(), node.test)], []), node)


def _sides(test: ast.expr) -> list[tuple[list[ast.stmt], ast.expr]]:
    # The sides of `and`, with what each of them names first. Those that name nothing stay with the side before them.
    values = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    found: list[tuple[list[ast.stmt], list[ast.expr]]] = []
    for value in values:
        before, rest = _taken_out(value)
        if found and not before:
            found[-1][1].append(rest)
        else:
            found.append((before, [rest]))
    return [
        (before, rests[0] if len(rests) == 1 else ast.copy_location(ast.BoolOp(ast.And(), rests), test))
        for before, rests in found
    ]


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
        case ast.Subscript(value=value, slice=index):
            before, value = _taken_out(value)
            return before, ast.copy_location(ast.Subscript(value, index, ast.Load()), test)
        case ast.Attribute(value=value, attr=name):
            before, value = _taken_out(value)
            return before, ast.copy_location(ast.Attribute(value, name, ast.Load()), test)
        case ast.UnaryOp(op=op, operand=operand):
            before, operand = _taken_out(operand)
            return before, ast.copy_location(ast.UnaryOp(op, operand), test)
        case ast.BinOp(left=left, op=op, right=right):
            before, left = _taken_out(left)
            return before, ast.copy_location(ast.BinOp(left, op, right), test)
        case ast.Call(func=ast.Attribute() as method, args=arguments, keywords=keywords):
            before, function = _taken_out(method)
            return before, ast.copy_location(ast.Call(function, arguments, keywords), test)
        case ast.Call(func=ast.Name() as name, args=[first, *others], keywords=keywords):
            before, first = _taken_out(first)
            return before, ast.copy_location(ast.Call(name, [first, *others], keywords), test)
        case ast.BoolOp(op=op, values=[first, *others]):
            before, first = _taken_out(first)
            return before, ast.copy_location(ast.BoolOp(op, [first, *others]), test)
    return [], test
