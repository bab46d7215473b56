"""Derivative rules of users' own, and functions recorded as programs of their own, for their derivatives."""
