"""A target that is too small for its statement: no point would be left for any sizes.

After ``s[0] = x[0]`` the new tensor ``s`` has one cell, so that ``s[i + 1] = s[i] + x[i + 1]`` would write nothing.
"""

from __future__ import annotations

from dataclasses import replace

from tcdsl.shapes.accesses import Level
from tcdsl.shapes.inference import Inference
from tcdsl.shapes.regions import Ranges, Region, region_of

__all__ = ["check_writable"]


def check_writable(inference: Inference, root: Level, region: Region, ranges: Ranges) -> None:
    """A fault where a tensor that the function has made, but not declared, has no cell that the statement can write."""
    sketch = inference.sketch
    if sketch.mode != "existing" or inference.scope.writer(sketch.previous) is None:
        return
    if not _empty(inference, region):
        return
    own = (sketch.target.tensor, sketch.previous)
    free = replace(root, accesses=[access for access in root.accesses if access.tensor not in own])
    # Without its target's extents a variable may be unbounded, which is no fault here.
    trial = Inference(sketch, inference.scope)
    trial.algebra.know_like(inference.algebra)
    if _empty(trial, region_of(trial, free, free.variables, None, ranges)):
        return
    label = inference.label(sketch.target.tensor)
    written = [access for access in root.accesses if access.written]
    extents = [inference.text(access.extent) for access in written if access.extent is not None]
    inference.fault(
        f"the statement can write no cell of `{label}`, whatever the sizes are",
        sketch.span,
        f"`{label}` has the shape [{', '.join(extents)}], which the first statement on it has given it",
        hint=f"declare `{label}` before its first statement, with all its cells: "
        f"`{label}: real[{', '.join('N' for _ in extents)}]` or `{label} = output({', '.join('N' for _ in extents)})`",
    )


def _empty(inference: Inference, region: Region) -> bool:
    return bool(region.points.intersect_params(inference.algebra.context).is_empty())
