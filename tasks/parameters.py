"""Parameters declared once: in go frozen dataclasses whose annotated fields are the parameters a spec may give, out
come checked objects, and descriptions of the fields for people.

A field's annotation carries its type and its limits (``annotated_types``). Always true of what ``construct`` returns:
every value has its declared type, so that 4 and 4.0 name one stream of random numbers, and lies within its limits.
"""

import types
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from functools import lru_cache
from numbers import Integral, Real
from operator import ge, gt, le, lt
from typing import Annotated, Any, Literal, TypeAliasType, Union, get_args, get_origin, get_type_hints

import annotated_types as at
import numpy as np

_LIMITS: tuple[tuple[type, str, str, Callable[[Any, Any], bool]], ...] = (
    (at.Gt, "gt", ">", gt),
    (at.Ge, "ge", "≥", ge),
    (at.Lt, "lt", "<", lt),
    (at.Le, "le", "≤", le),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One field for people: ``limits`` is a phrase such as "> 0, ≤ 0.5" or empty; ``default`` is None also where
    ``required``."""

    name: str
    type: str
    limits: str
    required: bool
    default: Any


def settle(owner: Any) -> None:
    """Give every parameter of a frozen dataclass its declared type and check its limits; for ``__post_init__``.

    Raises ValueError naming the parameter, its value and what it must be.
    """
    for name, annotation in _annotations(type(owner)):
        value = getattr(owner, name)
        try:
            object.__setattr__(owner, name, _fit(annotation, value))
        except ValueError as e:
            raise ValueError(f"{owner.kind}: {name} = {value!r} {e}") from None


def construct[T](family: str, kinds: Mapping[str, type[T]], kind: str, parameters: Mapping[str, Any]) -> T:
    """The object of ``kind`` with these parameters; ValueError names the nearest known kind or parameter."""
    if kind not in kinds:
        raise ValueError(f"unknown {family} {kind!r}{_nearest(str(kind), kinds)}")
    cls = kinds[kind]
    declared = {p.name: p for p in describe(cls)}
    for name in parameters:
        if name not in declared:
            raise ValueError(f"{family} {kind!r} has no parameter {name!r}{_nearest(name, declared)}")
    missing = [p.name for p in declared.values() if p.required and p.name not in parameters]
    if missing:
        raise ValueError(f"{family} {kind!r} needs the parameter {missing[0]!r}: give it a value")
    return cls(**parameters)


def describe(cls: type[Any]) -> tuple[Parameter, ...]:
    """The parameters of a concrete class, in the order of its fields."""
    declared = {f.name: f for f in fields(cls)}
    found = []
    for name, annotation in _annotations(cls):
        f = declared[name]
        default = f.default_factory() if f.default_factory is not MISSING else f.default
        required = default is MISSING
        found.append(
            Parameter(
                name=name,
                type=_spell(annotation),
                limits=", ".join(_phrases(annotation)),
                required=required,
                default=None if required else default,
            )
        )
    return tuple(found)


@lru_cache(maxsize=256)
def _annotations(cls: Hashable) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(cls, include_extras=True)
    return tuple((f.name, hints[f.name]) for f in fields(cls) if f.init)  # type: ignore[arg-type]


def _nearest(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    if not names:
        return "; it takes none"
    close = get_close_matches(name, names, 1, 0.0)
    return f"; did you mean {close[0]!r}? known: {', '.join(names)}"


def _union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def _fit(annotation: Any, value: Any) -> Any:
    """``value`` as the annotation's type; ValueError completes the sentence "name = value …"."""
    if isinstance(annotation, TypeAliasType):
        return _fit(annotation.__value__, value)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        settled = _fit(arguments[0], value)
        _limit(arguments[1:], settled)
        return settled
    if _union(annotation):
        return _fit_any(arguments, value)
    if origin is Literal:
        if value in arguments and not (isinstance(value, bool) and True not in arguments and False not in arguments):
            return value
        raise ValueError(f"is no {_spell(annotation)}")
    if origin is tuple:
        return _fit_tuple(arguments, value)
    if annotation is Any:
        return value
    return _fit_plain(annotation, value)


def _fit_plain(annotation: Any, value: Any) -> Any:
    if annotation in (None, types.NoneType) and value is None:
        return None
    if annotation is bool and isinstance(value, (bool, np.bool_)):
        return bool(value)
    number = not isinstance(value, (bool, np.bool_))
    if annotation is int and number and isinstance(value, Integral):
        return int(value)
    if annotation is float and number and isinstance(value, Real):
        return float(value) + 0.0  # −0.0 and 0.0 are one value
    if annotation is str and isinstance(value, str):
        return str(value)
    raise ValueError(f"is no {_spell(annotation)}")


def _fit_any(alternatives: Sequence[Any], value: Any) -> Any:
    # The alternative of the value's own type goes first, so that 4 stays an integer in ``float | int``.
    refusals = []
    for alternative in sorted(alternatives, key=lambda a: _bare(a) is not type(value)):
        try:
            return _fit(alternative, value)
        except ValueError as e:
            if alternative is not types.NoneType:
                refusals.append(str(e))
    raise ValueError(" or ".join(dict.fromkeys(refusals)))


def _fit_tuple(arguments: Sequence[Any], value: Any) -> tuple[Any, ...]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError("is no list")
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_fit(arguments[0], v) for v in value)
    if len(value) != len(arguments):
        raise ValueError(f"must have rows of {len(arguments)} entries, not {len(value)}")
    return tuple(_fit(a, v) for a, v in zip(arguments, value, strict=True))


def _limit(metadata: Sequence[Any], value: Any) -> None:
    for limit in metadata:
        for cls, attribute, sign, holds in _LIMITS:
            if isinstance(limit, cls) and not holds(value, getattr(limit, attribute)):  # NaN holds nowhere
                raise ValueError(f"must be {sign} {getattr(limit, attribute)}")
        if isinstance(limit, at.MinLen) and len(value) < limit.min_length:
            raise ValueError(f"must have at least {limit.min_length} entries")


def _bare(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _spell(annotation: Any) -> str:
    if isinstance(annotation, TypeAliasType):
        return _spell(annotation.__value__)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _spell(arguments[0])
    if _union(annotation):
        return " or ".join(_spell(a) for a in arguments if a is not types.NoneType)
    if origin is Literal:
        return " or ".join(repr(a) for a in arguments)
    if origin is tuple:
        return f"list of {_spell(arguments[0])}"
    names = {int: "integer", float: "number", str: "text", bool: "true or false", types.NoneType: "nothing"}
    return names.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _phrases(annotation: Any) -> list[str]:
    if isinstance(annotation, TypeAliasType):
        return _phrases(annotation.__value__)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if _union(annotation):
        return [p for a in arguments for p in _phrases(a)]
    if origin is not Annotated:
        return []
    phrases = _phrases(arguments[0])
    for limit in arguments[1:]:
        phrases += [f"{sign} {getattr(limit, a)}" for cls, a, sign, _ in _LIMITS if isinstance(limit, cls)]
        if isinstance(limit, at.MinLen):
            phrases.append(f"at least {limit.min_length} entries")
    return phrases
