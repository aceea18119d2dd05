"""The package as such: its documentation, its types, and what importing it takes."""

import ast
import doctest
import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

import moe_permute as mp
import pytest

ROOT = Path(mp.__file__).parent
PUBLIC = [name for name in mp.__all__ if callable(getattr(mp, name))]
MODULES = ["moe_permute.core", "moe_permute.ranges", "moe_permute.settings"]
FRAMEWORKS = {
    "moe_permute.compat": "torch",
    "moe_permute.jax._functions": "jax",
    "moe_permute.torch._functions": "torch",
    "moe_permute.torch._layer": "torch",
}


def run_doctests(module):
    results = doctest.testmod(importlib.import_module(module))
    assert results.attempted > 0 and results.failed == 0


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_the_core(module):
    run_doctests(module)


@pytest.mark.parametrize("module", FRAMEWORKS)
def test_examples_of_frameworks(module):
    pytest.importorskip(FRAMEWORKS[module], reason=f"{FRAMEWORKS[module]} is not installed")
    if FRAMEWORKS[module] == "jax" and not mp.config()["jax"]:
        pytest.skip("moe_permute was built without jaxlib")
    run_doctests(module)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_function_is_documented(name):
    function = getattr(mp, name)
    assert ">>>" in function.__doc__
    signature = inspect.signature(function)
    assert all(p.annotation is not p.empty for p in signature.parameters.values())
    assert signature.return_annotation is not signature.empty
    if signature.parameters:
        assert "Args:" in function.__doc__ and "Raises:" in function.__doc__
    for parameter in signature.parameters:
        assert f"{parameter}:" in function.__doc__


def test_types_are_marked():
    assert (ROOT / "py.typed").is_file()


def test_the_stub_names_what_the_extension_has():
    stub = importlib.util.find_spec("moe_permute").submodule_search_locations
    path = next(p for p in (Path(s) / "_native.pyi" for s in stub) if p.is_file())
    functions = [n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef)]
    native = sys.modules["moe_permute._native"]
    assert sorted(functions) == sorted(n for n in dir(native) if not n.startswith("_"))


def test_importing_takes_numpy_only():
    code = (
        "import sys, moe_permute; "
        "print([m for m in ('torch', 'jax', 'jaxlib', 'ml_dtypes', 'scipy') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert mp.__version__ == version("moe-permute") == mp.config()["version"]


def test_config(capsys):
    config = mp.config()
    assert config["num_threads"] >= 1
    for operator in ("permute", "permute_grad", "unpermute", "unpermute_grad", "sort_indices"):
        assert "portable" in config["kernels"][operator]
    mp.show_config()
    shown = capsys.readouterr().out
    assert config["version"] in shown and "portable" in shown
