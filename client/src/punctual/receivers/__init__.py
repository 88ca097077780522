"""Receives the calls of Punctual in a program of yours: verifies the signature, runs each job's work once, and answers.

    receiver = CallReceiver(os.environ["PUNCTUAL_SIGNING_SECRET"], store=DynamoStore("calls"))

`punctual.fastapi`, `punctual.flask`, `punctual.django` and `punctual.aws_lambda` connect a receiver to a framework. Without one of these,
call `CallReceiver.receive` with the headers and the body of a request.
"""

from punctual.receivers.answers import Answer, Permanent, Retry, StillRunning
from punctual.receivers.call import Call
from punctual.receivers.receiver import CallReceiver
from punctual.receivers.stores import DynamoStore, MemoryStore, Store

__all__ = ["Answer", "Call", "CallReceiver", "DynamoStore", "MemoryStore", "Permanent", "Retry", "StillRunning", "Store"]
