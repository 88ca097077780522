"""Parameters of Systems Manager: values of another stack of the stage for the functions."""

from typing import Any

from botocore.exceptions import ClientError

from scheduler.storage.aws import errors


def read(client: Any, name: str) -> str | None:
    """Return the value of a parameter; None if it does not exist."""
    with errors.translated():
        try:
            return str(client.get_parameter(Name=name)["Parameter"]["Value"])
        except ClientError as error:
            if errors.code(error) == "ParameterNotFound":
                return None
            raise
