"""The logger of all functions. The services log through the standard library, and each line is printed once."""

import json
import logging

from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import RESERVED_LOG_ATTRS, LambdaPowertoolsFormatter

_RESERVED = frozenset(RESERVED_LOG_ATTRS)


class Lines(LambdaPowertoolsFormatter):
    """Powertools' lines in two thirds of its time: an executor writes one for each job, while jobs of the same instant wait for it."""

    def format(self, record: logging.LogRecord) -> str:
        if record.exc_info or not isinstance(record.msg, str):
            return super().format(record)
        own = {name: value for name, value in record.__dict__.items() if name not in _RESERVED}
        line = {**self.log_format, "level": record.levelname, "message": record.getMessage(), "timestamp": self.formatTime(record), **own}
        line["xray_trace_id"] = self._get_latest_trace_id()
        return self.serialize({name: value for name, value in line.items() if value is not None})


# No line shows its thread, its process or its place in the code: https://docs.python.org/3/howto/logging.html#optimization
logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
logging._srcfile = None
logger = Logger(
    location=None,  # each message text occurs once in the code: a line number would only make the log a tenth longer
    logger_formatter=Lines(
        json_serializer=json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode,
        json_deserializer=str,  # a message is a text: by default each one is parsed, in case that it is JSON
    ),
)
logger._logger.propagate = False  # Lambda's runtime has a handler on the root, which would print each line again
logging.getLogger("scheduler").parent = logger._logger
