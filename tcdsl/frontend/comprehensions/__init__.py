"""Programs in the language of Tensor Comprehensions become sketches of statements."""
