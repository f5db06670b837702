"""Between the carrier event and the library's stored row: topic and state pass through."""

from eventsourcing.domain import DomainEventProtocol
from eventsourcing.persistence import (
    Cipher,
    Compressor,
    Mapper,
    MapperDeserialisationError,
    StoredEvent,
    Transcoder,
)

from everfold.session.events import Recorded


class BytesTranscoder(Transcoder):
    """Hands bytes through: a row's state is encoded by whoever decided the event."""

    def encode(self, obj: object) -> bytes:
        """Return `obj` itself."""
        if not isinstance(obj, bytes):
            raise TypeError(f"a row's state is bytes, not {type(obj).__name__}")
        return obj

    def decode(self, data: bytes) -> bytes:
        """Return `data` itself."""
        return data


class SessionMapper(Mapper[str]):
    """Turns `Recorded` into rows and back, through the compressor and cipher if there are any.

    Never calls `get_topic` or `resolve_topic`: the topic is the event's type, and a row cannot
    choose which module is imported (docs/decisions/0011). Id and version stay out of
    the state, so that a copied row is true of its new stream (section 0, line 8).
    """

    def __init__(
        self,
        transcoder: Transcoder | None = None,
        compressor: Compressor | None = None,
        cipher: Cipher | None = None,
    ) -> None:
        super().__init__(transcoder or BytesTranscoder(), compressor, cipher)

    @property
    def is_plain(self) -> bool:
        """Whether the stored bytes are the event's own bytes."""
        return self.compressor is None and self.cipher is None

    def encode_state(self, state: bytes) -> bytes:
        """Return the bytes to store for an event's state."""
        if self.compressor is not None:
            state = self.compressor.compress(state)
        return state if self.cipher is None else self.cipher.encrypt(state)

    def decode_state(self, stored: bytes) -> bytes:
        """Return an event's state from the bytes that were stored.

        Raises:
            MapperDeserialisationError: they were stored with another key, or not compressed.
        """
        if self.is_plain:
            return stored
        try:
            plain = stored if self.cipher is None else self.cipher.decrypt(stored)
            return plain if self.compressor is None else self.compressor.decompress(plain)
        except Exception as error:
            # Ciphers and compressors raise what they like.
            raise MapperDeserialisationError(f"it cannot be decoded: {error}") from error

    def to_stored_event(self, domain_event: DomainEventProtocol[str]) -> StoredEvent:
        """Return the library's row of a `Recorded`.

        Raises:
            TypeError: the event is of another class; everfold's tables hold nothing else.
        """
        if not isinstance(domain_event, Recorded):
            raise TypeError(f"{type(domain_event).__name__} is not a Recorded event")
        return StoredEvent(
            domain_event.originator_id,
            domain_event.originator_version,
            domain_event.topic,
            self.encode_state(domain_event.state),
        )

    def to_domain_event(self, stored_event: StoredEvent) -> Recorded:
        """Return the `Recorded` of a row."""
        return Recorded(
            str(stored_event.originator_id),
            stored_event.originator_version,
            stored_event.topic,
            self.decode_state(stored_event.state),
        )
