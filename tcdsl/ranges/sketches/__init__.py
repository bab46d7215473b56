"""Statements before their ranges are known, and what is known of the program around them."""
