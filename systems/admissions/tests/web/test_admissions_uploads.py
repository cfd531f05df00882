"""Documents that come in: told by their content, counted, named in any script; and nothing is left of what is refused."""

from __future__ import annotations

import io
import zipfile
import zlib

import admissions_kit as kit
import pytest
from admissions.core import hf
from admissions.domain.forms import FILE_MOST
from admissions_visitors import number_of
from PIL import Image

from holdfast.testing import drain

NAMES = [
    "Bảng điểm năm hai.pdf", "成績証明書.pdf", "성적표.pdf", "سجل الدرجات.pdf", "אישור ציונים.pdf", "Ведомость оценок.pdf", "Βαθμολογία.pdf",
    "अंकतालिका.pdf", "ใบแสดงผลการเรียน.pdf", "தரச்சான்றிதழ்.pdf", "የውጤት ማስረጃ.pdf", "Zeugnis 👩\u200d🎓 e\u0301.pdf",
]  # fmt: skip


def picture(kind="PNG"):
    found = io.BytesIO()
    Image.new("RGB", (8, 8), (20, 40, 60)).save(found, kind)
    return found.getvalue()


def zipped(size=50_000_000):
    """It is small, and grows to so many bytes."""
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.txt", b"\0" * size)
    return found.getvalue()


def pdf_of_zeros():
    """A PDF with a stream that grows a thousandfold when it is read."""
    packed = zlib.compress(b"\0" * 20_000_000, 9)
    return b"%PDF-1.7\n1 0 obj <</Length " + str(len(packed)).encode() + b" /Filter /FlateDecode>> stream\n" + packed + b"\nendstream endobj\ntrailer\n%%EOF\n"  # fmt: skip


REFUSED = {
    "nothing in it": (b"", 422),
    "a text": (b"Grades: A, A, B", 415),
    "a page": (b"<html><script>alert(1)</script></html>", 415),
    "a vector picture with a script": (b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>', 415),
    "a program": (b"\x7fELF\x02\x01\x01" + b"\0" * 60, 415),
    "a zip bomb": (zipped(), 415),
    "a picture that is a zip, too": (picture() + zipped(1_000), 415),
    "a picture with a page in it": (picture()[:60] + b"<script>alert(1)</script>" + picture()[60:], 415),
    "a PDF that is a zip, too": (kit.PDF + zipped(1_000), 415),
    "a PDF behind something else": (b"GIF89a" + kit.PDF, 415),
    "too large": (kit.PDF + b"\0" * FILE_MOST, 413),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_what_is_no_document_is_refused_whatever_it_is_called(anh, term, what, kept):
    content, status = REFUSED[what]
    sent = [
        ("transcript", ("grades.pdf", kit.PDF, "application/pdf")),
        ("other", ("grades.pdf", content, "application/pdf")),
    ]
    answer = await anh.submit(term, files=sent)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"][0]["field"] == "other", answer.text
    assert "grades.pdf" in answer.json()["errors"][0]["message"], answer.text
    assert await number_of("applications") == 0
    assert kept() == 0


@pytest.mark.parametrize(
    ("kind", "content"), [("jpeg", picture("JPEG")), ("png", picture()), ("pdf", kit.PDF)]
)
async def test_the_three_types_are_taken_under_any_name(anh, term, kind, content):
    answer = await anh.submit(term, files=[("identification", ("scan", content, "application/x-msdownload"))])
    assert answer.status_code == 202, answer.text
    [document] = answer.json()["documents"]
    assert document["type"].endswith(kind)
    assert (document["kind"], document["size"]) == ("identification", len(content))


async def test_too_many_and_none_are_told_by_their_field(anh, term, kept):
    six = [("other", (f"{number}.pdf", kit.PDF, "application/pdf")) for number in range(6)]
    none = [("phone", (None, ""))]  # a form without any
    for files, key in ((six, "many"), (none, "none")):
        answer = await anh.submit(term, files=files, key=key, phone=[])
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "files"), answer.text
    assert kept() == 0


async def test_every_field_that_is_wrong_is_told_at_once(anh, term, kept):
    answer = await anh.submit(
        term, name=" ", birth="yesterday", phone="x", statement="short", declared="false"
    )
    assert answer.status_code == 422
    assert {each["field"] for each in answer.json()["errors"]} == {
        "name",
        "birth",
        "phone",
        "statement",
        "declared",
    }
    for changes in (
        {"termId": "none"},
        {"unknown": "1"},
        {"declared": "yes"},
        {"name": "a\x00b"},
        {"statement": "x" * 20_001},
    ):
        answer = await anh.submit(term, key=str(changes)[:40], **changes)
        assert (answer.status_code, len(answer.json()["errors"])) == (422, 1), answer.text
    answer = await anh.submit("0" * 32, key="no term")
    assert answer.status_code == 404
    assert kept() == 0


async def test_a_field_of_files_that_nobody_knows_and_a_field_that_comes_twice(anh, term, kept):
    answer = await anh.submit(term, files=[("diploma", ("a.pdf", kit.PDF, "application/pdf"))])
    assert answer.json()["errors"][0]["field"] == "diploma"
    answer = await anh.submit(term, key="twice", name=["one", "two"])
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "name"), answer.text
    assert kept() == 0


