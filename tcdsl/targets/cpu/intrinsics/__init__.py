"""Functions that generated code calls: arithmetic, conversions, reads and writes."""
