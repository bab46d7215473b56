"""Models in SkriptND."""
