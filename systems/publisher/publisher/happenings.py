"""The history of a post: one line for each thing that happened, in words for its artist."""

from __future__ import annotations

from holdfast import Tx
from publisher.core import hf

YOU, PUBLISHER = "you", "publisher"


async def happened(tx: Tx, post_id: str, kind: str, words: str, who: str = PUBLISHER) -> None:
    await tx.execute(
        "INSERT INTO happenings (post_id, at, kind, words, who) VALUES ($1, $2, $3, $4, $5)",
        post_id,
        await hf.now(),
        kind,
        words,
        who,
    )
