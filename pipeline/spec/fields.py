"""Values checked against declared fields: in goes a table of a spec and a dataclass, out come the good values.

The fields of a dataclass (names, annotated types with limits, defaults) are the one declaration of what a table may
hold; this holds for the classes of ``tasks`` and for the parts of a spec alike. Always true: types are strict (no
boolean is a number, no quoted number is one), and an integer given for a float field comes out as a float.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import annotated_types as limits
from pydantic import ConfigDict, TypeAdapter, ValidationError

from predcube.pipeline.spec.mistakes import Mistakes, nearest, noun, show, unknown

_STRICT = ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)
_NOUNS = {int: "an integer", float: "a number", str: "a string", bool: "true or false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One field as declared."""

    name: str
    annotation: Any
    required: bool
    default: Any

    @property
    def wanted(self) -> str:
        """What a good value is, in words: "a number > 0"."""
        return " or ".join(dict.fromkeys(_words(self.annotation)))

    @property
    def scalars(self) -> frozenset[type]:
        """Which of bool, int, float, str it takes."""
        return frozenset(_scalars(self.annotation))

    def adapter(self) -> TypeAdapter[Any]:
        return _adapter(self.annotation)


@cache
def declared(cls: type) -> Mapping[str, Declared]:
    """The fields of a dataclass that a spec may give."""
    hints = get_type_hints(cls, include_extras=True)
    out = {}
    for f in fields(cls):
        if f.init:
            required = f.default is MISSING and f.default_factory is MISSING
            default = f.default_factory() if f.default_factory is not MISSING else f.default
            out[f.name] = Declared(
                name=f.name, annotation=hints[f.name], required=required, default=None if required else default
            )
    return out


def check(value: Any, field: Declared, path: str, mistakes: Mistakes) -> Any:
    """The value as the field takes it; a mistake and None where it does not."""
    try:
        if isinstance(value, list):
            # JSON's strict mode takes an array for a tuple, which TOML has no way to write.
            return field.adapter().validate_json(json.dumps(value))
        return field.adapter().validate_python(value)
    except ValidationError as e:
        errors = e.errors(include_url=False)
        # Of a union's branches the one that fits in type says what is wrong; the others only say that they differ.
        telling = [x for x in errors if not x["type"].endswith("_type")] or errors
        error = telling[0]
        places = "".join(f"[{p}]" for p in error["loc"] if isinstance(p, int))
        mistakes.add(path + places, _refusal(error["type"], error["input"], error.get("ctx", {}), field))
    except (TypeError, ValueError):
        mistakes.add(path, f"{show(value)} is {noun(value)}; give {field.wanted}")
    return None


def check_table(
    table: Mapping[str, Any],
    cls: type,
    path: str,
    mistakes: Mistakes,
    *,
    what: str,
    of: str = "",
    elsewhere: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """The good values of a table whose keys are a dataclass's fields, defaults filled in (None is left out). Required
    fields named in ``elsewhere`` come from an axis."""
    known = declared(cls)
    prefix = f"{path}." if path else ""
    out: dict[str, Any] = {}
    misspelt = set()
    for key, value in table.items():
        if key not in known:
            mistakes.add(f"{prefix}{key}", unknown(key, known, what, of))
            misspelt.update(nearest(key, [name for name in known if name not in table]))
            continue
        good = check(value, known[key], f"{prefix}{key}", mistakes)
        if good is not None:
            out[key] = good
    for name, field in known.items():
        if name in table or name in elsewhere or name in misspelt:
            continue
        if field.required:
            mistakes.add(f"{prefix}{name}", f"missing; give {field.wanted}")
        elif field.default is not None:
            out[name] = field.default
    return {name: out[name] for name in known if name in out}


@cache
def _adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation, config=_STRICT)


def _refusal(kind: str, value: Any, context: Mapping[str, Any], field: Declared) -> str:
    wanted = field.wanted
    if kind == "literal_error":
        options = [v for v in _literals(field.annotation) if isinstance(v, str)]
        if isinstance(value, str) and options:
            return unknown(value, options, field.name)
        return f"{show(value)} is not possible here; give {wanted}"
    if kind == "finite_number" or (isinstance(value, float) and not math.isfinite(value)):
        return f"{show(value)} is not finite; give {wanted}"
    if kind.endswith("_type") or kind in ("int_from_float", "int_parsing", "float_parsing"):
        cure = " without quotes" if isinstance(value, str) and field.scalars & {int, float} and _numeric(value) else ""
        return f"{show(value)} is {noun(value)}; give {wanted}{cure}"
    if kind in ("too_short", "string_too_short"):
        return f"{show(value)} is empty or too short; give {wanted}"
    return f"{show(value)} is out of range; give {wanted}"


def _numeric(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _words(annotation: Any, bounds: str = "") -> Iterator[str]:
    """What each branch of an annotation takes, in words."""
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        yield from _words(inner, _bounds(metadata))
    elif get_origin(annotation) in (Union, UnionType):
        for branch in get_args(annotation):
            yield from _words(branch, bounds)
    elif get_origin(annotation) is Literal:
        yield " or ".join(show(v) for v in get_args(annotation))
    elif get_origin(annotation) in (tuple, list) or annotation in (tuple, list):
        inner = [a for a in get_args(annotation) if a is not Ellipsis]
        first = next(_words(inner[0]), "values") if inner else "values"
        article, _, rest = first.partition(" ")
        if article in ("a", "an"):
            head, space, tail = rest.partition(" ")
            first = f"{head}s{space}{tail}"
        yield f"a list of {first}"
    elif get_origin(annotation) is not None and get_args(annotation):
        yield 'a table with a kind, as in { kind = "erm" }'
    elif hasattr(annotation, "__value__"):
        yield from _words(annotation.__value__, bounds)
    elif annotation is not NoneType:
        yield _NOUNS.get(annotation, "a value") + bounds


def _bounds(metadata: list[Any]) -> str:
    text = []
    for m in metadata:
        for name, sign in (("gt", ">"), ("ge", "≥"), ("lt", "<"), ("le", "≤")):
            bound = getattr(m, name, None)
            if bound is not None:
                text.append(f"{sign} {bound}")
        if isinstance(m, limits.MultipleOf):
            text.append(f"a multiple of {m.multiple_of}")
    return " " + " and ".join(text) if text else ""


def _scalars(annotation: Any) -> Iterator[type]:
    if annotation is Any:
        yield from (bool, int, float, str)
    elif get_origin(annotation) is Literal:
        yield from {type(v) for v in get_args(annotation)}
    elif get_origin(annotation) is Annotated:
        yield from _scalars(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for branch in get_args(annotation):
            yield from _scalars(branch)
    elif hasattr(annotation, "__value__"):
        yield from _scalars(annotation.__value__)
    elif annotation in (bool, int, float, str):
        yield annotation


def _literals(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    elif hasattr(annotation, "__value__"):
        yield from _literals(annotation.__value__)
    else:
        for branch in get_args(annotation):
            yield from _literals(branch)
