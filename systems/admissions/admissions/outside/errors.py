"""What a service outside has answered, as one exception for each thing that a caller does differently."""

from __future__ import annotations


class OutsideError(Exception):
    """The base of all; its text is for officers."""


class Refused(OutsideError):
    """Asking again brings the same answer."""


class Slowed(OutsideError):
    """It was not done: we are to come later."""


class Passing(OutsideError):
    """It was not done, and another try may go well."""


class Uncertain(OutsideError):
    """It may have been done."""


class Spoiled(Uncertain):
    """The other side keeps a failure of its own as its answer to this key: only another key brings another answer."""


class Declined(Refused):
    """A card was declined; `words` are for its owner."""

    def __init__(self, words: str, code: str) -> None:
        super().__init__(words)
        self.words, self.code = words, code


# After these it is certain that the call did nothing.
NOT_DONE = (Refused, Slowed, Passing)
