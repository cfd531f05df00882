"""Uploads: receive a form, write its files into the staging of blobs while they come, and say what each of them is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Protocol

import msgspec

from holdfast.blobs.errors import BlobTooLarge
from holdfast.blobs.port import BlobStore, Content
from holdfast.blobs.records import Staged
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int
from holdfast.kernel.show import show
from holdfast.kernel.spawn import to_its_end
from holdfast.kernel.telemetry import note
from holdfast.web.asgi import HasScope, Receive, Scope
from holdfast.web.problems import ProblemError
from holdfast.web.uploads.kinds import HEAD, TAIL, TEXT, hides, kind_of
from holdfast.web.uploads.parts import Limits, Part, Parts, refused

_MB = 1024 * 1024
_OF_A_PART = frozenset(
    {"FILE_TOO_LARGE", "FILE_EMPTY", "FIELD_TOO_LARGE", "TYPE_NOT_TAKEN", "TYPE_AMBIGUOUS"}
)


class Stages(Protocol):
    """`hf.blobs`."""

    async def stage(self, content: Content, *, content_type: str = ..., most: int | None = ...) -> Staged: ...
    async def discard(self, staged: Staged) -> None: ...
    async def receive(
        self, upload: str, *, content_type: str | None = ..., length: int | None = ...
    ) -> Staged: ...
    def place(self) -> BlobStore: ...


class Arriving(HasScope, Protocol):
    """A request of Starlette or FastAPI, of which nobody has read the body."""

    @property
    def receive(self) -> Receive: ...


class Received(msgspec.Struct, frozen=True):
    """One file of a form. `filename` is for people: the key of the blob is yours to choose, or nobody's."""

    field: str
    filename: str
    staged: Staged  # its size, SHA-256, and the type that its content has


class Form(msgspec.Struct, frozen=True):
    """All of it. A field may come several times."""

    fields: tuple[tuple[str, str], ...]
    files: tuple[Received, ...]

    def field(self, name: str) -> str | None:
        """The first of this name."""
        return next((value for field, value in self.fields if field == name), None)

    def file(self, name: str) -> Received | None:
        """The first of this name."""
        return next((each for each in self.files if each.field == name), None)


