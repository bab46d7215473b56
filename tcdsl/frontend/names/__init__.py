"""What names mean: index variables, functions of the language, or the values that Python's scoping gives."""
