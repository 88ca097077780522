"""The built console into its bucket: on the local AWS after a deploy, and on AWS with `make deploy`.

What is hashed by name never changes and is cached for ever; the page that names it is asked for anew each time.
"""

import argparse
import mimetypes
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from local.aws import stack_outputs
from local.failure import Trouble, tell
from local.home import REPOSITORY

BUILT = REPOSITORY / "console" / "dist"
PAGE = "index.html"
FOR_EVER = "public, max-age=31536000, immutable"
ANEW = "no-cache"


def publish(s3: Any, bucket: str, folder: Path = BUILT) -> int:
    """Upload what is not there yet, the page itself last, so that whoever loads it finds what it names. Returns how many files."""
    if not (folder / PAGE).exists():
        raise Trouble("The web console is not built. Build it: make console")
    there = {entry["Key"] for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket) for entry in page.get("Contents", [])}
    count = 0
    for path in _page_last(folder):
        key = path.relative_to(folder).as_posix()
        hashed = key.startswith("assets/")
        if hashed and key in there:
            continue
        kind = mimetypes.guess_type(key)[0] or "application/octet-stream"
        s3.put_object(Bucket=bucket, Key=key, Body=path.read_bytes(), ContentType=kind, CacheControl=FOR_EVER if hashed else ANEW)
        count += 1
    return count


def _page_last(folder: Path) -> Iterator[Path]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    yield from sorted(files, key=lambda path: path.name == PAGE)


def main() -> int:
    parser = argparse.ArgumentParser(prog="local.publish", description="Put the built console where a stage on AWS serves it.")
    parser.add_argument("--stage", required=True)
    options = parser.parse_args()
    try:
        session = boto3.Session()
        outputs = stack_outputs(session.client("cloudformation"), f"punctual-{options.stage}")
        if not outputs:
            raise Trouble(f"There is no deployed stack punctual-{options.stage} here. Deploy it: make deploy STAGE={options.stage}")
        count = publish(session.client("s3"), outputs["ConsoleBucket"])
    except (BotoCoreError, ClientError) as error:
        raise Trouble(f"AWS refused: {error}") from error
    print(f"Put {count} files of the console in place: {outputs['ConsoleUrl']}")
    return 0


if __name__ == "__main__":
    sys.exit(tell(main))