class Uploads:
    """`uploads = Uploads(hf.blobs, types=["image/png", "image/jpeg"])`, and in a handler `form = await uploads.receive(request)`.

    `types` are those that files may have, by their content. `total` bytes of the form, `part` bytes of one file (`total`, when not said), `parts` of all kinds and
    `field` bytes of one field are the limits. What is refused raises ProblemError, which `Problems` answers, and leaves nothing behind.
    """

    def __init__(
        self,
        blobs: Stages,
        *,
        types: Collection[str],
        total: int = 100 * _MB,
        part: int | None = None,
        parts: int = 20,
        field: int = 64 * 1024,
    ) -> None:
        if (
            isinstance(types, str)
            or not types
            or not all("/" in each and each == each.lower() for each in types)
        ):
            raise UsageError(
                f"types is a list of media types in lower case, such as ['image/png']; not {show(types)}."
            )
        total = check_int("total", total, 1, 2**50)
        self._blobs, self._types = blobs, frozenset(types)
        self._limits = Limits(
            total,
            total if part is None else check_int("part", part, 1, 2**50),
            check_int("parts", parts, 1, 10_000),
            check_int("field", field, 1, 10 * _MB),
        )

    async def receive(self, request: Arriving) -> Form:
        """The whole form. Its files are staged: commit them in the transaction of your rows, or they are swept."""
        return await self.receive_from(request.scope, request.receive)

    async def receive_sent(self, upload: str, *, content_type: str, length: int) -> Staged:
        """What a client has sent by a link of `hf.blobs.link_put`: looked at as a file of a form is, and staged. Commit it."""
        staged = await self._blobs.receive(upload, content_type=content_type, length=length)
        found = Received("upload", "", staged)
        try:
            if staged.size > self._limits.part:
                raise refused(  # noqa: TRY301
                    413, "A file is too large", "FILE_TOO_LARGE", f"At most {self._limits.part:,} bytes are taken."
                )  # fmt: skip
            head = await self._piece(staged, 0, HEAD)
            kind = self._kind_of("upload", head, content_type)
            if kind != content_type:
                raise refused(  # noqa: TRY301
                    415, "A file is not of the type that was announced", "TYPE_NOT_ANNOUNCED", f"It is {kind} by its content."
                )  # fmt: skip
            _check_honest("upload", kind, head, await self._piece(staged, max(0, staged.size - TAIL), None))
        except BaseException:
            await to_its_end(self._discard([found]))
            raise
        return staged

    async def _piece(self, staged: Staged, start: int, end: int | None) -> bytes:
        reading = await self._blobs.place().get(staged.object, start=start, end=end)
        return b"".join([piece async for piece in reading])

    async def receive_from(self, scope: Scope, receive: Receive) -> Form:
        """`receive` for a plain ASGI app."""
        parts = Parts(scope, receive, self._limits)
        fields: list[tuple[str, str]] = []
        files: list[Received] = []
        try:
            async for part in parts:
                await self._part(part, parts, fields, files)
        except BaseException:
            await to_its_end(self._discard(files))
            raise
        return Form(tuple(fields), tuple(files))

    async def _part(
        self, part: Part, parts: Parts, fields: list[tuple[str, str]], files: list[Received]
    ) -> None:
        try:
            if part.filename is None:
                fields.append((part.name, await self._field(parts)))
            elif (found := await self._file(part, parts)) is not None:
                files.append(found)
        except ProblemError as error:
            raise _named(error, part) from None

    async def _field(self, parts: Parts) -> str:
        value = bytearray()
        async for piece in parts.content():
            value += piece
            if len(value) > self._limits.field:
                raise refused(
                    413,
                    "A field is too long",
                    "FIELD_TOO_LARGE",
                    f"At most {self._limits.field:,} bytes are taken in one.",
                )
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise refused(400, "A field is no text in UTF-8", "FORM_MALFORMED") from None

    async def _file(self, part: Part, parts: Parts) -> Received | None:
        """None: the field for a file was left empty."""
        content = parts.content()
        head = await _head(content)
        if not part.filename and not head:
            return None
        if not head and TEXT not in self._types:
            raise refused(422, "A file is empty", "FILE_EMPTY", "It has no bytes.")
        kind = self._kind_of(part.name, head, part.told)
        watched = _Watched(head, content)
        try:
            staged = await self._blobs.stage(watched, content_type=kind, most=self._limits.part)
        except BlobTooLarge as error:
            raise refused(413, "A file is too large", "FILE_TOO_LARGE", str(error)) from None
        found = Received(part.name, part.filename or "", staged)
        try:
            _check_honest(part.name, kind, head, watched.tail)
        except ProblemError:
            await self._discard([found])
            raise
        return found

    def _kind_of(self, name: str, head: bytes, told: str | None) -> str:
        kind = kind_of(head, told)
        if kind not in self._types:
            raise refused(
                415, "A file is of a type that is not taken here", "TYPE_NOT_TAKEN", f"{name} is {kind} by its content."
            )  # fmt: skip
        return kind

    async def _discard(self, files: list[Received]) -> None:
        """What cannot be removed now goes with the sweep."""
        for each in files:
            try:
                await self._blobs.discard(each.staged)
            except Exception as error:  # noqa: BLE001  the reason why it is discarded counts more
                note("upload.not_discarded", object=each.staged.object, error=repr(error))


class _Watched:
    """The content, of which the end is remembered."""

    def __init__(self, head: bytes, rest: AsyncIterator[bytes]) -> None:
        self._head, self._rest = head, rest
        self.tail = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.tail = self._head[-TAIL:]
        yield self._head
        async for piece in self._rest:
            self.tail = (self.tail + piece)[-TAIL:] if len(piece) < TAIL else piece[-TAIL:]
            yield piece


def _named(error: ProblemError, part: Part) -> ProblemError:
    """With the field, and the file as the client calls it."""
    problem = error.problem
    if problem.code not in _OF_A_PART:
        return error
    message = f"{part.filename}: {problem.detail}" if part.filename else problem.detail
    told = ({"field": part.name, "message": message},)
    return ProblemError(msgspec.structs.replace(problem, errors=told))


def _check_honest(name: str, kind: str, head: bytes, tail: bytes) -> None:
    if (why := hides(kind, head, tail)) is not None:
        raise refused(
            415, "A file is more than it seems to be", "TYPE_AMBIGUOUS", f"{name} is {kind}, and {why}."
        )  # fmt: skip


async def _head(content: AsyncIterator[bytes]) -> bytes:
    head = bytearray()
    async for piece in content:
        head += piece
        if len(head) >= HEAD:
            break
    return bytes(head)
