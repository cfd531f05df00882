"""The mails of the portal in English and Vietnamese. What a value says is put in as text, and never as a template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LANGUAGES = ("en", "vi")
_EN = {
    "confirm": ("Confirm your address", "Hello {name},\n\nopen this link to confirm your address; it is good for a day:\n{url}\n\n{university}"),
    "reset": ("Choose a new password", "Hello,\n\nopen this link to choose a new password; it is good for an hour:\n{url}\n\nIf you did not ask for it, there is nothing to do.\n\n{university}"),
    "change": ("Confirm your new address", "Hello {name},\n\nopen this link to use this address from now on; it is good for a day:\n{url}\n\n{university}"),
    "receipt": ("We have your application {number}", "Hello {name},\n\nwe have your application {number} with {documents}.\nSee how it stands: {status_url}\n\n{university}"),
    "files_refused": ("A file of your application {number} needs you", "Hello {name},\n\nwe cannot take {names}: our scanner has found something in it. Your application is safe.\nChoose another file: {status_url}\n\n{university}"),
    "pay_now": ("Pay the fee for your application {number}", "Hello {name},\n\nyour documents are checked. Your next step is the fee of {amount}:\n{pay_url}\n\nYou can pay now or later, with this link.\n\n{university}"),
    "paid": ("Your application {number} is complete", "Hello {name},\n\nwe have received {amount}. Your application {number} is complete, and is with our officers now.\nSee how it stands: {status_url}\n\n{university}"),
    "withdrawn": ("Your application {number} is withdrawn", "Hello {name},\n\nyour application {number} is withdrawn, as you wished. {refunded}\n\n{university}"),
    "requested": ("A document is needed for your application {number}", "Hello {name},\n\nfor your application {number} we need another document:\n{words}\n\nAdd it here: {status_url}\n\n{university}"),
    "decision_accept": ("You are accepted: application {number}", "Hello {name},\n\nyou are accepted.\n{words}\n\n{status_url}\n\n{university}"),
    "decision_wait_list": ("You are on the wait-list: application {number}", "Hello {name},\n\nyou are on the wait-list.\n{words}\n\n{status_url}\n\n{university}"),
    "decision_reject": ("About your application {number}", "Hello {name},\n\nwe cannot offer you a place.\n{words}\n\n{status_url}\n\n{university}"),
}  # fmt: skip
_VI = {
    "confirm": ("Xác nhận địa chỉ email", "Xin chào {name},\n\nhãy mở liên kết này để xác nhận địa chỉ; liên kết có hiệu lực một ngày:\n{url}\n\n{university}"),
    "reset": ("Chọn mật khẩu mới", "Xin chào,\n\nhãy mở liên kết này để chọn mật khẩu mới; liên kết có hiệu lực một giờ:\n{url}\n\nNếu bạn không yêu cầu, bạn không cần làm gì.\n\n{university}"),
    "change": ("Xác nhận địa chỉ email mới", "Xin chào {name},\n\nhãy mở liên kết này để dùng địa chỉ này từ nay; liên kết có hiệu lực một ngày:\n{url}\n\n{university}"),
    "receipt": ("Chúng tôi đã nhận hồ sơ {number}", "Xin chào {name},\n\nchúng tôi đã nhận hồ sơ {number} với {documents}.\nXem tình trạng: {status_url}\n\n{university}"),
    "files_refused": ("Một tệp trong hồ sơ {number} cần bạn xử lý", "Xin chào {name},\n\nchúng tôi không thể nhận {names}: bộ quét đã phát hiện vấn đề. Hồ sơ của bạn vẫn an toàn.\nHãy chọn tệp khác: {status_url}\n\n{university}"),
    "pay_now": ("Nộp lệ phí cho hồ sơ {number}", "Xin chào {name},\n\ngiấy tờ của bạn đã được kiểm tra. Bước tiếp theo là lệ phí {amount}:\n{pay_url}\n\nBạn có thể nộp ngay hoặc sau, bằng liên kết này.\n\n{university}"),
    "paid": ("Hồ sơ {number} đã hoàn tất", "Xin chào {name},\n\nchúng tôi đã nhận {amount}. Hồ sơ {number} đã hoàn tất và đang được cán bộ tuyển sinh xem xét.\nXem tình trạng: {status_url}\n\n{university}"),
    "withdrawn": ("Hồ sơ {number} đã được rút", "Xin chào {name},\n\nhồ sơ {number} đã được rút theo yêu cầu của bạn. {refunded}\n\n{university}"),
    "requested": ("Hồ sơ {number} cần thêm giấy tờ", "Xin chào {name},\n\nhồ sơ {number} cần thêm giấy tờ:\n{words}\n\nThêm tại đây: {status_url}\n\n{university}"),
    "decision_accept": ("Bạn đã trúng tuyển: hồ sơ {number}", "Xin chào {name},\n\nbạn đã trúng tuyển.\n{words}\n\n{status_url}\n\n{university}"),
    "decision_wait_list": ("Bạn ở danh sách chờ: hồ sơ {number}", "Xin chào {name},\n\nbạn đang ở danh sách chờ.\n{words}\n\n{status_url}\n\n{university}"),
    "decision_reject": ("Về hồ sơ {number}", "Xin chào {name},\n\nchúng tôi không thể nhận bạn.\n{words}\n\n{status_url}\n\n{university}"),
}  # fmt: skip
_MAILS = {"en": _EN, "vi": _VI}


def mail_of(language: str, kind: str, values: Mapping[str, Any]) -> tuple[str, str]:
    """Subject and text."""
    subject, text = _MAILS.get(language, _EN)[kind]
    told = {name: _said(value) for name, value in values.items()}
    one_line = {name: " ".join(value.split()) for name, value in told.items()}
    return subject.format_map(one_line), text.format_map(told)


def _said(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
