"""Mail: one message to one recipient at a time, over SMTP or into a folder, under a Message-ID that never changes.

`hf.mail` sends by jobs. Nothing of the SMTP library is imported before a mail is sent.
"""

from holdfast.mail.errors import MailError, MailNotSent, MailRefused, MailUncertain
from holdfast.mail.letter import Letter
from holdfast.mail.refusal import Delivery, Refusal
from holdfast.mail.settings import MailSettings

__all__ = [
    "Delivery",
    "Letter",
    "MailError",
    "MailNotSent",
    "MailRefused",
    "MailSettings",
    "MailUncertain",
    "Refusal",
]
