"""The applications at small sizes: what they compute is compared with formulas, physics and finite differences."""

from __future__ import annotations

import importlib.util
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tcdsl as tc
from benchmarks.applications import __main__ as commands
from benchmarks.applications import bodies, deconvolution, deformation, heat, hessian, springs
from benchmarks.applications.presentation import Outcome, silent, write_picture

ROOT = Path(__file__).parent.parent.parent


def test_deconvolution_finds_the_image_again():
    kernel, truth = deconvolution.gaussian(5, 0.7), deconvolution.scene(40)
    seen = deconvolution.blur(truth, kernel)
    found = deconvolution.deconvolve(seen, kernel, steps=300, report=silent)
    assert found.losses[-1] < 1e-5 * found.losses[0]
    before = deconvolution.relative_error(seen, truth[2:-2, 2:-2])
    after = deconvolution.relative_error(found.image[2:-2, 2:-2], truth[2:-2, 2:-2])
    assert after < 0.08 < 0.2 < before


def test_the_adjoint_of_the_blur_is_a_gather():
    kernel, truth = deconvolution.gaussian(5, 0.7), deconvolution.scene(40)
    seen = np.zeros((36, 36))
    text = tc.grad(deconvolution.misfit).explain("ir", truth, kernel, seen)
    (line,) = [line for line in text.splitlines() if line.startswith("d_image[")]
    # Written at the statement's own variables, not at a sum of them.
    target = line[len("d_image[") : line.index("]")]
    assert all(part.isidentifier() for part in target.split(", "))
    blurred = np.pad(deconvolution.blur(truth, kernel), 4)
    windows = np.lib.stride_tricks.sliding_window_view(blurred, (5, 5))
    by_hand = np.einsum("yxij,ij->yx", windows, kernel[::-1, ::-1])
    np.testing.assert_allclose(tc.grad(deconvolution.misfit)(truth, kernel, seen), by_hand, atol=1e-13)


@pytest.mark.parametrize("compliance", [0.0, 0.3])
def test_the_chain_hangs_as_the_formula_says(compliance):
    levels = springs.hang(3, compliance, settled=200, report=silent)
    assert [level.springs for level in levels] == [49, 98, 196]
    for level in levels:
        assert level.energies[-1] < 1e-15
        # A step is exact after about as many conjugate gradients as there are unknowns.
        assert max(level.iterations) <= 1.2 * level.state.size
        assert level.error < 0.5 / level.springs**2
    # Quadratic: the energy's exponent doubles.
    falling = np.log10([energy for energy in levels[0].energies if 1e-25 < energy < 1e-3])
    assert len(falling) >= 2
    assert falling[1] < 1.5 * falling[0]


def test_a_smoothed_chain_stays_as_close():
    levels = springs.hang(4, 0.0, settled=100, report=silent)
    assert levels[-1].springs == 392
    assert levels[-1].iterations == [100, 100]
    assert levels[-1].error <= levels[1].error
    assert levels[-1].energies[-1] < 1e-3 * levels[-1].energies[0]


def test_the_formula_of_the_chain():
    places = np.vstack([springs.LEFT, springs.catenary(1000, 0.0)])
    np.testing.assert_allclose(np.sum(np.hypot(*np.diff(places, axis=0).T)), springs.LENGTH, rtol=1e-6)
    np.testing.assert_allclose(places[-1], springs.RIGHT)
    x, y = places.T - places[500][:, None]
    a = (x[0] ** 2 / (2 * y[0]) + np.array([0.0, 0.0]))[0]
    for _ in range(100):  # y = a (cosh(x / a) - 1) at one end ...
        a *= (a * (np.cosh(x[0] / a) - 1) / y[0]) ** 0.5
    np.testing.assert_allclose(y, a * (np.cosh(x / a) - 1), atol=1e-9)  # ... holds at all points


def test_forces_and_jerks_are_those_of_the_textbook():
    position, velocity, mass = bodies.cluster(17, seed=3)
    force, jerk = bodies.acceleration_and_jerk(position, velocity, mass, bodies.SOFTENING)
    np.testing.assert_allclose(force, bodies.accelerations_by_hand(position, mass, bodies.SOFTENING), atol=1e-13)
    np.testing.assert_allclose(jerk, bodies.jerks_by_hand(position, velocity, mass, bodies.SOFTENING), atol=1e-12)
    step = 1e-5
    there, back = (bodies.acceleration(position + s * velocity, mass, bodies.SOFTENING) for s in (step, -step))
    np.testing.assert_allclose(jerk, (there - back) / (2 * step), atol=1e-7)


