"""NumPy's functions of whole arrays in decorated functions, by the operators of the language or as statements."""
