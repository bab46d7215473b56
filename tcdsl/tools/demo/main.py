"""Train, report, draw: what ``python -m tcdsl demo`` does."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import tcdsl as tc
from tcdsl.tools.demo.index_notation import cross_entropy
from tcdsl.tools.demo.networks import CompiledNetwork, NumpyNetwork, initial_parameters
from tcdsl.tools.demo.report import draw, show_program, show_times, training_progress
from tcdsl.tools.demo.training import BATCH, Digits, accuracy, load, race, train

__all__ = ["demonstrate"]


def demonstrate(console: Console, epochs: int, rounds: int, seed: int, output: Path, threads: int) -> float:
    """Run the demonstration and return the accuracy reached on the held-out images.

    ``rounds`` epochs of each network are timed; pictures go to the folder ``output``; 0 ``threads`` means all cores.
    """
    with tc.config(threads=threads):
        digits = load(seed)
        console.print(
            f"{len(digits.train_labels)} images of handwritten digits to learn from in minibatches of {BATCH}, "
            f"{len(digits.test_labels)} held out"
        )
        network = CompiledNetwork(initial_parameters(seed))
        begin = time.perf_counter()
        network.step(digits.train_images[:BATCH], digits.train_labels[:BATCH], learning_rate=0.0)
        network.predict(digits.test_images)
        console.print(f"compiled, or loaded from the cache, in {time.perf_counter() - begin:.1f} s")
        with training_progress(console, epochs) as progress:
            history = train(network, digits, epochs, seed, progress)
        reached = accuracy(network, digits)
        _report(console, network, digits, rounds, seed, reached)
        output.mkdir(parents=True, exist_ok=True)
        path = output / "digits.png"
        draw(path, history, digits, network.predict(digits.test_images))
        console.print(f"learning curve and mistakes: {path}", soft_wrap=True)
    return reached


def _report(console: Console, network: CompiledNetwork, digits: Digits, rounds: int, seed: int, reached: float) -> None:
    arguments: list[Any] = [*network.parameters, digits.train_images[:BATCH], digits.train_labels[:BATCH]]
    show_program(console, "The network and its loss", str(cross_entropy.explain("ir", *arguments)))
    show_program(console, "Its gradient, as generated", str(network.gradient.explain("ir", *arguments)))
    compiled, plain = CompiledNetwork(network.parameters), NumpyNetwork(network.parameters)
    timings = race([compiled, plain], digits, rounds, seed)
    pairs = zip(compiled.parameters, plain.parameters, strict=True)
    difference = max(float(np.max(np.abs(ours - theirs))) for ours, theirs in pairs)
    note = (
        f"{rounds} epochs each, in turn, on {os.cpu_count()} cores; "
        f"afterwards the parameters of the two differ by at most {difference:.1e}"
    )
    show_times(console, ["tcdsl", "NumPy"], timings, note)
    console.print(f"accuracy on held-out images: [bold]{100 * reached:.1f} %[/]")
