"""The passes that programs can do without, by name, and how settings choose among them.

`tcdsl.lowering.pipeline` says what each does. The names stand here, because settings are read before anything is
lowered.
"""

from __future__ import annotations

from tcdsl.errors import ConfigurationError

__all__ = ["OF_ROUNDS", "OPTIONAL", "Enabled", "chosen_passes"]

Enabled = frozenset[str]
"""Names of passes that run."""

OF_ROUNDS: Enabled = frozenset(("carried_cells", "eager_sums"))
"""Those that only loops that run have (`tcdsl.lowering.lower`)."""

OPTIONAL: Enabled = OF_ROUNDS | frozenset((
    "chains", "checks_ahead", "columns", "constants", "contractions", "copies", "data_bounds", "dead_statements",
    "dots", "end_checks", "forwarding", "fusion", "hoisting", "interchange", "joining", "long_sums", "merging",
    "one_thread", "padding", "panels", "phase_rows", "phases", "plain_cells", "products", "row_blocks", "row_buffers",
    "scans", "side_by_side", "single_steps", "sparse_tensors", "summing", "sweeps", "terms", "tiles", "transposing",
    "unit_axes", "unpacked", "windows",
))  # fmt: skip


def chosen_passes(optimize: bool | str) -> Enabled:
    """The optional passes that run: all, none, or ``"-fusion -merging"``, all but these, or ``"fusion"``, these alone.

    `ConfigurationError` for a name that no optional pass has.
    """
    if isinstance(optimize, bool):
        return OPTIONAL if optimize else frozenset()
    given = optimize.replace(",", " ").split()
    names = {name.removeprefix("-") for name in given}
    unknown = sorted(names - OPTIONAL)
    if unknown:
        raise ConfigurationError(
            f"optimize={optimize!r}: there is no pass {unknown[0]!r} that programs can do without; write True, "
            f"False, or names among {', '.join(sorted(OPTIONAL))}, each with a minus sign to leave it out"
        )
    without = [name.startswith("-") for name in given]
    if any(without) != all(without):
        raise ConfigurationError(f"optimize={optimize!r} names passes to run and passes to leave out: give one kind")
    return OPTIONAL - names if any(without) else frozenset(names)
