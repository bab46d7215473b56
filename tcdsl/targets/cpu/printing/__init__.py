"""Loop nests printed as Python."""
