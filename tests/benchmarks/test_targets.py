"""What is met and what is missed, from rows as the benches write them."""

import json

import pytest
from typer.testing import CliRunner

from shiftsort.benchmarks.targets import judge
from shiftsort.cli.app import app


def row(candidate, ms, *, samples=1024, group="all", layout="channel-major", **more):
    times = {name: {"median": value} for name, value in ms.items()}
    shape = [2**18 // samples, samples, 512]
    return {
        "candidate": candidate, "layout": layout, "shape": shape, "group_size": group,
        "failed": None, "ms": times, "of_copy": {}, "copies": {"backward": 1.0}, **more,
    }  # fmt: skip


def document(rows, bench="operator", **settings):
    settings = {"dtype": "bfloat16", "steps": "linear"} | settings
    return {"bench": bench, "results": rows, "settings": settings}


def finding(what, *documents):
    (found,) = [f for f in judge(documents) if f.target.what.startswith(what)]
    return found


def test_the_worst_of_all_shapes_counts():
    rows = [
        row("csp", {}, group=1, of_copy={"forward": 0.95, "backward": 0.91}),
        row("csp", {}, group=2, samples=1001, of_copy={"forward": 0.90, "backward": 0.92}),
        row("csp", {}, group=2, layout="token-major", of_copy={"forward": 0.1}),
    ]
    forward = finding("shift, pairs: channel-major, forward", document(rows[:2]), document(rows))
    assert (forward.worst, forward.verdict) == (0.90, "missed")
    assert "261 x 1001 x 512, G: 2" in forward.where
    assert finding("shift, pairs: channel-major, backward", document(rows)).verdict == "met"


def test_steps_and_dtypes_are_told_apart():
    rows = [row("csp", {}, group=2, layout="token-major", of_copy={"forward": 0.5})]
    long = [row("csp", {}, samples=16384, group=2, layout="token-major", of_copy={"forward": 0.5})]
    exponential = document(rows + long, steps="exponential")
    assert finding("the same, exponential steps, N up to", exponential).verdict == "missed"
    assert finding("the same, exponential steps, N beyond", exponential).verdict == "met"
    assert finding("shift, pairs: token-major", exponential).verdict == "not measured"
    assert finding("shift, pairs: token-major", document(rows, dtype="float32")).worst is None


@pytest.mark.parametrize(
    ("what", "worst", "verdict"),
    [
        ("complete sort, permutation kept: time, of CUB's", 0.8, "met"),
        ("complete sort, permutation kept: torch.sort", 1.5, "missed"),
        ("complete sort: time in reference order", 1.25, "missed"),
        ("every group: time with lengths", 1.0, "met"),
        ("groups of 256", 1.6, "met"),
        ("complete sort: backward, in copies", 1.0, "met"),
    ],
)
def test_ratios_to_others(what, worst, verdict):
    rows = [
        row("csp", {"forward": 1.0, "saving": 1.2, "both": 2.0}),
        row("csp", {"forward": 0.625, "both": 1.0}, group=256),
        row("CUB BlockRadixSort", {"forward": 1.5}),
        row("torch.sort alone", {"forward": 1.8}),
        row("csp, ascending", {"forward": 0.8}),
        row("csp with lengths", {"both": 2.0}),
        row("csp", {}, samples=2048) | {"failed": "out of memory"},
    ]
    found = finding(what, document(rows))
    assert (found.worst, found.verdict) == (pytest.approx(worst), verdict)


def test_the_cost_of_a_sample_at_an_ugly_length():
    rows = [row("csp", {"forward": ms}, samples=n) for n, ms in ((2000, 1.5), (2048, 1.0))]
    found = finding("complete sort: a sample", document(rows))
    assert found.worst == pytest.approx(1.5, rel=1e-2)
    assert "2000" in found.where


def test_layers(tmp_path):
    rows = [
        row("csp layer", {"both": 1.0}, group=2, peak_bytes={"both": 3}),
        row("attention layer, cudnn", {"both": 5.0}, group="any", peak_bytes={"both": 4}),
        row("projection + csp", {}, samples=4096, group=2, of_projection={"forward": 1.6}),
    ]
    layer = document(rows, bench="layer")
    assert finding("layer, pairs, N = 1024", layer).worst == 5.0
    assert finding("layer, pairs: cuDNN's peak", layer).verdict == "missed"
    assert finding("projection + pairs", layer).verdict == "met"

    path = tmp_path / "layer.json"
    path.write_text(json.dumps(layer | {"device": "x", "date": "", "command": ""}))
    shown = CliRunner().invoke(app, ["bench", "targets", str(path), "--markdown"])
    assert shown.exit_code == 0, shown.output
    assert (
        "| layer, pairs, N = 1024: cuDNN's takes so many times as long, f + b | ≥ 4 | 5 | met |"
        in (shown.output)
    )
    assert "not measured" in shown.output
