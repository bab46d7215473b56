"""Classes of which programs have thousands of values: made quickly, and hashed once::

    @node_class
    @dataclass(frozen=True, slots=True)
    class Cast(Hashed): ...

A frozen dataclass sets its fields through ``object.__setattr__``, which is slow, asks for the list of its fields
whenever it is pickled or replaced, and computes its hash from those of all its parts each time.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar

from tcdsl.tracebacks import NamesTold

__all__ = ["Hashed", "node_class", "replace"]

Made = TypeVar("Made")


class Hashed(NamesTold):
    """Holds the hash of a value, once it is known; it is no field, so no copy and no file has it."""

    __slots__ = ("_hash",)


def node_class(kind: type[Made]) -> type[Made]:
    """``kind``, a frozen dataclass with slots that derives from `Hashed`, the same but for speed."""
    made: Any = kind
    if all(field.init and field.default_factory is MISSING for field in fields(made)):
        made.__init__ = _initializer(made)
        made.__reduce__ = _reduction(made)
    made.__hash__ = _method(_HASH, "__hash__", {"computed": made.__hash__, "keep": _KEEP})
    return kind


def replace(node: Made, /, **parts: Any) -> Made:
    """`dataclasses.replace`, the same but for speed."""
    kind = type(node)
    names = _CONSTRUCTED.get(kind)
    if names is None:
        constructed: Any = kind
        names = _CONSTRUCTED[kind] = tuple([field.name for field in fields(constructed) if field.init])
    made = kind(*[parts.pop(name) if name in parts else getattr(node, name) for name in names])
    if parts:
        raise TypeError(f"{kind.__name__} is not made of {', '.join(parts)}")
    return made


# The fields that the constructor of a class takes, in their order.
_CONSTRUCTED: dict[type, tuple[str, ...]] = {}

_KEEP: Any = Hashed.__dict__["_hash"].__set__

# Made as text, as a dataclass makes its methods: nothing is looked up in a closure.
_HASH = """
def __hash__(self):
    try:
        known = self._hash
    except AttributeError:
        known = None  # read from a file
    if known is None:
        known = computed(self)
        keep(self, known)
    return known
"""


def _method(text: str, name: str, names: dict[str, Any]) -> Any:
    # Code in text has no file of its own. It is this one's, or whoever follows what users' code does would follow it.
    names["__file__"] = __file__
    exec(text, names)  # noqa: S102  # the text above, or one with the names of the fields
    return names[name]


def _reduction(kind: Any) -> Any:
    parts = "".join(f"self.{field.name}, " for field in fields(kind))
    return _method(f"def __reduce__(self):\n    return kind, ({parts})", "__reduce__", {"kind": kind})


def _initializer(kind: Any) -> Any:
    # Fields are set by their slots' descriptors.
    names: dict[str, Any] = {"keep": _KEEP}
    parameters, lines = ["self"], ["    keep(self, None)"]
    for field in fields(kind):
        names[f"set_{field.name}"] = getattr(kind, field.name).__set__
        lines.append(f"    set_{field.name}(self, {field.name})")
        if field.default is MISSING:
            parameters.append(field.name)
        else:
            names[f"default_{field.name}"] = field.default
            parameters.append(f"{field.name}=default_{field.name}")
    text = "\n".join([f"def __init__({', '.join(parameters)}):", *lines])
    made = _method(text, "__init__", names)
    made.__annotations__ = kind.__init__.__annotations__
    made.__qualname__ = f"{kind.__qualname__}.__init__"
    return made
