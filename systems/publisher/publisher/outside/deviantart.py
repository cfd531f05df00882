"""DeviantArt's API v1: each call as a method with a typed answer. Guards stand around it where it is called."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

import httpx2
import msgspec

from holdfast.observe import Counter
from publisher.domain.failures import Answer, Call, verdict
from publisher.outside.errors import NobodyKnows, Passing, error_of
from publisher.outside.records import (
    Deviation,
    Folder,
    FolderPage,
    Item,
    Page,
    Published,
    Tag,
    Tags,
    Topic,
    Topics,
    Whoami,
)

API = "/api/v1/oauth2"
# Both are demanded: without them the edge answers 403.
HEADERS = {"User-Agent": "holdfast-publisher/0.1", "Accept-Encoding": "gzip", "dA-minor-version": "20240701"}
# No connection was made, so nothing was asked.
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
ANSWERS = Counter(
    "publisher_deviantart_answers_total",
    "Answers of DeviantArt by what they mean: ok, or one of domain/failures.py. user_limit and app_limit are its 429.",
    ("kind",),
)
_T = TypeVar("_T")
_Pairs = list[tuple[str, str]]


class DeviantArt:
    """`async with DeviantArt.open(url, timeout) as site:`, one for each process."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, timeout: float) -> AsyncIterator[Self]:  # noqa: ASYNC109  of one call
        limits = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=20.0)
        patience = httpx2.Timeout(timeout, connect=min(10.0, timeout))
        async with httpx2.AsyncClient(
            base_url=url, headers=HEADERS, timeout=patience, limits=limits, trust_env=False
        ) as client:
            yield cls(client)

    # --- publishing ---

    async def placebo(self, token: str) -> None:
        """Whether the token is good: asked before an upload, which would be sent whole to be refused."""
        await self._ask(Call.READ, "GET", "/placebo", token)

    async def submit(self, token: str, file: tuple[str, bytes, str], fields: _Pairs) -> Item:
        """Upload to sta.sh: name, bytes and type of the file. Twice makes two items, which hurts nobody."""
        return _as(Item, await self._ask(Call.SUBMIT, "POST", "/stash/submit", token, form=fields, file=file))

    async def publish(self, token: str, fields: _Pairs) -> Published:
        """The call that must not be made twice."""
        return _as(Published, await self._ask(Call.PUBLISH, "POST", "/stash/publish", token, form=fields))

    # --- looking ---

    async def whoami(self, token: str) -> Whoami:
        return _as(Whoami, await self._ask(Call.READ, "GET", "/user/whoami", token))

    async def deviation(self, token: str, deviationid: str) -> Deviation:
        return _as(Deviation, await self._ask(Call.READ, "GET", f"/deviation/{deviationid}", token))

    async def gallery(self, token: str, *, folder: str = "all", offset: int = 0, limit: int = 24) -> Page:
        """The newest first."""
        return await self.browse(token, f"/gallery/{folder}", {"offset": offset, "limit": limit})

    async def browse(self, token: str, path: str, query: Mapping[str, Any]) -> Page:
        return _as(Page, await self._ask(Call.READ, "GET", path, token, query=query))

    async def tags(self, token: str, begin: str) -> list[Tag]:
        """Tags that begin so."""
        query = {"tag_name": begin}
        return _as(Tags, await self._ask(Call.READ, "GET", "/browse/tags/search", token, query=query)).results

    async def topics(self, token: str) -> list[Topic]:
        found: list[Topic] = []
        while True:
            query = {"offset": len(found), "limit": 10}
            page = _as(Topics, await self._ask(Call.READ, "GET", "/browse/topics", token, query=query))
            found += page.results
            if not page.has_more or not page.results:
                return found

    # --- galleries ---

    async def folders(self, token: str) -> list[Folder]:
        found: list[Folder] = []
        while True:
            query = {"calculate_size": "true", "offset": len(found), "limit": 50}
            page = _as(FolderPage, await self._ask(Call.READ, "GET", "/gallery/folders", token, query=query))
            found += page.results
            if not page.has_more or not page.results:
                return found

    async def create_folder(self, token: str, name: str) -> Folder:
        fields = [("folder", name)]
        return _as(
            Folder, await self._ask(Call.SUBMIT, "POST", "/gallery/folders/create", token, form=fields)
        )

    async def order_folder(self, token: str, folder: str, position: int) -> None:
        fields = [("folderid", folder), ("position", str(position))]
        await self._ask(Call.SUBMIT, "POST", "/gallery/folders/update_order", token, form=fields)

    async def move_deviations(self, token: str, source: str, target: str, deviations: list[str]) -> None:
        fields = [("source_folderid", source), ("target_folderid", target)]
        fields += [("deviationids[]", each) for each in deviations]
        await self._ask(Call.SUBMIT, "POST", "/gallery/folders/move_deviations", token, form=fields)

    # --- one call ---

    async def _ask(
        self,
        kind: Call,
        method: str,
        path: str,
        token: str,
        *,
        query: Mapping[str, Any] | None = None,
        form: _Pairs | None = None,
        file: tuple[str, bytes, str] | None = None,
    ) -> dict[str, Any]:
        """The answer's object; what else it says is raised."""
        body: dict[str, Any] = {} if form is None else {"data": _grouped(form)}
        if file is not None:
            body["files"] = {"submission": file}  # a part without a file name would be a 500
        headers = {"Authorization": f"Bearer {token}"}
        answer = await self._sent(
            self._client.build_request(method, f"{API}{path}", params=query, headers=headers, **body)
        )
        wrong = verdict(kind, answer)
        ANSWERS.add("ok" if wrong is None else wrong.kind)
        if wrong is not None:
            raise error_of(wrong, None if answer is None else answer.retry_after)
        return dict(answer.body or {}) if answer is not None else {}

    async def _sent(self, request: httpx2.Request) -> Answer | None:
        """None: it was sent, and no answer came."""
        try:
            got = await self._client.send(request)
        except _NOT_SENT:
            raise Passing("DeviantArt cannot be reached.") from None
        except (httpx2.TransportError, httpx2.DecodingError):
            return None
        return Answer(got.status_code, _object(got), got.headers.get("retry-after"))


def _grouped(pairs: _Pairs) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _object(answer: httpx2.Response) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(answer.content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if isinstance(found, dict) else None


def _as(kind: type[_T], body: dict[str, Any]) -> _T:
    """A success whose fields are not those that we know is no clear answer: it may have been done."""
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise NobodyKnows(f"DeviantArt's answer is not as it should be: {error}.") from None
