"""Live regions: the parts of a page that are sent again when they have changed, and only they."""

from __future__ import annotations

import hashlib
import re

from jinja2.runtime import Macro
from markupsafe import Markup

from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.web.asgi import Scope, header, path_of

ASKED, VERSION = b"x-holdfast-regions", b"x-holdfast-version"
_NAME = re.compile(r"[a-z][a-z0-9_-]*", re.IGNORECASE)
_MOST = 2000  # characters of the header


class Regions:
    """What one rendering has recorded. A page that is drawn whole and one that is asked for its parts come from one template."""

    def __init__(self) -> None:
        self._found: dict[str, Markup] = {}

    def region(self, name: str, tag: str = "div", classes: str = "", caller: Macro | None = None) -> Markup:
        """For templates: `{% call region("queues") %}…{% endcall %}`."""
        if not _NAME.fullmatch(name) or not _NAME.fullmatch(tag):
            raise UsageError(
                f"A region has a name and a tag of letters and digits, not {show(name)} and {show(tag)}."
            )
        if name in self._found:
            raise UsageError(f"The region {name!r} stands twice in this page.")
        inner = caller() if caller is not None else ""
        self._found[name] = Markup('<{0} id="{1}"{2} data-region>{3}</{0}>').format(
            tag, name, Markup(' class="{}"').format(classes) if classes else "", inner
        )
        return self._found[name]

    def version(self, names: tuple[str, ...] = ()) -> str:
        """Of these regions, or of all."""
        whole = hashlib.sha256()
        for name in sorted(names or self._found):
            whole.update(f"{name}\0{self._found.get(name, '')}\0".encode())
        return whole.hexdigest()[:16]

    def parts(self, names: tuple[str, ...]) -> str | None:
        """These regions as they are now; None when the page has one of them no more."""
        if not set(names) <= set(self._found):
            return None
        return "\n".join(self._found[name] for name in names)


def asked(scope: Scope) -> tuple[str, ...]:
    """The regions that this request wants, and no more: `#queues,#totals`."""
    told = header(scope, ASKED)
    if not told or len(told) > _MOST or scope["method"] not in ("GET", "HEAD"):
        return ()
    names = tuple(dict.fromkeys(part.strip().removeprefix("#") for part in told.split(",")))
    return names if all(_NAME.fullmatch(name) for name in names) else ()


def version_of(scope: Scope, version: object) -> str:
    """The version that the program has given, for this address: another one shows other things."""
    address = f"{path_of(scope)}?{scope.get('query_string', b'').decode('latin-1')}"
    return hashlib.sha256(f"{address}\0{version!r}".encode()).hexdigest()[:16]


def seen(scope: Scope) -> str:
    """The version that the reader has."""
    return header(scope, VERSION) or ""
