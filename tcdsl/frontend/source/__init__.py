"""The text of decorated functions: what their statements bind, spell and annotate."""
