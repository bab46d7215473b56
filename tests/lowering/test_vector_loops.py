"""Which loops may run in lanes: those whose iterations have cells and scalars of their own."""

from __future__ import annotations

import pytest

from tcdsl.ir.build import apply, constant, integer
from tcdsl.ir.expressions import Expr, Local
from tcdsl.lowering.loop_passes.vector_loops import with_vector_loops
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Check, Define, Loop, Node, Store, Update
from tcdsl.lowering.loopir.traversal import walk_nodes
from tests.targets.kernels import I, J, M, N, loop, read

T = Local("t", "float32")
ONE = constant(1, "float32")


def plus(a: Expr, b: Expr) -> Expr:
    return apply("add", a, b)


def kinds(*nodes: Node) -> list[str]:
    return [node.kind for node in walk_nodes(with_vector_loops(nodes)) if isinstance(node, Loop)]


INDEPENDENT = {
    "a copy": [Store("y", (I,), read("x", I))],
    "an update of the cell that it reads": [Update("y", (I,), "add", read("y", I))],
    "a row of a matrix": [Store("C", (J, I), read("A", J, I))],
    "every other cell": [Store("y", (apply("mul", integer(2), I),), ONE)],
    "a scalar": [Define("t", read("x", I)), Store("y", (I,), plus(T, T))],
    "a scalar of two branches": [
        Branch(apply("gt", read("x", I), ONE), (Define("t", ONE),), (Define("t", read("x", I)),)),
        Store("y", (I,), T),
    ],
    "a sum of its own": [Define("t", ONE), Accumulate("t", "add", read("x", I)), Store("y", (I,), T)],
}
DEPENDENT = {
    "one cell": [Update("y", (J,), "add", read("x", I))],
    "the cell before": [Store("y", (I,), read("y", apply("sub", I, integer(1))))],
    "two cells": [Store("y", (I,), ONE), Store("y", (apply("add", I, integer(1)),), ONE)],
    "a cell that data names": [Update("y", (read("at", I, dtype="int64"),), "add", ONE)],
    "cells that lie closer": [Store("y", (apply("floor_div", I, integer(2)),), ONE)],
    "a sum": [Accumulate("t", "add", read("x", I))],
    "a scalar of the iteration before": [Store("y", (I,), T), Define("t", read("x", I))],
    "a scalar of one branch": [Branch(apply("gt", read("x", I), ONE), (Define("t", ONE),)), Store("y", (I,), T)],
    "a check": [Check(apply("gt", read("x", I), ONE), "x", 0, I, N), Store("y", (I,), ONE)],
}


@pytest.mark.parametrize("name", INDEPENDENT)
def test_independent_iterations(name: str) -> None:
    assert kinds(loop("i", N, *INDEPENDENT[name])) == ["vector"]
    assert kinds(loop("j", M, loop("i", N, *INDEPENDENT[name]))) == ["serial", "vector"]


@pytest.mark.parametrize("name", DEPENDENT)
def test_iterations_that_depend_on_others(name: str) -> None:
    assert kinds(loop("i", N, *DEPENDENT[name])) == ["serial"]


def test_scalars_that_are_needed_afterwards() -> None:
    body = loop("i", N, Define("t", read("x", I)), Store("y", (I,), T))
    assert kinds(body, Store("z", (), ONE)) == ["vector"]
    assert kinds(body, Store("z", (), T)) == ["serial"]


def test_parallel_loops_stay_what_they_are() -> None:
    assert kinds(loop("i", N, Store("y", (I,), ONE), parallel=True)) == ["parallel"]
