"""What notebooks show of functions, programs and code."""
