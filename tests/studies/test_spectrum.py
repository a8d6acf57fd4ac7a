"""Spectra are those of the layers' outputs, model by model."""

import pytest
import torch

from shiftsort.studies import spectrum


def test_shares_of_the_largest():
    x = torch.linalg.qr(torch.randn(6, 3))[0] * torch.tensor([4.0, 2.0, 1.0])
    assert spectrum.spectrum(x).tolist() == pytest.approx([1, 0.5, 0.25], rel=1e-5)


def test_measure(tiny):
    found = spectrum.measure([tiny("mha"), tiny("csp"), tiny("csp", trained=True)])
    assert [(model.mixer, model.trained) for model in found.models] == [
        ("mha", False),
        ("csp", False),
        ("csp", True),
    ]
    for model in found.models:
        assert [len(values) for values in model.values] == [12, 12]
        assert all(values == sorted(values, reverse=True) for values in model.values)
        assert all(values[0] == 1 for values in model.values)
        assert model.evenness == pytest.approx(sum(model.values[-1]) / 12)
    figure = spectrum.draw(found)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["tiny, fresh models", "tiny, trained"]
