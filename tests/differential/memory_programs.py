"""Random code on views of arrays, as text that NumPy and `@cd` both run."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

__all__ = ["random_code", "run_by_numpy"]

_VIEWS = ("u", "v", "w")


def run_by_numpy(source: str, *arrays: np.ndarray) -> list[np.ndarray]:
    """What plain Python makes of copies of ``arrays``."""
    copies = [array.copy() for array in arrays]
    namespace: dict[str, Any] = {"np": np}
    exec(source, namespace)
    namespace["f"](*copies)
    return copies


def random_code(pick: random.Random, statements: int, *arrays: np.ndarray) -> str:
    """``def f(a, b): ...``: it takes views, stores into them and into parts, and keeps copies.

    A statement that NumPy refuses for ``arrays`` is left out.
    """
    names = ["a", "b"][: len(arrays)]
    lines: list[str] = []
    # Both are written, so that a run gives both.
    last = [f"    {name} += 0.0" for name in names]
    while len(lines) < statements:
        line = _statement(pick, _arrays_after(_text(names, lines), arrays), len(lines))
        try:
            found = _arrays_after(_text(names, [*lines, line]), arrays)
        except (ValueError, IndexError, TypeError):
            continue
        if all(_is_view(found[name], found) for name in _VIEWS if name in found):
            lines.append(line)
    return _text(names, [*lines, *last])


def _text(names: list[str], lines: list[str]) -> str:
    return "\n".join([f"def f({', '.join(names)}):", *lines]) + "\n"


def _arrays_after(source: str, arrays: tuple[np.ndarray, ...]) -> dict[str, Any]:
    # What the names hold at the end.
    namespace: dict[str, Any] = {"np": np}
    exec(source + "    return dict(locals())\n", namespace)
    found = namespace["f"](*(array.copy() for array in arrays))
    return {name: array for name, array in found.items() if name != "k"}


def _is_view(value: Any, found: dict[str, Any]) -> bool:
    # A cell is a number in NumPy, and `b[0][None]` an array of its own.
    if not isinstance(value, np.ndarray) or not value.ndim:
        return False
    while isinstance(value.base, np.ndarray):
        value = value.base
    return any(value is array for name, array in found.items() if name not in _VIEWS)


def _statement(pick: random.Random, known: dict[str, np.ndarray], number: int) -> str:
    views = [name for name in _VIEWS if name in known]
    base = pick.choice(list(known))
    part = _part(pick, base, known[base])
    kind = pick.randrange(12)
    if kind < 4:
        return f"    {pick.choice(_VIEWS)} = {part}"
    if kind == 4:
        return f"    c{number} = np.copy({part})" if known[base].ndim else f"    {base} += 1.0"
    if kind == 5 and known["a"].shape[0] >= 2:
        name = pick.choice(_VIEWS)
        change = pick.choice([f"{name} += k", f"{name}[1:] -= {name}[:-1]", f"{name}[...] = 2.0 * {name}[::-1]"])
        return f"    for k in range(2):\n        {name} = a[k]\n        {change}"
    if kind == 6 and known["a"].shape[0] >= 2:
        return "    u, v = a[1], a[0]"
    if kind < 9 and views:
        return f"    {pick.choice(views)} {_operator(pick)}= {_value(pick, known)}"
    if kind == 9 and _is_view(_evaluated(part, known), known):
        return f"    {part}{_key(pick, max(0, known[base].ndim - 1))} {pick.choice(['', '+'])}= {_value(pick, known)}"
    return f"    {base}{_key(pick, known[base].ndim)} {pick.choice(['', '', '+', '-', '*'])}= {_value(pick, known)}"


def _evaluated(text: str, known: dict[str, np.ndarray]) -> Any:
    try:
        return eval(text, {"np": np}, dict(known))  # noqa: S307  # the text is ours
    except IndexError:
        return None


def _operator(pick: random.Random) -> str:
    return pick.choice(["+", "-", "*"])


def _part(pick: random.Random, base: str, array: np.ndarray) -> str:
    part = base + _key(pick, array.ndim)
    return part + (pick.choice(["", "", "", ".T", "[::-1]", "[None]"]) if part.count(",") + 1 < array.ndim else "")


def _value(pick: random.Random, known: dict[str, np.ndarray]) -> str:
    base = pick.choice(list(known))
    part = _part(pick, base, known[base])
    return pick.choice(["3.0", part, part, f"{part} + 1.0", f"2.0 * {part} - {part}", f"{base} + {part}"])


def _key(pick: random.Random, rank: int) -> str:
    count = pick.randint(1, rank) if rank else 0
    entries = [pick.choice([str(pick.randint(-2, 2)), *(_slice(pick) for _ in range(3))]) for _ in range(count)]
    if pick.random() < 0.2:
        entries.insert(pick.randint(0, len(entries)), "...")
    if pick.random() < 0.15:
        entries.insert(pick.randint(0, len(entries)), "None")
    return f"[{', '.join(entries) or '...'}]"


def _slice(pick: random.Random) -> str:
    def bound() -> str:
        return pick.choice(["", "", str(pick.randint(-4, 4))])

    step = pick.choice(["", "", ":-1", ":2", ":-2", ":3"])
    return f"{bound()}:{bound()}{step}"
