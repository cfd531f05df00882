"""What tests of the publisher make: artists who have logged in, and drafts with a file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from publisher.core import hf
from publisher.desk import posts
from publisher.domain.posts import Details
from publisher.ids import new_id

from holdfast import within
from holdfast.vault import Place

PICTURE = b"\x89PNG\r\n\x1a\n" + b"a picture" * 10
WHOLE = Details(
    title="Salt lantern", tags=("lantern", "gouache"), mature=False, ai_made=False, agreed=True, comments=True
)


@dataclass
class Artist:
    """`await artist.log_in()` first; `id` is that of the row."""

    simulator: object
    name: str
    id: str = field(default_factory=new_id)

    async def log_in(self, *, refresh_lasts: float = 90 * 86_400.0, access_lasts: float = 3600.0) -> Artist:
        """As a login by OAuth leaves it."""
        world = self.simulator
        who, now = world.state.known(self.name), await hf.now()
        grant = self.grant(world)
        async with hf.transaction() as tx:
            await tx.execute(
                "INSERT INTO artists (id, userid, username, mail, zone, jitter, notices, is_on, post_count, made_at) "
                "VALUES ($1, $2, $3, $4, 'Europe/Zurich', 0, '{}', $5, 0, $6)",
                self.id, who.userid, self.name, f"{self.name}@example.org", True, now,
            )  # fmt: skip
            await tx.execute(
                "INSERT INTO logins (artist_id, state, access, refresh, access_until, refresh_until, version, told, why, changed_at) "
                "VALUES ($1, 'active', $2, $3, $4, $5, 1, '', '', $6)",
                self.id, self.sealed(grant.access, "access"), self.sealed(grant.refresh, "refresh"),
                now + access_lasts, now + refresh_lasts, now,
            )  # fmt: skip
        return self

    def grant(self, world):
        from simulators.deviantart.state import Grant, new_token

        at, settings = world.clock.now(), world.settings
        access, refresh = new_token(), new_token()
        who = world.state.known(self.name)
        scope = "basic browse user stash publish gallery"
        grant = Grant(who, scope, access, at + settings.access_lasts, refresh, at + settings.refresh_lasts)
        world.state.grants |= {access: grant, refresh: grant}
        return grant

    def sealed(self, token: str, column: str) -> str:
        return hf.vault.seal(token, Place("logins", column, row=self.id, tenant=self.id))

    async def draft(self, title: str = "Salt lantern", *, details: Details = WHOLE) -> str:
        """With a file; its id."""
        with within(tenant=self.id):
            staged = await hf.blobs.stage(PICTURE + title.encode(), content_type="image/png")
            async with hf.transaction() as tx:
                post_id = await posts.make(tx, self.id, replace(details, title=title))
                file_id, key = new_id(), f"posts/{post_id}/0.png"
                await hf.blobs.commit(staged, key, tx=tx)
                await tx.execute(
                    "INSERT INTO files (id, artist_id, post_id, position, name, alt, key, type, size, sha256, made_at) "
                    "VALUES ($1, $2, $3, 0, 'lantern.png', '', $4, 'image/png', $5, $6, $7)",
                    file_id, self.id, post_id, key, staged.size, staged.sha256, await hf.now(),
                )  # fmt: skip
        return post_id


async def state_of(post_id: str) -> str:
    async with hf.transaction() as tx:
        [(state,)] = await tx.fetch("SELECT state FROM posts WHERE id = $1", post_id)
    return state
