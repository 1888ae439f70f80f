"""Syntax tree -> code: each kind of node has one small method."""

import datetime as dt
import keyword

from floodway.core.errors import ExpressionTypeError, UnsupportedExpressionError
from floodway.core.types import (
    BOOLEAN,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    ArrayType,
    MapType,
    NullType,
    OpaqueType,
    StructType,
)
from floodway.expressions import tree
from floodway.expressions.arithmetic import arithmetic, bitwise, negative
from floodway.expressions.casts import convert, implied
from floodway.expressions.code import Assembly, Code
from floodway.expressions.coercion import INTEGRAL, mismatch
from floodway.expressions.comparison import compare
from floodway.expressions.functions.registry import find_function
from floodway.expressions.logic import (
    boolean,
    choice,
    conjunction,
    disjunction,
    membership,
    negation,
    null_test,
    truth_test,
)
from floodway.expressions.patterns import like
from floodway.expressions.runtime import arrays as array_helpers
from floodway.expressions.runtime.moments import to_utc
from floodway.expressions.scope import Column, Scope

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_SHIFTS = {"<<": "shiftleft", ">>": "shiftright", ">>>": "shiftrightunsigned"}


class Compiler(Assembly):
    """Lowers one expression in one scope."""

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self.scope = scope

    def lower(self, node: tree.Term) -> Code:
        """Return the code of a node."""
        match node:
            case tree.Literal(text, value, data_type):
                return self.constant(value, data_type, text)
            case tree.Name(text, parts):
                return self._name(text, parts)
            case tree.Binary():
                return self._binary(node)
            case tree.Unary():
                return self._unary(node)
            case tree.Call(_, name, arguments):
                return find_function(name, len(arguments)).build(self, node)
            case tree.Cast(text, operand, target, lenient):
                code = convert(self, self.lower(operand), target, lenient=lenient)
                return self.renamed(code, text)
            case tree.Index(text, operand, index):
                return self._index(self.lower(operand), self.lower(index), text)
            case tree.Get(text, operand, field):
                return self.field(self.lower(operand), field, text)
            case _:
                return self._condition(node)

    def _condition(self, node: tree.Term) -> Code:
        match node:
            case tree.Test(text, what, operand, negated):
                return self._test(text, what, self.lower(operand), negated=negated)
            case tree.InList(text, operand, choices):
                options = [self.lower(option) for option in choices]
                return membership(self, self.lower(operand), options, text)
            case tree.Between():
                return self._between(node)
            case tree.Like(text, operand, pattern, escape, fold):
                return like(self, self.lower(operand), self.lower(pattern), escape, text, fold=fold)
            case tree.Case():
                return self._case(node)
            case tree.Alias(text):
                raise ExpressionTypeError(
                    f"{text} names a value where no name is wanted",
                    remedy="use AS in a projection, or for the fields of struct(...)",
                )
            case tree.Lambda(text):
                raise ExpressionTypeError(
                    f"{text} is a function, not a value",
                    remedy="pass it to transform, filter, exists or forall",
                )
            case _:
                raise ExpressionTypeError(
                    "* stands for all columns and is not a value here",
                    remedy="name the column, or use * alone in a projection",
                )

    # Columns and their parts.

    def _name(self, text: str, parts: tuple[str, ...]) -> Code:
        column = self.scope.column(parts[0])
        code = self.column(column, parts[0])
        for part in parts[1:]:
            code = self.field(code, part, text)
        return code

    def column(self, column: Column, text: str) -> Code:
        """Return the code of a column."""
        if isinstance(column.type, OpaqueType):
            raise ExpressionTypeError(
                f"column {text!r} is {column.type}, which expressions cannot look into",
                remedy="use a Python function for it",
            )
        nullable = column.nullable or isinstance(column.type, NullType)
        return self._moment(Code(column.source, column.type, nullable, text, atom=True))

    def _moment(self, code: Code) -> Code:
        """Bring a timestamp that comes from outside to UTC, so that any two can be compared."""
        if code.type != TIMESTAMP:
            return code
        self.names["_utc"] = dt.UTC
        name, call = self.temporary(), self.refer(to_utc)
        null = (
            f"({name} := {code.source}) is None or {name}"
            if code.nullable
            else f"({name} := {code.source})"
        )
        source = f"({name} if {null}.tzinfo is _utc else {call}({name}))"
        return Code(source, TIMESTAMP, code.nullable, code.text)

    def field(self, code: Code, name: str, text: str) -> Code:
        """Return a field of a struct, or a value of a map."""
        if isinstance(code.type, MapType) and code.type.key == STRING:
            return self._index(code, self.constant(name, STRING, name), text)
        if not isinstance(code.type, StructType):
            raise ExpressionTypeError(
                f"{code.text} is {code.type} and has no field {name!r}",
                remedy="use a.b only where a is a struct, and a[i] for arrays",
            )
        found = code.type.field(name)
        if found is None:
            names = ", ".join(field.name for field in code.type.fields)
            raise ExpressionTypeError(
                f"{code.text} has no field {name!r}", remedy=f"use one of: {names}"
            )
        attribute = found.name
        if keyword.iskeyword(attribute) or not attribute.isidentifier():
            raise UnsupportedExpressionError(
                f"the field {attribute!r} of {code.text} is not a Python name",
                remedy="rename it, or use a Python function",
            )
        result = self.strict(
            [code],
            lambda codes: f"{codes[0].source}.{attribute}",
            found.type,
            text,
            nullable=found.nullable,
        )
        atom = code.atom and not code.nullable
        return self._moment(Code(result.source, found.type, result.nullable, text, atom))

    def _index(self, operand: Code, index: Code, text: str) -> Code:
        if isinstance(operand.type, MapType):
            return self.look_up(operand, index, text)
        if not isinstance(operand.type, ArrayType) or index.type not in INTEGRAL:
            raise mismatch(text, [operand, index], "index an array by an integer from 0")
        return self.call(
            array_helpers.array_item,
            [operand, index],
            operand.type.element,
            text,
            text,
            nullable=operand.type.contains_null,
        )

    def look_up(self, operand: Code, key: Code, text: str) -> Code:
        """Return the value of a map for a key, or NULL."""
        assert isinstance(operand.type, MapType)
        wanted = implied(self, key, operand.type.key)
        if wanted is None:
            raise mismatch(text, [operand, key], f"use a key of type {operand.type.key}")
        return self.strict(
            [operand, wanted],
            lambda codes: f"{codes[0].source}.get({codes[1].source})",
            operand.type.value,
            text,
            nullable=True,
        )

    # Operators.

    def _binary(self, node: tree.Binary) -> Code:
        operator, text = node.operator, node.text
        if operator == "||" or operator in _SHIFTS:
            name = _SHIFTS.get(operator, "concat")
            call = tree.Call(text, name, _operands(node))
            return find_function(name, len(call.arguments)).build(self, call)
        left, right = self.lower(node.left), self.lower(node.right)
        if operator in ("AND", "OR"):
            join = conjunction if operator == "AND" else disjunction
            return join(self, boolean(self, left, text), boolean(self, right, text), text)
        if operator in _COMPARISONS:
            return compare(self, operator, left, right, text)
        if operator in ("&", "|", "^"):
            return bitwise(self, operator, [left, right], text)
        return arithmetic(self, operator, left, right, text)

    def _unary(self, node: tree.Unary) -> Code:
        operand = self.lower(node.operand)
        if node.operator == "NOT":
            return negation(self, boolean(self, operand, node.text), node.text)
        if node.operator == "-":
            return negative(self, operand, node.text)
        if node.operator == "~":
            if operand.type not in INTEGRAL:
                raise mismatch(node.text, [operand], "use an INT or BIGINT operand")
            return self.strict(
                [operand], lambda codes: f"(~{codes[0].source})", operand.type, node.text
            )
        return self.renamed(operand, node.text)

    def _test(self, text: str, what: str, operand: Code, *, negated: bool) -> Code:
        if what == "NULL":
            return null_test(self, operand, text, negated=negated)
        return truth_test(
            self, boolean(self, operand, text), text, what=what == "TRUE", negated=negated
        )

    def _between(self, node: tree.Between) -> Code:
        """``x BETWEEN a AND b`` is ``x >= a AND x <= b``, with x computed once."""
        operand = self.lower(node.operand)
        low, high = self.lower(node.low), self.lower(node.high)
        plain = (INTEGER, LONG, STRING)
        same = operand.type == low.type == high.type or {operand.type, low.type, high.type} <= {
            *INTEGRAL
        }
        if operand.type in plain and same and not (low.nullable or high.nullable):
            return self.strict(
                [operand, low, high],
                lambda c: f"({c[1].source} <= {c[0].source} <= {c[2].source})",
                BOOLEAN,
                node.text,
            )
        if operand.atom:
            return self._both(operand, low, high, node.text)
        name = self.temporary()
        bound = Code(name, operand.type, operand.nullable, operand.text, atom=True)
        code = self._both(bound, low, high, node.text)
        source = f"({code.source} if (({name} := {operand.source}) is None or True) else None)"
        return Code(source, BOOLEAN, code.nullable, node.text)

    def _both(self, operand: Code, low: Code, high: Code, text: str) -> Code:
        above = compare(self, ">=", operand, low, text)
        below = compare(self, "<=", operand, high, text)
        return conjunction(self, above, below, text)

    def _case(self, node: tree.Case) -> Code:
        default = (
            self.lower(node.default) if node.default else self.constant(None, NullType(), "NULL")
        )
        if node.operand is None:
            branches = [
                (boolean(self, self.lower(when), node.text), self.lower(then))
                for when, then in node.branches
            ]
            return choice(self, branches, default, node.text)
        operand = self.lower(node.operand)
        name = self.temporary()
        bound = (
            operand
            if operand.atom
            else Code(name, operand.type, operand.nullable, operand.text, atom=True)
        )
        branches = [
            (compare(self, "=", bound, self.lower(when), node.text), self.lower(then))
            for when, then in node.branches
        ]
        code = choice(self, branches, default, node.text)
        if operand.atom:
            return code
        source = f"({code.source} if (({name} := {operand.source}) is None or True) else None)"
        return Code(source, code.type, code.nullable, node.text)


def _operands(node: tree.Binary) -> tuple[tree.Term, ...]:
    """Return the operands of an operator, of a whole chain if it is ``||``."""
    operands: list[tree.Term] = [node.right]
    left = node.left
    while node.operator == "||" and isinstance(left, tree.Binary) and left.operator == "||":
        operands.append(left.right)
        left = left.left
    return (left, *reversed(operands))
