"""Passes over loop nests: what can be said better once the loops stand."""
