"""The language of loop nests: its nodes, printer, interpreter, and counts of points."""
