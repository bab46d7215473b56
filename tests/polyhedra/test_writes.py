"""What statements write, as isl maps."""

from __future__ import annotations

from tcdsl.ir.build import index, size
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.writes import cell_map


def test_maps_of_equal_sets_tell_their_variables_apart() -> None:
    # isl's sets are equal whatever their dimensions are called.
    points, turned = box(("i", "j"), (size("N"), size("N"))), box(("j", "i"), (size("N"), size("N")))
    assert points == turned
    columns = [cell_map(each, (index("j"),)) for each in (points, turned)]
    assert str(columns[0]).startswith("[N] -> { [i, j] -> [j]")
    assert str(columns[1]).startswith("[N] -> { [j, i] -> [j]")
