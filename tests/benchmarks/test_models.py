"""The models of `benchmarks.models` are what they say."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from benchmarks.models.texts import TEXTS, graph, weights


@pytest.mark.parametrize(("model", "count"), [("alexnet", 61_100_840), ("resnet18", 11_689_512)])
def test_models_have_the_parameters_of_those_of_torchvision(model: str, count: int) -> None:
    form = tc.skriptnd.parse(TEXTS[model, 1]).graphs[model].look()
    net = {label: each.shape for label, each in form.variables.items()}
    trained = [each for label, each in net.items() if not label.endswith(("running_mean", "running_variance"))]
    # Convolutions in front of a normalization leave their bias out.
    unused = sum(each[0] for label, each in net.items() if label.endswith("conv.bias"))
    assert sum(int(np.prod(each)) for each in trained) - unused == count


def test_lstm_as_pytorch_computes_it() -> None:
    pytest.importorskip("torch")
    from benchmarks.models.torch_peer import model

    net = graph("lstm", 1).configured(steps=3)
    x = np.random.default_rng(0).standard_normal((3, 1, 128), np.float32)
    np.testing.assert_allclose(net(x), model("lstm", dict(net.variables), 1)(x), atol=1e-5)
    assert set(weights({"a.scale": (2,)})["a.scale"]) == {1}
