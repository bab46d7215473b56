"""What functions read from around them while they are staged: names, arrays behind names, and what else they ask."""
