"""What a function depends on, as a hash: its text, its code, and the content of whatever these name.

::

    contents = Contents()
    contents.add(function)                # `UnknownContentError` where it cannot be told
    contents.digest(), contents.readings  # and what must stay as it is for the digest to hold

Names are taken from the code, all at once: an attribute that any of the functions names counts as named of every
module that any of them knows. So too much may be hashed, and nothing is missed but what no name leads to. For that,
these are unknown, and functions that name them are staged in each process:

- instances and classes of the user's own, methods, arrays in containers, generators, open files, and modules other
  than the user's, NumPy, `math`, `cmath` and `itertools`; of NumPy all but pure functions;
- built-in functions that reach outside, or at any name (``print``, ``open``, ``getattr``, ``globals``);
- functions that import, assign to globals, to variables of functions around them, or to attributes, or name what
  begins with two underscores.
"""

from __future__ import annotations

import ast
import builtins
import dis
import functools
import hashlib
import inspect
import linecache
import opcode
import sys
import tokenize
from collections.abc import Collection, Iterable, Iterator, MutableMapping, MutableSequence, MutableSet
from types import BuiltinFunctionType, CodeType, FunctionType, GenericAlias, ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np

from tcdsl.errors import TcdslError
from tcdsl.frontend.source.annotations import annotation_names
from tcdsl.frontend.source.assigned_names import bindings_of, parameters_of
from tcdsl.frontend.surroundings.named_values import chains, outer_names
from tcdsl.frontend.surroundings.readings import MISSING, Instance, Reading, attribute, snapshot
from tcdsl.indices import ImportedLetter

__all__ = ["Contents", "HasContent", "UnknownContentError"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class UnknownContentError(Exception):
    """The content of a value cannot be told."""


class HasContent(Protocol):
    """An object of this package that can tell its content."""

    def add_content(self, contents: Contents) -> None:
        """Add what it depends on."""


# What is known by its name: functions and types that do nothing but compute, or stage.
_PURE_MODULES = frozenset(("math", "cmath", "itertools"))
_BUILTINS = _words(
    """
    ArithmeticError AssertionError AttributeError Exception IndexError KeyError LookupError NotImplementedError
    OverflowError RuntimeError StopIteration TypeError ValueError ZeroDivisionError abs all any bool bytes
    callable chr complex dict divmod enumerate filter float frozenset int isinstance issubclass len list map max
    min ord pow range repr reversed round set slice sorted str sum tuple type zip
    """
)
_OF_NUMPY = _words(
    """
    all allclose any arange argmax argmin argsort array asarray atleast_1d atleast_2d broadcast_shapes
    broadcast_to clip concatenate count_nonzero cross cumprod cumsum diag diagonal dot dtype einsum expand_dims
    eye finfo flip full full_like hstack identity iinfo inner isscalar issubdtype kron linspace matmul max mean
    median meshgrid min moveaxis ndarray ndim ones ones_like outer prod ravel real repeat reshape result_type roll
    round shape size sort split squeeze stack std sum swapaxes take tensordot tile trace transpose tril triu var
    vstack where zeros zeros_like
    """
)
_STAGING = _words(
    """
    ConfigurationError DataIndexError DifferentiationError DslSyntaxError DtypeError NanError OutOfMemoryError
    ShapeError TcdslError cd einsum grad hessian hvp jacobian jvp linearize op output value_and_grad vjp
    """
)

_MOST_PARTS = 20_000
_LARGEST = 1 << 16  # Characters of a text, items of a container.

_FORBIDDEN = frozenset(
    opcode.opmap[name]
    for name in ("IMPORT_NAME", "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "LOAD_BUILD_CLASS")
    if name in opcode.opmap
)
_OUTWARD = frozenset(opcode.opmap[name] for name in ("STORE_DEREF", "DELETE_DEREF"))
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))


