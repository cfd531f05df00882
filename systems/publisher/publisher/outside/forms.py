"""A post's details as the fields that DeviantArt takes."""

from __future__ import annotations

from collections.abc import Iterator

from publisher.domain.posts import Details

Pairs = list[tuple[str, str]]


def submit_fields(details: Details) -> Pairs:
    fields = [("title", details.title.strip()), ("artist_comments", details.description)]
    fields += [("tags[]", each) for each in details.tags]
    return fields + list(_switches(is_ai_generated=details.ai_made, noai=details.no_ai))


def publish_fields(details: Details, itemid: int) -> Pairs:
    fields = [("itemid", str(itemid)), ("agree_submission", "1"), ("agree_tos", "1")]
    fields += [("is_mature", "1" if details.mature else "0")]
    if details.mature and details.maturity is not None:
        fields.append(("mature_level", str(details.maturity)))
    fields += [("galleryids[]", each) for each in details.galleries]
    fields += [("tags[]", each) for each in details.tags]
    fields += _switches(
        allow_comments=details.comments,
        allow_free_download=details.free_download,
        add_watermark=details.watermark,
        is_ai_generated=details.ai_made,
        noai=details.no_ai,
    )
    if details.resolution is not None:
        fields.append(("display_resolution", str(details.resolution)))
    return fields + _license(details)


def _switches(**given: bool | None) -> Iterator[tuple[str, str]]:
    """What the artist has not said is not told: DeviantArt's own default counts then."""
    return ((name, "1" if value else "0") for name, value in given.items() if value is not None)


def _license(details: Details) -> Pairs:
    told = details.license
    if not told.creative_commons:
        return []
    return [
        ("license_options[creative_commons]", "1"),
        ("license_options[commercial]", "yes" if told.commercial else "no"),
        ("license_options[modify]", told.modify),
    ]
