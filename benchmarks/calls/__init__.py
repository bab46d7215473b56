"""What calls of small functions cost beside the machine code: ``python -m benchmarks.calls``."""
