"""Whether an artist is still here: asked, with the row locked, before anything is added that leaving would have to find."""

from __future__ import annotations

from holdfast import Tx


async def is_here(tx: Tx, artist_id: str) -> bool:
    """Until the transaction ends nobody leaves, and whoever counts what the artist has counts after us."""
    changed = await tx.execute(
        "UPDATE artists SET post_count = post_count WHERE id = $1 AND left_at IS NULL", artist_id
    )
    return changed == 1
