"""What a user may have meant by a name that nothing defines."""

from __future__ import annotations

import difflib

from tcdsl.frontend.names.functions import language_names

__all__ = ["undefined_name_hint"]


def undefined_name_hint(name: str) -> str:
    """What to write instead of ``name``, which has no meaning where it stands: ``gelo`` is close to `gelu`."""
    close = difflib.get_close_matches(name, language_names(), 1, 0.75) if len(name) > 2 else []
    if close:
        return f"did you mean `{close[0]}`?"
    if len(name) > 1:
        return "define it in the function or around it, or pass it as a parameter"
    if name.isupper():
        return f"bind a size first, `{name} = A.shape[0]`; an index variable has a lower-case letter, `{name.lower()}`"
    return f"pass it as a parameter; an index variable of that name must stand in a subscript, as in `A[{name}]`"
