"""What stands for arrays, sizes and numbers while a decorated function runs once, and their operators."""
