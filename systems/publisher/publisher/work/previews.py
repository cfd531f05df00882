"""Previews of pictures: about 600 px, as WebP, with the width and height of the original. What could be a bomb is measured and not unpacked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from io import BytesIO

from PIL import Image, ImageOps, UnidentifiedImageError

from holdfast import Backoff, Cancel, Job, within
from publisher.core import DESK, hf
from publisher.present import is_here

EDGE = 600  # pixels
MOST_PIXELS = 60_000_000  # unpacked that is 240 MB
_FORMATS = ("JPEG", "PNG", "GIF", "WEBP")
_DAMAGED = (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError)
_ORIENTATION, _ON_ITS_SIDE = 0x0112, (5, 6, 7, 8)  # of EXIF


@dataclass(frozen=True)
class Seen:
    """What was found out of a picture. No preview: it is too large to be unpacked, or damaged."""

    width: int | None = None
    height: int | None = None
    preview: bytes | None = None


@hf.task(
    name="previews.make",
    queue=DESK,
    retry=Backoff(attempts=4, first=5, ceiling=120),
    timeout=120,
    concurrency=("previews", 2),
)
async def make(job: Job, file_id: str) -> None:
    artist_id, key = await _file(file_id)
    with within(tenant=artist_id):
        seen = await asyncio.to_thread(look, await hf.blobs.read(key))
        staged = (
            None if seen.preview is None else await hf.blobs.stage(seen.preview, content_type="image/webp")
        )
        async with job.commit() as tx:
            name = f"previews/{file_id}.webp"
            changed = await is_here(tx, artist_id) and await tx.execute(
                "UPDATE files SET width = $1, height = $2, preview_key = $3 WHERE id = $4 AND deleted_at IS NULL AND preview_key IS NULL",
                seen.width,
                seen.height,
                None if staged is None else name,
                file_id,
            )
            if changed and staged is not None:
                await hf.blobs.commit(staged, name, tx=tx)


async def _file(file_id: str) -> tuple[str, str]:
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT artist_id, key FROM files WHERE id = $1 AND deleted_at IS NULL AND key IS NOT NULL",
            file_id,
        )
    if not rows:
        raise Cancel("The file is gone.")
    return rows[0][0], rows[0][1]


def look(content: bytes) -> Seen:
    """The header says how large it is; only what is of a bearable size is unpacked."""
    try:
        with Image.open(BytesIO(content), formats=_FORMATS) as image:
            width, height = image.size
            if width * height > MOST_PIXELS:
                return Seen(width, height)
            return _small(image) or Seen(width, height)
    except (*_DAMAGED, UnidentifiedImageError, Image.DecompressionBombWarning):
        return Seen()


def _small(image: Image.Image) -> Seen | None:
    """None: it breaks off, or is no picture behind its first bytes."""
    width, height = image.size
    try:
        image.draft("RGB", (2 * EDGE, 2 * EDGE))  # a JPEG is read in a smaller size at once
        image.load()
        if image.getexif().get(_ORIENTATION, 1) in _ON_ITS_SIDE:
            width, height = height, width
        upright = ImageOps.exif_transpose(image)
        upright.thumbnail((EDGE, EDGE))
        mode = "RGBA" if "A" in upright.mode or "transparency" in upright.info else "RGB"
        to = BytesIO()
        upright.convert(mode).save(to, "WEBP", quality=80)
    except _DAMAGED:
        return None
    return Seen(width, height, to.getvalue())