def test_both_schemes_keep_energy_and_momentum_to_their_order():
    start = bodies.cluster(12, seed=1)
    drift = {}
    for scheme in (bodies.leapfrog, bodies.hermite):
        for halves in (1, 2):
            run = bodies.simulate(scheme, start, 0.01 / halves, 32 * halves, 4, silent)
            drift[scheme, halves] = run.drift.max()
            centres = np.einsum("tnd,n->td", run.paths, start[2])
            np.testing.assert_allclose(centres, np.broadcast_to(centres[0], centres.shape), atol=1e-12)
    assert drift[bodies.leapfrog, 1] < 1e-3
    assert drift[bodies.leapfrog, 1] > 2.5 * drift[bodies.leapfrog, 2]
    assert drift[bodies.hermite, 1] > 8 * drift[bodies.hermite, 2]
    assert drift[bodies.hermite, 1] < drift[bodies.leapfrog, 1] / 10


def test_handles_that_turn_together_turn_everything():
    rest = deformation.at_rest(6, 7)
    turn, shift = 0.5, np.array([3.0, -2.0])
    rotation = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    turned = rest[:, :, :2] @ rotation + shift
    weight = np.zeros((6, 7))
    weight[[0, 3, 5], [0, 6, 2]] = 2.0
    found = deformation.deform(rest, turned, weight, steps=20, iterations=400)
    assert found.energies[-1] < 1e-15
    np.testing.assert_allclose(found.state[:, :, :2], turned, atol=1e-6)
    np.testing.assert_allclose(found.state[:, :, 2], turn, atol=1e-6)
    np.testing.assert_allclose(deformation.areas(found.state), 1, atol=1e-6)


def test_bending_ends_where_no_direction_lessens_the_energy():
    state, (target, weight) = deformation.at_rest(8, 9), deformation.bend(8, 9, 0.3)
    found = deformation.deform(state, target, weight, steps=30, iterations=400)
    assert all(after < before for before, after in itertools.pairwise(found.energies))

    def energy(state):
        return 0.5 * np.sum(deformation.rigidity(state, target, weight) ** 2)

    assert energy(found.state) == pytest.approx(found.energies[-1])
    generator = np.random.default_rng(0)
    for _ in range(5):
        direction = generator.standard_normal(state.shape)
        slope = (energy(found.state + 1e-4 * direction) - energy(found.state - 1e-4 * direction)) / 2e-4
        assert abs(slope) < 1e-3 * np.sqrt(found.energies[-1])
    assert 0.5 < deformation.areas(found.state).min() < 1 < deformation.areas(found.state).max() < 1.5


def test_an_edge_turned_with_its_node_costs_nothing():
    # Residuals of hand-placed nodes: (0, 0), a step right of length 2, a step down turned by a quarter.
    state = np.array([[[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]], [[-1.0, 0.0, np.pi / 2], [0.0, 5.0, 0.0]]])
    found = deformation.rigidity(state, np.ones((2, 2, 2)), np.array([[0.0, 3.0], [0.0, 0.0]]))
    np.testing.assert_allclose(found[0, 0], [[1, 0], [0, 0]])  # the right neighbour is one too far
    np.testing.assert_allclose(found[1, 0], [[0, 0], [-1, 0]])
    np.testing.assert_allclose(found[2, 0, 0], [-1, -1])  # (-1, 0) instead of (0, 1)
    np.testing.assert_allclose(found[3, 1, 0], [0, 0], atol=1e-15)  # from there, a quarter turn makes up (1, 0)
    np.testing.assert_allclose(found[4], [[[0, 0], [3, -3]], [[0, 0], [0, 0]]])


def test_heat_spreads_as_physics_says():
    begin = heat.hot_spots(12)
    final = heat.spread(begin, 0.2, steps=5)
    assert final.sum() == pytest.approx(begin.sum())  # nothing leaves
    assert final.max() < begin.max()
    padded, expected = np.pad(begin, 1, mode="edge"), begin
    for _ in range(5):
        padded = np.pad(expected, 1, mode="edge")
        around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
        expected = expected + 0.2 * (around - 4 * expected)
    np.testing.assert_allclose(final, expected, atol=1e-14)


