"""Which key and which tags a call has: made of its arguments, so that two calls that differ never share a value."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from string import Formatter
from typing import Any
from urllib.parse import quote

import msgspec

from holdfast.kernel.codec import canonical
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.names import check_name
from holdfast.kernel.show import show
from holdfast.kernel.templates import Template

_SAFE = "@"  # beside letters, digits and _.-~: what a value may have in a key as it is
_PLAIN = re.compile(r"[\w.\-~@]*", re.ASCII)
_UNSHOWN = re.compile(r"[^\x21-\x7e]")
_SHOWN = 80  # characters of a name that is too long


class Wanted(msgspec.Struct, frozen=True):
    """One call: what its value is kept under, and how to load it."""

    key: str
    tags: tuple[str, ...]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Names:
    """The names of one function's values, checked when it is declared."""

    def __init__(
        self, function: Callable[..., Any], *, key: str | None, tags: Sequence[str], ignore: Sequence[str]
    ) -> None:
        self.where = f"{function.__module__}.{function.__qualname__}"
        self._signature = inspect.signature(function)
        self._ignored = frozenset(self._known("ignore", ignore))
        self._key = None if key is None else self._key_of(key)
        self._values = (
            {name: Template("key", f"{{{name}}}") for name in self._key.fields} if self._key else {}
        )
        self._tags = [self._template("tags", each) for each in self._listed("tags", tags)]
        self.shape = None if key is None else shape(key)

    def _listed(self, option: str, texts: Any) -> Sequence[str]:
        if isinstance(texts, str) or not isinstance(texts, Sequence):
            raise UsageError(f"{self.where}: {option} is a list of texts, not {show(texts)}.")
        return texts

    def _known(self, option: str, names: Any) -> Sequence[str]:
        for name in self._listed(option, names):
            if name not in self._signature.parameters:
                raise UsageError(f"{self.where}: {option} has {show(name)}, which is no argument of it.")
        return list(names)

    def _template(self, option: str, text: str) -> Template:
        template = Template(option, text)
        self._known(option, template.fields)
        return template

    def _key_of(self, text: str) -> Template:
        template = self._template("key", text)
        left_out = [
            each for each in self._signature.parameters if each not in {*template.fields, *self._ignored}
        ]
        if left_out:
            raise UsageError(
                f"{self.where}: key={text!r} leaves out {', '.join(left_out)}: calls that differ in it would share a value. "
                f"Put {{{left_out[0]}}} into the key, or name it in ignore=."
            )
        _refuse_unclear(self.where, text)
        return template

    def wanted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Wanted:
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise UsageError(f"{self.where} cannot be called so: {error}.") from None
        bound.apply_defaults()
        given = bound.arguments
        tags = dict.fromkeys(fitted("tag", each.render(given)) for each in self._tags)
        return Wanted(fitted("key", self._text(given)), tuple(tags), args, kwargs)

    def _text(self, given: Mapping[str, Any]) -> str:
        if self._key is not None:
            return self._key.render(
                {name: _quoted(value.render(given)) for name, value in self._values.items()}
            )
        counted = {name: value for name, value in given.items() if name not in self._ignored}
        if not counted:
            return self.where
        try:
            return f"{self.where}:{canonical(counted)}"
        except PayloadError as error:
            raise UsageError(
                f"{self.where}: its arguments make no key: {error} Name that argument in ignore=, or give a key=."
            ) from None


def fitted(kind: str, text: Any) -> str:
    """The text as a name. What is too long for one, or has characters that no name has, ends in its hash instead."""
    if not isinstance(text, str):
        raise UsageError(f"A {kind} is text, not {show(text)} ({type(text).__name__}).")
    try:
        return check_name(kind, text)
    except UsageError:
        digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
        return f"{_UNSHOWN.sub('', text[:_SHOWN])}#{digest}"


def shape(key: str) -> str:
    """The template without the names in it: two of the same shape make the same keys."""
    return "".join(before + ("" if name is None else "{}") for before, name, *_ in Formatter().parse(key))


def _quoted(text: str) -> str:
    """Without any character that stands between two values: `a:b` and `c` are not `a` and `b:c`."""
    return text if _PLAIN.fullmatch(text) else quote(text, safe=_SAFE, errors="surrogatepass")


def _refuse_unclear(where: str, text: str) -> None:
    """Between two values there must be something that no value has, or 1 and 23 would be 12 and 3."""
    follows = False
    for before, name, *_ in Formatter().parse(text):
        if follows and name is not None and _PLAIN.fullmatch(before):
            raise UsageError(
                f"{where}: in key={text!r} nothing tells where one value ends and the next begins. Put a colon between them."
            )
        follows = name is not None
