"""What is built on the library for people at a terminal: the command line and the demonstration."""
