"""Settings: an argument wins over ``with tc.config(...)``, that over a plain ``tc.config(...)``, that over a variable
``TCDSL_*`` of the environment, that over the default. Environment variables are read when settings are first needed.

::

    tc.config(threads=1)                        # from here on, in all threads
    with tc.config(check="bounds,nan"):         # in this block
        f(x)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from dataclasses import dataclass, replace
from functools import cache
from operator import index
from types import MappingProxyType
from typing import Any
from weakref import ref

import numpy as np

from tcdsl.errors import ConfigurationError
from tcdsl.locks import lock_of_this_process
from tcdsl.pass_names import chosen_passes
from tcdsl.tracebacks import NamesTold, missing_name, user_facing

__all__ = [
    "CHECKS",
    "CURRENT",
    "PROCESS",
    "TARGET_NAMES",
    "Settings",
    "config",
    "from_environment",
    "known_target",
    "settings",
    "tape_memory",
]

CHECKS = ("bounds", "nan", "ir")
# Settings are read before any target is loaded. `tcdsl.targets.registry` holds the targets.
TARGET_NAMES: set[str] = {"cpu", "numba"}
"""The names that ``tc.config(target=...)`` takes."""


def known_target(name: object) -> str:
    """``name``; a `ConfigurationError` if no target has it."""
    if not isinstance(name, str) or name not in TARGET_NAMES:
        raise ConfigurationError(f"there is no target {name!r}; the targets are {', '.join(sorted(TARGET_NAMES))}")
    return name


@dataclass(frozen=True, slots=True)
class Settings(NamesTold):
    """What `config` sets.

    ``threads``: the most threads that a call may use, 0 for all cores. ``check``: any of ``bounds`` (every access of
    generated code is tested), ``nan`` (outputs are searched for NaN) and ``ir`` (programs are verified before they are
    compiled). ``optimize``: whether the passes run that programs can do without, or names of some, as in
    ``"-fusion"``, which is all but that one. ``debug``: whether compilations and runs are timed and shown.
    ``cache_dir``: where compiled programs live, the user's cache directory if empty. ``cache_limit``: how many bytes
    they take at most, with their machine code; what was not used for longest goes. ``target``: the machine that
    programs run on, by the name under which it is registered. ``progress``: whether compilations of more than half a
    second show themselves in terminals and notebooks. ``tape_memory``: how many bytes a gradient may allocate before it
    keeps some of the states of its loops instead of what all rounds need; 0 for a quarter of the machine's memory.
    """

    threads: int = 0
    check: frozenset[str] = frozenset()
    optimize: bool | str = True
    debug: bool = False
    cache_dir: str = ""
    cache_limit: int = 2 * 10**9
    target: str = "cpu"
    progress: bool = True
    tape_memory: int = 0


def _count(name: str, hint: str) -> Callable[[object], int]:
    def count(value: object) -> int:
        try:
            if isinstance(value, bool):
                raise TypeError(value)
            # Words come from the environment.
            found = int(value) if isinstance(value, str) else index(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            found = -1
        if found < 0:
            raise ConfigurationError(f"{name} is {value!r}; write {hint}")
        return found

    return count


def _check(value: object) -> frozenset[str]:
    if isinstance(value, str):
        value = value.replace(",", " ").split()
    if not isinstance(value, Iterable) or isinstance(value, bytes):
        raise ConfigurationError(f"check={value!r} is no list of checks; choose from {', '.join(CHECKS)}")
    names = list(value)
    unknown = [name for name in names if not isinstance(name, str) or name not in CHECKS]
    if unknown:
        raise ConfigurationError(
            f"check={value!r} names {', '.join(map(repr, unknown))}; choose from {', '.join(CHECKS)}"
        )
    return frozenset(names)


_WORDS = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off", ""), False)


def _switch(value: object) -> bool:
    if isinstance(value, str) and value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    if isinstance(value, bool | np.bool_ | int) and value in (0, 1):
        return bool(value)
    raise ConfigurationError(f"{value!r} is not a switch; write 1 or 0")


def _passes(value: object) -> bool | str:
    if isinstance(value, str) and value.strip().lower() not in _WORDS:
        chosen_passes(value)  # refuses names that no pass has
        return " ".join(sorted(value.replace(",", " ").split()))
    return _switch(value)


def _folder(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str | bytes | os.PathLike):
        raise ConfigurationError(f"cache_dir={value!r} is no path; write the path of a directory")
    path = os.path.expanduser(os.fsdecode(value))
    if "\0" in path:
        raise ConfigurationError(f"cache_dir={value!r} is no path; it holds a NUL character")
    return path


_READERS: Mapping[str, Callable[[object], Any]] = MappingProxyType(
    {
        "threads": _count("threads", "a count of threads, or 0 for all cores"),
        "check": _check,
        "optimize": _passes,
        "debug": _switch,
        "cache_dir": _folder,
        "cache_limit": _count("cache_limit", "a count of bytes, such as 2_000_000_000"),
        "target": known_target,
        "progress": _switch,
        "tape_memory": _count("tape_memory", "a count of bytes, or 0 for a quarter of the machine's memory"),
    }
)

#: The settings of the block. What is on the path of every call asks these three as `settings` does, without a function
#: between.
CURRENT: ContextVar[Settings | None] = ContextVar("tcdsl_settings", default=None)


@cache
def from_environment() -> Settings:
    """The settings that variables of the environment give."""
    # Read once: asking the environment at every call would cost more than a small call itself.
    given = {
        name: reader(os.environ["TCDSL_" + name.upper()])
        for name, reader in _READERS.items()
        if "TCDSL_" + name.upper() in os.environ
    }
    return replace(Settings(), **given)


def settings() -> Settings:
    """The settings in force here."""
    return CURRENT.get() or PROCESS.settings or from_environment()


class _ProcessSettings:
    """What plain calls of `config` have changed for the whole process."""

    def __init__(self) -> None:
        #: What `settings` are, if anything was changed.
        self.settings: Settings | None = None
        # In order; those that no ``with`` block can enter any more are one.
        self._changes: list[tuple[Callable[[], object], Mapping[str, Any]]] = []
        self._lock = lock_of_this_process()

    def add(self, change: _Change) -> None:
        """Let ``change`` be the last one."""
        with self._lock:
            final: dict[str, Any] = {}
            while self._changes and self._changes[0][0]() is None:
                final |= self._changes.pop(0)[1]
            self._changes[:0] = [(_nothing, final)]
            self._changes.append((ref(change), change.values))
            self._merge()

    def remove(self, change: _Change) -> None:
        """Let all be as without ``change``."""
        with self._lock:
            self._changes = [each for each in self._changes if each[0]() is not change]
            self._merge()

    def _merge(self) -> None:
        values: dict[str, Any] = {}
        for _, changed in self._changes:
            values |= changed
        self.settings = replace(from_environment(), **values) if values else None


def _nothing() -> None:
    return None


PROCESS = _ProcessSettings()


class _Configuration:
    """``tc.config(threads=1)`` changes settings from here on, ``with tc.config(threads=1): ...`` inside the block.

    A plain call is for the whole process, all of its threads included; inside a ``with`` block it is for the rest of
    the block. A block is for the thread or task that runs it, and however it ends, what held before holds again.
    Options are the fields of `Settings`; an unknown one or an impossible value is a `ConfigurationError`, and changes
    nothing. ``tc.config.threads`` is what holds here.
    """

    __slots__ = ()

    @user_facing
    def __call__(self, **options: object) -> AbstractContextManager[Settings]:
        """What the class says."""
        for name in options:
            if name not in _READERS:
                raise ConfigurationError(f"there is no setting {name!r}; the settings are {', '.join(_READERS)}")
        return _Change({name: _READERS[name](value) for name, value in options.items()})

    def __getattr__(self, name: str) -> object:
        if name not in _READERS:
            raise missing_name("tc.config", name, self, _READERS)
        return getattr(settings(), name)

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _READERS:
            raise missing_name("tc.config", name, self, _READERS)
        raise ConfigurationError(f"a setting is changed by a call: write `tc.config({name}={value!r})`")

    def __dir__(self) -> list[str]:
        return [*_READERS]

    def __repr__(self) -> str:
        return f"<config: {', '.join(f'{name}={getattr(settings(), name)!r}' for name in _READERS)}>"

    def __reduce__(self) -> str:
        return "config"


config = _Configuration()


class _Change(AbstractContextManager[Settings]):
    """A change of settings: it holds once it is made; if a ``with`` block enters it, in that block only."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self._tokens: list[Token[Settings | None]] = []
        # Inside of a block, the settings before and after.
        self._block: tuple[Settings, Settings] | None = None
        block = CURRENT.get()
        if block is None:
            PROCESS.add(self)
        else:
            self._block = block, replace(block, **values)
            CURRENT.set(self._block[1])

    def __enter__(self) -> Settings:
        # It was made for this block.
        if self._block is None:
            PROCESS.remove(self)
        elif CURRENT.get() is self._block[1]:
            CURRENT.set(self._block[0])
        made = replace(settings(), **self.values)
        self._tokens.append(CURRENT.set(made))
        return made

    def __exit__(self, *fault: object) -> None:
        CURRENT.reset(self._tokens.pop())

    def __repr__(self) -> str:
        return f"<config: {', '.join(f'{name}={value!r}' for name, value in self.values.items())}>"


def tape_memory() -> int:
    """How many bytes a gradient may allocate: what the settings say, or a quarter of the machine's memory."""
    return settings().tape_memory or _quarter_of_the_machine()


@cache
def _quarter_of_the_machine() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    except (AttributeError, OSError, ValueError):  # a system that does not say
        return 1 << 32
