"""The upload of the built console to its bucket: on the local AWS after a deploy, and on AWS with `make deploy`.

Files with a hash in their name never change: browsers may cache them without limit. Browsers check the page that names them each time.
"""

import mimetypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from local.failure import Trouble
from local.home import REPOSITORY

BUILT = REPOSITORY / "console" / "dist"
PAGE = "index.html"
IMMUTABLE = "public, max-age=31536000, immutable"
REVALIDATED = "no-cache"


def publish(s3: Any, bucket: str, folder: Path = BUILT) -> int:
    """Upload the missing files, and the page itself last: a page never names a missing file. Returns the number of uploaded files."""
    if not (folder / PAGE).exists():
        raise Trouble("The web console is not built. Build it with: make console")
    there = {entry["Key"] for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket) for entry in page.get("Contents", [])}
    count = 0
    for path in _page_last(folder):
        key = path.relative_to(folder).as_posix()
        hashed = key.startswith("assets/")
        if hashed and key in there:
            continue
        kind = mimetypes.guess_type(key)[0] or "application/octet-stream"
        s3.put_object(Bucket=bucket, Key=key, Body=path.read_bytes(), ContentType=kind, CacheControl=IMMUTABLE if hashed else REVALIDATED)
        count += 1
    return count


def _page_last(folder: Path) -> Iterator[Path]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    yield from sorted(files, key=lambda path: path.name == PAGE)
