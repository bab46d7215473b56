"""Small changes of whole programs that several packages make: names, inlining, sizes that are used or agree."""