def test_the_gradients_of_the_heat_equation():
    begin = heat.hot_spots(12)
    final = heat.spread(begin, 0.2, steps=5)
    by_state, by_speed = heat.relative_differences(begin[::-1].copy(), 0.15, final, steps=5)
    assert by_state < 1e-7
    assert by_speed < 1e-7
    # The adjoint of diffusion is diffusion: the operator is symmetric.
    other = begin.T.copy()
    _, (back, _) = heat.misfit_and_slopes(other, 0.2, final, steps=5)
    np.testing.assert_allclose(back, heat.spread(heat.spread(other, 0.2, steps=5) - final, 0.2, steps=5), atol=1e-14)


def test_the_gradients_cost_four_losses_at_most():
    ratios = [heat.operation_ratio(size, steps) for size, steps in ((5, 2), (9, 2), (5, 6))]
    assert min(ratios) > 2
    assert max(ratios) < 4


def test_what_is_unknown_is_found_from_the_last_state():
    begin = heat.hot_spots(12)
    final = heat.spread(begin, 0.2, steps=5)
    guesses = heat.find_diffusivity(begin, final, 0.1, steps=5)
    assert guesses[-1] == pytest.approx(0.2, abs=1e-10)
    assert len(guesses) < 15
    found, losses = heat.find_beginning(final, 0.2, steps=5, moves=60, report=silent)
    assert losses[-1] < 1e-2 * losses[0]
    assert np.linalg.norm(found - begin) < 0.6 * np.linalg.norm(final - begin)


@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_hessians_of_quadratic_forms(size):
    generator = np.random.default_rng(size)
    x, A = generator.standard_normal(size), generator.standard_normal((size, size))
    np.testing.assert_allclose(tc.hessian(hessian.quadratic)(x, A), A + A.T, atol=1e-14)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("peer", sorted(hessian.PEERS))
def test_hessians_of_quadratic_forms_by_peers(peer):
    pytest.importorskip(peer)
    generator = np.random.default_rng(0)
    x, A = generator.standard_normal(7), generator.standard_normal((7, 7))
    np.testing.assert_allclose(np.asarray(hessian.PEERS[peer]()(x, A)), A + A.T, atol=1e-14)


def test_the_hessian_costs_one_addition_for_each_of_its_numbers():
    text = tc.hessian(hessian.quadratic).explain("ir", np.ones(3), np.ones((3, 3)))
    (statement,) = [line for line in text.splitlines() if "] = " in line or "] += " in line]
    assert "= A[i, j] + A[j, i]  for [i, j]:" in statement
    assert [hessian.operations(size) for size in (1, 5, 40)] == [1, 25, 1600]


def test_growth():
    assert hessian.growth({10: 5.0, 20: 5.0, 40: 20.0, 80: 80.0, 160: 320.0}) == pytest.approx(2)


def test_every_application_is_listed_and_documented(capsys):
    assert commands.main([]) == 0
    listed = capsys.readouterr().out
    page = (ROOT / "docs" / "derivatives.md").read_text(encoding="utf-8")
    assert list(commands.applications()) == ["bodies", "deconvolution", "deformation", "heat", "hessian", "springs"]
    for name, sentence in commands.applications().items():
        assert name in listed
        assert sentence
        assert f"`{name}`" in page


@pytest.mark.long
def test_the_command_prints_a_report_and_draws(tmp_path):
    command = [sys.executable, "-m", "benchmarks.applications.deconvolution", "--quick", "--output", str(tmp_path)]
    environment = {**os.environ, "COLUMNS": "120"}
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=environment)
    assert re.search(r"error of the image +[\d.]+% blurred, [\d.]+% sharpened", result.stdout)
    assert "d_image[" in result.stdout
    if importlib.util.find_spec("matplotlib"):
        assert (tmp_path / "deconvolution.png").stat().st_size > 10_000


def test_unknown_names_are_refused(capsys):
    with pytest.raises(SystemExit):
        commands.main(["heat", "heating"])
    assert "there is no application 'heating'" in capsys.readouterr().err


def test_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    drawn = []
    outcome = Outcome("title", lambda figure: drawn.append(figure.subplots(1, 2)), (4, 2))
    assert write_picture(outcome, tmp_path / "new" / "picture.png")
    assert len(drawn[0]) == 2
    assert (tmp_path / "new" / "picture.png").read_bytes().startswith(b"\x89PNG")
