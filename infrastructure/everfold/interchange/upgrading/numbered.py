"""A record of an old file with its place in that file, which refusals name."""

from dataclasses import dataclass

from everfold.interchange.errors import ImportRefusedError
from everfold.session.errors import SessionError
from everfold.session.frozen import Json

Record = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Numbered:
    """One record.

    Attributes:
        line: the line that it is from.
        seq: the seq that it has there; of a made-up event, that of the event that it was made for.
        record: as the format version at hand has it; its own seq is dense in every version.
    """

    line: int
    seq: int
    record: Record

    @property
    def type(self) -> str:
        """The type of the event, or of the packed line."""
        return str(self.record["type"])

    @property
    def data(self) -> Json:
        """The payload."""
        return self.record["data"]

    def changed(self, **fields: Json) -> "Numbered":
        """Return it with other fields."""
        return Numbered(self.line, self.seq, {**self.record, **fields})

    def refusal(self, cause: SessionError) -> ImportRefusedError:
        """Return the refusal of the file at this place."""
        return ImportRefusedError.of(cause, line=self.line, seq=self.seq)
