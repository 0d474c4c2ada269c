"""Parameters that follow from others: in goes a text like ``"= ceil(1 / gamma)"``, out comes a number for each cell.

A formula may name axes (``gamma``, ``n``) and parameters of the cell (``distribution.alpha``), numbers, + − * / **,
parentheses and the functions of ``FUNCTIONS``. Always true: it is arithmetic and nothing else, its length is bounded,
and its value is the decimal of ``DIGITS`` digits that it stands for (0.3 and not 0.30000000000000004), so that a cell
is the same whether a number was written or computed.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

DIGITS = 12
LONGEST = 500  # characters
MOST_POWER = 64  # of an exponent: 9**9**9 would take for ever

FUNCTIONS: Mapping[str, Callable[..., int | float]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "log": math.log,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "min": min,
    "max": max,
}
_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def is_formula(value: Any) -> bool:
    """Whether a value of a spec is a formula.

    >>> is_formula("= 2 * gamma"), is_formula("gamma")
    (True, False)
    """
    return isinstance(value, str) and value.lstrip().startswith("=")


@lru_cache(maxsize=1024)
def names(text: str) -> frozenset[str]:
    """The axes and parameters that a formula names. ValueError says what in it is no arithmetic.

    >>> sorted(names("= ceil(1 / (learner.epsilon * alpha))"))
    ['alpha', 'learner.epsilon']
    """
    return frozenset(_names(_parsed(text)))


def evaluate(text: str, values: Mapping[str, int | float]) -> int | float:
    """The formula's value; ``ceil`` and ``floor`` alone make integers. ValueError where it has none.

    >>> evaluate("= 3 * gamma", {"gamma": 0.1})
    0.3
    """
    try:
        found = _value(_parsed(text), values)
    except (ArithmeticError, TypeError, ValueError) as e:
        where = ", ".join(f"{name} = {values[name]}" for name in sorted(names(text)) if name in values)
        raise ValueError(f"{text!r} has no value at {where}: {e}") from None
    if isinstance(found, int):
        return found
    if not isinstance(found, float) or not math.isfinite(found):
        raise ValueError(f"{text!r} is {found}, which is no finite number")
    return float(f"{found:.{DIGITS}g}")


@lru_cache(maxsize=1024)
def _parsed(text: str) -> ast.expr:
    body = text.lstrip().removeprefix("=").strip()
    if not body or len(body) > LONGEST:
        raise ValueError(f"a formula has 1 to {LONGEST} characters after its =, as in '= 2 * gamma'")
    try:
        tree = ast.parse(body, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"{body!r} is no formula; write arithmetic, as in '= ceil(1 / gamma)'") from None
    _names(tree)
    return tree


def _names(node: ast.expr) -> set[str]:
    """The names in an expression, every node of which is allowed."""
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float()):
            return set()
        case ast.Name(id=name):
            return {name}
        case ast.Attribute(value=ast.Name(id=first), attr=rest):
            return {f"{first}.{rest}"}
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _names(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _names(left) | _names(right)
        case ast.Call(func=ast.Name(id=function), args=[_, *_] as arguments, keywords=[]) if function in FUNCTIONS:
            return set[str]().union(*map(_names, arguments))
    raise ValueError(
        f"{ast.unparse(node)!r} is no arithmetic of axes and parameters; there are + - * / **, {', '.join(FUNCTIONS)}"
    )


def _value(node: ast.expr, values: Mapping[str, int | float]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return _known(name, values)
        case ast.Attribute(value=ast.Name(id=first), attr=rest):
            return _known(f"{first}.{rest}", values)
        case ast.UnaryOp(op=op, operand=operand):
            found = _value(operand, values)
            return -found if isinstance(op, ast.USub) else found
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _value(left, values), _value(right, values)
            if isinstance(op, ast.Pow) and abs(b) > MOST_POWER:
                raise ValueError(f"the exponent {b} is above {MOST_POWER}")
            return _OPERATORS[type(op)](a, b)
        case ast.Call(func=ast.Name(id=function), args=arguments):
            # 1/0.1·3 is 30 to a rounding, and its ceiling is to be 30.
            return FUNCTIONS[function](*(_decimal(_value(a, values)) for a in arguments))
    raise AssertionError(ast.dump(node))


def _decimal(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _known(name: str, values: Mapping[str, int | float]) -> int | float:
    if name not in values:
        raise ValueError(f"{name} is not known here")
    return values[name]
