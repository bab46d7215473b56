"""What need not be done round by round goes out of loops, before they are lowered."""
