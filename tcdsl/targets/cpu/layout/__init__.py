"""The memory of a call: its frame, its block of temporaries, and where its arrays lie."""
