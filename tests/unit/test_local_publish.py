"""The upload of the console: which files, in which order, with which caching."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.failure import Trouble
from ops.publish import publish


class Bucket:
    """A fake S3 client with one bucket."""

    def __init__(self, *there: str) -> None:
        self.there = there
        self.put: dict[str, dict[str, Any]] = {}

    def get_paginator(self, _operation: str) -> "Bucket":
        return self

    def paginate(self, **_arguments: str) -> Iterator[dict[str, Any]]:
        yield {"Contents": [{"Key": key} for key in self.there]} if self.there else {}

    def put_object(self, *, Key: str, **arguments: Any) -> None:
        self.put[Key] = arguments


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    for name in ("index.html", "clock.svg", "assets/index-1a2b.js", "assets/index-3c4d.css", "assets/zone-5e6f.js"):
        (tmp_path / name).write_text(name)
    return tmp_path


def test_hashed_files_are_immutable_and_the_page_is_revalidated(built: Path) -> None:
    s3 = Bucket()
    assert publish(s3, "files", built) == 5
    assert s3.put["assets/index-1a2b.js"]["CacheControl"] == "public, max-age=31536000, immutable"
    assert s3.put["index.html"]["CacheControl"] == "no-cache"
    assert s3.put["clock.svg"]["CacheControl"] == "no-cache"


def test_each_file_has_its_content_type(built: Path) -> None:
    s3 = Bucket()
    publish(s3, "files", built)
    kinds = {key: sent["ContentType"] for key, sent in s3.put.items()}
    assert kinds["index.html"] == "text/html"
    assert kinds["assets/index-1a2b.js"] in ("text/javascript", "application/javascript")
    assert kinds["assets/index-3c4d.css"] == "text/css"
    assert kinds["clock.svg"] == "image/svg+xml"


def test_the_page_is_uploaded_after_the_files_it_names(built: Path) -> None:
    s3 = Bucket()
    publish(s3, "files", built)
    assert list(s3.put)[-1] == "index.html"


def test_a_hashed_file_is_not_uploaded_again(built: Path) -> None:
    s3 = Bucket("assets/index-1a2b.js", "index.html")
    assert publish(s3, "files", built) == 4
    assert "assets/index-1a2b.js" not in s3.put
    assert "index.html" in s3.put


def test_a_missing_build_of_the_console_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="make console"):
        publish(Bucket(), "files", tmp_path)
