"""Parameters as a spec spells them: in go a registry, a kind and values, out comes a built object or one ValueError.

Always true of an object that was checked: every field has the type its annotation names and keeps the limits written
there (``annotated_types``), so each limit stands in one place and listings, specs and Python calls agree.
"""

import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from difflib import get_close_matches
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import annotated_types as at
import numpy as np


def build[T](kinds: Mapping[str, type[T]], kind: str, parameters: Mapping[str, Any], *, family: str) -> T:
    """The object of ``kinds`` called ``kind``. ``family`` names the registry in messages ("learner").

    Raises ValueError for an unknown kind or parameter (naming the nearest known one), a missing parameter, and
    whatever the object's own checks refuse.
    """
    if kind not in kinds:
        raise ValueError(f"{family} kind {kind!r} is not known{_nearest(kind, kinds)}")
    cls = kinds[kind]
    known = {f.name: f for f in fields(cls) if f.init}  # type: ignore[arg-type]
    for name in parameters:
        if name not in known:
            raise ValueError(f"{family} {kind!r} takes no parameter {name!r}{_nearest(name, known)}")
    missing = [name for name, f in known.items() if name not in parameters and _required(f)]
    if missing:
        raise ValueError(f"{family} {kind!r} needs {', '.join(missing)}: give a value")
    return cls(**parameters)


def check(instance: Any) -> None:
    """Checks every field of a frozen dataclass against its annotation, turning NumPy scalars into Python's and
    integers into floats where a float is declared. Called from ``__post_init__``.

    Raises ValueError with the field, its value and what it must be. A bool is not a number, and 1.0 is not an integer
    (an n' of 1 and a fraction of 1 are different things).
    """
    cls: Any = type(instance)
    for name, hint in _hints(cls):
        value = getattr(instance, name)
        checked = _checked(value, hint, f"{getattr(cls, 'kind', cls.__name__)}: {name}")
        if checked is not value:
            object.__setattr__(instance, name, checked)


@cache
def _hints(cls: Any) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(cls, include_extras=True)
    return tuple((f.name, hints[f.name]) for f in fields(cls) if f.init)


def _checked(value: Any, hint: Any, place: str) -> Any:
    origin = get_origin(hint)
    if origin is Annotated:
        base, *limits = get_args(hint)
        value = _checked(value, base, place)
        if isinstance(value, int | float):
            for limit in limits:
                _keep(value, limit, place)
        return value
    if origin in (Union, UnionType):
        options = get_args(hint)
        if value is None and NoneType in options:
            return None
        rest = [o for o in options if o is not NoneType]
        return _checked(value, rest[0], place) if len(rest) == 1 else value
    if origin is Literal:
        if value not in get_args(hint):
            allowed = ", ".join(repr(a) for a in get_args(hint))
            raise ValueError(f"{place} = {value!r} is not one of {allowed}")
        return value
    if hint in (int, float):
        return _number(value, hint, place)
    if hint in (str, bool) and not isinstance(value, hint):
        raise ValueError(f"{place} = {value!r} must be {'text' if hint is str else 'true or false'}")
    return value


def _number(value: Any, hint: type, place: str) -> int | float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"{place} = {value!r} must be {'an integer' if hint is int else 'a number'}")
    if hint is int:
        if not isinstance(value, int | np.integer):
            raise ValueError(f"{place} = {value!r} must be an integer, written without a point")
        return value if type(value) is int else int(value)
    if not math.isfinite(value):
        raise ValueError(f"{place} = {value!r} must be finite")
    return float(value) + 0.0  # −0.0 and 0.0 are one value, and name one stream


def _keep(value: int | float, limit: Any, place: str) -> None:
    if isinstance(limit, at.Interval):
        for part in limit:
            _keep(value, part, place)
        return
    wrong = (
        (isinstance(limit, at.Gt) and not value > limit.gt and f"above {limit.gt}")  # type: ignore[operator]
        or (isinstance(limit, at.Ge) and not value >= limit.ge and f"at least {limit.ge}")  # type: ignore[operator]
        or (isinstance(limit, at.Lt) and not value < limit.lt and f"below {limit.lt}")  # type: ignore[operator]
        or (isinstance(limit, at.Le) and not value <= limit.le and f"at most {limit.le}")  # type: ignore[operator]
    )
    if wrong:
        raise ValueError(f"{place} = {value!r} must be {wrong}")


def _required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    close = get_close_matches(name, list(known), n=1)
    listed = ", ".join(known)
    return f": did you mean {close[0]!r}? (there are {listed})" if close else f": there are {listed}"
