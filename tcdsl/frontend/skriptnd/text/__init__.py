"""Texts in SkriptND become nodes, and nodes texts."""
