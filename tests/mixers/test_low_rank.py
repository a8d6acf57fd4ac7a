"""Linformer and Luna: keys and values through a short sequence."""

import pytest
import torch
from naive import agree, build, heads, parts, softmax_attention

N = 9


@pytest.mark.parametrize("lengths", [None, [N, 4]])
@pytest.mark.parametrize("share", [True, False])
def test_linformer_projects_keys_and_values_along_the_sequence(lengths, share):
    mixer = build("linformer", 20, rank=4, share=share)

    def definition(x, valid):
        q, k, v = (t * valid[:, None, :, None] for t in parts(mixer, x))
        e_k, e_v = mixer.rows[0, :N], mixer.rows[-1, :N]
        k = torch.einsum("nr,bhnd->bhrd", e_k, k)
        v = torch.einsum("nr,bhnd->bhrd", e_v, v)
        return softmax_attention(q, k, v)

    agree(mixer, definition, N, lengths)


@pytest.mark.parametrize("name", ["linformer", "synthesizer", "bigbird", "sinkhorn"])
def test_what_is_tied_to_the_length_says_so(name):
    mixer = build(name, 5)
    with pytest.raises(ValueError, match="made for up to 5 samples, got 6; build it with a larger"):
        mixer(torch.zeros(1, 6, 12, dtype=torch.float64))


@pytest.mark.parametrize("lengths", [None, [N, 4]])
def test_luna_packs_and_unpacks(lengths):
    mixer = build("luna", N, packed=3)

    def definition(x, valid):
        q, context = parts(mixer, x)
        p = heads(mixer.pack_query(mixer.pack)[None]).expand(len(x), -1, -1, -1)
        packed = softmax_attention(p, context, context, valid[:, None, None])
        unpacked = heads(mixer.unpack_key(packed.transpose(1, 2).flatten(2)))
        return softmax_attention(q, unpacked, unpacked)

    agree(mixer, definition, N, lengths)
