"""Tile's objects, and what they record: sizes, indices, outputs and their contractions. See the README."""
