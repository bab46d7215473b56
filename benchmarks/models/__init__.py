"""Models in SkriptND beside the same models in PyTorch: `python -m benchmarks.models`."""
