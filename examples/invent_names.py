"""Invent the names that the language models learn from.

    python examples/invent_names.py                 # writes examples/names.txt

The names follow two rules that can be checked. The vowels of a name are all light (e, i) or all dark (a, o, u), as in
Finnish. And a name ends in a vowel, `n`, `r` or `s`. The first rule reaches over the consonants between two vowels, so
a model that sees one letter cannot learn it, and one that sees three can.
"""

import argparse
from pathlib import Path

import numpy as np

OUTPUT = Path(__file__).with_name("names.txt")
VOWELS = {"light": "ei", "dark": "aou"}
ONSETS = ["b", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "br", "dr", "kl", "sk", "st", "tr"]
BETWEEN = ["", "", "", "l", "m", "n", "r"]
ENDINGS = ["", "", "n", "r", "s"]


def invent(generator):
    """One name, such as `velin` or `tarko`."""
    vowels = list(VOWELS[generator.choice(list(VOWELS))])
    name = "" if generator.random() < 0.2 else generator.choice(ONSETS)
    for _ in range(generator.integers(1, 4)):
        name += generator.choice(vowels) + generator.choice(BETWEEN) + generator.choice(ONSETS)
    return name + generator.choice(vowels) + generator.choice(ENDINGS)


def follows_the_rules(name):
    """Whether the vowels of `name` belong together, and its end is one that names have."""
    vowels = {letter for letter in name if letter in "aeiou"}
    kind = bool(vowels) and any(vowels <= set(allowed) for allowed in VOWELS.values())
    return kind and name[-1] in "aeiounrs"


def main(count=2000, output=OUTPUT):
    generator = np.random.default_rng(2024)
    names = {}
    while len(names) < count:
        names[str(invent(generator))] = None
    Path(output).write_text("".join(f"{name}\n" for name in names))
    print(f"{count} names, from {next(iter(names))} on, in {output}")
    return list(names)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    main(**vars(parser.parse_args()))
