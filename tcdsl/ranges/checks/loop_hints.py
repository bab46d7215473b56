"""The loops to write instead of a statement that reads what it writes itself."""

from __future__ import annotations

import linecache
import re
import textwrap
from collections.abc import Sequence

import islpy as isl

from tcdsl.ir.build import index
from tcdsl.ir.expressions import index_variables, size_names
from tcdsl.ir.program import AxisExtent
from tcdsl.ir.text.domain_text import domain_name
from tcdsl.polyhedra.affine import function_of
from tcdsl.polyhedra.linear import linear_form
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.polyhedra.spaces import arranged
from tcdsl.ranges.sketches.inference_state import Inference
from tcdsl.ranges.solving.regions import ends_of
from tcdsl.span import Span

__all__ = ["loop_hint", "part_hint", "spoken"]

_RULE = "a statement reads everything as it was before the statement"


def loop_hint(inference: Inference, points: isl.Set, pairs: isl.Set, own: Sequence[str], other: Sequence[str]) -> str:
    """What to write where the points ``own`` read what the points ``other`` of the same statement write."""
    first = _first(inference)
    loops = _loops(pairs, own, other)
    if not loops:
        return f"{_RULE}; write a loop whose rounds follow each other, or {first}"
    lines = [f"{'    ' * k}{_head(inference, points, *loop)}" for k, loop in enumerate(loops, 1)]
    body = textwrap.indent(_source(inference.sketch.span), "    " * (len(loops) + 1))
    return _written(lines, body, first)


def part_hint(inference: Inference, points: isl.Set, pairs: isl.Set, own: Sequence[str], other: Sequence[str]) -> str:
    """The same for a part of a tensor, whose variables are its axes."""
    target = inference.sketch.target.indices
    indices = [":"] * len(target)
    heads: list[str] = []
    for letter, (variable, step) in zip("ijkl", _loops(pairs, own, other), strict=False):
        axis = next(k for k, each in enumerate(target) if variable in index_variables(each))
        scale = linear_form(target[axis])[0].get(index(variable))
        if scale not in (1, -1):
            heads.clear()
            break
        cells = isl.Map.from_pw_aff(function_of(target[axis], points)).intersect_domain(points).range()
        heads.append(f"{'    ' * (len(heads) + 1)}{_head(inference, cells, letter, step * scale)}")
        indices[axis] = letter
    if not heads:
        return f"{_RULE}; write a loop whose rounds follow each other, or {_first(inference)}"
    label = inference.label(inference.sketch.target.tensor)
    body = f"{'    ' * (len(heads) + 1)}{label}[{', '.join(indices)}] = ..."
    return _written(heads, body, _first(inference))


def _written(heads: Sequence[str], body: str, first: str) -> str:
    loops = "a loop" if len(heads) == 1 else "loops"
    return "\n".join([f"{_RULE}; write {loops}:", *heads, body, f"or {first}"])


def _first(inference: Inference) -> str:
    label = inference.label(inference.sketch.target.tensor)
    return f"write its cells first, as in `{label}[...] = 0`, if it is them that are to be read"


def _loops(pairs: isl.Set, own: Sequence[str], other: Sequence[str]) -> list[tuple[str, int]]:
    """Variables and steps of nested loops in which each point reads what earlier rounds write; none if there are none.

    One loop if it does.
    """
    found: list[tuple[str, int]] = []
    for strict in (True, False):
        for one, another in zip(own, other, strict=True):
            here, there = (function_of(index(name), pairs) for name in (one, another))
            for step, late in ((1, there.gt_set(here)), (-1, there.lt_set(here))):
                same = pairs.intersect(there.eq_set(here))
                if pairs.intersect(late).is_empty() and (same.is_empty() or not strict):
                    found.append((one, step))
                    pairs = same
                    break
            if pairs.is_empty():
                return found
    return []


def _head(inference: Inference, points: isl.Set, variable: str, step: int) -> str:
    points = points.intersect_params(inference.algebra.context)
    # What a part covers is an unnamed dimension.
    line = points if points.get_dim_name(isl.dim_type.set, 0) is None else arranged(points, (variable,))
    ends = ends_of(inference, line, 0)
    low, high = ends or (Polynomial.number(0), Polynomial.number(0))
    if step > 0:
        stated = [] if low.value == 0 else [spoken(inference, low)]
        stated.append(spoken(inference, high + 1))
    else:
        stated = [spoken(inference, high), spoken(inference, low - 1), "-1"]
    return f"for {variable} in range({', '.join(stated)}):"


def spoken(inference: Inference, form: Polynomial) -> str:
    """How the user can write a form: `x.shape[0]` for a size without a name of its own."""

    def name_of(found: re.Match[str]) -> str:
        name = found[0]
        source = inference.scope.size(name).source
        if isinstance(source, AxisExtent) and name == domain_name(f"{source.tensor}_{source.axis}"):
            return f"{inference.label(source.tensor)}.shape[{source.axis}]"
        if isinstance(source, AxisExtent) and name == source.tensor:
            # An integer of the call, which an input of its own carries.
            sign, _, number = name.partition("_")
            return number if sign == "offset" else f"(-{number})"
        return name

    names = size_names(inference.algebra.expr(form))
    return re.sub(rf"\b({'|'.join(names)})\b", name_of, inference.text(form)) if names else inference.text(form)


def _source(span: Span | None) -> str:
    lines = [] if span is None else [linecache.getline(span.filename, k) for k in range(span.line, span.end_line + 1)]
    return textwrap.dedent("".join(lines)).strip("\n") or "..."
