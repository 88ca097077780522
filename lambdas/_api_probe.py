"""Whether pings arrive at the address of the API, as their senders see it."""

import os
from collections.abc import Callable

TIMEOUT_S = 5
PATH = "/api/v1/ping/probe"  # the form of no token: the function refuses it without a read


def probe(api_url: str) -> Callable[[], bool]:
    """Return the check. `api_url`: the setting. Only the refusal of the function counts: a gateway that throttles pings loses them."""

    def answers() -> bool:
        from urllib.error import HTTPError  # only the step of a minute needs them
        from urllib.request import urlopen

        url = api_url.replace("{endpoint}", os.environ.get("AWS_ENDPOINT_URL", ""))
        try:
            urlopen(url + PATH, timeout=TIMEOUT_S).close()
        except HTTPError as error:
            return error.code == 404 and b'"not_found"' in error.read()
        except OSError:
            return False
        return False

    return answers
