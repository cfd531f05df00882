"""Templates: kept by kind and name, tags as DeviantArt takes them, and nobody else's."""

from __future__ import annotations

import pytest
from publisher.desk import templates
from publisher.desk.refusals import Invalid, NotHere


@pytest.fixture
async def artist(any_hf, ada):
    return await ada.log_in()


async def test_tags_are_kept_as_deviantart_takes_them(artist):
    template_id = await templates.make(artist.id, "tags", "Inks", "#ink, line art\nInk wash, ink")
    found = await templates.get(artist.id, template_id)
    assert found.tags == ("ink", "line_art", "Ink_wash")
    await templates.change(artist.id, template_id, "Inks", "one")
    assert (await templates.get(artist.id, template_id)).tags == ("one",)


async def test_a_name_is_taken_within_its_kind(artist):
    await templates.make(artist.id, "tags", "Usual", "ink")
    other = await templates.make(artist.id, "comment", "Usual", "Thank you")
    second = await templates.make(artist.id, "comment", "Other", "Thanks")
    with pytest.raises(Invalid, match="is called “Usual”"):
        await templates.make(artist.id, "tags", "Usual", "wash")
    with pytest.raises(Invalid, match="is called “Usual”"):
        await templates.change(artist.id, second, "Usual", "Thanks")
    assert [each.id for each in await templates.listing(artist.id, "comment")] == [second, other]


@pytest.mark.parametrize(
    ("kind", "name", "text", "field"),
    [
        ("poem", "A", "text", "kind"), ("tags", "", "ink", "name"), ("tags", "A", " #!, ", "text"),
        ("tags", "A", ",".join(f"t{number}" for number in range(31)), "text"), ("comment", "A", "x" * 5_001, "text"),
        ("description", "A", "x" * 65_001, "text"), ("description", "A", "a\x00b", "text"), ("description", "A\n", "text", "name"),
    ],
)  # fmt: skip
async def test_each_wrong_field_is_told(artist, kind, name, text, field):
    with pytest.raises(Invalid) as wrong:
        await templates.make(artist.id, kind, name, text)
    assert [each.field for each in wrong.value.faults] == [field]


async def test_what_is_another_artists_is_not_there(artist):
    template_id = await templates.make(artist.id, "comment", "A", "text")
    for verb in (
        templates.get("eve", template_id), templates.change("eve", template_id, "B", "text"), templates.delete("eve", template_id),
    ):  # fmt: skip
        with pytest.raises(NotHere):
            await verb
    assert await templates.listing("eve") == []
    await templates.delete(artist.id, template_id)
    assert await templates.listing(artist.id) == []
    with pytest.raises(Invalid):
        await templates.listing(artist.id, "poem")
