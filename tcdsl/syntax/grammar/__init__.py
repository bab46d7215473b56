"""The literal text, read: tokens, marks, operators and the edits that make it Python."""
