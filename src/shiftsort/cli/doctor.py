"""`shiftsort doctor`: what is here, what runs, and why the rest does not."""

import importlib.metadata
import platform

import torch
from rich.console import Console
from rich.table import Table

import shiftsort
from shiftsort.operator import plan

_PACKAGES = ("torch", "triton", "numpy", "lightning", "timm", "transformers", "matplotlib")


def doctor() -> None:
    """Print versions, devices, and which kernels are available (and why the others are not)."""
    console = Console()

    versions = Table("package", "version", title="versions", title_justify="left")
    versions.add_row("shiftsort", shiftsort.__version__)
    versions.add_row("python", platform.python_version())
    for package in _PACKAGES:
        try:
            versions.add_row(package, importlib.metadata.version(package))
        except importlib.metadata.PackageNotFoundError:
            versions.add_row(package, "[dim]not installed[/dim]")
    console.print(versions)

    devices = Table("device", "what", title="devices", title_justify="left")
    devices.add_row("cpu", f"{torch.get_num_threads()} threads, {platform.machine()}")
    for index in range(torch.cuda.device_count()):
        found = torch.cuda.get_device_properties(index)
        devices.add_row(
            f"cuda:{index}",
            f"{found.name}, {found.total_memory / 2**30:.0f} GiB, "
            f"compute capability {found.major}.{found.minor}",
        )
    if torch.backends.mps.is_available():
        devices.add_row("mps", "Apple GPU (plain torch)")
    console.print(devices)

    kernels = Table("kernel", "serves", "here", title="kernels", title_justify="left")
    for kernel in plan.kernels():
        reason = kernel.unavailable()
        here = "[green]yes[/green]" if reason is None else f"[yellow]no:[/yellow] {reason}"
        kernels.add_row(kernel.name, kernel.serves, here)
    console.print(kernels)
