"""`shiftsort report`: what stands on the page, that it needs no network, and how it is drawn."""

import re
from xml.etree import ElementTree

import pytest
from made_runs import make_run
from typer.testing import CliRunner

from browser import console_of, needs_a_browser
from shiftsort.cli.app import app
from shiftsort.reporting import chart, page, runs

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def folders(tmp_path):
    csp = make_run(tmp_path / "csp")
    again = make_run(tmp_path / "again", seed=1, test={"top1": 85.0, "top5": 99.4, "loss": 0.5})
    mha = make_run(
        tmp_path / "mha", row="mha", recipe="cifar10/mha", parameters=9_523_722,
        test={"top1": 78.8, "top5": 98.9, "loss": 0.7}, steps_per_second=60.0,
        peak_memory_bytes=4_800_000_000,
    )  # fmt: skip
    return [csp, again, mha]


def report(out, *folders):
    return CliRunner().invoke(app, ["report", *map(str, folders), "-o", str(out)])


def drawings(html):
    found = re.findall(r"<svg.*?</svg>", html, re.S)
    return [ElementTree.fromstring(svg) for svg in found]


def text_of(html):
    return " ".join(re.sub(r"<style.*?</style>|<[^>]+>", " ", html, flags=re.S).split())


def test_the_page_tells_what_a_stranger_wants_to_know(tmp_path, folders):
    out = tmp_path / "new" / "report.html"
    result = report(out, *folders)
    assert result.exit_code == 0, result.output
    assert str(out) in result.output.replace("\n", "")
    said = text_of(out.read_text())
    assert "csp 84.81 84.50 ± 0.71 99.35 99.30 ± 0.14 6,377,994 2 78,200 of 78,200 (100 %)" in said
    assert "do not compare" not in said
    assert "csp 1.20 GB; mha 4.80 GB" in said
    assert "One line for each seed." in said
    assert "shiftsort train cifar10/csp" in said
    assert "NVIDIA H200, bf16-mixed" in said


def test_the_page_asks_for_nothing_that_is_not_in_it(folders):
    html = page.page([runs.read_run(folder) for folder in folders])
    assert re.findall(r'(?:src|href)="(?!data:)', html) == []
    assert re.findall(r"url\(|@import|<script", html) == []
    assert set(re.findall(r"https?://[^\"' <]+", html)) <= {"http://www.w3.org/2000/svg"}


def test_every_run_has_its_curves(folders):
    accuracy, loss, _ = drawings(page.page([runs.read_run(folder) for folder in folders]))
    for drawing in (accuracy, loss):
        told = [line.find(f"{SVG}title").text for line in drawing.iter(f"{SVG}polyline")]
        assert sorted(told) == [
            "csp, seed 0", "csp, seed 0, on training data", "csp, seed 1",
            "csp, seed 1, on training data", "mha, seed 0", "mha, seed 0, on training data",
        ]  # fmt: skip


def test_a_disk_is_where_its_speed_and_accuracy_are_and_as_large_as_its_memory(folders):
    *_, disks = drawings(page.page([runs.read_run(folder) for folder in folders]))
    circles = {c.find(f"{SVG}title").text.split(":")[0]: c for c in disks.iter(f"{SVG}circle")}
    mha, csp = circles["mha"], circles["csp"]
    assert float(csp.get("cx")) > float(mha.get("cx"))
    assert float(csp.get("cy")) < float(mha.get("cy"))  # up is less in SVG
    assert float(mha.get("r")) / float(csp.get("r")) == pytest.approx(2, rel=0.02)


def test_memory_that_was_not_measured_is_a_ring_and_is_said(tmp_path):
    folder = make_run(tmp_path / "run", peak_memory_bytes=None)
    html = page.page([runs.read_run(folder)])
    (circle,) = drawings(html)[-1].iter(f"{SVG}circle")
    assert circle.get("fill") == "none"
    assert "A dashed ring: memory was not measured." in html


def test_other_devices_other_lengths_and_other_choices_are_said(tmp_path):
    a = make_run(tmp_path / "a", steps=39_100)
    b = make_run(tmp_path / "b", row="mha", device="a laptop", chosen_on="validation")
    said = text_of(page.page([runs.read_run(a), runs.read_run(b)]))
    assert "39,100 of 78,200 (50 %)" in said
    assert "where training was shorter than published, the two numbers do not compare" in said
    assert "These ran on different devices, so their speeds do not compare." in said
    assert "which flatters them" in said
    assert "data set aside for this choice" in said


