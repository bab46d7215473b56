"""Groups of statements become nests, by rules."""
