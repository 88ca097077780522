"""People and machine clients, in Cognito."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from scheduler.storage.aws.accounts import CognitoAccounts
from scheduler.storage.aws.directory import CognitoDirectory

if TYPE_CHECKING:
    from mypy_boto3_cognito_idp import CognitoIdentityProviderClient


class CognitoIdentity(CognitoAccounts, CognitoDirectory):
    """The port `Identity`: a pool, and the app client through which people sign in; `clients`: the machine clients' names by their ids."""

    def __init__(self, client: "CognitoIdentityProviderClient", pool: str, client_id: str, clients: Mapping[str, str]) -> None:
        CognitoAccounts.__init__(self, client, client_id)
        CognitoDirectory.__init__(self, client, pool)
        self.clients = clients
