"""Linear programs: sparse and whole Jacobians."""
