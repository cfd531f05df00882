"""Who may do what: one table. Every route names what it needs, and a test walks over all of them."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    APPLICANT = "applicant"
    OFFICER = "officer"
    FINANCE = "finance"
    ADMINISTRATOR = "administrator"


class May(StrEnum):
    """What can be allowed."""

    APPLY = "apply"  # own applications, and nobody else's
    READ_CASES = "read_cases"
    WORK_ON_CASES = "work_on_cases"  # notes, requests, assignment
    DRAFT_DECISIONS = "draft_decisions"
    CHECK_DECISIONS = "check_decisions"
    RELEASE_DECISIONS = "release_decisions"
    READ_PAYMENTS = "read_payments"
    REFUND = "refund"
    READ_FIGURES = "read_figures"
    REPLAY = "replay"  # what has failed in the pipeline
    MANAGE_TERMS = "manage_terms"
    MANAGE_PEOPLE = "manage_people"
    READ_AUDIT = "read_audit"
    SWITCH_FLAGS = "switch_flags"


_OFFICER = frozenset({
    May.READ_CASES, May.WORK_ON_CASES, May.DRAFT_DECISIONS, May.CHECK_DECISIONS, May.READ_FIGURES, May.REPLAY,
})  # fmt: skip
_FINANCE = frozenset({May.READ_CASES, May.READ_PAYMENTS, May.REFUND, May.READ_FIGURES})
TABLE: dict[Role, frozenset[May]] = {
    Role.APPLICANT: frozenset({May.APPLY}),
    Role.OFFICER: _OFFICER,
    Role.FINANCE: _FINANCE,
    Role.ADMINISTRATOR: _OFFICER
    | _FINANCE
    | {May.RELEASE_DECISIONS, May.MANAGE_TERMS, May.MANAGE_PEOPLE, May.READ_AUDIT, May.SWITCH_FLAGS},
}
STAFF = frozenset({Role.OFFICER, Role.FINANCE, Role.ADMINISTRATOR})


def may(role: Role, what: May) -> bool:
    return what in TABLE[role]
