"""Installing from a copy of the sources, with and without a compiler."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = ("pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", "src")


def build_wheel(tmp_path, extension):
    """Run pip where no compiler can be found; return its exit code, what it says, and the wheels."""
    sources, tools, wheels = tmp_path / "sources", tmp_path / "tools", tmp_path / "wheels"
    sources.mkdir()
    built = shutil.ignore_patterns("*.so", "__pycache__")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, sources / part, ignore=built)
        else:
            shutil.copy(ROOT / part, sources / part)
    tools.mkdir()
    for tool in ("cmake", "ninja"):  # pip brings those that are not there
        if found := shutil.which(tool):
            (tools / tool).symlink_to(found)
    environment = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX")}
    environment |= {"PATH": str(tools), "TENSORMACHINES_EXTENSION": extension}
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(wheels), str(sources)]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if "No matching distribution found" in run.stderr:
        pytest.skip("pip cannot download what a build needs")
    return run.returncode, run.stdout + run.stderr, list(wheels.glob("*.whl"))


@pytest.mark.slow
@pytest.mark.parametrize("extension", ["", "off"])
def test_without_a_compiler_the_wheel_has_python_only(tmp_path, extension):
    code, said, wheels = build_wheel(tmp_path, extension)
    assert code == 0, said
    assert [wheel.name.split("-", 2)[2] for wheel in wheels] == ["py3-none-any.whl"]
    names = zipfile.ZipFile(wheels[0]).namelist()
    assert "tensormachines/_model/numpy_kernel.py" in names
    assert not [name for name in names if name.endswith((".so", ".cpp", ".hpp"))]


@pytest.mark.slow
def test_without_a_compiler_an_extension_that_is_required_is_an_error(tmp_path):
    code, said, wheels = build_wheel(tmp_path, "on")
    assert code != 0
    assert "CMAKE_CXX_COMPILER" in said
    assert wheels == []
