"""A picture of the growths: time over size on logarithmic axes, one panel for each program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.sparse.growth import Growth

__all__ = ["draw"]

_COLOURS = {"tcdsl": "#1b6ca8", "jax": "#e08e0b", "torch": "#b03a2e"}
_COLUMNS = 4


def draw(growths: Sequence[Growth], path: Path) -> None:
    """Write the picture to ``path``; the type follows from its ending."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    rows = -(-len(growths) // _COLUMNS)
    figure, panels = plt.subplots(
        rows, _COLUMNS, figsize=(4.2 * _COLUMNS, 3.4 * rows), squeeze=False, layout="constrained"
    )
    for panel in panels.flat[len(growths) :]:
        panel.axis("off")
    for growth, panel in zip(growths, panels.flat, strict=False):
        for name, seconds in growth.seconds.items():
            slope = growth.exponent(name)
            label = name if slope is None else f"{name}: size$^{{{slope:.1f}}}$"
            panel.loglog(list(seconds), list(seconds.values()), "o-", color=_COLOURS[name], label=label, markersize=4)
        panel.set_title(growth.case.title, fontsize=10)
        panel.set_xlabel("size")
        panel.set_ylabel("seconds per gradient")
        panel.grid(True, which="major", alpha=0.3)
        panel.legend(fontsize=8, loc="best", framealpha=0.7)
    figure.savefig(path, dpi=120)
    plt.close(figure)
