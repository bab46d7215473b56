"""The reference interpreter: programs point by point, with none of the lowering."""
