"""Literal operators inside expressions, at any depth of brackets."""

from __future__ import annotations

import ast
import re

from tcdsl.syntax.grammar.literal_operators import ASSIGNMENTS, COMPOSITIONS, INFIX, LABELS
from tcdsl.syntax.grammar.marks import CARRIER_NAME, Composition, Juxtaposition, Marks, operator_at
from tcdsl.syntax.grammar.tokens import Token, matching

__all__ = ["mark_expressions"]

_NUMBER_PREFIXES = ("!..", "!.")
_NOT_PYTHON = frozenset("?!$`")
_BRACKETS = frozenset("()[]{},;")
# Beside one of these, `{ w }` is no set; a `.` is the end of `*.`.
_NOT_OF_SETS = frozenset(("*", "@", "+", "/", "**", "."))
# What the origin of the spelling calls the options `o` and `i` of a parameter.
_OF_ORIGIN = re.compile(r"\b(output|input)_dims\b")
_BEGINNING = frozenset(("(", "[", "{", "+", "-", "~", "!"))


def mark_expressions(tokens: list[Token], begin: int, end: int, used: set[int], marks: Marks) -> None:
    """Mark the operators among the tokens of one logical line, apart from those that its statements used."""
    _Expressions(tokens, begin, end, used, marks).mark()


