"""The grammar of Tensor Comprehensions, for lark's LALR parser; newlines separate nothing."""

from __future__ import annotations

from tcdsl.frontend.comprehensions.text.element_types import ELEMENT_TYPES

__all__ = ["GRAMMAR", "KEYWORDS"]

KEYWORDS = frozenset(("def", "where", "in", "exists", *ELEMENT_TYPES))
"""Names that nothing can have."""

_TYPES = "|".join(sorted(ELEMENT_TYPES, key=len, reverse=True))

GRAMMAR = rf"""
start: definition*

definition: "def" ID "(" parameters ")" "->" "(" results ")" "{{" statement* "}}"

parameters: [parameter ("," parameter)*]
parameter: element_type ID
element_type: TYPE ["(" [extent ("," extent)*] ")"]
?extent: ID -> name
    | INTEGER -> number

results: result ("," result)*
result: [element_type] ID

statement: target OPERATION expression [annotation] [where]
    | several "=" ID "(" names ")" -> definition_call
several: ID ("," ID)+ -> names
names: [ID ("," ID)*]

target: ID -> bare_target
    | ID "(" [ID ("," ID)*] ")"

annotation: "<=>" ID "(" [expression ("," expression)*] ")"

where: "where" clause ("," clause)*
clause: ID "in" expression ":" expression -> range
    | ID "=" expression -> local_definition
    | "exists" expression -> exists

?expression: disjunction
    | disjunction "?" expression ":" expression -> choice
?disjunction: conjunction
    | disjunction OR conjunction -> binary
?conjunction: comparison
    | conjunction AND comparison -> binary
?comparison: sum
    | comparison COMPARISON sum -> binary
?sum: product
    | sum (PLUS | MINUS) product -> binary
?product: factor
    | product (TIMES | OVER | REST) factor -> binary
?factor: atom
    | (MINUS | NOT) factor -> unary
?atom: ID -> name
    | INTEGER -> number
    | REAL -> number
    | ID AXIS -> extent_of
    | ID "(" [expression ("," expression)*] ")" -> call
    | TYPE "(" expression ")" -> convert
    | "(" expression ")" -> bracketed

OPERATION: EQUALS | /(\+|\*|min|max)=!?(?!=)/
EQUALS: /=(?!=)/
OR: "||"
AND: "&&"
COMPARISON: "==" | "!=" | "<=" | ">=" | "<" | ">"
PLUS: "+"
MINUS: "-"
TIMES: "*"
OVER: "/"
REST: "%"
NOT: "!"

TYPE.2: /({_TYPES})(?![A-Za-z0-9_])/
ID: /[A-Za-z_][A-Za-z0-9_]*/
REAL.2: /(([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)[fF]?(?![A-Za-z0-9_])/
INTEGER: /(0[xX][0-9a-fA-F]+|[0-9]+)(?![A-Za-z0-9_])/
AXIS.3: /\.[ \t\r\n\f]*[0-9]+/

%ignore /[ \t\r\n\f]+/
%ignore /#[^\n]*/
"""
