"""What statements store into: fresh and existing targets, cells chosen by truth, cells that are reset."""