async def test_names_in_many_scripts_come_back_as_they_were(
    manual_clock, anh, officer, stripe_simulator, box
):
    for begin in range(0, len(NAMES), 5):
        names = NAMES[begin : begin + 5]
        sent = [("other", (name, kit.PDF, "application/pdf")) for name in names]
        told = await anh.submit(await kit.term(), key=str(begin), name=f"Ánh {names[0]}", files=sent)
        assert [each["name"] for each in told.json()["documents"]] == names
        application = told.json()["applicationId"]
        await manual_clock.run(drain(hf, raise_dead=True))
        case = (await officer.get(f"/api/cases/{application}")).json()
        assert case["answers"]["name"] == f"Ánh {names[0]}"
        for document in case["documents"]:
            file = await officer.get(f"/api/cases/{application}/documents/{document['id']}")
            await is_saved_and_never_shown(file, document["name"])


async def is_saved_and_never_shown(file, name):
    from urllib.parse import unquote

    assert file.status_code == 200, file.text
    told = file.headers["content-disposition"]
    assert told.startswith("attachment;")
    assert told.isascii()
    assert unquote(told.partition("filename*=UTF-8''")[2]) == name
    assert file.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in file.headers["content-security-policy"]
    assert file.headers["cache-control"] == "private, no-store"


@pytest.mark.parametrize(
    ("told", "shown"),
    [("../../etc/passwd", "passwd"), ("C:\\Users\\anh\\grades.pdf", "grades.pdf"), ("a\u202egrades.fdp", "agrades.fdp"), ("x" * 500, "x" * 200), ("\u200b", "document")],
)  # fmt: skip
async def test_a_name_is_no_path_and_hides_nothing(anh, term, told, shown):
    answer = await anh.submit(term, files=[("other", (told, kit.PDF, "application/pdf"))])
    assert answer.json()["documents"][0]["name"] == shown


async def test_a_pdf_with_a_script_is_refused_by_the_checker_and_never_given_out(manual_clock, anh, officer, term, stripe_simulator, box):  # fmt: skip
    script = kit.PDF.replace(b"endobj", b"/OpenAction <</S /JavaScript /JS (app.alert(1))>> endobj")
    answer = await anh.submit(term, files=[("other", ("grades.pdf", script, "application/pdf"))])
    told = answer.json()
    await manual_clock.run(drain(hf, raise_dead=True))
    found = (await anh.get(told["statusUrl"])).json()
    assert (found["status"], found["documentsRejected"]) == ("needs_files", 1)
    place = f"/api/cases/{told['applicationId']}/documents/{told['documents'][0]['id']}"
    refused = await officer.get(place)
    assert (refused.status_code, refused.json()["code"]) == (409, "TOO_LATE")


async def test_a_document_that_grows_when_it_is_read_is_not_read_here(
    manual_clock, anh, term, stripe_simulator, box
):
    """A small PDF of 20 MB of zeros: we store and scan its bytes, and unpack nothing."""
    bomb = pdf_of_zeros()
    assert len(bomb) < 30_000
    answer = await anh.submit(term, files=[("other", ("grades.pdf", bomb, "application/pdf"))])
    assert answer.json()["documents"][0]["size"] == len(bomb)
    await manual_clock.run(drain(hf, raise_dead=True))
    assert (await anh.get(answer.json()["statusUrl"])).json()["documentsVerified"] is True


async def test_files_of_a_draft_come_and_go(anh, term, kept):
    draft = await anh.draft(term, files=5)
    place = f"/api/applications/{draft}/documents"
    more = await anh.post(place, files=[("other", ("6.pdf", kit.PDF, "application/pdf"))])
    assert (more.status_code, more.json()["errors"][0]["field"]) == (422, "files")
    assert (await anh.post(place, data={"a": "b"}, files=[("other", ("", b""))])).status_code == 422
    documents = (await anh.get(f"/api/applications/{draft}")).json()["documents"]
    assert (await anh.delete(f"{place}/{documents[0]['id']}")).status_code == 204
    assert (await anh.delete(f"{place}/{documents[0]['id']}")).status_code == 404
    assert (
        await anh.post(place, files=[("other", ("6.pdf", kit.PDF, "application/pdf"))])
    ).status_code == 201
    assert await number_of("documents") == 5
    assert kept() == 6, "what was removed can be had back for a while"


async def test_a_form_that_is_none_and_one_that_breaks_off(anh, term, kept):
    headers = {"idempotency-key": "f-1"}
    answer = await anh.post("/applications", json={"termId": term}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "NOT_A_FORM")
    begun = b'--x\r\nContent-Disposition: form-data; name="other"; filename="a.pdf"\r\n\r\n' + kit.PDF
    kind = {"content-type": "multipart/form-data; boundary=x", "idempotency-key": "f-2"}
    answer = await anh.post("/applications", content=begun, headers=kind)
    assert answer.status_code == 400, answer.text
    assert kept() == 0
