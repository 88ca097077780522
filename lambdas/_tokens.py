"""`tokens`: the user pool calls it before it issues tokens, and before it stores what an identity provider states about a person.

It is part of the template, not of the bundle (`infra/accounts.py`): it imports only the standard library, and has at most 4,096 characters.
"""

import json
import os

# With this scope, whoever has an access token can delete the account or change its password, past the API with its limits and audit trail.
SELF_SERVICE = "aws.cognito.signin.user.admin"
ENROLLING = "second-factor"  # the API's refresh that needs the scope: `scheduler/storage/aws/accounts.py`


def handler(event, context):  # type: ignore[no-untyped-def]
    """Withhold the scope from tokens that people get, and always state groups: without a claim, Cognito might keep those of before."""
    source, request, response = event["triggerSource"], event["request"], event["response"]
    if source.startswith("TokenGeneration"):
        purpose = (request.get("clientMetadata") or {}).get("purpose")
        if source != "TokenGeneration_RefreshTokens" or purpose != ENROLLING:
            response["claimsAndScopeOverrideDetails"] = {"accessTokenGeneration": {"scopesToSuppress": [SELF_SERVICE]}}
    elif source == "InboundFederation_ExternalProvider":
        stated = request["attributes"]
        claims = {**(stated.get("userInfo") or {}), **(stated.get("idToken") or {}), **(stated.get("samlResponse") or {})}
        groups = claims.get(os.environ["GROUPS_CLAIM"]) or []
        response["userAttributesToMap"] = {name: value for name, value in claims.items() if isinstance(value, str)} | {
            os.environ["GROUPS_CLAIM"]: groups if isinstance(groups, str) else json.dumps(groups)
        }
    return event
