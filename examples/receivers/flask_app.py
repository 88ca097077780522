"""Orders that Punctual expires. Start: flask --app flask_app run"""

import os

from flask import Flask
from punctual.flask import receives
from punctual.receivers import Call, CallReceiver, MemoryStore, Permanent, Retry

orders = {17: "open", 18: "in payment"}  # your database
receiver = CallReceiver(os.environ["SIGNING_SECRET"], store=MemoryStore())
app = Flask(__name__)


@app.post("/orders/expire")
@receives(receiver)
def expire(call: Call) -> dict[str, str]:
    order = call.json()["order"]
    state = orders.get(order)
    if state is None:
        raise Permanent(f"there is no order {order}")  # the job fails at once
    if state == "in payment":
        raise Retry("the payment is not decided", after=60)  # Punctual calls again in a minute
    orders[order] = "expired"
    return {"state": "expired", "job": call.job_id}
