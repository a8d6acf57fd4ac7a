"""A small run of every CUDA kernel, forward and back, for a checker to watch.

compute-sanitizer --tool memcheck  python tests/operator/each_kernel.py
compute-sanitizer --tool racecheck python tests/operator/each_kernel.py
"""

import torch

from shiftsort import csp

LAYOUTS = {
    "token-major": lambda v: v,
    "channel-major": lambda v: v.transpose(1, 2).contiguous().transpose(1, 2),
}
# group size, samples: pairs on aligned and ragged rows, both homes of the network, the radix
CASES = ((1, 64), (2, 64), (2, 61), (8, 50), (100, 250), (None, 1100))


def main() -> None:
    """Run them all, and see that each is finite."""
    torch.manual_seed(0)
    done = 0
    for layout, lay in LAYOUTS.items():
        for group_size, samples in CASES:
            for dtype in (torch.bfloat16, torch.float32):
                v = torch.randn(2, samples, 16).to(dtype).cuda().requires_grad_()
                steps = torch.arange(16).mul(5).cuda()
                lengths = torch.tensor([samples, samples // 2 + 1]).cuda()
                for valid in (None, lengths):
                    y = csp(lay(v), steps, group_size, lengths=valid)
                    (grad,) = torch.autograd.grad(y, v, torch.randn_like(y))
                    if not (y.isfinite().all() and grad.isfinite().all()):
                        raise SystemExit(f"not finite: {layout}, G={group_size}, N={samples}")
                    done += 1
    print(f"{done} runs")


if __name__ == "__main__":
    main()
