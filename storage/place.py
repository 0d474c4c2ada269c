"""Where a store lies: in goes a URL, out come keys and their bytes. The only module that knows what a URL means.

Always true: reading never creates anything, a key is written whole or not at all (the store renames), and whatever
the place refuses becomes a StoreError that names the place and the cure.
"""

import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from zarr.abc.store import Store
from zarr.buffer.cpu import Buffer, buffer_prototype
from zarr.core.sync import sync
from zarr.errors import ZarrUserWarning
from zarr.storage import LocalStore

from predcube.storage.failures import StoreError

ORPHAN = ".partial"  # what LocalStore's temporary files end with; a killed writer leaves one behind


def local_path(url: str) -> Path:
    """The folder a URL stands for (a path, or ``file://…``).

    Raises StoreError for any other kind of place: a store in memory would arrive empty on workers.
    """
    if not url.strip():
        raise StoreError("the store's place is empty; give a path such as results.zarr")
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    if "://" in url:
        raise StoreError(f"store {url!r}: a {parts.scheme!r} place is not built in; give a path on a file system")
    try:
        return Path(url).expanduser()  # `--store=~/x` reaches us as it stands
    except RuntimeError:
        raise StoreError(f"store {url!r}: there is no such home folder; give a path such as results.zarr") from None


def open_store(url: str, *, read_only: bool) -> Store:
    """The Zarr store at a URL. A store that is opened to read must be there already."""
    path = local_path(url)
    if is_vacant(url) and read_only:
        raise StoreError(f"there is no store at {url!r}; make one with `predcube run SPEC --store {url}`")
    return LocalStore(path, read_only=read_only)


def is_vacant(url: str) -> bool:
    """Whether nothing lies at a URL yet: no folder, or an empty one."""
    path = local_path(url)
    with refusals(url):
        if not path.exists():
            return True
        if not path.is_dir():
            raise StoreError(f"store {url!r} is a file; a store is a folder: choose another place")
        # A writer killed at its very first key leaves an orphan and nothing else.
        return all(entry.name.endswith(ORPHAN) for entry in path.iterdir())


@contextmanager
def refusals(url: str) -> Iterator[None]:
    """Turns what the operating system refuses into a message that names the store."""
    try:
        yield
    except (OSError, RuntimeError) as e:
        reason = getattr(e, "strerror", None) or str(e)
        raise StoreError(
            f"store {url!r} cannot be used: {reason.lower()}; choose a place that exists and may be written"
        ) from e


def get(store: Store, key: str) -> bytes | None:
    """A key's bytes, None where there is no such key."""
    value = sync(store.get(key, buffer_prototype))
    return None if value is None else value.to_bytes()


def put(store: Store, key: str, value: bytes) -> None:
    """Writes a key whole."""
    sync(store.set(key, Buffer.from_bytes(value)))


def delete(store: Store, key: str) -> None:
    """Removes a key; nothing happens where there is none."""
    sync(store.delete(key))


def delete_prefix(store: Store, prefix: str) -> None:
    """Removes every key below a prefix."""
    sync(store.delete_dir(prefix))


def remove(store: Store, name: str) -> None:
    """Removes a key and every key below it."""
    delete(store, name)  # a store of files removes a folder with it
    delete_prefix(store, name)


def keys(store: Store, prefix: str) -> list[str]:
    """Every key below a prefix, sorted; leftovers of killed writers are not among them."""
    return sorted(k for k in sync(_collect(store.list_prefix(prefix))) if not k.endswith(ORPHAN))


def names(store: Store, prefix: str) -> list[str]:
    """What lies directly below a prefix, sorted."""
    return sorted(sync(_collect(store.list_dir(prefix))))


def remove_orphans(store: Store, *prefixes: str) -> None:
    """Removes the leftovers of killed writers that lie directly below the prefixes. For the driver, when no worker
    of its own is writing yet."""
    for prefix in prefixes:
        for name in names(store, prefix):
            if name.endswith(ORPHAN):
                delete(store, f"{prefix}/{name}" if prefix else name)


@contextmanager
def orphans_ignored() -> Iterator[None]:
    """Silences Zarr's remark that a leftover of a killed writer is neither array nor group."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Object at .* is not recognized", ZarrUserWarning)
        yield


async def _collect(found: AsyncIterator[str]) -> list[str]:
    return [key async for key in found]
