"""Why an omission of images is refused."""

from everfold.session.errors import ProjectionError


class OffloadPayloadError(ProjectionError):
    """The data of an `image/offload` event does not have the exact form (R205, R206)."""

    code = "offload-payload"


class OffloadTargetError(ProjectionError):
    """A target is named twice, not on the surface, or of a type without input images (R209 to R211)."""

    code = "offload-target"


class OffloadIndexError(ProjectionError):
    """An image index is not whole, not increasing, beyond the images, or already omitted (R212 to R214)."""

    code = "offload-index"
