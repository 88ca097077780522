"""The logger of all functions. The services log through the standard library, and each line is printed once."""

import json
import logging
import os

from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

from lambdas._init import IS_LAMBDA

_RESERVED = {*logging.makeLogRecord({}).__dict__, "asctime", "level", "location", "timestamp"}  # attributes that no `extra` makes fields


class Lines(LambdaPowertoolsFormatter):
    """Powertools' lines in two thirds of its time: an executor writes one for each job, while jobs of the same instant wait for it."""

    def format(self, record: logging.LogRecord) -> str:
        if record.exc_info or not isinstance(record.msg, str):
            return super().format(record)
        own = {name: value for name, value in record.__dict__.items() if name not in _RESERVED}
        text, at = record.getMessage(), self.formatTime(record)
        line = {**self.get_current_keys(), "level": record.levelname, "message": text, "timestamp": at, **own}
        line["xray_trace_id"] = os.getenv("_X_AMZN_TRACE_ID", "").partition(";")[0].replace("Root=", "") or None
        return self.serialize({name: value for name, value in line.items() if value is not None})


# No line shows its thread, its process or its place in the code: https://docs.python.org/3/howto/logging.html#optimization
if IS_LAMBDA:
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None
logger = Logger(
    location=None,  # each message text occurs once in the code: a line number would only make the log a tenth longer
    logger_formatter=Lines(
        json_serializer=json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode,
        json_deserializer=str,  # a message is a text: by default each one is parsed, in case that it is JSON
    ),
)
_lines = logging.getLogger(logger.name)  # the one that `logger` writes to
_lines.propagate = False  # Lambda's runtime has a handler on the root, which would print each line again
logging.getLogger("scheduler").parent = _lines