class Contents:
    """A hash of values, by what they are and not by where they lie; ``readings`` are the names that led to them."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._parts = 0
        self.readings: list[Reading] = []
        self._known: dict[int, int] = {}
        self._alive: list[object] = []
        self._names: dict[str, None] = {}
        self._modules: dict[int, ModuleType] = {}
        self._asked: set[tuple[int, str]] = set()
        self._around: list[int] = []

    def digest(self) -> str:
        """The hash of all that was added."""
        self._add_attributes()
        return self._hash.hexdigest()

    def put(self, kind: str, *texts: object) -> None:
        """Add plain values."""
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise UnknownContentError("too much")
        self._hash.update(f"{kind}\0{texts!r}\0".encode("utf-8", "surrogatepass"))

    def add(self, value: Any) -> None:
        """Add any value."""
        kind = type(value)
        if kind in _PLAIN:
            if kind in (str, bytes) and len(value) > _LARGEST:
                raise UnknownContentError(kind)
            self.put(kind.__name__, value)
        elif kind in (tuple, list, dict, set, frozenset):
            self._add_container(value)
        elif kind is FunctionType:
            self._add_function(value)
        elif isinstance(value, ImportedLetter):
            self.put("letter", value.name)
        elif _is_own(kind) and hasattr(kind, "add_content"):
            if not self._is_known(value):
                value.add_content(self)
        elif kind is ModuleType:
            self._add_module(value)
        elif kind is functools.partial:
            self.put("partial")
            self.add(value.func)
            for name in ("args", "keywords"):
                part = getattr(value, name)
                self.add(part)
                self.readings.append(Reading(("function", name), Instance(value), snapshot(part)))
        else:
            self.put("named", _named(value))

    def _is_known(self, value: object) -> bool:
        number = self._known.get(id(value))
        if number is not None:
            self.put("again", number)
            return True
        self._known[id(value)] = len(self._known)
        self._alive.append(value)
        return False

    def _add_container(self, value: Any) -> None:
        if id(value) in self._around or len(value) > _LARGEST:
            raise UnknownContentError("a container that holds itself, or very much")
        self._around.append(id(value))
        self.put(type(value).__name__, len(value))
        items: Any = value
        if isinstance(value, dict):
            items = [part for item in value.items() for part in item]
        elif isinstance(value, set | frozenset):
            if not all(type(item) in _PLAIN for item in value):
                raise UnknownContentError("a set of objects")
            items = sorted(value, key=repr)
        for item in items:
            self.add(item)
        self._around.pop()

    # -- functions -------------------------------------------------------------------------------------------

    def _add_function(self, function: FunctionType) -> None:
        if _is_own_function(function):
            self.put("own", function.__name__)
        else:
            self.add_function(function)

    def add_function(self, function: FunctionType, text: str | None = None) -> None:
        """Add a function of the user's. What is decorated has a ``text``, which is what counts."""
        if self._is_known(function):
            return
        code = function.__code__
        self.readings.append(Reading((function.__name__, "__code__"), Instance(function), code))
        if text is None:
            # Where the text of modules in archives is to be asked for.
            linecache.lazycache(code.co_filename, function.__globals__)
        self.put("function", function.__name__, _text(code, code.co_filename) if text is None else text)
        names: dict[str, None] = {}
        targets: Collection[str] = ()
        annotated: Collection[str] = ()
        self._add_code(code, names)
        if text is None:
            heads = dict.fromkeys(str(chain.names[0]) for chain in chains(code) if chain.names[0] in names)
        else:
            heads, annotated, names, targets = _names_in(text)
        for name in ("__defaults__", "__kwdefaults__"):
            given = getattr(function, name)
            self.add(given)
            if given:
                self.readings.append(Reading((function.__name__, name), Instance(function), snapshot(given)))
        self._names |= names
        if any(name.startswith("__") and name.endswith("__") for name in names | heads):
            raise UnknownContentError("names with two underscores")
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        for name in heads | dict.fromkeys(cells):
            root = cells.get(name, function.__globals__)
            if name in annotated and _is_type(Reading((name,), root).current()):
                self.put("type", name)  # of which staging asks no more than whether it is there
            else:
                self._add_name(name, root)
        if any(_is_container(Reading((name,), cells.get(name, function.__globals__)).current()) for name in targets):
            raise UnknownContentError("what is stored into stands around the function")
        for name, value in sorted(vars(function).items()):
            if not name.startswith("__"):
                self.put("attribute", name)
                self.add(value)
                self.readings.append(Reading((function.__name__, name), Instance(function), snapshot(value)))

    def _add_code(self, code: CodeType, names: dict[str, None]) -> None:
        instructions = set(code.co_code[::2])
        if instructions & _FORBIDDEN or (instructions & _OUTWARD and _stores_outside(code)):
            raise UnknownContentError(f"{code.co_name} has effects")
        shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_name)
        self.put("code", *shape, code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        self.put("handlers", getattr(code, "co_exceptiontable", b""), len(code.co_consts))
        names |= dict.fromkeys(code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._add_code(constant, names)
            else:
                self.add(constant)

    def _add_name(self, name: str, root: Any) -> None:
        reading = Reading((name,), root)
        value = reading.current()
        if value is MISSING and isinstance(root, dict):
            value = vars(builtins).get(name, MISSING)
            if value is not MISSING and name not in _BUILTINS:
                raise UnknownContentError(name)
            self.put("built-in" if value is not MISSING else "missing", name)
        else:
            self.put("name", name)
            if type(value) is np.ndarray:
                self._add_array(value)
            else:
                self.add(MISSING_CELL if value is MISSING else value)
        if not isinstance(value, ImportedLetter):
            seen = MISSING if value is not reading.current() else snapshot(value)
            self.readings.append(Reading((name,), root, seen))

    def _add_array(self, array: np.ndarray) -> None:
        # An input of the program, by its name. What Python made of its cells is asked for where it is kept.
        if array.dtype.hasobject or array.dtype.names is not None:
            raise UnknownContentError(array.dtype)
        if not self._is_known(array):
            self.put("array", array.dtype.str, array.shape)

    # -- modules ---------------------------------------------------------------------------------------------

    def _add_module(self, module: ModuleType) -> None:
        self.put("module", module.__name__)
        self._modules.setdefault(id(module), module)

    def _add_attributes(self) -> None:
        # What the functions may take from modules: what they find there may name more.
        while True:
            pairs = [
                (module, name)
                for module in tuple(self._modules.values())
                for name in tuple(self._names)
                if (id(module), name) not in self._asked
            ]
            if not pairs:
                return
            for module, name in sorted(pairs, key=lambda pair: (pair[0].__name__, pair[1])):
                self._asked.add((id(module), name))
                self._add_attribute(module, name)

    def _add_attribute(self, module: ModuleType, name: str) -> None:
        title = module.__name__
        if title == "tcdsl":
            if name in module.__all__ and name not in _STAGING:
                raise UnknownContentError(f"tcdsl.{name}")
            return
        if title.startswith("tcdsl.") and title.partition(".")[2] in ("indices", "primitives", "tile"):
            return
        if name not in vars(module):
            if "__getattr__" in vars(module) and title != "numpy":
                raise UnknownContentError(f"{title}.{name}")
            return
        if title in _PURE_MODULES or title == "numpy":
            self.put("named", _named(vars(module)[name]))
            return
        if title.partition(".")[0] in _CLOSED:
            raise UnknownContentError(f"{title}.{name}")
        self.put("attribute", title, name)
        self._add_name(name, vars(module))


MISSING_CELL = "\0missing"
_CLOSED = frozenset(sys.stdlib_module_names) | {"numpy", "tcdsl"}


def _stores_outside(code: CodeType) -> bool:
    # Variables of its own that functions inside read are stored by the same instructions: those of nested generators.
    return bool(code.co_freevars) and any(
        each.opcode in _OUTWARD and each.argval in code.co_freevars for each in dis.get_instructions(code)
    )


@functools.lru_cache(maxsize=256)
def _text(code: CodeType, filename: str) -> str:
    # Statements read plain functions in the file where they are. `inspect.getsourcelines` would look for the module of
    # the code among all that are loaded, at ten microseconds each.
    linecache.checkcache(filename)
    try:
        return "".join(inspect.getblock(linecache.getlines(filename)[code.co_firstlineno - 1 :]))
    except (SyntaxError, IndexError, tokenize.TokenError):
        return ""


class _Names(NamedTuple):
    heads: dict[str, None]
    annotated: frozenset[str]
    attributes: dict[str, None]
    targets: tuple[str, ...]


@functools.lru_cache(maxsize=256)
def _names_in(text: str) -> _Names:
    # Of a decorated function: the names around it, those of them in annotations alone, all attributes that it
    # takes, and what it stores into. Its text has them: its tree is rewritten when it is staged.
    module = ast.parse("if True:\n" + text if text[:1].isspace() else text)
    definition = module.body[0].body[0] if isinstance(module.body[0], ast.If) else module.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise UnknownContentError(text)
    definition.decorator_list = []
    parameters = parameters_of(definition)
    bindings = bindings_of(definition.body)
    sizes = [name for each in parameters if each.annotation for name in annotation_names(each.annotation)]
    own = {*bindings.bound, *bindings.targets, *bindings.sizes, *sizes, *(each.arg for each in parameters)}
    nodes = list(ast.walk(definition))
    attributes = [node.attr for node in nodes if isinstance(node, ast.Attribute)]
    outside = [each.annotation for each in parameters if each.annotation]
    outside += [definition.returns] if definition.returns else []
    local = [node.annotation for node in nodes if isinstance(node, ast.AnnAssign)]
    quoted = _quoted_names([*outside, *local])
    for each in parameters:
        each.annotation = None
    definition.returns = None
    inside = outer_names(definition, own)
    annotated = [node.id for each in outside for node in ast.walk(each) if isinstance(node, ast.Name)]
    heads = inside | dict.fromkeys(name for name in (*annotated, *quoted) if name not in own)
    return _Names(heads, frozenset(heads) - inside.keys(), dict.fromkeys(attributes), tuple(bindings.targets))


def _quoted_names(annotations: Iterable[ast.expr]) -> Iterator[str]:
    for annotation in annotations:
        for node in ast.walk(annotation):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                try:
                    inner = ast.parse(node.value.strip(), mode="eval")
                except (SyntaxError, ValueError):
                    continue
                yield from (part.id for part in ast.walk(inner) if isinstance(part, ast.Name))


def _is_type(value: Any) -> bool:
    return isinstance(value, type | GenericAlias) or type(value).__module__ == "typing"


def _is_container(value: Any) -> bool:
    # What Python stores into, and not a statement.
    return isinstance(value, MutableMapping | MutableSequence | MutableSet)


def _is_own(kind: type) -> bool:
    return kind.__module__.startswith("tcdsl.")


def _is_own_function(function: FunctionType) -> bool:
    # What `import tcdsl` offers: what it does depends on this package alone.
    name = function.__name__
    package = sys.modules.get("tcdsl")
    if not str(function.__module__).startswith("tcdsl."):
        return False
    if name in _STAGING and vars(package or builtins).get(name) is function:
        return True
    if _is_of_tile(function):
        return True
    raise UnknownContentError(name)


def _is_of_tile(value: Any) -> bool:
    # What `tcdsl.tile` offers, but for what makes tensors of arrays.
    name = str(attribute(value, "__name__"))
    package = sys.modules.get("tcdsl")
    module = None if package is None else vars(package).get("tile")
    return module is not None and name != "Tensor" and name in module.__all__ and vars(module)[name] is value


def _named(value: Any) -> str:
    """The name of what is known by its name: types and functions of Python and NumPy, and of the language."""
    kind = type(value)
    name = str(attribute(value, "__name__"))
    if kind is BuiltinFunctionType or kind is type:
        if name in _BUILTINS and vars(builtins).get(name) is value:
            return f"builtins.{name}"
        if isinstance(value, type) and issubclass(value, TcdslError) and _is_own(value):
            return f"tcdsl.{name}"
        for module in _PURE_MODULES:
            if vars(sys.modules.get(module, builtins)).get(name) is value and value.__module__ == module:
                return f"{module}.{name}"
    if vars(np).get(name) is value and (kind is np.ufunc or name in _OF_NUMPY or _is_scalar_type(value)):
        return f"numpy.{name}"
    if isinstance(value, np.generic) and not value.dtype.hasobject:
        return f"{value.dtype.str}{value.tobytes().hex()}"
    if isinstance(value, np.dtype) and not value.hasobject and value.names is None:
        return f"dtype {value.str}"
    if kind in (float, int, type(None)):
        return repr(value)
    if _is_of_tile(value):
        return f"of Tile: {name}"
    if kind.__module__ == "tcdsl.frontend.names.language_functions" and kind.__name__ in (
        "PrimitiveFunction",
        "CastFunction",
    ):
        return f"{kind.__name__} {value.__tcdsl_name__}"
    raise UnknownContentError(kind)


def _is_scalar_type(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, np.generic)
