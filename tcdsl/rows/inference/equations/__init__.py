"""What equal rows, joined rows and affine axes say of the variables in them."""
