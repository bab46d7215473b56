"""All that `tcdsl` gives, and the methods of its objects, with wrong arguments: faults are told in its own words.

What Python itself says of a method, that there are too many arguments or an unknown keyword, stays a TypeError.
"""

from __future__ import annotations

import inspect
import pickle
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
import tcdsl.library
import tcdsl.primitives
import tcdsl.syntax
from tcdsl import cd, op


@op
def layer(x: Any, *, label: str) -> Any:
    return relu("w" @ x + "b"[2])


@op
def square(x: Any) -> Any:
    return (x * x).sum()


@cd
def descend(p: Any, *, rate: float = 0.1) -> None:
    p -= rate * p.grad


def objects() -> dict[str, Any]:
    """One of each kind."""
    x = tc.tensor(np.ones((4, 3)), batch=1, label="x")
    made = layer(label="q")
    loss = (made(x) ** 2).mean()
    code = tc.train.grad_update(loss) + sum(descend(p) for p in made.parameters.values())
    return {
        "tc": tc,
        "train": tc.train,
        "literal": tc.literal,
        "tile": tc.tile,
        "comprehensions": tc.comprehensions,
        "skriptnd": tc.skriptnd,
        "tensor": x,
        "loss": loss,
        "layer": made,
        "op": square,
        "cd": descend,
        "code": code,
        "routine": tc.compile(code),
        "gradient": tc.grad(square),
        "static_index": tc.static_index("n", 3),
        "linear": tc.linearize(square, np.ones(3))[1],
        "pullback": tc.vjp(square, np.ones(3))[1],
    }


# Parts of the house that have no underscore; Python's own enumerations, and what changes the process or a function.
INTERNAL = {"add_content", "bound", "link", "rule", "scope_of_inner_call", "source_text", "without_parameters"}
PYTHONS = {"DType", "SortDirection", "install", "uninstall", "seed", "defvjp", "defjvp"}


def functions() -> Iterator[tuple[str, Any]]:
    """What can be called, with its name."""
    for kind, each in objects().items():
        own = [name for name in dir(type(each)) if not name.startswith("_")]
        names = each.__all__ if inspect.ismodule(each) else ["__call__", *own] if callable(each) else own
        for name in names:
            if name in INTERNAL | PYTHONS:
                continue
            try:
                function = getattr(each, name)
            except tc.TcdslError:
                continue  # what is not known yet
            if callable(function) and not (inspect.isclass(function) and issubclass(function, BaseException)):
                yield f"{kind}.{name}", function


def arguments() -> list[tuple[Any, ...]]:
    x = tc.tensor(np.ones((4, 3)), batch=1)
    given = [5, "x", None, object(), [1], {}, np.ones(2), x, square, layer(label="r"), abs]
    return [(), *((each,) for each in given), (1.5, "y"), tuple(range(7))]


def test_wrong_arguments_are_told_in_words_of_the_package(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bare: list[str] = []
    told = 0
    for name, function in functions():
        for given in arguments():
            for keywords in ({}, {"no_such": 1}):
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        function(*given, **keywords)
                except tc.TcdslError:
                    told += 1
                except Exception as error:
                    binding = "argument" in str(error) and isinstance(error, TypeError)
                    if not binding:
                        bare.append(f"{name}{given} {keywords}: {type(error).__name__}: {error}")
    assert not bare, "\n".join(bare)
    assert told > 2000


_OF_OTHERS = ("forward", "backprop", "backward", "zero_grads", "zero_grad", "nn", "to", "apply", "fwd", "cpu", "fit")


_KINDS = ("layer", "op", "cd", "code", "routine", "tensor", "memory", "gradient", "linear", "pullback", "tc", "train")


@pytest.mark.parametrize("kind", _KINDS)
def test_what_objects_of_other_libraries_have(kind: str) -> None:
    owner = (objects() | {"memory": tc.param("w", init=[1.0]).value})[kind]
    for name in _OF_OTHERS:
        assert not hasattr(owner, name)
        with pytest.raises(tc.MissingAttributeError) as caught:
            getattr(owner, name)
        fact, *_, hint = str(caught.value).splitlines()
        assert "test_public_face.py" in fact
        assert fact.endswith(f"has no attribute `{name}`")
        assert "`" in hint
        assert hint != fact
    with pytest.raises(AttributeError, match=r"has no attribute `unknown`(.|\n)*`.*`"):
        _ = owner.unknown


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        (lambda: tc.param("w", init=[1.0]).value.value, "it is the array itself"),
        (lambda: tc.train.Adam, "write `tc.train.adam_update"),
        (lambda: tc.train.adam_updates, "did you mean `adam_update`?"),
        (lambda: tc.jit, "every call of it is compiled"),
        (lambda: tc.grad(square).grad, "`tc.grad(tc.grad(f))`"),
        (lambda: tc.config.threds, "did you mean `threads`?"),
        (lambda: tc.config.x, "it has cache_dir, cache_limit, check,"),
        (lambda: square.cost(np.ones(2)).x, "it has adjoint, adjoint_bound,"),
        (lambda: square.cost(np.ones(2)).primal.operation, "did you mean `operations`?"),
        (lambda: square.program(np.ones(2)).statements[0].x, "it has accumulate, "),
        (lambda: square.cache_info().missses, "did you mean `misses`?"),
        (lambda: tc.number(2.0).rows.x, "it has batch, "),
        (lambda: tc.tile.TensorIdx, "did you mean `TensorIndex`?"),
        (lambda: tc.skriptnd.x, "it has load, parse"),
        (lambda: tc.comprehensions.x, "it has define"),
        (lambda: tcdsl.library.maths, "did you mean `math`?"),
        (lambda: tcdsl.library.nn.reul, "did you mean `relu`?"),
        (lambda: tcdsl.primitives.rellu, "did you mean `relu`?"),
        (lambda: tcdsl.syntax.literl, "did you mean `literal`?"),
        (lambda: square.explain("source").no_such_name, "it is a text, which `print` shows"),
        (lambda: tc.comprehensions.define("def f(float(N) x) -> (y) { y(i) = x(i) }").g, "it has f"),
    ],
)
def test_what_to_write_instead(asked: Any, hint: str) -> None:
    with pytest.raises(tc.MissingAttributeError, match=re.escape(hint)):
        asked()


