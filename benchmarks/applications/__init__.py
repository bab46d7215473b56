"""What cheap derivatives make possible, each application one file: ``python -m benchmarks.applications.springs``.

Each prints a short report and, where matplotlib is installed, writes a picture; ``--quick`` uses small sizes.
"""
