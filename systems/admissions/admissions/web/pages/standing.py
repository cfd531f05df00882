"""How an application stands: the next step first, then where it is, its files, its payment and its history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from admissions.desk import story
from admissions.desk.story import Story
from admissions.domain.forms import KINDS
from admissions.domain.states import State
from admissions.outside.payments import WORDS
from admissions.web.pages import frame
from admissions.web.pages.slow import slow_of
from admissions.web.pages.texts import money
from admissions.web.visitor import Visitor
from admissions.web.words import SENTENCES, say

_OUTCOMES = {"accept": "ok", "wait_list": "wait", "reject": "off"}


@dataclass(frozen=True)
class Look:
    """The next step in one glance: how it looks, what it says, and whether it is the applicant's turn."""

    state: str  # the look of a badge
    key: str  # of the sentence; its text is key_text
    is_yours: bool = False
    values: tuple[object, ...] = ()


def look_of(its: Story) -> Look:
    if its.state is State.DRAFT:
        return Look("draft", "next_draft", True)
    if its.decision is not None:
        return Look(_OUTCOMES[its.decision[0]], f"next_{its.decision[0]}")
    if its.state is State.WITHDRAWN:
        return Look("off", "next_withdrawn")
    if its.state is State.NEEDS_FILES or its.refused:
        return Look("dead", "next_files", True, (", ".join(each.name for each in its.refused),))
    if its.wishes:
        return Look("late", "next_request", True)
    return _PIPELINE.get(its.state, _of_money)(its)


def _of_money(its: Story) -> Look:
    match its.payment.state:
        case "open" | "declined":
            return Look("late", "next_pay", True, (money(its.fee, its.currency),))
        case "odd":
            return Look("unknown", "pay_odd")
        case _:
            return Look("run", "next_confirming")


_PIPELINE = {
    State.SUBMITTED: lambda _: Look("run", "next_verifying"),
    State.VERIFYING: lambda _: Look("run", "next_verifying"),
    State.VERIFIED: lambda _: Look("run", "next_preparing"),
    State.PAID: lambda _: Look("run", "next_mail"),
    State.MAILED: lambda _: Look("run", "next_mail"),
    State.COMPLETED: lambda _: Look("ok", "next_completed"),
    State.FAILED: lambda _: Look("held", "next_failed"),
}


@dataclass(frozen=True)
class Stage:
    title: str
    text: str
    at: float | None
    is_done: bool


def stages_of(its: Story, language: str) -> list[Stage]:
    """The five steps in words: what was done, and when."""

    def t(key: str, *values: object) -> str:
        return say(language, key, *values)

    clean = [each for each in its.documents if each.state == "clean"]
    refused, number = len(its.refused), len(its.documents)
    files = its.progress >= 25 and not refused and its.state is not State.VERIFYING
    paid = its.progress >= 50
    free = t("stage_fee_free") if its.fee == 0 else ""
    return [
        Stage(t("stage_sent"), t("stage_sent_text", its.number), its.submitted_at, True),
        Stage(
            t("stage_files"),
            t("stage_files_bad", refused, number) if refused else t("stage_files_done", len(clean)) if files else t("stage_files_todo"),
            its.at("verified") if files else None, files,
        ),
        Stage(
            t("stage_fee"), free or (t("stage_fee_done", money(its.fee, its.currency)) if paid else t("stage_fee_todo")),
            its.at("paid", "nothing_to_pay") if paid else None, paid,
        ),
        Stage(
            t("stage_mail"), t("stage_mail_done") if its.at("mailed") else t("stage_mail_todo"), its.at("mailed"), its.at("mailed") is not None
        ),
        Stage(
            t("stage_decision"), t("stage_decision_done") if its.decision else t("stage_decision_todo"),
            its.at("decided"), its.decision is not None,
        ),
    ]  # fmt: skip


async def show(request: Request, visitor: Visitor) -> Response:
    its = await story.of(visitor.id, request.path_params["application_id"])
    if its.state is State.DRAFT:
        return frame.go(request, f"/applications/{its.id}/form")
    slow = await slow_of(its)
    version = (its.draft.version, its.state, len(its.lines), its.payment, its.wishes, its.decision, slow)
    if (same := frame.pages.unchanged(request, version)) is not None:
        return same
    stages = stages_of(its, visitor.language)
    values = {
        "its": its, "look": look_of(its), "stages": stages, "stages_done": sum(each.is_done for each in stages), "kinds": KINDS,
        "lines": [(LINE_LOOKS.get(each.kind, "wait"), line_words(visitor.language, each.kind, each.values), each.at) for each in its.lines],
        "why": why_declined(its, visitor.language), "slow": slow,
    }  # fmt: skip
    return frame.render(request, "status.html", values, version=version)


LINE_LOOKS = {
    "verified": "ok", "paid": "ok", "completed": "ok", "mailed": "ok", "submitted": "ok", "files_refused": "dead", "failed": "held",
    "payment_declined": "late", "not_confirmed": "late", "requested": "late", "confirming": "run", "verifying": "run", "withdrawn": "off",
    "decided": "ok", "nothing_to_pay": "ok",
}  # fmt: skip


def line_words(language: str, kind: str, values: dict[str, Any]) -> str:
    """A line of history; one of a kind that has no sentence here is shown by its name."""
    told = {
        name: ", ".join(map(str, each)) if isinstance(each, list) else each for name, each in values.items()
    }
    return (
        say(language, f"line_{kind}", **told)
        if f"line_{kind}" in SENTENCES[language]
        else kind.replace("_", " ")
    )


def why_declined(its: Story, language: str) -> str:
    """Of the last card; empty when it was not declined."""
    return declined(its.payment.words, language) if its.payment.state == "declined" else ""


def declined(words: str, language: str) -> str:
    """What is kept is an English sentence of ours."""
    code = next((code for code, sentence in WORDS.items() if sentence == words), "usual")
    return say(language, f"decline_{code}")


routes = [frame.at("GET /applications/{application_id}/status", show)]
