"""Calls that a later process serves without staging: what they depend on, and what is kept of them."""
