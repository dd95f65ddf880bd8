"""The SQL of rules: which messages a subscription takes.

A comparison with a property that a message does not have is neither true nor false, as in Service Bus, and so is its
negation. A rule takes a message only if its condition is true.
"""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

Properties = Mapping[str, Any]
Expression = Callable[[Properties], Any]

_WORD = re.compile(
    r"""\s*(?: (?P<text>'(?:[^']|'')*') | (?P<number>-?\d+(?:\.\d+)?) | (?P<sign><>|!=|<=|>=|=|<|>|\(|\)|,)
    | (?P<name>\[[^\]]+\]|[A-Za-z_][\w.\-]*) )""",
    re.VERBOSE,
)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class BadFilter(ValueError):
    """The text is not a condition that this server understands."""


def compile_filter(sql: str) -> Callable[[Properties], bool]:
    """Turn the text of a rule into a test of a message's properties, whose names are in lower case."""
    expression = _Parser(sql).whole()
    return lambda properties: expression(properties) is True


class _Parser:
    """Reads a condition from left to right, one method for each level of binding."""

    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._words: list[tuple[str, str]] = []
        end = len(sql.rstrip())
        place = 0
        while place < end:
            found = _WORD.match(sql, place)
            if found is None or found.lastgroup is None:
                raise BadFilter(f"near {sql[place:]!r}")
            self._words.append((found.lastgroup, found[found.lastgroup]))
            place = found.end()

    def whole(self) -> Expression:
        expression = self._either()
        if self._words:
            raise BadFilter(f"{self._words[0][1]!r} is too much in {self._sql!r}")
        return expression

    def _next_is(self, *words: str) -> bool:
        return bool(self._words) and self._words[0][0] != "text" and self._words[0][1].upper() in words

    def _skip(self, word: str) -> bool:
        """Go past a word if it comes next."""
        if not self._next_is(word):
            return False
        del self._words[0]
        return True

    def _expect(self, word: str) -> None:
        if not self._skip(word):
            raise BadFilter(f"{word} is missing in {self._sql!r}")

    def _take(self) -> tuple[str, str]:
        if not self._words:
            raise BadFilter(f"{self._sql!r} ends too early")
        return self._words.pop(0)

    def _either(self) -> Expression:
        sides = [self._both()]
        while self._skip("OR"):
            sides.append(self._both())
        return sides[0] if len(sides) == 1 else lambda row: _decide([side(row) for side in sides], decisive=True)

    def _both(self) -> Expression:
        sides = [self._single()]
        while self._skip("AND"):
            sides.append(self._single())
        return sides[0] if len(sides) == 1 else lambda row: _decide([side(row) for side in sides], decisive=False)

    def _single(self) -> Expression:
        if self._skip("NOT"):
            return _negated(self._single())
        if self._skip("("):
            inner = self._either()
            self._expect(")")
            return inner
        if self._skip("EXISTS"):
            self._expect("(")
            name = _property(self._take()[1])
            self._expect(")")
            return lambda row: name in row
        return self._comparison(self._operand())

    def _comparison(self, left: Expression) -> Expression:
        if self._skip("IS"):
            wanted = not self._skip("NOT")
            self._expect("NULL")
            return lambda row: (left(row) is None) is wanted
        is_negated = self._skip("NOT")
        if self._skip("IN"):
            found = _within(left, self._list())
        elif self._skip("LIKE"):
            found = _alike(left, self._operand())
        elif not is_negated and self._next_is(*_COMPARE):
            return _compared(left, _COMPARE[self._take()[1]], self._operand())
        elif not is_negated:
            return left
        else:
            raise BadFilter(f"NOT stands alone in {self._sql!r}")
        return _negated(found) if is_negated else found

    def _list(self) -> list[Expression]:
        self._expect("(")
        items = [self._operand()]
        while self._skip(","):
            items.append(self._operand())
        self._expect(")")
        return items

    def _operand(self) -> Expression:
        kind, text = self._take()
        value: Any
        if kind == "text":
            value = text[1:-1].replace("''", "'")
        elif kind == "number":
            value = float(text)
        elif kind == "name" and text.upper() in ("TRUE", "FALSE"):
            value = text.upper() == "TRUE"
        elif kind == "name":
            name = _property(text)
            return lambda row: row.get(name)
        else:
            raise BadFilter(f"{text!r} is unexpected in {self._sql!r}")
        return lambda _: value


def _property(text: str) -> str:
    name = text.strip("[]").lower()
    if name.startswith("sys."):
        raise BadFilter(f"{text} is a system property, which this server's filters do not know")
    return name.removeprefix("user.")


def _decide(sides: list[Any], *, decisive: bool) -> bool | None:
    """Join by OR if one true side is decisive, by AND if one false side is."""
    if decisive in sides:
        return decisive
    return None if None in sides else not decisive


def _negated(inner: Expression) -> Expression:
    def evaluate(row: Properties) -> bool | None:
        value = inner(row)
        return None if value is None else not value

    return evaluate


def _compared(left: Expression, compare: Callable[[Any, Any], bool], right: Expression) -> Expression:
    def evaluate(row: Properties) -> bool | None:
        one, other = left(row), right(row)
        if one is None or other is None:
            return None
        try:
            return compare(one, other)
        except TypeError:
            return None

    return evaluate


def _within(left: Expression, items: list[Expression]) -> Expression:
    def evaluate(row: Properties) -> bool | None:
        value = left(row)
        return None if value is None else value in [item(row) for item in items]

    return evaluate


def _alike(left: Expression, pattern: Expression) -> Expression:
    def evaluate(row: Properties) -> bool | None:
        value, like = left(row), pattern(row)
        if value is None or like is None:
            return None
        wild = {"%": ".*", "_": "."}
        return re.fullmatch("".join(wild.get(c, re.escape(c)) for c in like), str(value), re.DOTALL) is not None

    return evaluate
