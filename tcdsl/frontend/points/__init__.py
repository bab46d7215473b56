"""Scalars at a point: local definitions, their brackets and where they are computed."""
