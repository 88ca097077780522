"""The logger of all functions. The services log through the standard library, and each line is printed once."""

import json
import logging

from aws_lambda_powertools import Logger

# No line shows its thread or process, and an executor writes a line for every job: https://docs.python.org/3/howto/logging.html#optimization
logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
logger = Logger(
    location=None,  # each message text occurs once in the code: a line number would only make the log a tenth longer
    json_serializer=json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode,
    json_deserializer=str,  # a message is a text: by default each one is parsed, in case that it is JSON
)
logger._logger.propagate = False  # Lambda's runtime has a handler on the root, which would print each line again
logging.getLogger("scheduler").parent = logger._logger
