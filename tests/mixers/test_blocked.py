"""Why there is a blocked attention of our own. When one of these fails, look again.

What it computes is held in test_sparse_maps.py.
"""

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from largest_tensor import LargestTensor

N, BLOCK = 256, 64


def same_block(b, h, i, j):
    return i // BLOCK == j // BLOCK


def test_flex_attention_has_no_gradient_on_a_cpu():
    mask = create_block_mask(same_block, None, None, N, N, device="cpu")
    q = torch.randn(1, 1, N, 16, requires_grad=True)
    with pytest.raises(NotImplementedError, match="does not support backward on CPU"):
        flex_attention(q, q, q, block_mask=mask)


def test_the_block_mask_of_flex_attention_is_made_from_the_whole_map():
    with LargestTensor() as largest:
        create_block_mask(same_block, None, None, N, N, device="cpu")
    assert largest.numel >= N * N
