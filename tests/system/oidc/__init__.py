"""An identity provider of its own process, and the way of a browser through it."""

import base64
import contextlib
import hashlib
import re
import secrets
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import httpx

FOLDER = Path(__file__).parent
CLIENT, SECRET = "punctual", "a-secret-of-the-tests"
SCOPES = "openid profile email groups"


@dataclass(frozen=True)
class IdentityProvider:
    """A running provider. It signs in the person of the last `become`, without a password."""

    issuer: str

    def become(self, sub: str, **claims: Any) -> None:
        httpx.post(f"{self.issuer}/person", json={"sub": sub, **claims}).raise_for_status()

    @property
    def details(self) -> dict[str, str]:
        """The provider as the user pool knows it."""
        return {
            "client_id": CLIENT,
            "client_secret": SECRET,
            "oidc_issuer": self.issuer,
            "authorize_scopes": SCOPES,
            "attributes_request_method": "GET",
        }


@contextlib.contextmanager
def running(callback: str, after_sign_out: str) -> Iterator[IdentityProvider]:
    """`callback`: the address of the user pool to which the provider sends browsers back."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["node", "--no-warnings", str(FOLDER / "server.mjs"), str(port), callback, after_sign_out]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            first = next((line for line in process.stdout if "listening" in line or "Error" in line), "it ended")
            assert "listening" in first, f"the identity provider did not start: {first}"
            yield IdentityProvider(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait(60)


class Browser:
    """Follows redirects with the cookies of its own, as a browser does, until an address begins with `back`."""

    def __init__(self) -> None:
        self._cookies = httpx.Cookies()

    def _send(self, method: str, address: str, **options: Any) -> httpx.Response:
        with httpx.Client(trust_env=False, timeout=60, cookies=self._cookies) as http:
            answered = http.request(method, address, **options)
            self._cookies = http.cookies
        return answered

    def sign_in(self, authorize_url: str, back: str) -> tuple[str, str]:
        """The code that comes back, and the verifier. Raises AssertionError for a refusal."""
        verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(12)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        query = {"redirect_uri": back, "state": state, "code_challenge": challenge, "code_challenge_method": "S256"}
        found = parse_qs(urlsplit(self.follow(f"{authorize_url}&{urlencode(query)}", back)).query)
        assert found.get("state") == [state], found
        return found["code"][0], verifier

    def follow(self, address: str, back: str) -> str:
        """The first address that begins with `back`, to which nothing is sent."""
        for _ in range(20):
            if address.startswith(back):
                return address
            answered = self._send("GET", address)
            assert answered.status_code in (302, 303), f"{address}: {answered.status_code} {answered.text[:500]}"
            address = urljoin(address, answered.headers["location"])
        raise AssertionError(f"no way back from {address}")

    def sign_out(self, address: str, back: str) -> None:
        """End the session at the provider: follow the address to its page, and confirm there."""
        answered = self._send("GET", address, follow_redirects=True)
        action = re.search(r'action="([^"]+)"', answered.text)
        token = re.search(r'name="xsrf" value="([^"]+)"', answered.text)
        assert action and token, answered.text[:500]
        done = self._send("POST", urljoin(str(answered.url), action[1]), data={"xsrf": token[1], "logout": "yes"})
        assert done.status_code in (302, 303) and done.headers["location"].startswith(back), done.text[:500]
