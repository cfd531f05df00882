"""What the database says in the end, beside what the simulated DeviantArt has in its ledger and what artists were told."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest

from proof_desk import read
from proof_world import BUSY, LEASE, SCAN, World
from publisher.core import hf

from tools.proving.figures import Findings, span

OUT = ("published", "half_published", "ghost")
_FIELDS = "id, artist_id, title, state, reason, due_at, sent_at, published_at, deviationid, job_id"


@dataclass(frozen=True)
class Post:
    id: str
    artist_id: str
    title: str
    state: str
    reason: str
    due_at: float | None
    sent_at: float | None
    published_at: float | None
    deviationid: str | None
    job_id: str | None


async def all_posts() -> list[Post]:
    async with hf.transaction() as tx:
        return [Post(*row) for row in await tx.fetch(f"SELECT {_FIELDS} FROM posts ORDER BY due_at, id")]


async def open_posts() -> Counter[str]:
    async with hf.transaction() as tx:
        rows = await tx.fetch("SELECT state, count(*) FROM posts GROUP BY state")
    return Counter(dict(rows))


class Count:
    def __init__(self, world: World, posts: list[Post], ledger: list[dict], listed: set[str]) -> None:
        self.world, self.posts, self.listed = world, posts, listed
        self.out: dict[str, list[dict]] = {}
        for each in ledger:
            if each["kind"] in OUT:
                self.out.setdefault(each["title"], []).append(each)
        self.states = Counter(each.state for each in posts)

    async def make(self, findings: Findings) -> None:
        self._once(findings)
        self._agrees(findings)
        await self._counts(findings)
        self._cancelled(findings)
        await self._recovered(findings)

    def _once(self, findings: Findings) -> None:
        shown = {
            title: [each for each in found if each["kind"] == "published"]
            for title, found in self.out.items()
        }
        twice = [f"{title}: {len(found)} times" for title, found in self.out.items() if len(found) > 1]
        findings.must("published twice", twice, "0 (seed: no figure with faults)")
        gone = [f"{each.title}: {self._lost(each, shown)}" for each in self.posts if self._lost(each, shown)]
        findings.must("lost", gone)
        findings.line |= {"posts": len(self.posts), "twice": len(twice), "lost": len(gone)}
        for state in ("published", "failed", "unknown", "cancelled"):
            findings.add(f"  {state}", self.states[state])
            findings.line[state] = self.states[state]

    def _lost(self, post: Post, shown: dict[str, list[dict]]) -> str:
        """What is wrong with it; nothing, when it has come to an end that its artist can see."""
        match post.state:
            case "published":
                return "" if shown.get(post.title) else "published, and DeviantArt has none"
            case "failed":
                return "" if post.reason else "failed without a reason"
            case "unknown":
                return "" if post.job_id in self.listed else "unknown, and not listed"
            case "cancelled":
                return ""
            case _:
                return f"it is {post.state} still"

    def _agrees(self, findings: Findings) -> None:
        live = [
            each.title
            for each in self.posts
            if each.state in ("failed", "cancelled") and each.title in self.out
        ]
        findings.must("told failed or cancelled, and is live", live)
        others = [
            each.title
            for each in self.posts
            if each.state == "published"
            and each.deviationid not in [out["deviationid"] for out in self.out.get(each.title, [])]
        ]
        findings.must("published with the id of another", others)
        early = [
            f"{each.title}: {each.sent_at - each.due_at:.3f} s"
            for each in self.posts
            if each.sent_at is not None and each.due_at is not None and each.sent_at < each.due_at
        ]
        findings.must("sent before its time", early)

    async def _counts(self, findings: Findings) -> None:
        published = Counter(each.artist_id for each in self.posts if each.state == "published")
        async with hf.transaction() as tx:
            rows = await tx.fetch("SELECT id, username, post_count FROM artists")
            [(receipts,)] = await tx.fetch("SELECT count(*) FROM receipts")
        wrong = [
            f"{name}: {count}, not {published[key]}" for key, name, count in rows if count != published[key]
        ]
        findings.must("post counts unlike the ledger", wrong)
        missing = (
            [] if receipts == self.states["published"] else [f"{receipts} of {self.states['published']}"]
        )
        findings.must("published without a receipt", missing)

    def _cancelled(self, findings: Findings) -> None:
        acks = read(self.world.folder / "acks.jsonl")
        by_id = {each.id: each for each in self.posts}
        wrong = []
        for each in acks:
            post = by_id[each["post"]]
            if (
                each["wish"] == "cancel"
                and each["told"] == "done"
                and (post.state != "cancelled" or post.title in self.out)
            ):
                wrong.append(f"{post.title}: cancelled, and {post.state}")
            if each["wish"] == "schedule" and post.state == "draft":
                wrong.append(f"{post.title}: scheduled, and a draft")
        told = Counter(each["told"].partition(":")[0] for each in acks if each["wish"] == "cancel")
        findings.must("promises of the desk that were broken", wrong)
        findings.add("  cancelled in time, and too late", f"{told['done']}, {told['too late']}")

    async def _recovered(self, findings: Findings) -> None:
        """From the moment in which a worker was killed, or frozen, until its jobs could run again; and until they ran."""
        hurt = {each.name: each.hurt for each in self.world.crew.everybody() if each.hurt and each.name}
        back: dict[str, list[float]] = {"killed": [], "frozen": []}
        began = []
        for post in self.posts:
            story = None if post.job_id is None else await hf.jobs.story(post.job_id)
            claims = [] if story is None else list(story.claims)
            for claim, later in zip_longest(claims, claims[1:]):
                if claim.outcome != "interrupted" or claim.ended_at is None:
                    continue
                for how, at in hurt.get(claim.worker, []):
                    if (claim.began_at or 0.0) <= at <= claim.ended_at:  # it was held in that moment
                        back[how].append(claim.ended_at - at)
                        if later is not None and later.began_at is not None:
                            began.append(later.began_at - at)
        limit = LEASE + SCAN + (BUSY if self.world.place.is_small else 0.0)
        late = [f"{each:.1f} s" for found in back.values() for each in found if each > limit]
        findings.add("back after a kill (median, longest)", span(back["killed"]), "seed: 15 min")
        findings.add(
            "back after a freeze (median, longest)",
            span(back["frozen"]),
            "seed: up to 90 min, for a stale lock",
        )
        findings.add(
            "  and ran again (median, longest)", span(began), "also waits for pace, breaker and tries"
        )
        findings.must(f"back later than lease + scan ({LEASE:g} + {SCAN:g} s)", late)
        found = back["killed"] + back["frozen"]
        findings.line["recovered_max"] = f"{max(found):.1f}s" if found else "none"
