"""The base of all request bodies."""

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict

from lambdas.rest import resolution
from lambdas.rest.resolution import Broken, Stage


class Request(BaseModel):
    """A request body: unknown fields are refused, nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)

    def broken(self, stage: Stage) -> Iterator[Broken]:
        """The rules that a request of valid shape breaks in this stage."""
        yield from ()

    def resolve(self, stage: Stage) -> None:
        """Check what the request names. Raises ValidationError, as for its shape, with every broken rule."""
        if broken := list(self.broken(stage)):
            raise resolution.error_of(broken)