def test_settings_are_read_and_not_assigned() -> None:
    with tc.config(threads=3):
        assert tc.config.threads == 3
    with pytest.raises(tc.ConfigurationError, match=re.escape("write `tc.config(threads=2)`")):
        tc.config.threads = 2
    with pytest.raises(tc.MissingAttributeError, match="did you mean `threads`"):
        tc.config.thread = 2
    assert pickle.loads(pickle.dumps(tc.config)) is tc.config


def test_parameters_are_no_method() -> None:
    layer, function = objects()["layer"], objects()["op"]
    for called in (layer.parameters, function.parameters):
        with pytest.raises(tc.ConfigurationError, match=r"`parameters` is a dict(.|\n)*without parentheses") as caught:
            called()
        assert "test_public_face.py" in str(caught.value)
    assert pickle.loads(pickle.dumps(dict(function.parameters))) == function.parameters


def test_gradients_in_code_are_not_cleared() -> None:
    @cd
    def clearing(p: Any) -> None:
        p.zero_grads()

    @op
    def scalars(x: Any) -> Any:
        y[i] = x[i].item()
        return y

    with pytest.raises(tc.DslSyntaxError, match=r"`zero_grads`(.|\n)*there is nothing to clear"):
        clearing(np.ones(3))
    with pytest.raises(tc.DslSyntaxError, match=r"no attribute `item`(.|\n)*use it as it is"):
        scalars(np.ones(3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tc.load(5), "5 as a path"),
        (lambda: tc.constraints_only(1), "`constraints_only` takes nothing"),
        (tc.loop, "`tc.loop` with 0 arguments"),
        (lambda: tc.loop("x"), "`tc.loop`: 'str' object cannot be interpreted as an integer"),
        (lambda: tc.TensorFunction(1, False), "a int is no function that `op` or `cd` can decorate"),
        (tc.TensorFunction, "missing 2 required positional arguments"),
        (lambda: tc.Routine(5), r"no routine can be made of 5(.|\n)*`tc.compile\(code\)`"),
        (lambda: tc.Layer(5, {}), "no layer can be made of 5"),
        (lambda: tc.tensor([1.0]).buffer("x"), "'x' as a kind of memory\n(.|\n)*write one of value, grad"),
        (lambda: tc.tensor([1.0]).use(3), "3 as a lens"),
        (lambda: tc.tensor([1.0]).sum(np.ones(2)), "an axis is an integer"),
        (lambda: tc.train.sgd_update(5), "missing a required argument: 'learning_rate'"),
        (lambda: tc.literal.desugar(5), "a int as literal text"),
        (lambda: tc.batch(5), "5 as a batch axis"),
        (lambda: square(1.5), "a number of the call has no `sum`(.|\n)*pass an array of rank 0"),
    ],
)
def test_single_faults(call: Any, message: str) -> None:
    with pytest.raises(tc.TcdslError, match=message):
        call()


def test_options_of_targets_and_loops() -> None:
    @op
    def mistyped(x: Any) -> Any:
        y = output(3, dtpye="float32")
        y[i] = x[i]
        return y

    @op
    def of_no_type(x: Any) -> Any:
        y = output(3, dtype="foo")
        y[i] = x[i]
        return y

    @op
    def too_many(x: Any) -> Any:
        for _ in tc.loop(1, 2, 3, 4):
            x = 2 * x
        return x

    for function, message in (
        (mistyped, r"output\(\) got an unexpected keyword argument 'dtpye'"),
        (of_no_type, "'foo' as an element type"),
        (too_many, "range expected at most 3 arguments, got 4"),
    ):
        with pytest.raises(tc.TcdslError, match=message):
            function(np.ones(3))


def test_a_layer_is_no_sequence() -> None:
    with pytest.raises(TypeError, match="not iterable"):
        iter(layer(label="q"))
