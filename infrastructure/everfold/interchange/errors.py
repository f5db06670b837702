"""Refusals of files: what is wrong, in which line, and the code of the rule that was broken."""

from everfold.session.errors import SessionError

_LONGEST_REASON = 1000


class ImportRefusedError(SessionError):
    """A session file was not taken; nothing was stored.

    Attributes:
        line: the line at fault, from 1 (the header).
        code: that of the refusal behind it (`sequence`, `json`, `surface-op`, …; docs/errors.md),
            or one of a file's own: `format-version`, `too-large`, `compression`, `file`.
        reason: what is wrong, without the place.
        seq: the event that this line holds or should hold; None for the header.
    """

    code = "import"

    def __init__(self, reason: str, *, line: int, code: str, seq: int | None = None) -> None:
        where = f"line {line}" if seq is None else f"line {line} (seq {seq})"
        # A damaged file may quote megabytes of itself.
        self.reason = reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]}…"
        super().__init__(f"{where}: {self.reason}", seq=seq)
        self.line = line
        # The code is a class variable of every other refusal; here it is that of the cause.
        vars(self)["code"] = code

    @classmethod
    def of(cls, cause: SessionError, *, line: int, seq: int | None = None) -> "ImportRefusedError":
        """Return the refusal of a line for what a rule of the session said about it.

        Args:
            seq: that of the event in the line; None if lines and seqs go together.
        """
        if seq is None and line > 1:
            seq = line - 2
        return cls(cause.fact, line=line, code=cause.code, seq=seq)


class ExportRefusedError(SessionError):
    """A session file was not written; what was there before is untouched."""

    code = "file"
