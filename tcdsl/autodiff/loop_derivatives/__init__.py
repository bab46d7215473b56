"""Derivatives of loops that run: tangents beside values, and adjoints by the same loop backwards."""
