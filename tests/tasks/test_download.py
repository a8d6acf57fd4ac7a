"""Downloads from a local server: known hashes, mirrors, clean failures, safe archives."""

import concurrent.futures
import errno
import hashlib
import http.server
import io
import tarfile
import threading

import pytest

from shiftsort import tasks
from shiftsort.tasks.download import Archive, fetch, folder_of, unpack

pytest.importorskip("pooch")


def packed(*members):
    """A .tar.gz of (name, content) files and ready-made TarInfo objects."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
                continue
            info = tarfile.TarInfo(member[0])
            info.size = len(member[1])
            archive.addfile(info, io.BytesIO(member[1]))
    return file.getvalue()


GOOD = packed(("things/a.bin", b"one"), ("things/deep/b.bin", b"two"))


@pytest.fixture(scope="module")
def server():
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            if self.path == "/missing.tar.gz":
                self.send_error(404)
                return
            body = {"/good.tar.gz": GOOD, "/wrong.tar.gz": b"other", "/cut.tar.gz": GOOD}[self.path]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if "cut" in self.path else body)

        def log_message(self, *_):
            pass

    asked = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}", asked
        running.shutdown()
        thread.join()


def archive(server, *names):
    known = f"sha256:{hashlib.sha256(GOOD).hexdigest()}"
    return Archive(
        "a.tar.gz", tuple(f"{server[0]}/{name}.tar.gz" for name in names), known, "things"
    )


def test_an_archive_is_fetched_checked_and_unpacked_once(server, tmp_path):
    wanted = archive(server, "good")
    folder = folder_of(wanted, tmp_path)
    assert (folder / "a.bin").read_bytes() == b"one"
    assert (folder / "deep" / "b.bin").read_bytes() == b"two"
    before = len(server[1])
    assert folder_of(wanted, tmp_path) == folder
    assert fetch(wanted, tmp_path) == tmp_path / "a.tar.gz"
    assert len(server[1]) == before


@pytest.mark.parametrize("bad", ["missing", "wrong", "cut"])
def test_the_next_mirror_serves_where_one_fails(server, tmp_path, bad):
    assert fetch(archive(server, bad, "good"), tmp_path).read_bytes() == GOOD
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar.gz"]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("missing", "it answers 404"),
        ("wrong", "the file there has another hash"),
        ("cut", "ChunkedEncodingError"),
    ],
)
def test_a_failure_is_one_line_and_leaves_nothing(server, tmp_path, bad, reason):
    with pytest.raises(tasks.DataError) as failure:
        fetch(archive(server, bad), tmp_path)
    message = str(failure.value)
    assert "\n" not in message
    assert f"{tmp_path} has no things/ (or a.tar.gz)" in message
    assert f"{bad}.tar.gz: {reason}" in message
    assert "--source DIR" in message
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_other_bytes_is_never_accepted(server, tmp_path):
    (tmp_path / "a.tar.gz").write_bytes(b"an older version, or half of it")
    with pytest.raises(tasks.DataError, match="404"):
        fetch(archive(server, "missing"), tmp_path)
    assert fetch(archive(server, "good"), tmp_path).read_bytes() == GOOD


def test_two_tasks_that_want_one_archive_unpack_it_once(server, tmp_path):
    wanted = archive(server, "good")
    before = len(server[1])
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        folders = {*pool.map(lambda _: folder_of(wanted, tmp_path), range(4))}
    assert folders == {tmp_path / "things"}
    assert len(server[1]) == before + 1
    assert (tmp_path / "things" / "deep" / "b.bin").read_bytes() == b"two"


def test_downloading_and_unpacking_are_seen(server, tmp_path):
    seen = []
    folder_of(archive(server, "good"), tmp_path, lambda done, total: seen.append((done, total)))
    assert {total for _, total in seen} == {len(GOOD)}
    assert all(0 <= done <= total for done, total in seen)
    assert len(seen) >= 4  # the download, and each file of the archive


def test_a_disk_that_fills_up_is_not_blamed_on_the_mirrors(server, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pooch.retrieve", full)
    with pytest.raises(OSError, match="No space left"):
        fetch(archive(server, "good", "good"), tmp_path)


def link(name, target):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


@pytest.mark.parametrize(
    "members",
    [
        [("things/a", b"1"), ("../outside", b"2")],
        [link("things", "/"), ("things/outside", b"2")],
        [("things/a", b"1"), link("things/b", "../../outside")],
        [("elsewhere/a", b"1")],
    ],
    ids=["parent", "link to root", "link outside", "another folder"],
)
def test_an_archive_that_leaves_its_folder_is_refused(tmp_path, members):
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "bad.tar.gz").write_bytes(packed(*members))
    with pytest.raises(tasks.DataError, match=r"bad\.tar\.gz could not be unpacked"):
        unpack(inside / "bad.tar.gz", inside, "things")
    assert [path.name for path in tmp_path.rglob("*")] == ["inside", "bad.tar.gz"]


def test_absolute_paths_of_an_archive_stay_inside(tmp_path):
    outside = tmp_path / "outside"
    (tmp_path / "a.tar.gz").write_bytes(packed(("things/a", b"1"), (str(outside), b"2")))
    unpack(tmp_path / "a.tar.gz", tmp_path, "things")
    assert not outside.exists()


def test_half_an_archive_leaves_no_folder(tmp_path):
    (tmp_path / "half.tar.gz").write_bytes(GOOD[: len(GOOD) // 2])
    with pytest.raises(tasks.DataError, match=r"half\.tar\.gz could not be unpacked"):
        unpack(tmp_path / "half.tar.gz", tmp_path, "things")
    assert [path.name for path in tmp_path.iterdir()] == ["half.tar.gz"]
