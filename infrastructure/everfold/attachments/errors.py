"""Every refusal about attachments, each with a stable `code` that callers may branch on."""

from collections.abc import Sequence
from dataclasses import dataclass

from everfold.session.errors import SessionError


class AttachmentError(SessionError):
    """Something about attachments was refused; nothing was changed."""

    code = "attachment"


class AttachmentIdError(AttachmentError):
    """Text that is not `sha256:` and 64 lower-case hex digits."""

    code = "attachment-id"

    def __init__(self, value: object) -> None:
        super().__init__(
            f"{value!r:.120} is not an attachment id: it must be 'sha256:' and 64 lower-case hex digits"
        )
        self.value = value


class AttachmentMissingError(AttachmentError):
    """No bytes are stored under this id."""

    code = "attachment-missing"

    def __init__(self, attachment_id: str, place: str) -> None:
        super().__init__(f"attachment {attachment_id} is not in {place}")
        self.attachment_id = attachment_id


class AttachmentCorruptError(AttachmentError):
    """What is stored for this id is not what was put; it was not handed out."""

    code = "attachment-corrupt"

    def __init__(self, attachment_id: str, place: str, reason: str) -> None:
        super().__init__(
            f"attachment {attachment_id} in {place} is damaged: {reason}; "
            "put the same bytes again to mend it"
        )
        self.attachment_id = attachment_id


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one source of a batch cannot be admitted.

    Attributes:
        index: place of the source in the batch, from 0; None if the batch as a whole is at fault.
        name: the source's name, if it has one.
        code: `empty`, `too-large`, `too-many`, `type`, `pixels`, `edge`, `frames`, `undecodable`.
        reason: for people.
    """

    index: int | None
    name: str | None
    code: str
    reason: str

    def __str__(self) -> str:
        if self.index is None:
            return self.reason
        named = f" ({self.name!r:.80})" if self.name is not None else ""
        return f"attachment {self.index + 1}{named}: {self.reason}"


class AdmissionError(AttachmentError):
    """A batch of attachments was refused as a whole; nothing was stored.

    Attributes:
        refusals: one or more, in the order of the batch.
    """

    code = "admission"

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__("; ".join(str(refusal) for refusal in refusals))
        self.refusals = tuple(refusals)


class VersionError(AttachmentError):
    """No request version of this image can be made: it does not decode, or cannot get small enough."""

    code = "attachment-version"

    def __init__(self, attachment_id: str, reason: str) -> None:
        super().__init__(f"no request version of image {attachment_id}: {reason}")
        self.attachment_id = attachment_id
