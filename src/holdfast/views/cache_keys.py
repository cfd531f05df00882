"""Which key and which tags a call has: made of its arguments, so that two calls that differ never share a value."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from string import Formatter
from typing import Any
from urllib.parse import quote
from uuid import UUID

import msgspec

from holdfast.jobs.signature import hints_of, is_secret
from holdfast.kernel.codec import canonical
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.names import check_name
from holdfast.kernel.show import show
from holdfast.kernel.templates import Template

_SAFE = "@"  # beside letters, digits and _.-~: what a value may have in a key as it is
_PLAIN = re.compile(r"[\w.\-~@]*", re.ASCII)
_QUOTED = re.compile(r"[\w.\-~@%]", re.ASCII)  # what a value has in a key, one letter of it
_SIMPLE = (str, bytes, int, float, UUID)
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
        if function.__name__ == "<lambda>":
            raise UsageError(
                f"{self.where} has no name by which its values could be kept. Write a function: `def gallery(…): …`."
            )
        self._signature = inspect.signature(function)
        if next(iter(self._signature.parameters), "") in ("self", "cls"):
            raise UsageError(
                f"{self.where} is a method, and @hf.cached stands on functions: an object has no place in a key. Cache a function "
                "that takes what it needs, and call that from the method."
            )
        self._ignored = frozenset(self._known("ignore", ignore))
        hints = hints_of(function)
        self._secret = [name for name in self._signature.parameters if is_secret(hints.get(name, Any))]
        self._key = None if key is None else self._key_of(key)
        self._values = (
            {name: Template("key", f"{{{name}}}") for name in self._key.fields} if self._key else {}
        )
        self._tags = [self._tag_of(each) for each in self._listed("tags", tags)]
        self.shape = None if key is None else Shape(key)
        self._captured = _captured(function)

    def refuse_twin(self, other: Names) -> None:
        """Two functions that may have the same key would serve each other's values."""
        if self.where == other.where:
            self._refuse_sibling(other)
        elif self.shape is not None and other.shape is not None and self.shape.meets(other.shape):
            raise UsageError(
                f"{self.where} and {other.where} may have the same keys, {self.shape.text!r} and {other.shape.text!r}, and would "
                "serve each other's values. Begin each with a word of its own, and a colon."
            )

    def _refuse_sibling(self, other: Names) -> None:
        """A module that is loaded again has the same function; one made by a function is another with each thing it knows."""
        if _is_same(self._captured, other._captured) or not self._is_as(other):
            return
        raise UsageError(
            f"{self.where} is made more than once, each time with something else, and all would have the same keys. Put what they "
            'differ in into the key: key=f"{table}:{{id}}".'
        )

    def _is_as(self, other: Names) -> bool:
        if self.shape is None or other.shape is None:
            return self.shape is other.shape
        return self.shape.meets(other.shape)

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

    def _tag_of(self, text: str) -> Template:
        template = self._template("tags", text)
        if secret := [name for name in template.fields if name in self._secret]:
            raise UsageError(
                f"{self.where}: tags has {text!r}, and {secret[0]} is secret: whoever invalidates it would write it out, and "
                "listings show tags. Name what it belongs to, such as a user."
            )
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
        given = self._without_secrets(bound.arguments) if self._secret else bound.arguments
        tags = dict.fromkeys(fitted("tag", each.render(given)) for each in self._tags)
        return Wanted(fitted("key", self._text(given)), tuple(tags), args, kwargs)

    def _without_secrets(self, given: dict[str, Any]) -> dict[str, Any]:
        """Keys are listed and noted: of what is secret they have the hash."""
        counted = {name: given[name] for name in self._secret if name not in self._ignored}
        return given | {name: self._hash(name, value) for name, value in counted.items()}

    def _hash(self, name: str, value: Any) -> str:
        try:
            text = canonical(
                {self.where: value}
            )  # two functions with the same secret are not seen to have it
        except PayloadError:
            raise UsageError(
                f"{self.where}: its argument {name} makes no key: it has no form in JSON. Name it in ignore=."
            ) from None
        return f"secret-{hashlib.sha256(text.encode()).hexdigest()}"

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


class Shape:
    """A template without the names in it: letters, and None for each value."""

    def __init__(self, key: str) -> None:
        self._parts: list[str | None] = []
        self.text = ""
        for before, name, *_ in Formatter().parse(key):
            self._parts += before if name is None else [*before, None]
            self.text += before if name is None else f"{before}{{}}"

    def meets(self, other: Shape) -> bool:
        """Whether some values make the same key of both: such as "all" of `gallery:{user}` and `gallery:all`."""
        ours, theirs = self._parts, other._parts
        found, new = {(0, 0)}, [(0, 0)]
        while new:
            here, there = new.pop()
            one, two = ours[here : here + 1], theirs[there : there + 1]
            steps = _steps(one, two)
            for place in {(here + more, there + much) for more, much in steps} - found:
                found.add(place)
                new.append(place)
        return (len(ours), len(theirs)) in found


def _steps(one: Sequence[str | None], two: Sequence[str | None]) -> list[tuple[int, int]]:
    """How far both may go on together: a value ends, takes a letter of the other, or both have the same letter."""
    steps = [(1, 0)] * (one == [None]) + [(0, 1)] * (two == [None])
    for value, letter, step in ((one, two, (0, 1)), (two, one, (1, 0))):
        if value == [None] and letter and letter[0] is not None and _QUOTED.fullmatch(letter[0]):
            steps.append(step)
    return steps + [(1, 1)] * (one == two and bool(one))


def _captured(function: Any) -> tuple[Any, ...]:
    """What a function that another has made knows of there."""
    known: list[Any] = [*(getattr(function, "__defaults__", None) or ())]
    for cell in getattr(function, "__closure__", None) or ():
        try:
            known.append(cell.cell_contents)
        except ValueError:  # it has no value yet: such as the name of the function itself
            known.append(None)
    return tuple(known)


def _is_same(ones: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    return len(ones) == len(others) and all(
        one is other or (isinstance(one, _SIMPLE) and type(one) is type(other) and one == other)
        for one, other in zip(ones, others, strict=True)
    )


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
