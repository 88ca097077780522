"""A client of the HTTP API: one base address, one token."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import urllib3

Json = dict[str, Any]

# The server may close an idle connection just when the client uses it again. urllib3 then repeats a call once on a new connection,
# if the method is idempotent (GET, PUT, DELETE). It repeats no call that was answered, and follows no redirect.
AGAIN = urllib3.Retry(total=1, redirect=False, status=False, respect_retry_after_header=False)


class ApiError(Exception):
    """The API answered with an error, or did not answer. `status` is 0 without an answer."""

    def __init__(self, status: int, code: str, message: str, body: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{status} {code}: {message}" if status else f"{code}: {message}")
        self.status = status
        self.code = code
        self.body = body or {}


class Client:
    """A client of the API. Several threads may share it."""

    def __init__(self, address: str, *, token: str | None = None, connections: int = 8) -> None:
        self.address = address.rstrip("/")
        self.token = token
        self._pool = urllib3.PoolManager(maxsize=connections, block=False, retries=AGAIN, timeout=urllib3.Timeout(30))

    def login(self, username: str, password: str) -> Json:
        """Sign in; every later call carries the token."""
        session: Json = self.request("POST", "/auth/login", {"username": username, "password": password})
        self.token = session["token"]
        return session

    def post_job(self, type: str, payload: Mapping[str, Any], *, execute_at: str | None = None, **options: Any) -> Json:
        body = {"type": type, "payload": payload, **({"execute_at": execute_at} if execute_at else {}), **options}
        job: Json = self.request("POST", "/me/jobs", body)
        return job

    def post_jobs(self, jobs: Sequence[Mapping[str, Any]]) -> Json:
        """Post up to a thousand jobs, each written as for `POST /me/jobs`. The answer has a result for each."""
        done: Json = self.request("POST", "/me/jobs/batch", {"jobs": list(jobs)})
        return done

    def job(self, job_id: str) -> Json:
        job: Json = self.request("GET", f"/me/jobs/{job_id}")
        return job

    def page(self, **query: Any) -> Json:
        page: Json = self.request("GET", "/me/jobs", query=query)
        return page

    def jobs(self, **query: Any) -> Iterator[Json]:
        """Yield all jobs of a listing, page by page."""
        return self._pages("/me/jobs", "jobs", query)

    def _pages(self, path: str, name: str, query: Mapping[str, Any]) -> Iterator[Json]:
        page: Json = self.request("GET", path, query=query)
        while True:
            yield from page[name]
            if not page.get("cursor"):
                return
            page = self.request("GET", path, query={**query, "cursor": page["cursor"]})

    def cancel(self, job_id: str) -> Json:
        job: Json = self.request("POST", f"/me/jobs/{job_id}/cancel")
        return job

    def create_task(self, name: str, type: str, payload: Mapping[str, Any], schedule: Mapping[str, Any] | None, **options: Any) -> Json:
        """Create a task. Without a schedule it runs at once."""
        body = {"name": name, "type": type, "payload": payload, "schedule": schedule, **options}
        task: Json = self.request("POST", "/tasks", body)
        return task

    def edit_task(self, task_id: str, body: Mapping[str, Any]) -> Json:
        task: Json = self.request("PUT", f"/tasks/{task_id}", body)
        return task

    def pause_task(self, task_id: str, reason: str) -> Json:
        task: Json = self.request("PUT", f"/tasks/{task_id}/inactive", {"reason": reason})
        return task

    def delete_task(self, task_id: str) -> None:
        self.request("DELETE", f"/tasks/{task_id}")

    def register_target(self, name: str, kind: str, defaults: Mapping[str, Any], **options: Any) -> Json:
        target: Json = self.request("POST", "/targets", {"name": name, "kind": kind, "defaults": defaults, **options})
        return target

    def edit_target(self, name: str, body: Mapping[str, Any]) -> Json:
        target: Json = self.request("PUT", f"/targets/{name}", body)
        return target

    def delete_target(self, name: str) -> None:
        self.request("DELETE", f"/targets/{name}")

    def tasks(self, **query: Any) -> Iterator[Json]:
        """Yield all tasks of a listing, page by page, newest first."""
        return self._pages("/tasks", "tasks", {"limit": 100, **query})

    def task_jobs(self, task_id: str, **query: Any) -> Iterator[Json]:
        """Yield all jobs of a task that were due, page by page, newest first."""
        return self._pages(f"/tasks/{task_id}/jobs", "jobs", {"limit": 100, **query})

    def user_id(self) -> str:
        """Return the id of the signed-in user."""
        return str(self.request("GET", "/me")["id"])

    def health(self) -> Json:
        health: Json = self.request("GET", "/health")
        return health

    def request(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """Return the `data` of a successful answer. Raises ApiError for every other answer."""
        status, answer = self.send(method, path, body, query)
        if status < 400 and answer.get("success") is True:
            return answer.get("data")
        error = answer.get("error") or {}
        raise ApiError(status, error.get("code", "unexpected_answer"), error.get("message", json.dumps(answer)[:300]), answer)

    def send(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> tuple[int, Json]:
        """Return status and body of the answer, also of an error. Bytes are sent unchanged. Raises ApiError without an answer."""
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        fields = {name: str(value).lower() if isinstance(value, bool) else value for name, value in (query or {}).items()}
        url = f"{self.address}/api/v1{path}" + (f"?{urlencode(fields)}" if fields else "")
        try:
            answer = self._pool.request(method, url, body=content, headers=headers)
        except urllib3.exceptions.HTTPError as error:
            raise ApiError(0, "no_answer", f"{method} {url}: {error}") from error
        return answer.status, _parse(answer.data)


def _parse(data: bytes) -> Json:
    try:
        parsed = json.loads(data)
    except ValueError:
        return {"text": data.decode(errors="replace")}
    return parsed if isinstance(parsed, dict) else {"value": parsed}
