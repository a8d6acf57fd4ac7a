"""The picture shows what it says, and its page needs nothing beside it."""

import torch

import shiftsort
from shiftsort.studies import look, look_page


def test_a_token_is_a_patch_and_its_channels_are_the_pixels():
    image = torch.arange(16.0).reshape(4, 4)
    tokens = look.to_tokens(image)
    assert tokens[1].tolist() == [2, 3, 6, 7]
    assert torch.equal(look.to_image(tokens), image)


def test_the_digit_shows_swaps_in_every_channel_but_the_first():
    v_nc = look.digit_tokens()
    steps = shiftsort.shift_steps("linear", *v_nc.shape)
    changed = shiftsort.csp(v_nc, steps, 2) != shiftsort.csp(v_nc, steps, 1)
    assert changed.any(dim=0).tolist() == [False, True, True, True]


def test_picture_and_what_explains_it(tmp_path):
    timings = [
        look.Timing("attention", {8: 1.0, 16: 4.0}),
        look.Timing("ours <fast>", {8: 1.0, 16: 2.0}),
    ]
    plain, full = (tmp_path / name for name in ("plain.png", "full.png"))
    look.draw(plain)
    look.draw(full, timings, "a device")
    assert plain.read_bytes().startswith(b"\x89PNG")
    assert len(full.read_bytes()) > len(plain.read_bytes())
    text = look_page.explained(full, timings, channels=256, device="a device")
    assert "<td>16</td><td>4.00 ms</td><td>2.00 ms</td>" in text
    assert "ours &lt;fast&gt;" in text
    assert 'src="data:image/png;base64,iVBOR' in text
    assert "http" not in text
