"""Shapes, rows and dimensions that are not known yet, and changes of them that can be undone."""
