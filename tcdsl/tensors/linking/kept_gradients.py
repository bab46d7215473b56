"""Gradients of graphs, kept on disk: a program that a process has differentiated need not be differentiated again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from tcdsl.config import settings
from tcdsl.ir.program import Program
from tcdsl.targets.cache.kept_values import keep_value, kept_value, value_name
from tcdsl.targets.cache.store import store

__all__ = ["gradient_of"]


def gradient_of(program: Program, wrt: Sequence[str]) -> Program:
    """The program that computes ``program`` and its gradients by the inputs ``wrt``."""
    chosen = settings().cache_dir
    place = store(Path(chosen) if chosen else None)
    name = value_name(program.name, (program, tuple(wrt)), "gradient")
    found = kept_value(place, name)
    if found is not None:
        return cast(Program, found)
    from tcdsl.autodiff import gradient

    made = gradient(program, wrt)
    keep_value(place, name, made)
    # As later processes see it: the names of files for what it becomes part of depend on which objects it shares.
    found = kept_value(place, name)
    return made if found is None else cast(Program, found)
