"""What first calls take, cold and from disk: ``python -m benchmarks.first_calls``."""
