"""Headers as they go over the wire, written by us: the library of Python decodes what it is given, and so lets lines in.

`=?utf-8?q?a=0ABcc:…?=` is plain text here, as everything else that a program says.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence

from holdfast.mail.addresses import Address

_LINE = 76  # characters, where there is a space to break at
_WORD = 42  # bytes of text in an encoded word: 75 characters with all that is around it
_PLAIN = re.compile(r"[!-~]+(?: [!-~]+)*")
_ATOMS = re.compile(r"[A-Za-z0-9!#$%&'*+/^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/^_`{|}~-]+)*")
_QUOTABLE = re.compile(r"[ !#-\[\]-~]*")  # ASCII without quotes and backslashes


def line(name: str, text: str) -> str:
    """A header of free text."""
    words = text.split(" ") if _PLAIN.fullmatch(text) and "=?" not in text else _encoded(text)
    return f"{name}:{_folded(len(name) + 1, words)}\r\n"


def addresses(name: str, found: Sequence[Address]) -> str:
    """A header of addresses, each on a line of its own."""
    return f"{name}: " + ",\r\n ".join(_one(each) for each in found) + "\r\n"


def _one(address: Address) -> str:
    name = address.name
    if not name:
        return address.spec
    if "=?" in name or not _QUOTABLE.fullmatch(name):
        name = "\r\n ".join(_encoded(name))
    elif not _ATOMS.fullmatch(name):
        name = f'"{name}"'
    return f"{name} <{address.spec}>" if len(name) < _LINE else f"{name}\r\n <{address.spec}>"


def _folded(column: int, words: Sequence[str]) -> str:
    """With a space before each word; a break stands before a space, so readers get the text back by taking breaks out."""
    lines = ""
    for word in words:
        if column > 1 and column + 1 + len(word) > _LINE and lines:
            lines, column = f"{lines}\r\n", 0
        lines, column = f"{lines} {word}", column + 1 + len(word)
    return lines


def _encoded(text: str) -> list[str]:
    """As encoded words (RFC 2047). None ends within a character, so each can be read by itself."""
    words: list[str] = []
    piece = b""
    for letter in text:
        more = letter.encode()
        if len(piece) + len(more) > _WORD:
            words, piece = [*words, _word(piece)], b""
        piece += more
    return [*words, _word(piece)] if piece else words


def _word(piece: bytes) -> str:
    return f"=?utf-8?b?{base64.b64encode(piece).decode()}?="
