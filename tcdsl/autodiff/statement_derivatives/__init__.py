"""One statement's derivative: scalar rules, what is stored or computed again, transposed accesses."""
