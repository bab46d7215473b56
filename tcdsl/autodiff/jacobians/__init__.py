"""Linear programs: linearization, transposes, sparse and whole Jacobians."""
