"""The form of a post's details: first values out of the post, and changes out of what was typed."""

from __future__ import annotations

import re
from typing import Any

from holdfast.web.pages import Form
from publisher.domain.posts import Details, License, tags
from publisher.web.pages.numbers import whole

UNSAID = (("", "As on DeviantArt"), ("yes", "Yes"), ("no", "No"))
SIZES = (
    ("", "As on DeviantArt"),
    ("0", "Original size"),
    ("1", "400 px"),
    ("2", "600 px"),
    ("3", "800 px"),
    ("4", "900 px"),
    ("5", "1024 px"),
    ("6", "1280 px"),
    ("7", "1600 px"),
    ("8", "1920 px"),
)
LICENSES = (
    ("", "All rights reserved"),
    ("by", "CC: with my name"),
    ("by-sa", "CC: with my name, shared alike"),
    ("by-nd", "CC: with my name, unchanged"),
    ("by-nc", "CC: with my name, not for sale"),
    ("by-nc-sa", "CC: not for sale, shared alike"),
    ("by-nc-nd", "CC: not for sale, unchanged"),
)
LABELS = {
    "title": "Title", "description": "Description", "tags": "Tags", "mature": "Mature content", "ai_made": "Made with AI",
    "agreed": "Agreement", "watermark": "Watermark", "resolution": "Display size", "files": "File", "at": "Time",
    "galleries": "Gallery", "maturity": "Mature content",
}  # fmt: skip


def filled(details: Details, at: str, version: int) -> Form:
    """The form as it is shown first."""
    return Form(
        {
            "title": details.title,
            "description": details.description,
            "tags": ", ".join(details.tags),
            "galleries": list(details.galleries),
            "mature": ""
            if details.mature is None
            else str(details.maturity or "moderate")
            if details.mature
            else "no",
            "ai_made": _word(details.ai_made),
            "no_ai": _word(details.no_ai),
            "comments": _word(details.comments),
            "free_download": _word(details.free_download),
            "watermark": _word(details.watermark),
            "resolution": "" if details.resolution is None else str(details.resolution),
            "license": _code(details.license),
            "agreed": "yes" if details.agreed else "",
            "at": at,
            "version": str(version),
        }
    )


def changes_of(form: Form) -> dict[str, Any]:
    """What desk.posts.edit takes."""
    mature = form["mature"]
    return {
        "title": form["title"].strip(),
        "description": form["description"],
        "tags": list(tags_of(form["tags"])),
        "galleries": [each for each in form.all("galleries") if each],
        "mature": None if not mature else mature != "no",
        "maturity": mature if mature in ("strict", "moderate") else None,
        **{
            name: _said(form[name]) for name in ("ai_made", "no_ai", "comments", "free_download", "watermark")
        },
        "resolution": whole(form["resolution"]),
        "license": _license(form["license"]),
        "agreed": form["agreed"] == "yes",
    }


def tags_of(text: str) -> tuple[str, ...]:
    """With commas, spaces or hashes between them."""
    return tags([part for part in re.split(r"[,\s#]+", text) if part])


def _word(value: bool | None) -> str:
    return "" if value is None else "yes" if value else "no"


def _said(text: str) -> bool | None:
    return {"yes": True, "no": False}.get(text)


def _code(told: License) -> str:
    if not told.creative_commons:
        return ""
    modify = {"yes": "", "share": "-sa", "no": "-nd"}[told.modify]
    return f"by{'' if told.commercial else '-nc'}{modify}"


def _license(code: str) -> dict[str, Any]:
    if code not in dict(LICENSES) or not code:
        return {"creative_commons": False, "commercial": False, "modify": "no"}
    modify = "share" if code.endswith("-sa") else "no" if code.endswith("-nd") else "yes"
    return {"creative_commons": True, "commercial": "-nc" not in code, "modify": modify}
