"""The path of the API."""

BASE = "/api/v1"
