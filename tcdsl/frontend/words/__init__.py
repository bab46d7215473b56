"""Words of texts in other languages than Python."""
