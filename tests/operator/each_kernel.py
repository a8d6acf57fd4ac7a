"""A small run of every CUDA kernel, forward and back, for a checker to watch: see .ci/gpu.

compute-sanitizer --tool memcheck  python tests/operator/each_kernel.py
compute-sanitizer --tool racecheck python tests/operator/each_kernel.py
"""

import torch
from torch import Tensor

from shiftsort import csp

LAYOUTS = {
    "token-major": lambda v: v,
    "channel-major": lambda v: v.transpose(1, 2).contiguous().transpose(1, 2),
}
# group size, samples: pairs on aligned and ragged rows, both homes of the network in short rows and
# in long ones, the radix, a group that no block can hold
CASES = (
    *((1, 64), (2, 64), (2, 61), (8, 50), (8, 600), (100, 250), (100, 1000), (None, 1100)),
    (None, 60_000),
)


def bits(x: Tensor) -> Tensor:
    """NaN are not equal, their bits are."""
    return x.detach().cpu().contiguous().view(torch.uint8)


def main() -> None:
    """Run them all, and see that each does what plain torch does."""
    torch.manual_seed(0)
    done = 0
    for layout, lay in LAYOUTS.items():
        for group_size, samples in CASES:
            for dtype in (torch.bfloat16, torch.float32):
                v = torch.randn(2, samples, 16).to(dtype)
                v[0, ::7], v[0, 1::7] = torch.nan, -0.0  # and a sequence that has none of these
                grad = torch.randn_like(v)
                steps = torch.arange(16).mul(5)
                lengths = torch.tensor([samples, samples // 2 + 1])
                for valid in (None, lengths):
                    results = []
                    for device in ("cpu", "cuda"):
                        x = v.to(device).requires_grad_()
                        n = None if valid is None else valid.to(device)
                        y = csp(lay(x), steps.to(device), group_size, lengths=n)
                        results.append((y, *torch.autograd.grad(y, x, grad.to(device))))
                    for mine, theirs in zip(*results, strict=True):
                        if not torch.equal(bits(mine), bits(theirs)):
                            raise SystemExit(f"wrong: {layout}, G={group_size}, N={samples}")
                    done += 1
        print(f"{layout}: done", flush=True)
    print(f"{done} runs")


if __name__ == "__main__":
    main()
