"""What Tile's programs make, in decorated functions and on tensors outside of them. See the README."""
