"""What the bodies share."""

import pytest
import torch

from shiftsort.models.parts import BatchNorm, mean_of_valid


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_of_padded_sequences_is_that_of_their_valid_samples(training):
    lengths = torch.tensor([9, 1, 4])
    valid = torch.arange(9) < lengths[:, None]
    x = 3 + 2 * torch.randn(3, 9, 5)
    ours, torchs = BatchNorm(5, momentum=0.3), torch.nn.BatchNorm1d(5, momentum=0.3)
    for norm in (ours, torchs):
        torch.nn.init.constant_(norm.weight, 2)
        torch.nn.init.constant_(norm.bias, 3)
        norm.train(training)
    results = []
    for norm, samples in ((ours, x.masked_fill(~valid[..., None], float("nan"))), (torchs, x)):
        samples = samples.clone().requires_grad_()
        y = norm(samples, valid)[valid] if norm is ours else norm(samples[valid])
        y.square().sum().backward()
        results.append((y, samples.grad[valid], norm.weight.grad, norm.bias.grad, *norm.buffers()))
    for got, expected in zip(*results, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    everything = torch.ones(3, 9, dtype=torch.bool)
    torch.testing.assert_close(ours(x), ours(x, everything), rtol=1e-4, atol=1e-4)


def test_the_mean_is_of_valid_samples():
    x = torch.randn(2, 4, 3)
    x[1, 3] = float("nan")
    means = mean_of_valid(x, torch.tensor([4, 3]))
    torch.testing.assert_close(means, torch.stack((x[0].mean(0), x[1, :3].mean(0))))
