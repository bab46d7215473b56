"""Targets by name: ``target_named("cpu")``. Another one registers itself, and ``tc.config(target=...)`` chooses it."""

from __future__ import annotations

from collections.abc import Callable

from tcdsl.config import TARGET_NAMES, known_target
from tcdsl.errors import ConfigurationError
from tcdsl.targets.protocol.target import HOST, Target

__all__ = ["register", "target_named"]


def _cpu() -> Target:
    from tcdsl.targets.cpu.target import CpuTarget

    return CpuTarget()


def _numba() -> Target:
    from tcdsl.targets.numba.target import NumbaTarget

    return NumbaTarget()


_MAKERS: dict[str, Callable[[], Target]] = {"cpu": _cpu, "numba": _numba}
_MADE: dict[str, Target] = {}


def register(name: str, make: Callable[[], Target]) -> None:
    """``register("mine", MyTarget)``: ``tc.config(target="mine")`` runs what follows on it, made when it is needed.

    A name that is registered again stands for the new target in what is compiled from then on.
    """
    _MAKERS[name] = make
    _MADE.pop(name, None)
    TARGET_NAMES.add(name)


def target_named(name: str) -> Target:
    """The target of that name. `ConfigurationError` if there is none, or if it does not know the host's memory."""
    found = _MADE.get(name)
    if found is None:
        found = _MAKERS[known_target(name)]()
        if HOST not in found.spaces:
            raise ConfigurationError(f"the target {name!r} knows no memory space {HOST.name!r}, where arguments lie")
        _MADE[name] = found
    return found
