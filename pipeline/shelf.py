"""What was summed up of tables, by name: in goes a name, out comes a result of the science, from memory or the store.

Always true: a name is a digest of all that the result depends on, so a result is never taken for another; a result that
is an error says so wherever it is taken.
"""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from predcube.pipeline import stored
from predcube.storage import moments

HELD = 2**27
"""Bytes, about, of a store's results that a shelf keeps in memory: the two latest in any case."""

BUNDLE = "bundle"


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
        self._sizes: dict[str, int] = {}
        self._small: dict[str, Any] = {}  # results that lie together in bundles
        self._bundles: set[str] = set()  # those that were read

    def find(self, name: str) -> Any:
        """A result, None where there is none. Raises ``Broken`` where it is an error."""
        found = self._small.get(name, self._held.get(name))
        if found is None and self.url is not None:
            entry = moments.get_entry(self.url, name)
            found = self._bundled(name) if entry is None else stored.decode(*entry)
            self._sizes[name] = 0 if entry is None else entry[0].nbytes
        if found is None:
            return None
        if isinstance(found, dict) and found.keys() == {"error"}:
            raise Broken(found["error"])
        if name not in self._small:
            self._hold(name, found)
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
            values, about = stored.encode(result)
            moments.put_entry(self.url, name, values, about)
            self._sizes[name] = values.nbytes
        self._hold(name, result)

    def put_together(self, results: Mapping[str, Any]) -> None:
        """Keeps small results as one entry: a store of ten thousand entries is slow to open."""
        if self.url is not None and results:
            bundle = name_of(BUNDLE, sorted(results))
            moments.put_entry(self.url, bundle, *stored.encode(dict(results)))
            self._bundles.add(bundle)
        self._small |= results

    def fail(self, name: str, error: str) -> None:
        """Keeps an error in a result's place."""
        self.put(name, {"error": error})

    def forget_errors(self, names: Iterable[str]) -> None:
        """Removes those of some results that are errors, so that they are tried again."""
        for name in names:
            try:
                self.find(name)
            except Broken:
                self._held.pop(name, None)
                if self.url is not None:
                    moments.drop_entries(self.url, [name])

    def _bundled(self, name: str) -> Any:
        """A small result of a store, whose bundles are read the first time that one is missing."""
        if self.url is None:
            return None
        for bundle in moments.entry_names(self.url):
            if bundle.startswith(f"{BUNDLE}_") and bundle not in self._bundles:
                self._bundles.add(bundle)
                entry = moments.get_entry(self.url, bundle)
                self._small |= {} if entry is None else stored.decode(*entry)
        return self._small.get(name)

    def _hold(self, name: str, result: Any) -> None:
        if self.url is not None and isinstance(result, dict) and result.keys() == {"error"}:
            return  # another run may mend it
        self._held[name] = result
        self._held.move_to_end(name)
        if self.url is not None:
            held = sum(self._sizes[n] for n in self._held)
            while held > HELD and len(self._held) > 2:
                held -= self._sizes[self._held.popitem(last=False)[0]]


@lru_cache(maxsize=4)
def shelf_at(url: str, generation: str) -> Shelf:
    """A worker's shelf of a store as it is when it is first asked; ``generation`` tells one run from another."""
    return Shelf(url)