class _Expressions:
    def __init__(self, tokens: list[Token], begin: int, end: int, used: set[int], marks: Marks) -> None:
        self.tokens = tokens
        self.begin = begin
        self.end = end
        self.used = used
        self.marks = marks
        self.text = marks.lines.text
        # For each open bracket, whether it is a literal's: of a list or tuple, not of a call or subscript.
        self.brackets: list[bool] = []

    def mark(self) -> None:
        for k in range(self.begin, self.end):
            token = self.tokens[k]
            if token.kind == "operator":
                self._bracket(k, token)
                if k not in self.used:
                    self._operator(k, token)
            elif token.kind == "string" and k not in self.used and token.is_plain_string:
                self._string(k)

    # -- brackets

    def _bracket(self, k: int, token: Token) -> None:
        if token.text in "([{":
            before = self.tokens[k - 1] if k > self.begin else None
            call = before is not None and before.ends_operand and before.kind != "string"
            self.brackets.append(token.text != "{" and not call)
            self.marks.closing[token.begin] = self.tokens[matching(self.tokens, k)].end
            if token.text == "[" and self.text.startswith("[|", token.begin):
                self._batch(k)
            elif token.text == "{" and k not in self.used:
                self._braces(k)
        elif token.text in ")]}" and self.brackets:
            self.brackets.pop()
        elif token.text == ",":
            self.marks.commas.append(token.begin)
        elif token.text == ";" and self.brackets and k not in self.used:
            if self.brackets[-1]:
                self.marks.replace(token.begin, token.end, ",")
            else:
                fact = "`;` separates the elements of lists, tuples and batches"
                self.marks.fault(token.begin, token.end, fact, "write `,` here")

    def _batch(self, k: int) -> None:
        tokens, begin = self.tokens, self.tokens[k].begin
        closing = matching(tokens, k)
        before, last = tokens[closing - 1], tokens[closing]
        if before.text != "|" or before.end != last.begin or closing - 1 == k:
            self.marks.fault(begin, begin + 2, "`[|` is not closed by `|]`", "write `[| 1; 2 |]`")
            return
        self.used.update((k + 1, closing - 1))
        self.marks.carry(begin, begin + 2, "[")
        self.marks.carry(before.begin, last.end, "]")
        self.marks.batches[begin] = before.begin

    def _braces(self, k: int) -> None:
        # `{ w }` beside an operator that sets do not have, `{ w = 0.5 }`, `{ b; o = [n] }`: inline declarations.
        tokens, closing = self.tokens, matching(self.tokens, k)
        if tokens[closing].text != "}" or tokens[k + 1].kind != "name":
            return
        name, after = tokens[k + 1], tokens[k + 2]
        begin, end = tokens[k].begin, tokens[closing].end
        if after is tokens[closing]:
            follows_spec = tokens[k - 1].is_spec and k - 1 in self.used
            beside = {"*" if follows_spec else tokens[k - 1].text} if k > self.begin else set()
            beside |= {tokens[closing + 1].text} if closing + 1 < self.end else set()
            if beside & _NOT_OF_SETS:
                self.marks.replace(begin, end, f'"{name.text}"')
        elif after.text in ("=", ";"):
            self.brackets[-1] = True
            self._exchange(k, k + 1, "param(", after=True)
            self.marks.replace(name.begin, name.end, f'"{name.text}"')
            if after.text == "=":
                self._exchange(k + 2, k + 3, ", init=", before=True, after=True)
            self._exchange(closing, closing + 1, ")", before=True)

    def _exchange(self, first: int, end: int, text: str, before: bool = False, after: bool = False) -> None:
        # Other text for tokens and the blanks around them; comments and line breaks stay.
        tokens = self.tokens
        begin, last = tokens[first].begin, tokens[end - 1].end
        if before and not self.text[tokens[first - 1].end : begin].strip(" "):
            begin = tokens[first - 1].end
        if after and not self.text[last : tokens[end].begin].strip(" "):
            last = tokens[end].begin
        self.marks.replace(begin, last, text)

    # -- operators

    def _operator(self, k: int, token: Token) -> None:
        prefix = self._number_prefix(token)
        if prefix is not None:
            self._number(k, token.begin, prefix)
            return
        found = operator_at(self.text, self.tokens, k, (*INFIX, *COMPOSITIONS))
        binary = k > self.begin and self.tokens[k - 1].ends_operand
        if found is not None and (binary or found[0] in ("||", "&&", "^^", "<>")):
            literal, after = found
            if literal in INFIX:
                self.used.update(range(k, after))
                self._infix(literal, token.begin)
                return
            if after < self.end and self.tokens[after].is_spec:
                self.used.update(range(k, after))
                self._composition(literal, token.begin, after)
                return
        if token.text == "?" and self._is_open_size(k):
            self.marks.replace(token.begin, token.end, "None")
        elif token.text in _NOT_PYTHON:
            self._unknown(k)
        elif token.text == "~" and binary and self._is_label(k):
            end = self.tokens[k + 1].end
            fact = "a label inside parentheses"
            self.marks.fault(token.begin, end, fact, "write it at the end of the assignment, behind the parentheses")

    def _is_open_size(self, k: int) -> bool:
        # `i = (3, 3, ?)`: a size that is found by inference.
        around = [self.tokens[each].text for each in (k - 1, k + 1) if self.begin <= each < self.end]
        return len(around) == 2 and around[0] in ("(", "[", ",", ";", "=") and around[1] in (")", "]", "}", ",", ";")

    def _is_label(self, k: int) -> bool:
        return k + 2 < self.end and self.tokens[k + 1].text in LABELS and self.tokens[k + 2].text == ":"

    def _infix(self, literal: str, begin: int) -> None:
        row, end = INFIX[literal], begin + len(literal)
        if row.form == "operator":
            self.marks.replace(begin, end, row.plain)
            return
        carrier = f" {row.carrier} " if row.carrier.isalpha() else row.carrier.ljust(len(literal))
        self.marks.carry(begin, end, carrier)
        self.marks.infix[begin] = row

    def _composition(self, literal: str, begin: int, spec: int) -> None:
        # The spec is one string: another one declares what follows it.
        self.used.add(spec)
        end, first, last = spec + 1, self.tokens[spec].begin, self.tokens[spec].end
        mark = Composition(literal, begin, begin + len(literal), first, last)
        self.marks.carry(begin, mark.end, COMPOSITIONS[literal].ljust(2))
        following = self.tokens[end] if end < self.end else None
        if literal == "++":
            self.marks.compositions[begin] = mark
            if following is not None and following.kind in ("name", "number", "string"):
                fact = "`++` takes one operand, and another one stands behind its spec"
                hint = 'write the spec as one string, and `a *+ "..." b` for two operands'
                self.marks.fault(following.begin, following.end, fact, hint)
        elif following is not None and following.is_plain_string and not _is_name(following):
            self.used.add(end)
            fact = f"a string behind a spec declares a parameter, and {following.text} cannot name one"
            self.marks.fault(following.begin, following.end, fact, "write the spec as one string")
        elif following is not None and (following.kind != "operator" or following.text in _BEGINNING):
            self.marks.carry(last, last, COMPOSITIONS[literal])
            self.marks.compositions[last] = mark
        else:
            fact = f"`{literal}` takes two operands, and the second one is missing behind the spec"
            self.marks.fault(begin, last, fact, f'write `a {literal} "..." b`, or `a ++ "..."` for one operand')

    def _number_prefix(self, token: Token) -> str | None:
        if token.text != "!":
            return None
        return next((prefix for prefix in _NUMBER_PREFIXES if self.text.startswith(prefix, token.begin)), None)

    def _number(self, k: int, begin: int, prefix: str) -> None:
        tokens, end = self.tokens, begin + len(prefix)
        first = k
        while first < self.end and tokens[first].end <= end:
            self.used.add(first)
            first += 1
        # `!.0.5`: Python's tokens are `.0` and `.5`.
        while first < self.end and tokens[first].kind == "number" and tokens[first].begin < end:
            first += 1
        last: int | None = first - 1
        if tokens[first - 1].end == end:
            last = self._operand(first)
        elif first < self.end and tokens[first].kind == "number" and _adjacent(tokens, first - 1):
            last = first
        if last is None:
            hint = f"write `{prefix}x`, `{prefix}0.5` or `{prefix}(a + b)`"
            self.marks.fault(begin, end, f"`{prefix}` stands before no name, number or parentheses", hint)
            return
        self.marks.carry(begin, end, CARRIER_NAME + "(")
        self.marks.carry(tokens[last].end, tokens[last].end, ")")
        self.marks.numbers[begin] = end

    def _unknown(self, k: int) -> None:
        tokens = self.tokens
        first = last = k
        while first > self.begin and _is_sign(tokens[first - 1]) and tokens[first - 1].end == tokens[first].begin:
            first -= 1
        while last + 1 < self.end and _is_sign(tokens[last + 1]) and _adjacent(tokens, last):
            last += 1
        self.used.update(range(first, last + 1))
        begin, end = tokens[first].begin, tokens[last].end
        known = " ".join((*INFIX, *COMPOSITIONS, *_NUMBER_PREFIXES))
        is_assignment = tokens[first].text == "="
        notes = (f"the assignment operators are {' '.join(ASSIGNMENTS)}" if is_assignment else f"known are {known}",)
        self.marks.fault(begin, end, f"`{self.text[begin:end]}` is no operator", "write one of them", notes)

    # -- strings

    def _string(self, k: int) -> None:
        tokens, first = self.tokens, k
        while k + 1 < self.end and tokens[k + 1].is_plain_string:
            k += 1
            self.used.add(k)
        if k + 1 >= self.end:
            return
        string, following = tokens[k], tokens[k + 1]
        spaced = following.begin > string.end
        if spaced and self._is_signed_number(k + 1):
            self._signed(first, k + 1)
            return
        begins = following.kind in ("name", "number") or following.text == "("
        if not (begins or (following.text == "[" and spaced)):
            return
        if not self._same_line(string, following):
            return
        last = k + 1 if following.kind == "number" else self._operand(k + 1)
        if last is None:
            return
        if not self._may_declare(first, k, last):
            return
        character = first == k and len(string.text) == 3 and string.text[0] == "'"
        begin, end = tokens[first].begin, tokens[last].end
        mark = Juxtaposition(string.end, following.begin, end, character and following.kind == "number")
        self.marks.juxtaposed[begin] = mark
        self.marks.carry(begin, begin, CARRIER_NAME + "(")
        self.marks.carry(string.end, string.end, ",")
        self.marks.carry(end, end, ")")

    def _is_signed_number(self, k: int) -> bool:
        # `-1.0`: a sign, and a number directly behind it.
        tokens = self.tokens
        signed = tokens[k].text in ("+", "-") and k + 1 < self.end and _adjacent(tokens, k)
        return signed and tokens[k + 1].kind == "number" and k not in self.used

    def _signed(self, first: int, sign: int) -> None:
        string = self.text[self.tokens[first].begin : self.tokens[sign - 1].end]
        number = self.text[self.tokens[sign].begin : self.tokens[sign + 1].end]
        self.marks.fault(
            self.tokens[first].begin,
            self.tokens[sign + 1].end,
            f"`{string} {number}` could be a declaration with an initial value, or a sum",
            f"write `{string} [{number}]` for an initial value, "
            f"`{string} {number[0]} {number[1:]}` for a sum or difference",
        )

    def _may_declare(self, first: int, string: int, last: int) -> bool:
        tokens, marks = self.tokens, self.marks
        begin, end = tokens[first].begin, tokens[string].end
        name = ast.literal_eval("".join(token.text + " " for token in tokens[first : string + 1]))
        is_number = tokens[last].kind == "number" and first == string and len(name) == 1
        if not name.isidentifier() and not (is_number and tokens[first].text[0] == "'"):
            fact = f"{self.text[begin:end]} cannot name a parameter"
            marks.fault(begin, end, fact, "write a name: letters, digits and underscores")
            return False
        opening = tokens[string + 1]
        for k in range(string + 2, last) if opening.text == "(" else ():
            if tokens[k].text == "=" and matching(tokens, string + 1) == last:
                options = self.text[opening.end : tokens[last].begin]
                hint = f"write `param({self.text[begin:end]}, {_OF_ORIGIN.sub(lambda found: found[1][0], options)})`"
                marks.fault(opening.begin, tokens[last].end, "options of an inline declaration", hint)
                return False
        return True

    def _same_line(self, token: Token, following: Token) -> bool:
        between = self.text[token.end : following.begin].split("\n")
        return all(row.rstrip("\r").endswith("\\") for row in between[:-1])

    def _operand(self, k: int) -> int | None:
        # The last token of a name, number or bracket, with the `.x`, `(...)` and `[...]` that follow without a space.
        tokens = self.tokens
        if k >= self.end:
            return None
        token = tokens[k]
        if token.kind == "operator" and token.text in "([":
            return matching(tokens, k)
        if token.kind == "string":
            while k + 1 < self.end and tokens[k + 1].kind == "string":
                k += 1
            return k
        if token.kind == "number":
            return k
        if token.kind != "name":
            return None
        while k + 1 < self.end and _adjacent(tokens, k):
            if tokens[k + 1].text == "." and k + 2 < self.end and tokens[k + 2].kind == "name":
                k += 2
            elif tokens[k + 1].text in ("(", "["):
                k = matching(tokens, k + 1)
            else:
                break
        return k


def _is_name(string: Token) -> bool:
    return str(ast.literal_eval(string.text)).isidentifier()


def _adjacent(tokens: list[Token], k: int) -> bool:
    return tokens[k].end == tokens[k + 1].begin


def _is_sign(token: Token) -> bool:
    return token.kind == "operator" and token.text not in _BRACKETS
