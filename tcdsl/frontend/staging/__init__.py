"""The session in which a function runs once: the program under construction, and what it takes from around it."""
