"""What each route needs: one table. A route that is missing here cannot be made, and a test walks over all of them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from admissions.desk.people import Person
from admissions.domain.roles import May, may


class Who(StrEnum):
    """For what no role is needed."""

    ANYONE = "anyone"
    PERSON = "person"  # who has logged in, in whatever role


Needs = Who | May
_DRAFT, _OWN = "/api/applications/{application_id}", "/applications/{application_id}"
_CASE, _DESK = "/api/cases/{application_id}", "/desk/cases/{application_id}"

API: Mapping[str, Needs] = {
    "POST /webhooks/stripe": Who.ANYONE,  # its signature is its right
    "GET /api/session": Who.ANYONE,
    "POST /api/register": Who.ANYONE,
    "POST /api/confirm": Who.ANYONE,
    "POST /api/login": Who.ANYONE,
    "POST /api/logout": Who.ANYONE,
    "POST /api/forgot": Who.ANYONE,
    "POST /api/reset": Who.ANYONE,
    "GET /api/programmes": Who.ANYONE,
    "GET /api/account": Who.PERSON,
    "PATCH /api/account": Who.PERSON,
    "POST /api/account/mail": Who.PERSON,
    "POST /api/account/password": Who.PERSON,
    "GET /api/account/data": Who.PERSON,
    "POST /api/account/delete": Who.PERSON,
    "GET /api/account/logins": Who.PERSON,
    "DELETE /api/account/logins/{name}": Who.PERSON,
    "POST /applications": May.APPLY,
    "GET /api/applications": May.APPLY,
    "POST /api/applications": May.APPLY,
    f"GET {_DRAFT}": May.APPLY,
    f"PATCH {_DRAFT}/{{step}}": May.APPLY,
    f"GET {_DRAFT}/status": May.APPLY,
    f"POST {_DRAFT}/documents": May.APPLY,
    f"DELETE {_DRAFT}/documents/{{document_id}}": May.APPLY,
    f"POST {_DRAFT}/submit": May.APPLY,
    f"GET {_DRAFT}/payment": May.APPLY,
    f"POST {_DRAFT}/payment": May.APPLY,
    f"POST {_DRAFT}/withdraw": May.APPLY,
    "GET /api/cases": May.READ_CASES,
    f"GET {_CASE}": May.READ_CASES,
    f"GET {_CASE}/documents/{{document_id}}": May.READ_CASES,
    f"POST {_CASE}/assign": May.WORK_ON_CASES,
    f"POST {_CASE}/notes": May.WORK_ON_CASES,
    f"POST {_CASE}/requests": May.WORK_ON_CASES,
    f"POST {_CASE}/resume": May.REPLAY,
    f"PUT {_CASE}/decision": May.DRAFT_DECISIONS,
    f"POST {_CASE}/decision/check": May.CHECK_DECISIONS,
    "GET /api/terms/{term_id}/decisions": May.READ_CASES,
    "POST /api/terms/{term_id}/release": May.RELEASE_DECISIONS,
    "GET /api/figures": May.READ_FIGURES,
    "GET /api/figures/days.csv": May.READ_FIGURES,
    "GET /api/figures/stages.csv": May.READ_FIGURES,
    "GET /api/payments": May.READ_PAYMENTS,
    "GET /api/payments/unmatched": May.READ_PAYMENTS,
    "POST /api/payments/{application_id}/refund": May.REFUND,
    "GET /api/audit": May.READ_AUDIT,
    "PUT /api/people/{person_id}/role": May.MANAGE_PEOPLE,
}
PAGES: Mapping[str, Needs] = {
    "GET /": Who.ANYONE,
    "POST /language": Who.ANYONE,
    "GET /register": Who.ANYONE,
    "POST /register": Who.ANYONE,
    "GET /confirm": Who.ANYONE,
    "POST /confirm": Who.ANYONE,
    "GET /login": Who.ANYONE,
    "POST /login": Who.ANYONE,
    "POST /logout": Who.ANYONE,
    "GET /forgot": Who.ANYONE,
    "POST /forgot": Who.ANYONE,
    "GET /reset": Who.ANYONE,
    "POST /reset": Who.ANYONE,
    "GET /account": Who.PERSON,
    "POST /account/name": Who.PERSON,
    "POST /account/mail": Who.PERSON,
    "POST /account/password": Who.PERSON,
    "POST /account/logins": Who.PERSON,
    "POST /account/logout-others": Who.PERSON,
    "GET /account/data.json": Who.PERSON,
    "POST /account/delete": Who.PERSON,
    "GET /applications": May.APPLY,
    "POST /apply": May.APPLY,
    f"GET {_OWN}/form": May.APPLY,
    f"GET {_OWN}/form/{{step}}": May.APPLY,
    f"POST {_OWN}/form/{{step}}": May.APPLY,
    f"POST {_OWN}/files": May.APPLY,
    f"POST {_OWN}/files/{{document_id}}/remove": May.APPLY,
    f"GET {_OWN}/files/{{document_id}}": May.APPLY,
    f"GET {_OWN}/check": May.APPLY,
    f"POST {_OWN}/check": May.APPLY,
    f"GET {_OWN}/receipt": May.APPLY,
    f"GET {_OWN}/status": May.APPLY,
    f"GET {_OWN}/pay": May.APPLY,
    f"POST {_OWN}/pay": May.APPLY,
    f"GET {_OWN}/withdraw": May.APPLY,
    f"POST {_OWN}/withdraw": May.APPLY,
    "GET /desk": May.READ_CASES,
    "GET /desk/cases.csv": May.READ_CASES,
    "POST /desk/views": May.READ_CASES,
    "POST /desk/views/{view_id}/remove": May.READ_CASES,
    f"GET {_DESK}": May.READ_CASES,
    f"GET {_DESK}/files.zip": May.READ_CASES,
    f"GET {_DESK}/files/{{document_id}}": May.READ_CASES,
    f"POST {_DESK}/assign": May.WORK_ON_CASES,
    f"POST {_DESK}/notes": May.WORK_ON_CASES,
    f"POST {_DESK}/requests": May.WORK_ON_CASES,
    f"POST {_DESK}/decision": May.DRAFT_DECISIONS,
    f"POST {_DESK}/check": May.CHECK_DECISIONS,
    f"POST {_DESK}/resume": May.REPLAY,
    "GET /desk/decisions": May.READ_CASES,
    "POST /desk/decisions/{term_id}/release": May.RELEASE_DECISIONS,
    "GET /desk/payments": May.READ_PAYMENTS,
    "POST /desk/payments/{application_id}/refund": May.REFUND,
    "GET /desk/stopped": May.REPLAY,
    "POST /desk/stopped/{job_id}": May.REPLAY,
    "GET /desk/figures": May.READ_FIGURES,
    "GET /desk/figures.csv": May.READ_FIGURES,
    "GET /desk/people": May.MANAGE_PEOPLE,
    "POST /desk/people/{person_id}/role": May.MANAGE_PEOPLE,
    "GET /desk/audit": May.READ_AUDIT,
}
ALLOWED: Mapping[str, Needs] = {**API, **PAGES}


def is_allowed(person: Person | None, needs: Needs) -> bool:
    """A stranger may do what anyone may."""
    if needs is Who.ANYONE:
        return True
    if person is None or person.is_blocked:
        return False
    return needs is Who.PERSON or may(person.role, needs)
