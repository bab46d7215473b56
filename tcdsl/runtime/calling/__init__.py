"""From arguments to results: signatures, entries, repeated calls, memory and checks."""
