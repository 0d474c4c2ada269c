"""What is wrong with a spec, said so that it can be mended: in go places, values and cures, out comes one message.

Always true: a mistake names its dotted path in the file, the value that stands there, and the cure.
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from predcube.pipeline.failures import BadInput

SHOWN = 60  # characters of a value, 40 values of a list: more hides the message
LISTED = 12


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Mistake:
    """One thing to mend. ``path`` is "" where the file as a whole is meant."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass(slots=True)
class Mistakes:
    """Mistakes as they are found, each once, in the order of the checks."""

    found: list[Mistake] = field(default_factory=list)

    def add(self, path: str, message: str) -> None:
        mistake = Mistake(path=path, message=message)
        if mistake not in self.found:
            self.found.append(mistake)

    def at(self, *paths: str) -> bool:
        """Whether something at or below one of the paths is wrong."""
        return any(m.path == p or m.path.startswith((p + ".", p + "[")) for m in self.found for p in paths)


def failure(mistakes: Iterable[Mistake], source: str) -> BadInput:
    """The one error that shows every mistake."""
    found = list(mistakes)
    if len(found) == 1:
        return BadInput(f"{source}: {found[0]}")
    return BadInput("\n".join([f"{source}: {len(found)} problems", *(f"  {m}" for m in found)]))


def show(value: Any) -> str:
    """A value as it would be written in TOML, cut to what a message can carry."""
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, str):
        text = f'"{value}"'
    elif isinstance(value, dict):
        text = "{ " + ", ".join(f"{k} = {show(v)}" for k, v in value.items()) + " }"
    elif isinstance(value, list | tuple):
        text = "[" + ", ".join(show(v) for v in value[:LISTED]) + (", …]" if len(value) > LISTED else "]")
    else:
        text = str(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def noun(value: Any) -> str:
    """What sort of TOML value this is."""
    names = {bool: "a boolean", int: "an integer", float: "a float", str: "a string", list: "a list", dict: "a table"}
    return names.get(type(value), f"a {type(value).__name__}")


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known name that was probably meant, or nothing."""
    return difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)


def unknown(name: str, known: Iterable[str], what: str, of: str = "") -> str:
    """That a name is not known (``of`` whom), with the nearest known one or else all of them."""
    names = list(known)
    said = f'unknown {what} "{name}"' + (f' of "{of}"' if of else "")
    near = nearest(name, names)
    if near:
        return f'{said}; did you mean "{near[0]}"?'
    return f"{said}; give one of {', '.join(names)}" if names else f"{said}; none is taken here: remove it"
