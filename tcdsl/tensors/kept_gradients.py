"""Gradients of graphs, kept on disk: a program that a process has differentiated need not be differentiated again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from tcdsl.codegen.kept_values import keep_value, kept_value, value_path
from tcdsl.codegen.store import module_directory
from tcdsl.config import settings
from tcdsl.ir.program import Program

__all__ = ["gradient_of"]

_PACKAGES = ("ir", "shapes", "simplification", "autodiff")


def gradient_of(program: Program, wrt: Sequence[str]) -> Program:
    """The program that computes ``program`` and its gradients by the inputs ``wrt``."""
    chosen = settings().cache_dir
    directory = module_directory(Path(chosen) if chosen else None)
    path = value_path(directory, program.name, (program, tuple(wrt)), _PACKAGES, "gradient")
    found = kept_value(path)
    if found is not None:
        return cast(Program, found)
    from tcdsl.autodiff import gradient

    made = gradient(program, wrt)
    keep_value(path, made)
    # As later processes see it: the names of files for what it becomes part of depend on which objects it shares.
    found = kept_value(path)
    return made if found is None else cast(Program, found)
