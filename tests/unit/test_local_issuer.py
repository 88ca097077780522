"""The tokens of the local AWS: their claims, their signatures, and the keys that others check them with."""

import json
from base64 import urlsafe_b64decode
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from infra.settings import LOCAL
from local import issuer
from local.home import Home
from local.issuer import Issuer

ROLE = "arn:aws:iam::000000000000:role/app/Reports"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("aws"))


@pytest.fixture
def signer(home: Home) -> Issuer:
    return Issuer("http://127.0.0.1:4566", home.issuer)


def token(signer: Issuer, algorithm: str = "RS256", audience: tuple[str, ...] = ("https://api",)) -> str:
    return signer.token(ROLE, audience, algorithm, issued_at=100, expires_at=400, aws={"aws_account": "000000000000"})


def decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def number(text: str) -> int:
    return int.from_bytes(decoded(text), "big")


def verify(signer: Issuer, text: str) -> Any:
    """The claims of a token, whose signature one of the public keys confirms. Raises InvalidSignature."""
    signed, _, signature = text.rpartition(".")
    head, claims = (json.loads(decoded(part)) for part in signed.split("."))
    (key,) = [each for each in signer.key_set()["keys"] if each["kid"] == head["kid"]]
    assert key["alg"] == head["alg"] and key["use"] == "sig"
    if head["alg"] == "RS256":
        public = rsa.RSAPublicNumbers(number(key["e"]), number(key["n"])).public_key()
        public.verify(decoded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    else:
        point = ec.EllipticCurvePublicNumbers(number(key["x"]), number(key["y"]), ec.SECP384R1()).public_key()
        raw = decoded(signature)
        assert len(raw) == 96
        parts = int.from_bytes(raw[:48], "big"), int.from_bytes(raw[48:], "big")
        point.verify(encode_dss_signature(*parts), signed.encode(), ec.ECDSA(hashes.SHA384()))
    return claims


@pytest.mark.parametrize("algorithm", issuer.ALGORITHMS)
def test_a_token_has_the_claims_of_aws_and_a_signature_of_its_key(signer: Issuer, algorithm: str) -> None:
    claims = verify(signer, token(signer, algorithm))
    assert len(claims.pop("jti")) == 36
    assert claims == {
        "iss": "http://127.0.0.1:4566/issuer-000000000000",
        "sub": ROLE,
        "aud": "https://api",
        "iat": 100,
        "exp": 400,
        "https://sts.amazonaws.com/": {"aws_account": "000000000000"},
    }


@pytest.mark.parametrize("algorithm", issuer.ALGORITHMS)
def test_a_changed_token_has_no_valid_signature(signer: Issuer, algorithm: str) -> None:
    head, _, signature = token(signer, algorithm).split(".")
    other = token(signer, algorithm, ("https://other",)).split(".")[1]
    with pytest.raises(InvalidSignature):
        verify(signer, f"{head}.{other}.{signature}")


def test_several_audiences_are_a_list(signer: Issuer) -> None:
    assert verify(signer, token(signer, audience=("a", "b")))["aud"] == ["a", "b"]


def test_the_keys_stay_from_one_start_to_the_next_and_are_private(signer: Issuer, home: Home) -> None:
    before = token(signer)
    assert verify(Issuer("http://127.0.0.1:4570", home.issuer), before)["sub"] == ROLE
    assert home.issuer.path.stat().st_mode & 0o077 == 0


def test_the_documents_name_the_issuer_of_the_account_and_its_keys(signer: Issuer) -> None:
    found = signer.configuration("000000000000")
    assert found["issuer"] == LOCAL.issuers["000000000000"] == signer.url("000000000000")
    assert found["jwks_uri"] == f"{found['issuer']}/.well-known/jwks.json"


@pytest.mark.parametrize(
    ("caller", "subject"),
    [
        ("arn:aws:sts::000000000000:assumed-role/Reports/session/1", "arn:aws:iam::000000000000:role/Reports"),
        ("arn:aws:iam::000000000000:user/ada", "arn:aws:iam::000000000000:user/ada"),
        ("arn:aws:iam::000000000000:root", "arn:aws:iam::000000000000:root"),
    ],
)
def test_the_subject_of_a_session_is_its_role(caller: str, subject: str) -> None:
    assert issuer.subject(caller) == subject


@pytest.mark.parametrize(
    ("path", "account"), [("issuer-000000000000", "000000000000"), ("issuer-1", ""), ("us-east-1_abc", ""), ("x/issuer-000000000000", "")]
)
def test_only_the_path_of_an_account_is_that_of_an_issuer(path: str, account: str) -> None:
    assert issuer.account_of(path) == account
