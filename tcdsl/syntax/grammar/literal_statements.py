"""Literal statements: assignments with their labels, block comments, and values that are only constraints."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from tcdsl.syntax.grammar.literal_operators import ASSIGNMENTS, LABELS, AssignmentOperator
from tcdsl.syntax.grammar.marks import CARRIER_NAME, AssignmentMark, Label, Marks, operator_at
from tcdsl.syntax.grammar.tokens import Token, matching

__all__ = ["mark_statements"]

_COMPOUND = frozenset(
    ("if", "elif", "else", "for", "while", "try", "except", "finally", "with", "def", "class", "async")
)
_SOFT = ("match", "case")
_AUGMENTED = frozenset(("+=", "-=", "*=", "/=", "//=", "%=", "@=", "&=", "|=", "^=", ">>=", "<<=", "**=", ":="))
_BRACKETS = frozenset("()[]{},;")
# With these an operand may begin, so that `=` directly before them is Python's.
_PREFIXES = ("+", "-", "~", "!.")


def mark_statements(tokens: list[Token], begin: int, end: int, marks: Marks) -> set[int]:
    """Mark the statements of one logical line; the positions of tokens that they use up."""
    used: set[int] = set()
    if tokens[begin].text == "@":
        return used
    body = _after_header(tokens, begin, end)
    alone = body == begin
    parts = list(_statements(tokens, body, end))
    for first, last in parts:
        _Statement(tokens, first, last, marks, used).mark(alone and len(parts) == 1)
    return used


def _depths(tokens: list[Token], begin: int, end: int) -> Iterator[tuple[int, Token]]:
    # The tokens that no bracket surrounds; a bracket itself is among them, with its inside left out.
    k = begin
    while k < end:
        yield k, tokens[k]
        k = matching(tokens, k) if tokens[k].kind == "operator" and tokens[k].text in "([{" else k
        k += 1


def _after_header(tokens: list[Token], begin: int, end: int) -> int:
    first = tokens[begin]
    soft = first.text in _SOFT and begin + 1 < end and tokens[begin + 1].text not in ("=", ":", ".", ",")
    if first.text not in _COMPOUND and not soft:
        return begin
    lambdas = 0
    for k, token in _depths(tokens, begin, end):
        lambdas += token.text == "lambda"
        if token.text == ":" and token.kind == "operator":
            if not lambdas:
                return k + 1
            lambdas -= 1
    return begin if soft else end


def _statements(tokens: list[Token], begin: int, end: int) -> Iterator[tuple[int, int]]:
    first = begin
    for k, token in _depths(tokens, begin, end):
        if token.text == ";" and token.kind == "operator":
            if first < k:
                yield first, k
            first = k + 1
    if first < end:
        yield first, end


class _Statement:
    """One simple statement: the tokens from ``first`` to ``last``."""

    def __init__(self, tokens: list[Token], first: int, last: int, marks: Marks, used: set[int]) -> None:
        self.tokens = tokens
        self.first = first
        self.last = last
        self.marks = marks
        self.used = used
        self.text = marks.lines.text

    def mark(self, alone: bool) -> None:
        tokens, first = self.tokens, self.first
        if self._is_comment():
            self._comment()
            return
        if tokens[first].kind == "keyword" and not tokens[first].ends_operand:
            self._no_labels(first)
            return
        found = self._equals()
        if found is None:
            self._no_labels(first)
            return
        k, literal, after = found
        is_wildcard = k == first + 1 and tokens[first].text == "_" and literal in (None, "=:")
        if is_wildcard:
            self._wildcard(alone, k, after, literal)
        elif literal is None:
            self._no_labels(k)
        else:
            self._assignment(k, literal, after)
        self._no_more(after)

    # -- assignments

    def _equals(self) -> tuple[int, str | None, int] | None:
        # The first `=` that no bracket surrounds, with its literal operator, if it is one, and the position after it.
        for k, token in _depths(self.tokens, self.first, self.last):
            if token.text in ("lambda", ":") or token.text in _AUGMENTED:
                return None
            if token.kind == "operator" and token.text == "=":
                return self._operator(k)
        return None

    def _no_more(self, begin: int) -> None:
        # `c = d =+ a`: only plain assignments have several targets.
        for k, token in _depths(self.tokens, begin, self.last):
            if token.text == "lambda":
                return
            if token.kind == "operator" and token.text == "=" and self._operator(k)[1] is not None:
                row = self._operator(k)[1]
                fact = f"`{row}` behind another assignment of the same statement"
                self.marks.fault(token.begin, token.begin + len(row or ""), fact, "write one statement for each target")

    def _operator(self, k: int) -> tuple[int, str | None, int]:
        token = self.tokens[k]
        run = self._run(k)
        spaced = self.text[token.begin - 1 : token.begin].isspace()
        found = operator_at(self.text, self.tokens, k, ASSIGNMENTS)
        if found is not None and (spaced or not ASSIGNMENTS[found[0]].is_python):
            rest = run[len(found[0]) :]
            if not rest or rest.startswith(_PREFIXES):
                return k, found[0], found[1]
        elif len(run) == 1 or run[1:].startswith((*_PREFIXES, "*")):
            return k, None, k + 1
        known = " ".join(ASSIGNMENTS)
        self.marks.fault(
            token.begin,
            token.begin + len(run),
            f"`{run}` is no assignment operator",
            "write one of them, or a space after `=`",
            (f"the assignment operators are {known}",),
        )
        return k, None, k + 1

    def _run(self, k: int) -> str:
        # The operator characters that stand together from token k on.
        end = k
        while (
            end < self.last
            and self.tokens[end].kind == "operator"
            and self.tokens[end].text not in _BRACKETS
            and self.tokens[end].text != "..."
            and (end == k or self.tokens[end - 1].end == self.tokens[end].begin)
        ):
            end += 1
        return self.text[self.tokens[k].begin : self.tokens[end - 1].end]

    def _assignment(self, k: int, literal: str, after: int) -> None:
        tokens, marks = self.tokens, self.marks
        self.used.update(range(k, after))
        begin, end = tokens[k].begin, tokens[after - 1].end
        labels = self._labels(after)
        declared, extents = self._declared(k), ""
        if declared is not None and tokens[self.first].text == "{" and tokens[self.first + 2].text == ";":
            extents = self._extents(k, ASSIGNMENTS[literal])
        marks.carry(begin, end, "=" + " " * (end - begin - 1))
        marks.assignments[begin] = AssignmentMark(
            ASSIGNMENTS[literal],
            begin,
            end,
            tokens[self.first].begin,
            tokens[self.last - 1].end,
            labels,
            declared,
            extents,
        )

    def _declared(self, k: int) -> Token | None:
        # `"c" =: e` and `{ c } =: e`.
        target = self.tokens[self.first]
        begin, end = target.begin, self.tokens[k - 1].end
        text = self.text[begin:end]
        if target.text == "{" and matching(self.tokens, self.first) == k - 1:
            name, hint = text[1:-1].partition(";")[0].strip(), "write `{ c }`, or `{ c; o = [3] }` with its extents"
        elif target.kind == "string" and k == self.first + 1:
            name = str(ast.literal_eval(text)) if target.is_plain_string else ""
            hint = "write a name: letters, digits and underscores"
        else:
            return None
        self.used.update(range(self.first, k))
        if not name.isidentifier():
            self.marks.fault(begin, end, f"{text} cannot name a tensor", hint)
            return None
        self.marks.carry(begin, end, name)
        return Token("name", name, begin, end)

    def _extents(self, k: int, row: AssignmentOperator) -> str:
        # `{ c; o = [3] }`: its output axes.
        tokens, first = self.tokens, self.first + 3
        begin, end = tokens[first].begin, tokens[k - 2].end
        if not row.literal.startswith("=:"):
            hint = "write `{ c }`: state has the shape of the first array that is stored into it"
            self.marks.fault(begin, end, f"the extents of a target that `{row.literal}` accumulates onto", hint)
        elif (
            k - 1 - first < 3
            or tokens[first].text != "o"
            or tokens[first + 1].text != "="
            or any(token.text == ";" for _, token in _depths(tokens, first, k - 1))
        ):
            fact = f"`{self.text[begin:end]}` of a target"
            self.marks.fault(begin, end, fact, "write `o = [3]`: a target that is declared has output axes")
        else:
            given = tokens[first + 2]
            inner = first + 2 < k - 2 and given.text in ("[", "(") and matching(tokens, first + 2) == k - 2
            text = self.text[given.end : tokens[k - 2].begin] if inner else self.text[given.begin : tokens[k - 2].end]
            return text.replace(";", ",").strip()
        return ""

    # -- labels

    def _tildes(self, begin: int) -> list[int]:
        # `~` after an operand is not Python's.
        return [
            k
            for k, token in _depths(self.tokens, begin, self.last)
            if token.text == "~" and k > self.first and self.tokens[k - 1].ends_operand and token.kind == "operator"
        ]

    def _no_labels(self, begin: int) -> None:
        for k in self._tildes(begin)[:1]:
            fact = "a label belongs to an assignment of the literal spelling"
            self.marks.fault(self.tokens[k].begin, self.tokens[k].end, fact, 'write `c =: e ~logic:"..."`')

    def _labels(self, after: int) -> tuple[Label, ...]:
        found: list[Label] = []
        tildes = self._tildes(after)
        for k, following in pairwise([*tildes, self.last]):
            label = self._label(k, following)
            if label is not None:
                found.append(label)
        return tuple(found)

    def _label(self, k: int, end: int) -> Label | None:
        tokens, marks = self.tokens, self.marks
        name = tokens[k + 1] if k + 1 < end else tokens[k]
        if name.text not in LABELS:
            fact = f"`{self.text[tokens[k].begin : name.end]}` is no label of an assignment"
            marks.fault(tokens[k].begin, name.end, fact, 'write `~logic:"..."` or `~projections:p`')
            return None
        self.used.update((k, k + 1))
        before = tokens[k - 1].end
        if k + 2 == end and name.text == "projections":
            marks.carry(tokens[k].begin, tokens[k].end, ",")
            return Label(name.text, before, tokens[k].begin, name.begin, name.end)
        values = tokens[k + 3 : end]
        if k + 2 >= end or tokens[k + 2].text != ":" or not values:
            fact = f"`~{name.text}` without a value"
            marks.fault(tokens[k].begin, name.end, fact, f"write `~{name.text}:` and what it is")
            return None
        self.used.add(k + 2)
        if name.text == "logic":
            self.used.update(range(k + 3, end))
            if not all(value.is_spec for value in values):
                hint = '"." "@" "T" or a spec such as "ij; jk => ik"'
                marks.fault(values[0].begin, values[-1].end, "`~logic:` takes a string", f"write one of {hint}")
                return None
        marks.carry(tokens[k].begin, values[0].begin, ",")
        return Label(name.text, before, tokens[k].begin, values[0].begin, values[-1].end)

    # -- other statements

    def _wildcard(self, alone: bool, k: int, after: int, literal: str | None) -> None:
        begin = self.tokens[self.first].begin
        if not alone:
            fact = "`_ = ...` states constraints, and stands among other statements of its line"
            self.marks.fault(begin, self.tokens[k].end, fact, "give it a line of its own")
        if literal is not None:
            self.used.update(range(k, after))
            self.marks.carry(self.tokens[k].begin, self.tokens[after - 1].end, "=")
        self._no_labels(after)
        self.marks.wildcards.add(begin)

    def _is_comment(self) -> bool:
        k, text = self.first, self.text
        begin = self.tokens[k].begin
        return text.startswith("~~", begin) and k + 2 < self.last and self.tokens[k + 2].text == "("

    def _comment(self) -> None:
        tokens, first = self.tokens, self.first
        begin = tokens[first].begin
        end = matching(tokens, first + 2)
        self.used.update((first, first + 1))
        self.marks.carry(begin, begin + 2, CARRIER_NAME)
        self.marks.comments[begin] = begin + 2
        inside = list(_depths(tokens, first + 3, end))
        scope = next((k for k, token in inside if token.text == ";" and token.kind == "operator"), None)
        if scope is not None:
            self._scope(scope, end)
        for k, token in inside:
            if token.text == "=" and k < (end if scope is None else scope):
                hint = 'write `;` before the statements of its scope: `~~("step"; p =+ 1.0)`'
                self.marks.fault(token.begin, token.end, "an assignment among the words of a comment", hint)
        # `"learning" "of" p` are components, which commas may separate.
        k, last = first + 3, end if scope is None else scope
        while k < last:
            following = tokens[k + 1]
            self.used.update([k] if tokens[k].kind == "string" else [])
            if k + 1 < last and tokens[k].ends_operand and _begins_operand(tokens[k], following):
                self.marks.replace(tokens[k].end, tokens[k].end, ",")
            is_bracket = following.kind == "operator" and following.text in "([{"
            k = matching(tokens, k + 1) if is_bracket and k + 1 < last else k + 1

    def _scope(self, begin: int, end: int) -> None:
        # `~~("step" p; p =+ 1.0)` is the comment, and the statements of its scope behind it.
        tokens, marks = self.tokens, self.marks
        inside = list(_depths(tokens, begin, end))
        self.used.update((*(k for k, token in inside if token.text == ";"), end))
        # Behind a `;` in front of the `)` there may be another one, and Python takes no two.
        bare = tokens[end - 1].text == ";"
        marks.replace(tokens[begin].begin, tokens[begin].end, ")" if bare and begin == end - 1 else ");")
        if bare and begin < end - 1:
            marks.replace(tokens[end - 1].begin, tokens[end - 1].end, "")
        marks.replace(tokens[end].begin, tokens[end].end, "")
        for first, last in _statements(tokens, begin + 1, end):
            _Statement(tokens, first, last, marks, self.used).mark(alone=False)
        # The parentheses no longer join its lines.
        ends = [matching(tokens, k) if token.text in ("(", "[", "{") else k for k, token in inside]
        for k in (k for k in ends if k < end):
            gap = self.text[tokens[k].end : tokens[k + 1].begin]
            if "#" in gap:
                fact = "a Python comment between the statements of a comment's scope"
                begin = tokens[k].end + gap.index("#")
                hint = 'write it above, or `~~("...")` on a line of its own'
                marks.fault(begin, begin + len(self.text[begin:].splitlines()[0]), fact, hint)
            for place, letter in enumerate(gap, tokens[k].end):
                if letter == "\n" and not gap[: place - tokens[k].end].rstrip().endswith("\\"):
                    marks.replace(place, place + 1, " \\\n")


def _begins_operand(token: Token, following: Token) -> bool:
    if following.kind in ("name", "number", "string"):
        return True
    return following.text in ("(", "[") and (following.begin > token.end or token.kind == "string")
