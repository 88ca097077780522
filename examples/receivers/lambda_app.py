"""Orders that Punctual expires, in AWS Lambda: by the URL of a function, and as the target of a job of type `lambda`."""

import os

from punctual.aws_lambda import receives, receives_event
from punctual.receivers import Call, CallReceiver, DynamoStore, Permanent, Retry

orders = {17: "open", 18: "in payment"}  # your database
store = DynamoStore(os.environ["CALLS_TABLE"])
receiver = CallReceiver(os.environ["SIGNING_SECRET"], store=store)


def expire(call: Call) -> dict[str, str]:
    order = call.json()["order"]
    state = orders.get(order)
    if state is None:
        raise Permanent(f"there is no order {order}")
    if state == "in payment":
        raise Retry("the payment is not decided", after=60)
    orders[order] = "expired"
    return {"state": "expired", "job": call.job_id}


@receives(receiver)
def by_url(call: Call, context: object) -> dict[str, str]:
    return expire(call)


@receives_event(store)
def by_event(call: Call, context: object) -> dict[str, str]:
    return expire(call)
