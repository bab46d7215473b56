"""Range inference: which points a statement has, how large a new tensor is, and what must hold of the sizes."""
