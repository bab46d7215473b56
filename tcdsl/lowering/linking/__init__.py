"""Kernels of straight code and of bodies become one kernel with rounds."""
