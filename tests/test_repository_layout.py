"""The import star: pipeline composes tasks, storage and cluster, which never import each other."""

import ast
import tomllib
from pathlib import Path

import pytest

import predcube

ROOT = Path(predcube.__file__).parent
ROOMS = ("pipeline", "tasks", "storage", "cluster")
ALLOWED = {
    "pipeline": {"pipeline", "tasks", "storage", "cluster"},
    "tasks": {"tasks"},
    "storage": {"storage"},
    "cluster": {"cluster"},
}
ENGINES = {
    "tasks": {"dask", "distributed", "xarray", "zarr", "pyarrow", "pandas"},
    "storage": {"dask", "distributed"},
    "cluster": {"xarray", "zarr", "pyarrow", "pandas"},
    "pipeline": {"dask", "distributed", "zarr"},
}


def modules(room: str) -> list[Path]:
    found = sorted((ROOT / room).resolve().rglob("*.py"))
    assert found
    return found


def imports(path: Path) -> set[str]:
    """Every module that a file imports, also inside functions and under TYPE_CHECKING."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write predcube.…"
            module = node.module or ""
            names.add(module)
            names.update(f"{module}.{alias.name}" for alias in node.names)
    return names


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_the_star_allows(room: str) -> None:
    for path in modules(room):
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "predcube" and len(parts) > 1 and parts[1] in ROOMS:
                assert parts[1] in ALLOWED[room], f"{path.name} imports {name}"
            assert parts[0] not in ROOMS, f"{path.name} imports {name}: write predcube.{name}"
            assert parts[0] not in ENGINES[room], f"{path.name} imports {name}"


@pytest.mark.parametrize("room", ROOMS)
def test_no_module_bears_the_name_of_something_its_package_exports(room: str) -> None:
    package = __import__(f"predcube.{room}", fromlist=["__all__"])
    exported = set(getattr(package, "__all__", ()))
    beside = {p.stem for p in (ROOT / room).resolve().glob("*.py")}
    assert not exported & beside


def test_every_dependency_is_justified_in_a_line() -> None:
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {*project["dependencies"], *project["optional-dependencies"]["dev"]}
    names = {w.split(">")[0].split("<")[0].split("=")[0].strip() for w in wanted}
    lines = (ROOT.parents[1] / "docs" / "dependencies.md").read_text(encoding="utf-8").splitlines()
    justified = {line.split("`")[1] for line in lines if line.startswith("| `")}
    assert justified == names
