"""The logger of all functions. The services log through the standard library, and each line is printed once."""

import logging

from aws_lambda_powertools import Logger

logger = Logger(location=None)  # each message text occurs once in the code: a line number would only make the log a tenth longer
logger._logger.propagate = False  # Lambda's runtime has a handler on the root, which would print each line again
logging.getLogger("scheduler").parent = logger._logger
