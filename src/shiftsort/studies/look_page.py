"""The picture of `look.py` explained, as a part of a page that needs nothing beside it."""

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from .look import Timing

_TEMPLATE = Path(__file__).with_suffix(".html")


def explained(picture: Path, timings: Sequence[Timing], channels: int, device: str) -> str:
    """HTML with the picture inside."""
    headings = "".join(f"<th>{escape(timing.name)}</th>" for timing in timings)
    rows = [
        f"<tr><td>{length}</td>"
        + "".join(f"<td>{timing.milliseconds[length]:.2f} ms</td>" for timing in timings)
        + "</tr>"
        for length in sorted(timings[0].milliseconds)
    ]
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        picture=base64.b64encode(picture.read_bytes()).decode(),
        headings=headings,
        rows="\n".join(rows),
        channels=channels,
        device=escape(device),
    )
