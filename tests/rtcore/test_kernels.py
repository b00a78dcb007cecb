"""Kernels without wrappers are called by kernels alone: Python would run into nothing."""

import ast
from functools import cache
from pathlib import Path

import numba
import numpy as np
import pytest

from rtcore import kernels

ROOT = Path(__file__).parents[2]
KERNELS = {"njit", "kernel", "inlined", "inner", "builder"}
SOURCES = sorted([*ROOT.glob("rtcore/**/*.py"), *ROOT.glob("haptics/*.py")])
CALLERS = sorted(path for name in ("bridge", "tools", "tests", "docs") for path in ROOT.glob(f"{name}/**/*.py"))


def decorated(node: ast.FunctionDef) -> set[str]:
    return {ast.unparse(decorator).split("(")[0] for decorator in node.decorator_list}


def calls_from_python(tree: ast.AST, inner: set[str], kernel: bool = False) -> list[str]:
    """Names of inner kernels that are used outside of kernels."""
    found = []
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef):
            found += calls_from_python(child, inner, bool(decorated(child) & KERNELS))
        else:
            if isinstance(child, ast.Name) and child.id in inner and not kernel:
                found.append(child.id)
            found += calls_from_python(child, inner, kernel)
    return found


@cache
def without_wrappers(path: Path) -> set[str]:
    """Names of the kernels of a module that only kernels call."""
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    return {node.name for node in functions if decorated(node) & {"inner", "builder"}}


def imported(tree: ast.Module) -> set[str]:
    """Kernels without wrappers that a module has from others."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            path = ROOT.joinpath(*node.module.split(".")).with_suffix(".py")
            if path in SOURCES:
                names = without_wrappers(path)
                found |= {alias.asname or alias.name for alias in node.names if alias.name in names}
    return found


@pytest.mark.parametrize("path", [*SOURCES, *CALLERS], ids=lambda path: str(path.relative_to(ROOT)))
def test_only_kernels_call_kernels_without_wrappers(path):
    """Where a module is imported whole, as none that has them is elsewhere, its names would not be seen."""
    tree = ast.parse(path.read_text())
    inner = imported(tree) | (without_wrappers(path) if path in SOURCES else set())
    if path.name != "warm_up.py":
        assert calls_from_python(tree, inner) == []


@pytest.mark.parametrize("without", [True, False])
def test_kernels_count_no_references(without):
    """The second case is what numba does by itself: the check would see it."""
    options = {**kernels._OPTIONS, "cache": False}
    if not without:
        del options["_nrt"]

    def least(tables):
        best = tables[0][0]
        for table in tables:
            for i in range(len(table)):
                if table[i].x < best.x:
                    best = table[i]
        best.y = 1.0
        return best.x

    compiled = numba.njit(**options)(least)
    fields = [("x", "f8"), ("y", "f8")]
    assert compiled((np.ones(1, fields), np.full(2, 3.0, fields))) == 1.0
    code = next(iter(compiled.inspect_llvm().values()))
    assert ("NRT_incref" in code) != without
