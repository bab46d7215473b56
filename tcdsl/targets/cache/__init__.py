"""Compiled programs on disk: sealed files, their store, and plain values in it."""
