"""Orders that Punctual expires. Start: uvicorn fastapi_app:app"""

import os

from fastapi import APIRouter, FastAPI
from punctual.fastapi import PunctualCall, route_class
from punctual.receivers import CallReceiver, MemoryStore, Permanent, Retry
from pydantic import BaseModel

orders = {17: "open", 18: "in payment"}  # your database
receiver = CallReceiver(os.environ["SIGNING_SECRET"], store=MemoryStore())
router = APIRouter(route_class=route_class(receiver))


class Expiry(BaseModel):
    order: int


@router.post("/orders/expire")
def expire(expiry: Expiry, call: PunctualCall) -> dict[str, str]:
    state = orders.get(expiry.order)
    if state is None:
        raise Permanent(f"there is no order {expiry.order}")  # the job fails at once
    if state == "in payment":
        raise Retry("the payment is not decided", after=60)  # Punctual calls again in a minute
    orders[expiry.order] = "expired"
    return {"state": "expired", "job": call.job_id}


app = FastAPI()
app.include_router(router)
