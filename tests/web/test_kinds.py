"""What a file is by its content, tried with files that are two things at once: the test by which the library was chosen."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

import pytest

from holdfast.web.uploads.kinds import MARKUP, TEXT, UNKNOWN, hides, kind_of


def _png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b"\0\0\0\0"))
        + chunk(b"IEND", b"")
    )


def _zip(*names, comment=b""):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name in names:
            file.writestr(name, "<x/>")
        file.comment = comment
    return made.getvalue()


PNG = _png()
TABLES = b"\xff\xdb\0\x43\0" + b"\1" * 64 + b"\xff\xd9"
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0" + TABLES
GIF = b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"
PDF = b"%PDF-1.4\n1 0 obj<<>>endobj\ntrailer<<>>\n%%EOF\n"
HTML = b"<!DOCTYPE html><html><script>alert(1)</script></html>"
SVG = b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

KINDS = {
    "png": (PNG, "image/png"),
    "jpeg": (JPEG, "image/jpeg"),
    "jpeg with exif": (b"\xff\xd8\xff\xe1\0\x18Exif\0\0II*\0\x08\0\0\0\0\0\0\0" + TABLES, "image/jpeg"),
    "raw jpeg": (b"\xff\xd8\xff" + TABLES[1:], "image/jpeg"),
    "gif": (GIF, "image/gif"),
    "webp": (b"RIFF\x1a\0\0\0WEBPVP8 \x0e\0\0\0\x30\1\0\x9d\1\x2a\1\0\1\0\2\0", "image/webp"),
    "pdf": (PDF, "application/pdf"),
    "zip": (_zip("a.txt"), "application/zip"),
    "docx": (_zip("[Content_Types].xml", "_rels/.rels", "word/document.xml"), DOCX),
    "mp4": (b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom\0\0\0\x08free", "video/mp4"),
    "mov": (b"\0\0\0\x14ftypqt  \0\0\0\0qt  \0\0\0\x08free", "video/quicktime"),
    "exe": (b"MZ\x90\0\3\0\0\0\4\0\0\0\xff\xff\0\0" + b"\0" * 100, "application/x-msdownload"),
    "elf": (b"\x7fELF\2\1\1\0" + b"\0" * 60, "application/x-executable"),
    "svg": (SVG, MARKUP),
    "html": (HTML, MARKUP),
    "html after a mark": (b"\xef\xbb\xbf" + HTML, MARKUP),
    "html after spaces": (b" \n\t" + HTML, MARKUP),
    "html that a png follows": (HTML + PNG, UNKNOWN),
    "html that a pdf follows": (HTML + PDF, MARKUP),
    "junk that a pdf follows": (b"\x01junk" * 50 + PDF, UNKNOWN),
    "utf-16": ("<html><script>".encode("utf-16"), UNKNOWN),
    "text": ("hello wörld\n".encode(), TEXT),
    "text, cut in a letter": ("hello wörld".encode()[:8], TEXT),
    "empty": (b"", TEXT),
    "a text like a bitmap": (b"BM is how this sentence begins\n", TEXT),
    "a text like a program": (b"MZ is no program, only text\n", TEXT),
    "a text like music": (b"ID3 is a text\n", TEXT),
    "a text like a graymap": (b"P5 is a text about pianos\n", TEXT),
    "a script": (b"#!/bin/sh\nrm -rf /\n", TEXT),
    "noise": (bytes(range(256)), UNKNOWN),
}  # fmt: skip
POLYGLOTS = {
    "gif and script": b"GIF89a/*<script>alert(1)</script>*/=1;",
    "gif and php": GIF + b"<?php system($_GET[0]); ?>",
    "png and page": PNG + HTML,
    "jpeg and page": JPEG[:20] + b"\xff\xfe\0\x40<SCRIPT src=x>" + JPEG[20:],
    "jpeg and zip": JPEG + _zip("a.class"),
    "png and zip": PNG + b"x" * 10_000 + _zip("a.class", comment=b"c" * 5_000),
    "pdf and zip": PDF + _zip("a.class"),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_type_is_that_of_the_content(name):
    content, kind = KINDS[name]
    assert kind_of(content, "image/png") == kind
    assert hides(kind, content, content) is None


@pytest.mark.parametrize("name", POLYGLOTS)
def test_what_is_two_things_is_seen(name):
    content = POLYGLOTS[name]
    kind = kind_of(content)
    assert kind in {"image/gif", "image/png", "image/jpeg", "application/pdf"}
    assert hides(kind, content[:8192], content[-66 * 1024 :]) is not None


def test_a_client_may_only_say_which_text_it_is():
    assert kind_of(b"a,b\n1,2\n", "text/csv") == "text/csv"
    assert kind_of(b'{"a": 1}', "application/json") == "application/json"
    assert kind_of(b"a,b\n", "text/html") == TEXT
    assert kind_of(b"a,b\n", "image/png") == TEXT
    assert kind_of(HTML, "text/csv") == MARKUP
    assert kind_of(PNG, "text/csv") == "image/png"