def test_tasks_have_sections_of_their_own(tmp_path):
    a = make_run(tmp_path / "a", table="lra", task="listops", row="csp")
    b = make_run(tmp_path / "b", table="lra", task="image", row="csp")
    html = page.page([runs.read_run(a), runs.read_run(b)])
    assert re.findall(r"<h2>(.*?)</h2>", html) == [
        "lra, image", "lra, listops", "How each run was made",
    ]  # fmt: skip


def test_a_result_without_a_folder_has_a_table_and_no_curves(tmp_path):
    folder = make_run(tmp_path / "run", metrics=False)
    html = page.page([runs.read_run(folder / "result.json")])
    assert "While it trained" not in html
    assert len(drawings(html)) == 1


def test_names_cannot_break_the_page(tmp_path):
    folder = make_run(tmp_path / "run", row="<b>&", command='train --set a="<script>"')
    html = page.page([runs.read_run(folder)])
    assert "<script>" not in html
    assert "&lt;b&gt;&amp;" in html
    assert len(drawings(html)) == 3


def test_a_run_that_gives_way_to_a_newer_one_is_named(tmp_path):
    older = make_run(tmp_path / "older", date="2026-01-01T00:00:00+00:00")
    result = report(tmp_path / "report.html", older, make_run(tmp_path / "newer"))
    assert f"{older / 'result.json'} was left out" in result.output


@pytest.mark.parametrize("name", ["absent", "empty"])
def test_what_is_no_run_is_said_in_a_line_or_two(tmp_path, name):
    (tmp_path / "empty").mkdir()
    result = report(tmp_path / "report.html", tmp_path / name)
    assert result.exit_code == 1
    assert str(tmp_path / name) in result.output
    assert len(result.output.strip().splitlines()) <= 2
    assert not (tmp_path / "report.html").exists()


def test_a_page_that_cannot_be_written_is_said(tmp_path):
    result = report(tmp_path, make_run(tmp_path / "run"))
    assert result.exit_code == 1
    assert "shiftsort report: " in result.output


def test_labels_of_axes_tell_neighbours_apart():
    for low, high in [(0, 1), (83.9, 84.1), (0, 78_200), (-2, 2), (1e-4, 2e-4)]:
        labels = chart._labels(chart._Axis(low, high, 0, 1).ticks())
        assert 3 <= len(labels) <= 8
        assert len(set(labels)) == len(labels)


def test_equal_values_and_single_points_can_be_drawn():
    drawn = chart.lines("a", "x", "y", [chart.Line("one", "#000", [(0, 0.0)])])
    (line,) = ElementTree.fromstring(drawn).iter(f"{SVG}polyline")
    assert "nan" not in line.get("points")


def test_long_curves_are_thinned_by_means():
    line = chart.Line("noisy", "#000", [(step, step % 2) for step in range(1, 10_001)])
    drawn = ElementTree.fromstring(chart.lines("a", "x", "y", [line]))
    points = next(drawn.iter(f"{SVG}polyline")).get("points").split()
    assert len(points) <= 160
    assert all(float(p.split(",")[1]) == pytest.approx(143, abs=3) for p in points)


def test_names_stand_beside_disks_and_not_on_each_other():
    places = [(50, 80), (52, 80), (50, 80.5), (60, 79)]
    some = [chart.Disk(f"mixer-{i}", "#000", x, y, 1.0, "") for i, (x, y) in enumerate(places)]
    drawn = ElementTree.fromstring(chart.disks("a", "x", "y", some))
    texts = [t for t in drawn.iter(f"{SVG}text") if t.get("font-weight") == "600"]
    boxes = [(float(t.get("x")), float(t.get("y")), chart._LETTER * len(t.text)) for t in texts]
    for i, (x, y, wide) in enumerate(boxes):
        assert x + wide <= 480
        for other_x, other_y, other_wide in boxes[:i]:
            apart = x >= other_x + other_wide or other_x >= x + wide
            assert apart or abs(y - other_y) >= chart._LINE


@needs_a_browser
def test_a_browser_opens_the_page_without_a_complaint(tmp_path, folders):
    report(tmp_path / "report.html", *folders)
    assert console_of(tmp_path / "report.html") == []
    bad = tmp_path / "bad.html"
    bad.write_text("<html><script>console.error('seen')</script></html>")
    assert "seen" in console_of(bad)[0], "the console was not read"
