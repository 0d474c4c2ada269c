"""What was summed up of tables, by name: in goes a name, out comes a result of the science, from memory or the store.

Always true: a name is a digest of all that the result depends on, so a result is never taken for another; a result that
is an error says so wherever it is taken.
"""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from predcube.pipeline import stored
from predcube.storage import moments

HELD = 256
"""Results that a shelf keeps in memory besides those it has put itself without a store."""


class Broken(ValueError):
    """A result that could not be computed; the message says why."""


def name_of(what: str, *identity: Any) -> str:
    """The name of a result: what it is, and a digest of what it depends on."""
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"{what}_{hashlib.sha256(text.encode()).hexdigest()[:20]}"


class Shelf:
    """The results of one store; of this process alone where ``url`` is None."""

    def __init__(self, url: str | None = None) -> None:
        self.url = url
        self._held: OrderedDict[str, Any] = OrderedDict()
        self._names: set[str] = set(moments.entry_names(url)) if url is not None else set()

    def find(self, name: str) -> Any:
        """A result, None where there is none. Raises ``Broken`` where it is an error."""
        if name not in self._held:
            entry = None if self.url is None or name not in self._names else moments.get_entry(self.url, name)
            if entry is None:
                return None
            self._hold(name, stored.decode(*entry))
        self._held.move_to_end(name)
        found = self._held[name]
        if isinstance(found, dict) and found.keys() == {"error"}:
            raise Broken(found["error"])
        return found

    def has(self, name: str) -> bool:
        """Whether there is a result or an error of this name."""
        try:
            return self.find(name) is not None
        except Broken:
            return True

    def put(self, name: str, result: Any) -> None:
        """Keeps a result."""
        if self.url is not None:
            moments.put_entry(self.url, name, *stored.encode(result))
            self._names.add(name)
        self._hold(name, result)

    def fail(self, name: str, error: str) -> None:
        """Keeps an error in a result's place."""
        self.put(name, {"error": error})

    def forget_errors(self, names: Iterable[str]) -> None:
        """Removes those of some results that are errors, so that they are tried again."""
        for name in names:
            try:
                self.find(name)
            except Broken:
                del self._held[name]
                self._names.discard(name)
                if self.url is not None:
                    moments.drop_entries(self.url, [name])

    def moved_to(self, url: str) -> "Shelf":
        """The shelf of a store with what this one holds put there too."""
        shelf = Shelf(url)
        for name, result in self._held.items():
            if name not in shelf._names:
                shelf.put(name, result)
        return shelf

    def _hold(self, name: str, result: Any) -> None:
        self._held[name] = result
        while self.url is not None and len(self._held) > HELD:
            self._held.popitem(last=False)


@lru_cache(maxsize=4)
def shelf_at(url: str, generation: str) -> Shelf:
    """A worker's shelf of a store as it is when it is first asked; ``generation`` tells one run from another."""
    return Shelf(url)
