"""Imports between the rooms of the package point downwards only."""

import ast
import sys
from pathlib import Path

import pytest

import tensormachines

ROOT = Path(tensormachines.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# A room may import the rooms before it. Rooms in one group do not import each other.
GROUPS = [
    ["_model"],
    ["_data"],
    ["_fit", "blocks"],
    ["estimators", "datasets"],
    ["peers"],
    ["inspection", "export", "persistence"],
    ["plots"],
    ["report"],
    ["experiments"],
    ["cli"],
]
LEVEL = {room: level for level, group in enumerate(GROUPS) for room in group}

# `model.save(path)` must know the file format, which knows all estimators.
UPWARDS = {("estimators/fitted_model.py", "persistence"), ("estimators/best_estimator.py", "persistence")}

REQUIRED = {
    "numpy",
    "scipy",
    "sklearn",
    "joblib",
    "threadpoolctl",
    "tensormachines",
    *sys.stdlib_module_names,
}
SCIKIT_LEARN = {"sklearn", "joblib"}
OF_DASK = [f"_data/{name}.py" for name in ("dask", "dask_beside", "dask_blocks", "dask_shares")]
SOLVER_IMPORTS = {"tensormachines._fit.solvers", "tensormachines._model.native"}


def imports(path):
    """Yield (full module name, whether at the top level) of each import in a file, dynamic ones included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = ["tensormachines", *path.relative_to(ROOT).parent.parts]
    top = set(map(id, top_level(tree)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in top
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *(node.module.split(".") if node.module else [])])
            for alias in node.names:
                yield f"{module}.{alias.name}", id(node) in top
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).endswith("import_module")
            and isinstance(node.args[0], ast.Constant)
        ):
            name = node.args[0].value
            yield (f"tensormachines{name}" if name.startswith(".") else name), False


def top_level(tree):
    """Yield the statements that run on import, those under `if TYPE_CHECKING` and in `try` excepted."""
    for node in tree.body:
        if not isinstance(node, ast.If | ast.Try):
            yield node


def room_of(module):
    parts = module.split(".")
    return parts[1] if parts[0] == "tensormachines" and len(parts) > 1 and parts[1] in LEVEL else None


def relative(path):
    return path.relative_to(ROOT).as_posix()


def test_every_file_has_a_room():
    at_the_root = {path.name for path in FILES if path.parent == ROOT}
    assert at_the_root <= {"__init__.py", "__main__.py", *(f"{room}.py" for room in LEVEL)}
    assert len(at_the_root) <= 8
    assert {path.relative_to(ROOT).parts[0] for path in FILES if path.parent != ROOT} <= set(LEVEL)


@pytest.mark.parametrize("path", [path for path in FILES if path.name != "__main__.py"], ids=relative)
def test_arrows_point_downwards(path):
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if room not in LEVEL:  # the package itself imports names lazily
        return
    for module, _ in imports(path):
        target = room_of(module)
        if target is None or target == room or (relative(path), target) in UPWARDS:
            continue
        assert LEVEL[target] < LEVEL[room], f"{relative(path)} imports {module}"


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_scikit_learn_from_the_estimators_up(path):
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if room in ("_model", "_data", "_fit", "blocks"):
        assert not {module for module, _ in imports(path) if module.split(".")[0] in SCIKIT_LEARN}


@pytest.mark.parametrize("path", sorted((ROOT / "_fit" / "solvers").glob("*.py")), ids=relative)
def test_solvers_know_their_protocol_and_the_extension_alone(path):
    own = [module for module, _ in imports(path) if module.startswith("tensormachines")]
    assert all(module.startswith(tuple(SOLVER_IMPORTS)) for module in own), own


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_optional_packages_are_imported_inside_functions(path):
    optional = {module for module, at_top in imports(path) if at_top and module.split(".")[0] not in REQUIRED}
    of_dask = relative(path) in OF_DASK
    allowed = {"dask", "distributed"} if of_dask else set()
    assert {module.split(".")[0] for module in optional} <= allowed, optional


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_private_names_of_scikit_learn_stand_in_one_file(path):
    if relative(path) != "estimators/sklearn_private.py":
        private = [
            module
            for module, _ in imports(path)
            if module.startswith("sklearn.") and any(part.startswith("_") for part in module.split("."))
        ]
        assert not private


def test_no_file_runs_code():
    """Nothing unpickles or evaluates what a file holds; examples in docstrings are not looked at."""
    found = [
        f"{path.relative_to(ROOT)}: {ast.unparse(node)}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and (
            ast.unparse(node.func) in ("eval", "exec", "joblib.load", "pickle.load", "pickle.loads")
            or any(
                word.arg == "allow_pickle" and ast.unparse(word.value) != "False" for word in node.keywords
            )
        )
    ]
    assert found == []
