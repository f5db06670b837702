"""Images of users and tools on their way into a store of attachments."""

from collections.abc import Mapping, Sequence

from everfold.agent.content import AdmitImages
from everfold.agent.tools import ImageData
from everfold.attachments.admission import AdmissionLimits, Source, admit
from everfold.attachments.ports import AttachmentStore
from everfold.session.frozen import Json


def admit_into(store: AttachmentStore, limits: AdmissionLimits | None = None) -> AdmitImages:
    """Return the admission of images into a store, for `Agent(admit_images=…)`.

    What it raises is an `AdmissionError` whose text says what is wrong with which image.
    """

    def admit_images(images: Sequence[ImageData]) -> Sequence[Mapping[str, Json]]:
        sources = [
            Source(image.data, image.name, image.media_type, kind="image") for image in images
        ]
        return admit(sources, store, limits)

    return admit_images
