"""Static files under an address that has their hash: a browser keeps them for ever, and a new version is a new address."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from holdfast.kernel.errors import UsageError
from holdfast.web.asgi import Scope, Send, answer

KIT = Path(__file__).parent / "static"
_MOST = 20 * 1024 * 1024  # bytes: they are kept in memory
_ADDRESS = re.compile(r"/static/([0-9a-f]{16})/(.+)")
_TYPES = {
    ".css": b"text/css; charset=utf-8",
    ".ico": b"image/x-icon",
    ".jpg": b"image/jpeg",
    ".js": b"text/javascript; charset=utf-8",
    ".json": b"application/json",
    ".png": b"image/png",
    ".svg": b"image/svg+xml",
    ".txt": b"text/plain; charset=utf-8",
    ".webp": b"image/webp",
    ".woff2": b"font/woff2",
}
_FOREVER = b"public, max-age=31536000, immutable"


class Assets:
    """All files of the kit and of one more folder, read once. One hash names them all, so that modules import each other by name."""

    def __init__(self, folder: Path | None, more: Mapping[str, bytes]) -> None:
        self._files = {**_read(KIT), **more, **(_read(folder) if folder else {})}
        whole = hashlib.sha256()
        for name, content in sorted(self._files.items()):
            whole.update(b"%s\0%d\0%s" % (name.encode(), len(content), content))
        self.hash = whole.hexdigest()[:16]

    def address(self, name: str) -> str:
        if name not in self._files:
            raise UsageError(
                f"There is no static file {name!r} (there are: {', '.join(sorted(self._files))})."
            )
        return f"/static/{self.hash}/{name}"

    def find(self, path: str) -> tuple[str, bytes, bool] | None:
        """The file at this path, and whether the address is the one of now. After a deployment, older pages still ask."""
        asked = _ADDRESS.fullmatch(path)
        if asked is None:
            return None
        content = self._files.get(asked[2])
        return None if content is None else (asked[2], content, asked[1] == self.hash)


async def serve(found: tuple[str, bytes, bool], scope: Scope, send: Send) -> None:
    name, content, is_current = found
    fields = [
        (b"content-type", _TYPES[Path(name).suffix]),
        (b"content-length", b"%d" % len(content)),
        (b"cache-control", _FOREVER if is_current else b"no-cache"),
    ]
    await answer(send, 200, content, fields, empty=scope["method"] == "HEAD")


def _read(folder: Path) -> dict[str, bytes]:
    if not folder.is_dir():
        raise UsageError(f"static={str(folder)!r} is no folder.")
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    unknown = [path.name for path in paths if path.suffix not in _TYPES]
    if unknown:
        raise UsageError(f"{folder} has {unknown[0]!r}, of no kind that is served ({' '.join(_TYPES)}).")
    if sum(path.stat().st_size for path in paths) > _MOST:
        raise UsageError(f"{folder} has more than {_MOST // 2**20} MB; serve large files elsewhere.")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
