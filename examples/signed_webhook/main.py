"""A receiver that checks the signature of each request, and refuses forged, changed and old ones.

    WEBHOOK_SECRET=whsec_… python -m examples.signed_webhook.main [--secret-name hook]

The secret must be in AWS Secrets Manager under punctual/<stage>/<your user id>/hook; the page beside this file says how.
"""

import argparse
import os
import time
from collections.abc import Mapping

import httpx
from punctual import InvalidSignature, Punctual, verify_signature
from punctual.fields import HttpRequest

from examples.receiver import Receiver


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--secret-name", default="hook")
    name, secret = options.parse_args().secret_name, os.environ["WEBHOOK_SECRET"]
    seen: set[str] = set()
    genuine: list[tuple[dict[str, str], bytes]] = []
    answers: list[int] = []

    def webhook(path: str, headers: Mapping[str, str], body: bytes) -> int:
        try:
            verify_signature(headers, body, secret)
        except InvalidSignature as error:
            print(f"refused: {error}")
            return 401
        if headers["webhook-id"] in seen:
            print("known: answered, and not done again")
            return 200
        seen.add(headers["webhook-id"])
        genuine.append((dict(headers), body))
        print(f"accepted: {body.decode()}")
        return 200

    with Punctual() as punctual, Receiver(webhook) as receiver:
        call: HttpRequest = {"method": "POST", "url": receiver.url("/hook"), "body": {"order": 17}, "signing_secret": name}
        job = punctual.jobs.wait(punctual.jobs.create(http=call).id, timeout=120)
        if not genuine:
            print(f"the job is {job.status}: {job.reason or job.failure}")
            return 1
        headers, body = genuine[0]
        signed = {name: value for name, value in headers.items() if name.startswith("webhook-")}
        old = signed | {"webhook-timestamp": str(int(time.time()) - 3600)}
        with httpx.Client() as stranger:  # the requests of an attacker
            for forged, content in ((signed, body), (signed, b'{"order": 18}'), (old, body), ({}, body)):
                answers.append(stranger.post(receiver.url("/hook"), headers=forged, content=content).status_code)
    return 0 if answers == [200, 401, 401, 401] and len(seen) == 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
