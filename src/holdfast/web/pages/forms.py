"""Forms: what was typed, and what is wrong with it, beside its field. What was typed is always kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from holdfast.kernel.names import check_int

_TYPE = "application/x-www-form-urlencoded"
_MOST_FIELDS = 1000


class FormRefused(HTTPException):
    """The body is no form, or too large a one. Starlette and FastAPI answer it with its status."""


class Form:
    """The fields of one form, by name. `form.error("rate", "…")` puts a sentence beside a field.

    An empty one stands for a form that nobody has filled in yet: `Form({"rate": "5"})` has its first values.
    """

    def __init__(self, values: Mapping[str, str | Sequence[str]] | None = None) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in (values or {}).items():
            self._values[name] = [value] if isinstance(value, str) else list(value)
        self.errors: dict[str, str] = {}  # by field, in the order in which they were found

    @classmethod
    async def read(cls, request: Request, *, most: int = 256 * 1024) -> Form:
        """The form that was sent, of at most so many bytes. Files come another way."""
        check_int("most", most, 0, 2**40)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _TYPE:
            raise FormRefused(415, f"This takes a form: its content type is {_TYPE}.")
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise FormRefused(413, f"The form is too large: at most {most:,} bytes are taken.")
        return cls._of(body)

    @classmethod
    def _of(cls, body: bytes) -> Form:
        try:
            pairs = parse_qsl(
                body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
            )
        except ValueError as error:  # not UTF-8, or too many
            raise FormRefused(400, f"The form cannot be read: {error}.") from None
        form = cls()
        for name, value in pairs:
            # NUL fits into no text of PostgreSQL, and browsers send line breaks as CR LF.
            form._values.setdefault(name, []).append(value.replace("\x00", "").replace("\r\n", "\n"))
        return form

    def __getitem__(self, name: str) -> str:
        """What the field has: empty when it was not sent. Of several, the last."""
        found = self._values.get(name)
        return found[-1] if found else ""

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def all(self, name: str) -> tuple[str, ...]:
        """Each value of a field that may be sent several times."""
        return tuple(self._values.get(name, ()))

    def error(self, name: str, sentence: str) -> None:
        """What is wrong with the value of this field, and what would be right. The first one stays."""
        self.errors.setdefault(name, sentence)

    @property
    def ok(self) -> bool:
        return not self.errors
