"""Why a profile cannot be used."""

from everfold.session.errors import SessionError


class ProfileError(SessionError):
    """A profile is not there, cannot be read, or says something that makes no sense.

    The message names the profile, the table and the key; it shows no value, which may be secret.
    """

    code = "profile"


class MissingKeyError(ProfileError):
    """The environment variable that holds a route's API key is not set.

    Attributes:
        variable: its name.
    """

    code = "missing-key"

    def __init__(self, profile: str, provider: str, variable: str) -> None:
        super().__init__(
            f"route {provider!r} of profile {profile!r} needs an API key: set the environment "
            f"variable {variable}; without a key, the profile `scripted` answers by itself"
        )
        self.variable = variable
