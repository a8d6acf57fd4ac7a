"""What a stranger meets first: importing, the version, the command."""

import importlib.metadata
import importlib.resources
import subprocess
import sys

import pytest

import shiftsort


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def without(*packages: str) -> str:
    """Code that makes the packages seem not to be installed."""
    return f"""
from importlib.machinery import PathFinder
find_spec = PathFinder.find_spec
PathFinder.find_spec = lambda name, *others: (
    None if name.partition(".")[0] in {packages} else find_spec(name, *others)
)
"""


def test_import_pulls_in_nothing_beyond_torch() -> None:
    """Nor the parts of torch that are slow to import: the compiler and its sympy."""
    result = python(
        "import sys, torch; before = set(sys.modules); import shiftsort;"
        "print(*sorted({m for m in set(sys.modules) - before}))"
    )
    assert result.returncode == 0, result.stderr
    new = result.stdout.split()
    assert "shiftsort.operator.csp" in new
    assert [name for name in new if name.split(".")[0] != "shiftsort"] == []


def test_import_works_where_no_extra_is_installed() -> None:
    extras = ["numpy", "typer", "rich", "matplotlib", "sklearn", "scipy", "lightning", "triton"]
    result = python(
        without(*extras) + "import shiftsort, torch\n"
        "print(shiftsort.csp(torch.ones(4, 2), torch.arange(2)).sum().item())"
    )
    assert result.stdout.strip() == "8.0", result.stderr


def test_import_takes_a_small_part_of_torch_s_time() -> None:
    code = (
        "import time; a = time.perf_counter(); import torch; b = time.perf_counter();"
        "import shiftsort; c = time.perf_counter(); print((c - b) / (b - a))"
    )
    # one of three, since the machine may be busy
    assert any(float(python(code).stdout) < 0.1 for _ in range(3))


def test_public_names() -> None:
    assert {"CSP", "csp", "permutation", "attention_maps", "shift_steps"} <= set(shiftsort.__all__)
    for name in shiftsort.__all__:
        assert hasattr(shiftsort, name)


def test_typed() -> None:
    assert importlib.resources.files(shiftsort).joinpath("py.typed").is_file()


def test_version() -> None:
    try:
        installed = importlib.metadata.version("shiftsort")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("run from the source tree: there is no installed version to compare with")
    assert shiftsort.__version__ == installed


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return python(
        f"import sys; sys.argv[1:] = {list(arguments)}; import shiftsort.cli as c; c.main()"
    )


def test_doctor() -> None:
    result = run_command("doctor")
    assert result.returncode == 0, result.stderr
    for word in ("versions", shiftsort.__version__, "devices", "cpu", "kernels", "eager"):
        assert word in result.stdout


def test_the_command_says_its_version() -> None:
    assert run_command("--version").stdout.strip() == shiftsort.__version__


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_the_command_says_what_to_install(missing: str) -> None:
    result = python(without(missing) + "import shiftsort.cli as c; c.main()")
    assert result.returncode == 1
    assert f"needs the package '{missing}'" in result.stderr
    assert "pip install 'shiftsort[train]'" in result.stderr
    assert "Traceback" not in result.stderr
