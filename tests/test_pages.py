"""The numbers of the pages are those of the commands and files that they come from."""

import json
import re
from pathlib import Path

import pytest

import pages


@pytest.mark.parametrize(
    "page", [page for page in pages.PAGES if pages.commands(page)], ids=lambda page: page.name
)
def test_a_page_is_not_stale(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pages.ROOT)
    assert page.read_text(encoding="utf-8") == pages.renewed(page), "run: make pages"


def test_the_pages_with_numbers_are_made() -> None:
    made = {page.name: pages.commands(page) for page in pages.PAGES}
    assert "models --markdown" in made["mixers.md"]
    assert any(command.startswith("results") for command in made["results.md"])


def test_a_stale_part_is_written_anew_and_the_rest_is_kept(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- made by: shiftsort --version -->\n7.7\nb\n<!-- end -->\nc 7.7\n")
    (version,) = pages.renewed(page).splitlines()[2:3]
    assert version != "7.7"
    assert pages.renewed(page) == page.read_text().replace("7.7\nb", version)


def test_a_command_that_fails_is_told(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- made by: shiftsort results --dir none -->\n<!-- end -->\n")
    with pytest.raises(RuntimeError, match="none is not a folder"):
        pages.renewed(page)


def _rounds_to(value: float, shown: str) -> bool:
    digits = len(shown.partition(".")[2])
    return abs(value - float(shown.replace(",", ""))) <= 0.51 * 10**-digits


def test_pathfinders_table_is_that_of_its_file() -> None:
    page = (pages.ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    file = json.loads((pages.ROOT / "results" / "pathfinder-published.json").read_text())
    rows = {
        (int(size), whose): cells.split(" | ")
        for size, whose, cells in re.findall(r"^\| (\d+), (\w+) \| (.*) \|$", page, re.M)
    }
    names = ("mean", "std", "black share", "share >= 128", "edge energy", "components > 60")
    for made in file["results"]:
        for whose, images in (("published", "published_images"), ("ours", "our_images")):
            measured = [
                made[images],
                *(made["statistics"][name][whose] for name in names),
                made["pairs_of_snakes_grown_for_an_image"][whose],
            ]
            shown = rows.pop((made["size"], whose))
            assert all(map(_rounds_to, measured, shown)), (measured, shown)
            assert len(shown) == len(measured)
    assert not rows
    speeds = re.search(r"generator makes ([\d., and]+) images a second", page)[1]
    measured = [made["published_images_per_s"] for made in file["results"]]
    assert all(map(_rounds_to, measured, re.findall(r"\d+\.\d+", speeds))), speeds
    assert len(re.findall(r"\d+\.\d+", speeds)) == len(measured)
