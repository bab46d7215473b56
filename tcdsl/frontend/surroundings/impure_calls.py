"""Random numbers, clocks and the like that a function asks for while it is staged: the user is warned, once a place.

What they give becomes part of the program, which is the same at every call. Calls are found in the bytecode of the
function and of the plain functions that it may call. Those of a generator of random numbers count if it has moved on,
and those that give its state; what initial values of parameters draw, later, does not.
"""

from __future__ import annotations

import builtins
import datetime as dt
import pickle
import random
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from tcdsl.errors import Diagnostic, TcdslError
from tcdsl.frontend.surroundings.containers import Item
from tcdsl.frontend.surroundings.named_values import Chain, Path, chains, is_installed, spelled, users_function
from tcdsl.frontend.surroundings.readings import MISSING, Reading, attribute
from tcdsl.span import Span

__all__ = ["warn_once", "warning_of_impure_calls"]

_BY_MODULE: Mapping[str, frozenset[str]] = {
    "time": frozenset(
        f"{clock}{unit}"
        for clock in ("time", "monotonic", "perf_counter", "process_time", "thread_time")
        for unit in ("", "_ns")
    )
    | {"localtime", "gmtime", "ctime"},
    "builtins": frozenset(("input",)),
    "posix": frozenset(("urandom", "getrandom")),
    "nt": frozenset(("urandom",)),
    "uuid": frozenset(("uuid1", "uuid4")),
    "secrets": frozenset(("token_bytes", "token_hex", "token_urlsafe", "randbelow", "choice", "randbits")),
    "torch": frozenset(("rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial")),
}
_NOW = frozenset(("now", "utcnow", "today"))
_GENERATORS = np.random.Generator | np.random.RandomState | np.random.BitGenerator | random.Random
_MAKERS = (np.random.default_rng, np.random.RandomState, np.random.SeedSequence, random.Random)
_STATE = object()  # of a generator
_WARNED: set[tuple[Span, str]] = set()


@dataclass(frozen=True, slots=True)
class _Site:
    # A call, and the generator that it moves on, if it is one of random numbers; or what reads its state.
    text: str
    span: Span
    generator: Any = None
    happens: str = "runs"


@contextmanager
def warning_of_impure_calls(
    function: FunctionType, receiver: Any, configuration: Mapping[str, Any], title: str
) -> Iterator[None]:
    """Warn of such calls in what runs within, which is ``function``, a method of ``receiver``."""
    sites = list(_sites(function, receiver, configuration))
    before = {id(site.generator): _state(site.generator) for site in sites}
    yield
    for site in sites:
        if site.generator is None or _state(site.generator) != before[id(site.generator)]:
            _warn(site, title)


def _sites(function: FunctionType, receiver: Any, configuration: Mapping[str, Any]) -> Iterator[_Site]:
    pending: list[tuple[FunctionType, Any]] = [(function, receiver)]
    known: set[int] = set()
    while pending:
        called, owner = pending.pop()
        code = called.__code__
        cells = dict(zip(code.co_freevars, called.__closure__ or (), strict=True))
        names: dict[str, Any] = dict(configuration) if called is function else {}
        if owner is not None and code.co_argcount:
            names[code.co_varnames[0]] = owner
        own = {*code.co_varnames, *code.co_cellvars} - names.keys()
        for chain in chains(code):
            if chain.names[0] in own:
                continue  # a parameter may be called as a builtin is
            value = _value_of(chain.names, names, cells, called.__globals__)
            if value is MISSING:
                continue
            site = _site(chain, value, code.co_filename)
            if site is not None:
                yield site
            inner, instance = users_function(value)
            if inner is not None and id(inner) not in known and not is_installed(inner.__code__.co_filename):
                known.add(id(inner))
                pending.append((inner, instance))


def _value_of(chain: Path, names: Mapping[str, Any], cells: Mapping[str, CellType], globals_: Mapping[str, Any]) -> Any:
    # Without running code of the user's or reading memory of tensors, as properties would.
    first = str(chain[0])
    if first in cells:
        value = Reading((first,), cells[first]).current()
    elif first in names:
        value = names[first]
    else:
        value = globals_.get(first, MISSING)
        value = vars(builtins).get(first, MISSING) if value is MISSING else value
    for step in chain[1:]:
        if isinstance(step, Item):
            value = step.of(value, MISSING) if type(value) in (list, tuple, dict) else MISSING
        elif isinstance(value, np.random.BitGenerator) and step == "state":
            return _STATE
        elif isinstance(value, ModuleType | type | _GENERATORS):
            value = attribute(value, step)
        else:
            held = attribute(value, "__dict__")
            value = held.get(step, MISSING) if isinstance(held, dict) else MISSING
    return value


def _site(chain: Chain, value: Any, filename: str) -> _Site | None:
    line, end_line, column, end_column = chain.position
    span = Span(filename, line, column, end_line, end_column)
    text = spelled(chain.names)
    owner = attribute(value, "__self__")
    if value is _STATE:
        return _Site(text, span, happens="is read")
    if isinstance(owner, _GENERATORS) and attribute(value, "__name__") in ("getstate", "get_state"):
        return _Site(text, span)
    for each in (value, owner):
        if isinstance(each, _GENERATORS):
            return _Site(text, span, None if isinstance(each, random.SystemRandom) else each)
    if _is_impure(value, owner) or (chain.bare_call and _is_maker(value)):
        return _Site(text, span)
    return None


def _is_impure(value: Any, owner: Any) -> bool:
    name = attribute(value, "__name__")
    if isinstance(owner, type) and issubclass(owner, dt.date):
        return name in _NOW
    return callable(value) and name in _BY_MODULE.get(str(attribute(value, "__module__")), ())


def _is_maker(value: Any) -> bool:
    # Without a seed it takes one from the system.
    return any(value is each for each in _MAKERS)


def _state(generator: Any) -> bytes | None:
    match generator:
        case None:
            return None
        case random.Random():
            return pickle.dumps(generator.getstate())
        case np.random.RandomState():
            return pickle.dumps(generator.get_state(legacy=False))
        case np.random.Generator():
            return pickle.dumps(generator.bit_generator.state)
        case _:
            return pickle.dumps(generator.state)


def _warn(site: _Site, title: str) -> None:
    when = f"{site.happens} when `{title}` is staged"
    fact = f"`{site.text}` {when}, and what it gives is the same at every call from then on"
    warn_once(site.text, fact, site.span, "call it outside of the function, and pass what it gives as an argument")


def warn_once(text: str, fact: str, span: Span, hint: str) -> None:
    """Warn of what ``text`` stands for at ``span``, the first time."""
    if (span, text) not in _WARNED:
        _WARNED.add((span, text))
        shown = Diagnostic(TcdslError, fact, span, hint=hint).render()
        warnings.warn_explicit(shown, RuntimeWarning, span.filename, span.line)
