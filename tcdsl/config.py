"""Settings: an argument wins over ``with tc.config(...)``, that over a ``TCDSL_*`` environment variable, that over the
default. Environment variables are read when settings are first needed.

::

    with tc.config(threads=1, check="bounds,nan"):
        f(x)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any

from tcdsl.errors import ConfigurationError
from tcdsl.tracebacks import user_facing

__all__ = ["CHECKS", "Settings", "config", "settings"]

CHECKS = ("bounds", "nan", "ir")


@dataclass(frozen=True, slots=True)
class Settings:
    """What `config` sets.

    ``threads``: the most threads that a call may use, 0 for all cores. ``check``: any of ``bounds`` (every access of
    generated code is tested), ``nan`` (outputs are searched for NaN) and ``ir`` (programs are verified before they are
    compiled). ``optimize``: whether statements are fused. ``debug``: whether compilations and runs are timed and shown.
    ``cache_dir``: where generated modules live, the user's cache directory if empty.
    """

    threads: int = 0
    check: frozenset[str] = frozenset()
    optimize: bool = True
    debug: bool = False
    cache_dir: str = ""


def _threads(value: object) -> int:
    try:
        threads = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        threads = -1
    if threads < 0:
        raise ConfigurationError(f"threads is {value!r}; write a count of threads, or 0 for all cores")
    return int(threads)


def _check(value: object) -> frozenset[str]:
    names = frozenset(n.strip() for n in value.split(",") if n.strip()) if isinstance(value, str) else frozenset(value)  # type: ignore[call-overload]
    unknown = sorted(names - set(CHECKS))
    if unknown:
        raise ConfigurationError(
            f"check={value!r} names {', '.join(map(repr, unknown))}; choose from {', '.join(CHECKS)}"
        )
    return names


def _switch(value: object) -> bool:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in ("1", "true", "yes", "on"):
            return True
        if word in ("0", "false", "no", "off", ""):
            return False
        raise ConfigurationError(f"{value!r} is not a switch; write 1 or 0")
    return bool(value)


def _folder(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str | bytes | os.PathLike):
        raise ConfigurationError(f"cache_dir={value!r} is no path; write the path of a directory")
    return os.path.expanduser(os.fsdecode(value))


_READERS: Mapping[str, Callable[[object], Any]] = MappingProxyType(
    {"threads": _threads, "check": _check, "optimize": _switch, "debug": _switch, "cache_dir": _folder}
)

_current: ContextVar[Settings | None] = ContextVar("tcdsl_settings", default=None)


@cache
def _from_environment() -> Settings:
    # Read once: asking the environment at every call would cost more than a small call itself.
    given = {
        name: reader(os.environ["TCDSL_" + name.upper()])
        for name, reader in _READERS.items()
        if "TCDSL_" + name.upper() in os.environ
    }
    return replace(Settings(), **given)


def settings() -> Settings:
    """The settings in force here."""
    return _current.get() or _from_environment()


@user_facing
def config(**options: object) -> AbstractContextManager[Settings]:
    """``with tc.config(threads=1): ...`` changes settings inside the block.

    Options are the fields of `Settings`; an unknown one or an impossible value is a `ConfigurationError`.
    """
    known = [field.name for field in fields(Settings)]
    for name in options:
        if name not in known:
            raise ConfigurationError(f"there is no setting {name!r}; the settings are {', '.join(known)}")
    return _changed({name: _READERS[name](value) for name, value in options.items()})


@contextmanager
def _changed(values: Mapping[str, Any]) -> Iterator[Settings]:
    token = _current.set(replace(settings(), **values))
    try:
        yield settings()
    finally:
        _current.reset(token)
