"""A store in Redis. Give it `redis.Redis.from_url(...)`; the server needs the policy `noeviction`."""

from typing import Any


class RedisStore:
    def __init__(self, redis: Any) -> None:
        self._redis = redis

    def add(self, key: str, value: str, timeout: int, /) -> bool:
        return bool(self._redis.set(key, value, ex=timeout, nx=True))

    def get(self, key: str, /) -> str | None:
        found = self._redis.get(key)
        return found.decode() if isinstance(found, bytes) else found

    def set(self, key: str, value: str, timeout: int, /) -> None:
        self._redis.set(key, value, ex=timeout)

    def delete(self, key: str, /) -> None:
        self._redis.delete(key)
