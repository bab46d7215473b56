"""A graph as a function of arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from tcdsl.errors import ConfigurationError, DtypeError, ShapeError
from tcdsl.frontend.skriptnd.forms import GraphForm, Variable, composed, marked, trimmed
from tcdsl.frontend.skriptnd.text.syntax import Declaration, Operator, TextModule
from tcdsl.frontend.skriptnd.values import Pack
from tcdsl.frontend.staging.active_session import ACTIVE_SESSION
from tcdsl.frontend.surroundings.containers import Item
from tcdsl.frontend.surroundings.draws import KEYS
from tcdsl.frontend.surroundings.readings import Reading, snapshot
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.runtime.displays.tables import Table
from tcdsl.skriptnd.files import ModelFiles, write_folder
from tcdsl.skriptnd.printing import Row, configured_text, rows_of, text_at, text_of_graph
from tcdsl.skriptnd.sources import Sources
from tcdsl.tracebacks import user_facing

if TYPE_CHECKING:
    # Texts are read without what stages and compiles.
    from tcdsl.library.functions import BodyFunction
    from tcdsl.runtime.cost import Cost

__all__ = ["GraphVariables", "ModelGraph"]

#: The form of a graph, what runs it, and the arrays of its inputs and variables.
Call = tuple[GraphForm, "BodyFunction", list[Any]]
_ARRAYS = {"real": np.float32, "int": np.int32, "bool": np.bool_}


class GraphVariables(MutableMapping[str, np.ndarray]):
    """The variables of a graph by label: ``net.variables["conv.filter"] = w``; zeros until they are set.

    `ConfigurationError` for a label that the graph does not have, `ShapeError` for an array of another shape.
    """

    def __init__(self, known: Mapping[str, Variable], arrays: dict[str, Any]) -> None:
        self._known, self._arrays = known, arrays

    def _variable(self, label: str) -> Variable:
        try:
            return self._known[label]
        except (KeyError, TypeError):
            raise ConfigurationError.at(unknown_label(label, self._known)) from None

    def __getitem__(self, label: str) -> Any:
        known = self._variable(label)
        if label not in self._arrays:
            self._arrays[label] = np.zeros(known.shape, _ARRAYS[known.type])
        return self._arrays[label]

    def __setitem__(self, label: str, value: Any) -> None:
        self._arrays[label] = checked_variable(self._variable(label), value)

    def __delitem__(self, label: str) -> None:
        self._arrays.pop(self._variable(label).label, None)  # zeros again

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, label: object) -> bool:
        return label in self._known

    def __repr__(self) -> str:
        rows = (f"{each.label}: {each.type}[{','.join(map(str, each.shape))}]" for each in self._known.values())
        return f"<variables: {', '.join(rows)}>"


def unknown_label(label: object, known: Mapping[str, Variable]) -> str:
    """The fact that a graph has no variable of that label."""
    return f"the graph has no variable {label!r}; its variables are {', '.join(known) or 'none'}"


def checked_variable(known: Variable, value: Any) -> Any:
    """``value`` as an array for a variable."""
    from tcdsl.runtime.calling.arguments import is_graph_tensor

    if is_graph_tensor(value) or ACTIVE_SESSION.get() is not None:
        return value
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ShapeError.at(f"the variable `{known.label}` is given what is no array: {error}") from None
    kind = {"f": "real", "i": "int", "b": "bool"}.get(array.dtype.kind, "")
    if kind != known.type or array.dtype.itemsize < np.dtype(_ARRAYS[known.type]).itemsize:
        fact = f"the variable `{known.label}` is {known.type}, and is given an array of {array.dtype}"
        raise DtypeError.at(fact, hint=f"convert it: `.astype(np.{_ARRAYS[known.type].__name__.rstrip('_')})`")
    if array.shape != known.shape:
        raise ShapeError.at(f"the variable `{known.label}` has shape {known.shape}, and its array {array.shape}")
    return value if isinstance(value, np.ndarray) else array


def loaded_variable(known: Variable, array: np.ndarray) -> np.ndarray:
    """An array of a file in the type that the variable has."""
    kind = {"f": "real", "b": "bool"}.get(array.dtype.kind, "int")
    if kind != known.type and (known.type, kind) != ("real", "int"):
        raise DtypeError.at(f"the file of the variable `{known.label}` holds {array.dtype}, and it is {known.type}")
    wide = array.dtype.itemsize == 8 and kind == known.type
    return array if wide else array.astype(_ARRAYS[known.type], copy=False)


def _of_levels(levels: np.ndarray, label: str, rule: tuple[str, dict[str, Any]] | None) -> np.ndarray:
    # The numbers that the levels of a quantized variable stand for, as the library's operators have it.
    operator, given = rule or ("", {})

    def of_channels(name: str) -> np.ndarray:
        shape = np.ones(levels.ndim, int)
        if isinstance(given[name], Pack):
            shape[given.get("channel_axis", 1)] = -1
        return np.reshape(np.array(given[name], np.float64), shape)

    if operator == "quant.zero_point_linear_quantize":
        return np.asarray((levels - of_channels("zero_point")) * of_channels("scale"), np.float32)
    if operator == "quant.min_max_linear_quantize":
        signed, symmetric = given.get("signed", True), given.get("symmetric", False)
        steps = 2 ** given["bits"] - 1 - int(signed and symmetric)
        shift = 2 ** (given["bits"] - 1) - int(symmetric) if signed else 0
        low, high = of_channels("min"), of_channels("max")
        return np.asarray((levels + float(shift)) / steps * (high - low) + low, np.float32)
    fact = f"the file of the variable `{label}` holds levels, and the text does not say what they stand for"
    hint = f"write it: `@quantize {{ {label}: quant.zero_point_linear_quantize{{...}}; }}`"
    raise ConfigurationError.at(fact, hint=hint)


class ModelGraph:
    """A graph of a SkriptND text: a function of arrays, differentiable.

    ::

        y = net(x)                                   # with the arrays in net.variables
        y = net(x, variables={"conv.filter": w})     # with others
        net.shapes(x), net.inputs, net.outputs, net.attributes
        net.configured(batch=16)(x)

    It returns an array, or a tuple of them in the order of `@output`; packs are lists. ``str(net)`` is its text, which
    parses to the same graph.
    """

    def __init__(
        self,
        operator: Operator,
        sources: Sources,
        text: TextModule,
        attributes: dict[str, Any],
        files: ModelFiles | None = None,
        quantized: bool = False,
    ) -> None:
        self._operator, self._sources, self._text, self._given = operator, sources, text, attributes
        self._files, self._quantized = files, quantized
        self._forms: dict[Any, GraphForm] = {}
        self._functions: dict[Any, BodyFunction] = {}
        self._arrays: dict[str, Any] = {}
        self._root = {operator.name: self._arrays}
        self.__name__ = self.__qualname__ = operator.name
        #: The names of inputs and outputs.
        self.inputs = tuple(each.name for each in operator.inputs)
        self.outputs = tuple(each.name for each in operator.outputs)

    def look(self, lengths: Mapping[str, int] | None = None, left_out: tuple[str, ...] = ()) -> GraphForm:
        """Compose the graph without arrays: raises what is wrong whatever the arrays are."""
        key = (tuple(sorted((lengths or {}).items())), left_out)
        form = self._forms.get(key)
        if form is None:
            given = (self._given, lengths, self._quantized, left_out)
            form = self._forms[key] = composed(self._operator, self._sources.find, *given)
            if self._files is not None:
                self._load(form, self._files)
        return form

    def _load(self, form: GraphForm, files: ModelFiles) -> None:
        wanted = {each.file: each for each in form.variables.values() if each.label not in self._arrays}
        for name, array, levels in files.arrays({name: each.shape for name, each in wanted.items()}):
            known = wanted[name]
            if levels and known.type == "real":
                array = _of_levels(array, known.label, form.quantizations.get(known.label))
            self._arrays[known.label] = loaded_variable(known, array)

    @user_facing
    def save(self, folder: str | PathLike[str]) -> None:
        """Write a model's folder, which `tcdsl.skriptnd.load` and Khronos' tools read: ``net.save("models/net")``.

        It holds the texts of all modules that are not the library's, with the attributes that the graph has, and a file
        for each variable.
        """
        main = configured_text(self._text, self._operator, self._given)
        texts = {"main": main, **{name: text for name, (text, _) in self._sources.texts().items()}}
        known = self.look().variables
        write_folder(folder, texts, {known[label].file: array for label, array in self.variables.items()})

    @property
    def variables(self) -> GraphVariables:
        """The variables by label; writable, zeros until they are set."""
        return GraphVariables(self.look().variables, self._arrays)

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes and their values."""
        found = self.look().attributes.items()
        return {name: list(value) if isinstance(value, Pack) else value for name, value in found}

    @user_facing
    def configured(self, **attributes: Any) -> ModelGraph:
        """The graph with other attributes, and with the same arrays for variables of the same shapes."""
        return self._other({**self._given, **attributes}, self._quantized)

    @user_facing
    def quantized(self) -> ModelGraph:
        """The graph with tensors rounded as `@quantize` says, and with the same arrays for variables.

        ::

            net.quantized()(x)                                          # what a quantized device gives, in reals
            tc.grad(lambda x: net.quantized()(x).sum())(x)              # passes straight through the roundings

        Derivatives are those of the operators that quantize without their roundings: 1 inside the range, 0 outside
        (arXiv:1308.3432). `ConfigurationError` if the graph says nothing of quantization.
        """
        if not self.look().quantizations:
            hint = "`@quantize { x: quant.min_max_linear_quantize{min=0.0, max=1.0, bits=8}; }` quantizes a tensor `x`"
            raise ConfigurationError.at(f"the graph `{self.__name__}` has no `@quantize`", self._operator.span, hint)
        return self._other(self._given, True)

    def _other(self, attributes: dict[str, Any], quantized: bool) -> ModelGraph:
        made = ModelGraph(self._operator, self._sources, self._text, attributes, self._files, quantized)
        known = made.look().variables
        for label, value in self._arrays.items():
            if label in known and known[label].shape == np.shape(value):
                made._arrays[label] = value
        return made

    @user_facing
    def __call__(self, *inputs: Any, variables: Mapping[str, Any] | None = None, **named: Any) -> Any:
        """Run the graph."""
        # Calls that are compared with each other, as `check_grads` does, change nothing.
        updates = variables is None and ACTIVE_SESSION.get() is None and not KEYS.are_held
        form, function, arguments = self._call(inputs, named, variables, updates)
        results = trimmed(function(*arguments), marked(form.outputs))
        if updates and form.updates:
            changed, results = results[-len(form.updates) :], results[: -len(form.updates)]
            self._arrays.update(zip(form.updates, map(np.asarray, changed), strict=True))  # numbers of rank 0, too
        return self._structured(form, results)

    @user_facing
    def shapes(self, *inputs: Any, **named: Any) -> Any:
        """The shapes of the outputs for arrays, or for shapes of arrays, without running."""
        kinds = {each.name: each for each in self._operator.inputs}
        stand_ins = [_stand_in(each, value) for each, value in zip(kinds.values(), inputs, strict=False)]
        others = {name: _stand_in(kinds[name], value) if name in kinds else value for name, value in named.items()}
        form, function, arguments = self._call((*stand_ins, *inputs[len(stand_ins) :]), others, None)
        entry, arrays = function.staging.entry(function.signature.call(arguments, {}))
        program, sizes = entry.executable.program, entry.executable.sizes(arrays)
        shapes = (program.tensor(name).shape for name in program.outputs)
        found = tuple(tuple(int(evaluate_size(extent, sizes)) for extent in shape) for shape in shapes)
        return self._structured(form, trimmed(found, marked(form.outputs)))

    @user_facing
    def explain(self, stage: str = "ir", /, *inputs: Any, **named: Any) -> Any:
        """What becomes of the graph, stage by stage: ``net.explain("loops", x)``."""
        _, function, arguments = self._call(inputs, named, None)
        return function.explain(stage, *arguments)

    @user_facing
    def cost(self, *inputs: Any, **named: Any) -> Cost:
        """What a call costs: operations, points and bytes, and those of its derivatives by the inputs.

        Without arguments the cost of the largest inputs that there may be; `np.broadcast_to(0.0, shape)` stands for an
        array of any size.
        """
        if not inputs and not named:
            inputs = tuple(self._largest(each) for each in self.look().inputs)
        _, function, arguments = self._call(inputs, named, None)
        return function.cost(*arguments)

    def _largest(self, value: Any) -> Any:
        if isinstance(value, Pack):
            return [self._largest(each) for each in value]
        sizes = self.look().sizes
        shape = tuple(each if isinstance(each, int) else evaluate_size(each.expr, sizes) for each in value.shape)
        return _of_shape(value.type, shape)

    def table(self) -> list[Row]:
        """The inputs, outputs and variables: what each is, its name, type and shape."""
        return rows_of(self._operator, self.look())

    def display(self) -> Table:
        """The table with a title, as notebooks and terminals show it."""
        count = self.look().operations
        title = f"{self.__name__}: {count} operator{'s' * (count != 1)}"
        return Table(title, ("", "name", "type", "shape"), self.table(), left=frozenset(range(4)))

    def _repr_html_(self) -> str:
        return self.display()._repr_html_()

    def __rich__(self) -> Any:
        return self.display().__rich__()

    def _call(self, inputs: tuple[Any, ...], named: Mapping[str, Any], variables: Any, updates: bool = False) -> Call:
        values = self._bound(inputs, named)
        lengths: dict[str, int] = {}
        arguments: list[Any] = []
        left_out = tuple(name for name, value in zip(self.inputs, values, strict=True) if value is None)
        for each, value in zip(self._operator.inputs, values, strict=True):
            if value is None:
                continue
            packed = isinstance(value, list | tuple)
            if packed != (each.type.pack is not None):
                kind = "one array" if packed else "a pack"
                hint = f"write `np.asarray({each.name})`" if packed else "give a list of arrays"
                given = "one array" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
                fact = f"`{each.name}` of `{self.__name__}` is {kind}, and is given {given}"
                raise ConfigurationError.at(fact, hint=hint)
            if packed:
                lengths[each.name] = len(value)
            arguments.extend(value if packed else [value])
        form = self.look(lengths, left_out)
        key = (updates and bool(form.updates), tuple(sorted(lengths.items())), left_out)
        function = self._functions.get(key)
        if function is None:
            from tcdsl.frontend.skriptnd.bodies import GraphBody
            from tcdsl.library.functions import BodyFunction

            body = GraphBody(
                *(self._operator, self._sources.find, self._given, lengths, left_out),
                text=text_at(self._text.text, self._operator.span),
                variables=tuple(form.variables.values()),
                updates=key[0],
                quantized=self._quantized,
                marks=marked(form.outputs),
            )
            kept = (repr(sorted(self._given.items())), repr(key[1:]), key[0], self._quantized)
            function = self._functions[key] = BodyFunction(body, (self._text.text, self.__name__, *kept))
        return form, function, [*arguments, *self._values(form, variables)]

    def _bound(self, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        declared = self._operator.inputs
        if len(inputs) > len(declared):
            fact = f"`{self.__name__}` takes {len(declared)} inputs, and is given {len(inputs)}"
            raise ConfigurationError.at(fact, hint=f"they are {', '.join(self.inputs)}")
        values = dict(zip(self.inputs, inputs, strict=False))
        for name, value in named.items():
            if name not in self.inputs:
                fact = f"`{self.__name__}` has no input `{name}`"
                raise ConfigurationError.at(fact, hint=f"its inputs are {', '.join(self.inputs)}")
            if name in values:
                raise ConfigurationError.at(f"`{self.__name__}` is given `{name}` twice")
            values[name] = value
        needed = (each.name for each in declared if not each.type.optional and each.default is None)
        missing = [name for name in needed if values.get(name) is None]
        if missing:
            raise ConfigurationError.at(f"`{self.__name__}` lacks {', '.join(missing)}")
        return [_as_array(each, values.get(each.name)) for each in declared]

    def _values(self, form: GraphForm, variables: Mapping[str, Any] | None) -> list[Any]:
        own = GraphVariables(form.variables, self._arrays)
        if variables is None:
            found = [own[label] for label in form.variables]
            session = ACTIVE_SESSION.get()
            if session is not None:
                # Whoever stages a call of this graph reads its variables, which may be others at the next call.
                for label, array in zip(form.variables, found, strict=True):
                    session.readings.append(Reading((self.__name__, Item(label)), self._root, snapshot(array)))
            return found
        if not isinstance(variables, Mapping):
            fact = f"`variables` is a {type(variables).__name__}"
            raise ConfigurationError.at(fact, hint="give labels and arrays: `variables={'w': w}`")
        for label in variables:
            if label not in form.variables and label not in self.look().variables and not self._is_unused(label):
                raise ConfigurationError.at(unknown_label(label, form.variables))
        missing = [label for label, each in form.variables.items() if each.used and label not in variables]
        if missing:
            raise ConfigurationError.at(f"`variables` lacks {', '.join(missing)}")
        given = (variables[label] if label in variables else own[label] for label in form.variables)
        return [checked_variable(each, value) for each, value in zip(form.variables.values(), given, strict=True)]

    def _is_unused(self, label: object) -> bool:
        # `conv.bias` beside `use_bias=false`: a name that an operator declares, in a part of the graph that is there.
        return isinstance(label, str) and any(
            label.startswith(f"{each.rpartition('.')[0]}.") for each in self.look().variables if "." in each
        )

    def _structured(self, form: GraphForm, results: Any) -> Any:
        flat = list(results) if isinstance(results, tuple) else [results]
        outputs, ended = form.outputs, [each for each in form.outputs if getattr(each, "length", None) is not None]
        flat, lengths = flat[: len(flat) - len(ended)], iter(flat[len(flat) - len(ended) :])
        # Where the call says how long a pack is, it has what the others leave.
        packs = [each for each in outputs if isinstance(each, Pack)]
        others = len(flat) - (len(outputs) - len(packs))
        if len(packs) > 1 and sum(map(len, packs)) != others:
            raise ShapeError.at("the lengths of several packs depend on the call", self._operator.span)
        found = []
        for each in outputs:
            count = 1 if not isinstance(each, Pack) else others if len(packs) == 1 else len(each)
            taken, flat = flat[:count], flat[count:]
            if isinstance(each, Pack) and each.length is not None:
                length = next(lengths)
                taken = taken[: int(length)] if isinstance(length, np.generic | np.ndarray) else taken
            found.append(taken if isinstance(each, Pack) else taken[0])
        return found[0] if len(found) == 1 else tuple(found)

    def __getstate__(self) -> dict[str, Any]:
        # Sent to another process: there it is composed anew.
        return {**vars(self), "_files": None, "_forms": {}, "_functions": {}}

    def __str__(self) -> str:
        return text_of_graph(self._text, self._operator, self._given, self._sources.graphs_of(self._operator))

    def __repr__(self) -> str:
        return f"<sknd graph {self.__name__}({', '.join(self.inputs)}) -> {', '.join(self.outputs)}>"


def _as_array(declaration: Declaration, value: Any) -> Any:
    # Numbers of Python's have the type that is declared, in single precision.
    if isinstance(value, list | tuple) and declaration.type.pack is not None:
        return [_as_array(declaration, each) for each in value]
    kind = {bool: "bool", int: "int", float: "real"}.get(type(value))
    wanted = declaration.type.name
    return _ARRAYS[wanted](value) if kind == wanted or (kind, wanted) == ("int", "real") else value


def _stand_in(declaration: Declaration, given: Any) -> Any:
    # An array for a shape; arrays stay what they are.
    if declaration.type.pack is not None and isinstance(given, list | tuple):
        return [_of_shape(declaration.type.name, each) for each in given]
    return _of_shape(declaration.type.name, given)


def _of_shape(kind: str, given: Any) -> Any:
    if not isinstance(given, tuple):
        return given
    if not all(isinstance(each, int | np.integer) and each >= 0 for each in given):
        raise ShapeError.at(f"{given} is no shape: extents are integers that are not negative")
    return np.broadcast_to(np.zeros((), _ARRAYS[kind]), given)
