"""A role without a secret creates jobs on the local stage by its token, and every other token is refused without an effect."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from punctual import AsyncPunctual, NoRoleToken, NotAllowed, Punctual
from punctual.aws_identity import RoleTokens

from local.home import Note
from local.issuer import Issuer
from tests.system.conftest import System, until

ACCOUNT, OTHER = "000000000000", "111111111111"
DOOR = f"/aws/{ACCOUNT}"
TRUST = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": ACCOUNT}, "Action": "sts:AssumeRole"}]}


@dataclass
class Role:
    """A role of the local AWS, and the credentials of one of its sessions as the environment of a program has them."""

    arn: str
    environment: dict[str, str]


def tokens_for(audience: str) -> str:
    """The policy of docs/guides/aws-identity.md."""
    conditions = {
        "ForAllValues:StringEquals": {"sts:IdentityTokenAudience": audience},
        "Null": {"sts:IdentityTokenAudience": "false"},
        "StringEquals": {"sts:SigningAlgorithm": "RS256"},
        "NumericLessThanEquals": {"sts:DurationSeconds": 300},
    }
    statement = {"Effect": "Allow", "Action": "sts:GetWebIdentityToken", "Resource": "*", "Condition": conditions}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def made(system: System, name: str) -> Role:
    iam, sts = system.aws("iam"), system.aws("sts")
    arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"]
    iam.put_role_policy(RoleName=name, PolicyName="tokens", PolicyDocument=tokens_for(system.address))
    credentials = sts.assume_role(RoleArn=arn, RoleSessionName="program")["Credentials"]
    return Role(
        arn,
        {
            "AWS_ENDPOINT_URL": system.stack.aws.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": credentials["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": credentials["SecretAccessKey"],
            "AWS_SESSION_TOKEN": credentials["SessionToken"],
        },
    )


def map_role(client: Punctual, arn: str, owner: str) -> str:
    """Map a role to an owner; returns the id of the mapping."""
    body = {"arn": arn, "owner": owner, "scopes": ["jobs:read", "jobs:write"]}
    return str(client.request("POST", "/principals", body)["id"])


@pytest.fixture
def role(system: System, client: Punctual, monkeypatch: pytest.MonkeyPatch) -> Iterator[Role]:
    """A role that is mapped to the first user; this process has its credentials."""
    found = made(system, f"program-{os.urandom(4).hex()}")
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    mapping = map_role(client, found.arn, client.me().id)
    yield found
    client.send("DELETE", f"/principals/{mapping}")


def test_a_role_creates_and_reads_a_job_of_its_owner(system: System, client: Punctual, role: Role) -> None:
    with Punctual(system.address, auth="aws") as program:
        job = program.jobs.create("log", {"message": "from a role"}, delay=3600)
        assert program.jobs.get(job.id).id == job.id
        assert set(program.me().scopes) >= {"jobs:read", "jobs:write"}
    assert client.jobs.get(job.id).id == job.id, "the job is one of the owner"
    client.jobs.cancel(job.id)


async def created(system: System) -> str:
    async with AsyncPunctual(system.address, auth="aws") as program:
        return (await program.jobs.create("log", {"message": "from a role"}, delay=3600)).id


def test_the_asynchronous_client_signs_in_as_the_role_too(system: System, client: Punctual, role: Role) -> None:
    client.jobs.cancel(asyncio.run(created(system)))


def test_a_role_may_do_what_its_scopes_allow_and_no_more(system: System, role: Role) -> None:
    with Punctual(system.address, auth="aws") as program:
        for method, path in (("GET", "/users"), ("POST", "/system/pause"), ("GET", "/principals"), ("GET", "/tasks")):
            assert program.send(method, path, b"{}").status_code == 403, f"{method} {path}"


def test_a_role_gets_tokens_only_for_the_audience_of_its_policy(role: Role) -> None:
    with pytest.raises(NoRoleToken, match="sts:GetWebIdentityToken"):
        RoleTokens("https://api.example.com").fetch()


def test_a_role_without_a_mapping_is_refused(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in made(system, f"stranger-{os.urandom(4).hex()}").environment.items():
        monkeypatch.setenv(name, value)
    with Punctual(system.address, auth="aws") as program, pytest.raises(NotAllowed):
        program.jobs.list(limit=1).__next__()


def test_a_deleted_mapping_ends_the_access_within_30_seconds(system: System, client: Punctual, monkeypatch: pytest.MonkeyPatch) -> None:
    found = made(system, f"leaving-{os.urandom(4).hex()}")
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    mapping = map_role(client, found.arn, client.me().id)
    with Punctual(system.address, auth="aws") as program:
        assert until(40, lambda: program.send("GET", "/jobs").status_code == 200)  # the functions have read the mappings before it
        client.request("DELETE", f"/principals/{mapping}")
        until(35, lambda: program.send("GET", "/jobs").status_code == 403)


# Attacks


class OfAccount(Issuer):
    """Signs the tokens of every subject as the issuer of the local account, which AWS never does."""

    def url(self, account: str) -> str:
        return super().url(ACCOUNT)


def part(value: Any) -> str:
    return text(json.dumps(value).encode())


def text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def head(token: str) -> dict[str, Any]:
    first = token.split(".")[0]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)))
    return found


def tokens(system: System, role: Role, scratch: Path) -> dict[str, str]:
    """Return tokens by the attack. All but the first would let the role in if one check was missing."""
    endpoint, now = system.stack.aws.endpoint, int(time.time())
    signer, strange = Issuer(endpoint, system.stack.home.issuer), Issuer(endpoint, Note(scratch / "issuer.json"))

    ours = OfAccount(endpoint, system.stack.home.issuer)

    def token(
        by: Issuer = signer,
        arn: str = role.arn,
        audience: str = system.address,
        algorithm: str = "RS256",
        issued: int = now,
        lasts: int = 300,
    ) -> str:
        return by.token(arn, [audience], algorithm, issued_at=issued, expires_at=issued + lasts, aws={"aws_account": ACCOUNT})

    good = token()
    _, claims, signature = good.split(".")
    public = load_pem_private_key(system.stack.home.issuer.read()["RS256"].encode(), None).public_key()
    confused = f"{part({**head(good), 'alg': 'HS256'})}.{claims}"
    secret = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    other_keys = f"{part(head(good))}.{token(strange).split('.', 1)[1]}"
    return {
        "valid": good,
        "expired": token(issued=now - 600),
        "for another service": token(audience="https://api.example.com"),
        "for another stage": token(audience=f"{endpoint}/_aws/execute-api/0123456789/$default"),
        "for no one": token(audience=""),
        "of another account": token(arn=role.arn.replace(ACCOUNT, OTHER)),
        "of a role of another account, by our issuer": token(ours, role.arn.replace(ACCOUNT, OTHER)),
        "of another issuer": token(strange),
        "of another issuer, under our key's name": other_keys,
        "an elliptic curve, which AWS does not accept": token(algorithm="ES384"),
        "algorithm none": f"{part({**head(good), 'alg': 'none'})}.{claims}.",
        "unsigned": f"{part(head(good))}.{claims}.",
        "unsigned, with the signature left out": f"{part(head(good))}.{claims}",
        "HS256 by the public key": f"{confused}.{text(hmac.new(secret, confused.encode(), hashlib.sha256).digest())}",
        "another role, under the same signature": f"{part(head(good))}.{part({'sub': 'x', 'iss': signer.url(ACCOUNT)})}.{signature}",
        "empty": "",
        "no token": "punctual",
    }


def post(system: System, path: str, token: str, message: str) -> int:
    body = json.dumps({"type": "log", "payload": {"message": message}, "delay": "1h"}).encode()
    with system.anonymous() as anyone:
        return anyone.send("POST", path, body, headers={"Authorization": f"Bearer {token}" if token else "Bearer"}).status_code


def test_forged_and_foreign_tokens_are_refused_and_change_nothing(system: System, client: Punctual, role: Role, tmp_path: Path) -> None:
    message = f"attack {os.urandom(8).hex()}"
    attacks = tokens(system, role, tmp_path)
    assert post(system, f"{DOOR}/jobs", attacks.pop("valid"), f"{message} valid") == 201, "the checks below would pass for nothing"
    statuses = {name: post(system, f"{DOOR}/jobs", token, message) for name, token in attacks.items()}
    assert {name: status for name, status in statuses.items() if status not in (401, 403)} == {}
    found = [job for job in client.jobs.list(upcoming=True, limit=1_000) if message in str(job.payload)]
    assert [job.payload["message"] for job in found] == [f"{message} valid"]
    client.jobs.cancel(found[0].id)


def test_a_credential_is_valid_on_its_own_path_only(system: System, client: Punctual, role: Role, tmp_path: Path) -> None:
    token, session, message = tokens(system, role, tmp_path)["valid"], client.token() or "", f"path {os.urandom(8).hex()}"
    attempts = {
        "a role's token on the path of people": ("/jobs", token),
        "a role's token on the path of keys": ("/key/jobs", token),
        "a role's token on the path of another account": (f"/aws/{OTHER}/jobs", token),
        "a person's token on the path of roles": (f"{DOOR}/jobs", session),
        "a person's token on the path of an account that is not trusted": (f"/aws/{OTHER}/jobs", session),
        "a person's token on the path of keys": ("/key/jobs", session),
        "a role's token below two prefixes": (f"/key{DOOR}/jobs", token),
        "a role's token below its prefix twice": (f"{DOOR}{DOOR}/jobs", token),
    }
    statuses = {name: post(system, path, used, message) for name, (path, used) in attempts.items()}
    assert {name: status for name, status in statuses.items() if status not in (401, 403, 404)} == {}
    assert not [job for job in client.jobs.list(upcoming=True, limit=1_000) if message in str(job.payload)]
