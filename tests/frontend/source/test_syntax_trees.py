"""Copies of syntax trees, also of those on which others have hung something."""

from __future__ import annotations

import ast

from tcdsl.frontend.source.syntax_trees import copied


def test_copies_are_equal_and_share_no_node_that_can_change() -> None:
    tree = ast.parse("y[i] += f(x[i], k=[1, 2]) if c else z\n")
    made = copied(tree)
    assert ast.dump(made, include_attributes=True) == ast.dump(tree, include_attributes=True)
    before = ast.dump(tree)
    for node in ast.walk(made):
        if isinstance(node, ast.Name):
            node.id = "changed"
    assert ast.dump(tree) == before


def test_parents_that_others_have_hung_on_nodes_are_left_behind() -> None:
    tree = ast.parse("y = x + 1")
    try:
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                child.parent = node  # type: ignore[attr-defined]
        assert not any(hasattr(node, "parent") for node in ast.walk(copied(tree)) if node._fields)
    finally:
        for node in ast.walk(tree):
            node.__dict__.pop("parent", None)
