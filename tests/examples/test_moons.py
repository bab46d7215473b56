"""The half moons: a loss below 0.1, few mistakes, and a picture."""

from __future__ import annotations

import numpy as np


def test_loss_accuracy_and_picture(example, tmp_path):
    path = tmp_path / "moons.png"
    found = example("moons").main(epochs=50, output=path)
    assert found["losses"][-1] < 0.1 < found["losses"][0]
    assert found["accuracy"] > 0.98
    assert found["parameters"] == ["w", "b", "w.L1", "b.L1", "w.L2", "b.L2"]

    from matplotlib.image import imread

    picture = imread(path)
    blue = (picture[..., 2] > picture[..., 0] + 0.1).mean()
    red = (picture[..., 0] > picture[..., 2] + 0.1).mean()
    assert min(blue, red) > 0.2, "both sides of the boundary are drawn"


def test_the_moons_are_the_same_every_time_and_balanced(example):
    half_moons = example("moons").half_moons
    points, classes = half_moons(50, 0.1, np.random.default_rng(3))
    again, _ = half_moons(50, 0.1, np.random.default_rng(3))
    np.testing.assert_array_equal(points, again)
    assert points.shape == (100, 2)
    assert classes.sum() == 0
