"""The maps are the model's own, and their column sums are counted right."""

import pytest
import torch

from shiftsort.mixers.mha import MHA
from shiftsort.studies import doubly_stochastic
from shiftsort.studies.subject import watch


def test_the_maps_are_what_the_mixer_attends_with(tiny):
    subject = tiny("mha")
    (mixer, *_) = layers = subject.mixers(MHA)
    x_nc, y_nc = watch(subject, layers)[0][0]
    map_hnn = doubly_stochastic.attention_map(mixer, x_nc)
    v_hnd = mixer.project(x_nc[None])[2][0]
    heads_nc = (map_hnn @ v_hnd).transpose(0, 1).flatten(1)
    torch.testing.assert_close(mixer.out(heads_nc), y_nc)


def test_uniform_attention_is_doubly_stochastic_and_one_sided_is_not(tiny):
    even, one_sided = tiny("mha"), tiny("mha", trained=True)
    for mixer in even.mixers(MHA):
        torch.nn.init.zeros_(mixer.inner.weight)
    found = doubly_stochastic.measure([even, one_sided])
    assert found.models[0].deviations == pytest.approx([0, 0], abs=1e-5)
    assert found.models[1].deviation > 0.01
    figure = doubly_stochastic.draw(found)
    assert figure.get_suptitle() == "Training moved attention away from doubly stochastic maps"
    assert len(found.findings()) == 2


def test_a_model_without_attention_is_refused(tiny):
    with pytest.raises(ValueError, match="looks at MHA, and tiny, csp, fresh, has none"):
        doubly_stochastic.measure([tiny("csp")])
