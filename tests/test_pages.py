"""The parts of the pages that commands make are as the commands make them now."""

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
