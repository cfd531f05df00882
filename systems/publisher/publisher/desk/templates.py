"""Templates: sets of tags, descriptions and comments that an artist uses again and again."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.errors import UniqueViolation
from publisher.core import hf
from publisher.desk.checks import of_name, of_text
from publisher.desk.refusals import Fault, Invalid, NotHere
from publisher.domain.posts import DESCRIPTION_MOST, TAGS_MOST, tags
from publisher.ids import new_id

KINDS = {"tags": "Tags", "description": "Descriptions", "comment": "Comments"}
COMMENT_MOST = 5_000
MOST_TEMPLATES = 500  # of an artist


@dataclass(frozen=True)
class TemplateRow:
    """The text of one for tags has commas between them."""

    id: str
    kind: str
    name: str
    text: str
    made_at: float

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(self.text.split(", ")) if self.kind == "tags" and self.text else ()


async def listing(artist_id: str, kind: str | None = None) -> list[TemplateRow]:
    """By kind and name."""
    if kind is not None and kind not in KINDS:
        raise Invalid([_wrong_kind()])
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT id, kind, name, text, made_at FROM templates WHERE artist_id = $1 ORDER BY kind, name, id",
            artist_id,
        )
    found = [TemplateRow(*row) for row in rows]
    return [each for each in found if kind in (None, each.kind)]


async def get(artist_id: str, template_id: str) -> TemplateRow:
    found = next((each for each in await listing(artist_id) if each.id == template_id), None)
    if found is None:
        raise NotHere("template")
    return found


async def make(artist_id: str, kind: str, name: str, text: str) -> str:
    """Its id."""
    name, text = _checked(kind, name, text)
    template_id = new_id()
    try:
        async with hf.transaction() as tx:
            [(number,)] = await tx.fetch("SELECT count(*) FROM templates WHERE artist_id = $1", artist_id)
            if number >= MOST_TEMPLATES:
                raise Invalid([Fault("name", f"There are {MOST_TEMPLATES} templates: delete one first.")])
            await tx.execute(
                "INSERT INTO templates (id, artist_id, kind, name, text, made_at) VALUES ($1, $2, $3, $4, $5, $6)",
                template_id,
                artist_id,
                kind,
                name,
                text,
                await hf.now(),
            )
    except UniqueViolation:
        raise _taken(name) from None
    return template_id


async def change(artist_id: str, template_id: str, name: str, text: str) -> None:
    """Its kind stays. Posts that were made with it keep what they have."""
    found = await get(artist_id, template_id)
    name, text = _checked(found.kind, name, text)
    try:
        async with hf.transaction() as tx:
            changed = await tx.execute(
                "UPDATE templates SET name = $1, text = $2 WHERE id = $3 AND artist_id = $4",
                name,
                text,
                template_id,
                artist_id,
            )
            if not changed:
                raise NotHere("template")
    except UniqueViolation:
        raise _taken(name) from None


async def delete(artist_id: str, template_id: str) -> None:
    async with hf.transaction() as tx:
        if not await tx.execute(
            "DELETE FROM templates WHERE id = $1 AND artist_id = $2", template_id, artist_id
        ):
            raise NotHere("template")


def _checked(kind: str, name: str, text: str) -> tuple[str, str]:
    if kind not in KINDS:
        raise Invalid([_wrong_kind()])
    faults = list(of_name("name", name))
    made = ", ".join(found := tags(text.replace("\n", ",").split(","))) if kind == "tags" else text.strip()
    if not made:
        faults.append(Fault("text", "Write what it puts into a post."))
    if kind == "tags" and len(found) > TAGS_MOST:
        faults.append(Fault("text", f"There are {len(found)} tags; DeviantArt takes {TAGS_MOST}."))
    faults += of_text("text", made, most=COMMENT_MOST if kind == "comment" else DESCRIPTION_MOST)
    if faults:
        raise Invalid(faults)
    return name.strip(), made


def _wrong_kind() -> Fault:
    return Fault("kind", f"A kind of template is one of {', '.join(KINDS)}.")


def _taken(name: str) -> Invalid:
    return Invalid([Fault("name", f"You have a template that is called “{name}”. Choose another name.")])
