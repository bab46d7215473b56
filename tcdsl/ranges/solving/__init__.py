"""How large new tensors are, and which points a statement covers."""
