"""Loops and branches that run: staged as one round, recorded as loops of the program."""
