"""What must hold of every program, and what is wrong with those of which it does not."""
