"""Programs as text: the printer, and the parsers of expressions, rules and programs that read what it prints."""
