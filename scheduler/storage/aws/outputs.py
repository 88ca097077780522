"""The port `Outputs` on S3: an object for each attempt whose output and log are too long for its job."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from scheduler.model.attempt_output import FullOutput
from scheduler.model.job import JobKey
from scheduler.storage.aws import keys
from scheduler.storage.aws.errors import code, translated

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from scheduler.storage.aws.archive import FirehoseArchive


class S3Outputs:
    """A lifecycle rule of the bucket deletes old objects.

    A function without a bucket has no client. Without an archive, jobs that leave the table are lost.
    """

    def __init__(self, client: "S3Client | None", bucket: str, archive: "FirehoseArchive | None" = None) -> None:
        self._client: Any = client
        self._bucket = bucket
        self._archive = archive

    def put(self, key: JobKey, fence: int, whole: FullOutput) -> None:
        body = json.dumps([whole.output, whole.log], separators=(",", ":")).encode()
        with translated():
            self._client.put_object(Bucket=self._bucket, Key=keys.output(key, fence), Body=body, ContentType="application/json")

    def get(self, key: JobKey, fence: int) -> FullOutput | None:
        with translated():
            try:
                found = self._client.get_object(Bucket=self._bucket, Key=keys.output(key, fence))
            except ClientError as error:
                if code(error) != "NoSuchKey":
                    raise
                return None
            return FullOutput(*json.loads(found["Body"].read()))

    def archive(self, records: Sequence[Mapping[str, Any]]) -> None:
        if self._archive is not None:
            self._archive.put(records)
