"""The language of Tensor Comprehensions as text, and what it says as values."""
