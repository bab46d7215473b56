"""Derivative rules of users' own, and the subprograms that derivatives take out and put back."""
