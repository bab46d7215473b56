"""The operators of SkriptND's library, as functions of arrays, and as texts."""
