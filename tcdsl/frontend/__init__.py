"""What users write becomes a program: decorated functions, their tensor statements and whole-array arithmetic."""
