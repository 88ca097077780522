"""Orders that Punctual expires. Start: python django_app.py createcachetable && python django_app.py runserver"""

import os
import sys

import django
from django.conf import settings
from django.core.cache import cache
from django.core.handlers.wsgi import WSGIHandler
from django.core.management import execute_from_command_line
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.urls import path
from django.views.decorators.http import require_POST
from punctual.django import receives
from punctual.receivers import Call, CallReceiver, Permanent, Retry

settings.configure(
    SECRET_KEY=os.environ["DJANGO_SECRET_KEY"],
    ALLOWED_HOSTS=["shop.example.com", "127.0.0.1"],
    ROOT_URLCONF=__name__,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["DATABASE"]}},
    CACHES={
        "default": {
            "BACKEND": "django.core.cache.backends.db.DatabaseCache",
            "LOCATION": "punctual_calls",
            "OPTIONS": {"MAX_ENTRIES": 10_000_000},  # the default drops entries beyond 300
        }
    },
)
django.setup()

orders = {17: "open", 18: "in payment"}  # your database
receiver = CallReceiver(os.environ["SIGNING_SECRET"], store=cache)


@require_POST
@receives(receiver)
def expire(request: HttpRequest, call: Call) -> HttpResponseBase:
    order = call.json()["order"]
    state = orders.get(order)
    if state is None:
        raise Permanent(f"there is no order {order}")  # the job fails at once
    if state == "in payment":
        raise Retry("the payment is not decided", after=60)  # Punctual calls again in a minute
    orders[order] = "expired"
    return JsonResponse({"state": "expired", "job": call.job_id})


urlpatterns = [path("orders/expire", expire)]
application = WSGIHandler()

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
