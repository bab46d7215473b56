"""What must hold of a statement once its ranges are known: fixed indices, injectivity, writable cells, order."""
