"""The port `Outputs` on S3: an object for each attempt whose output and log its job cannot hold."""

import json
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from scheduler.model.attempt_output import Whole
from scheduler.model.job import JobKey
from scheduler.storage.aws import keys
from scheduler.storage.aws.errors import code, translated

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class S3Outputs:
    """The bucket forgets by its own rule."""

    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, key: JobKey, fence: int, whole: Whole) -> None:
        body = json.dumps([whole.output, whole.log], separators=(",", ":")).encode()
        with translated():
            self._client.put_object(Bucket=self._bucket, Key=keys.output(key, fence), Body=body, ContentType="application/json")

    def get(self, key: JobKey, fence: int) -> Whole | None:
        with translated():
            try:
                found = self._client.get_object(Bucket=self._bucket, Key=keys.output(key, fence))
            except ClientError as error:
                if code(error) != "NoSuchKey":
                    raise
                return None
            return Whole(*json.loads(found["Body"].read()))
