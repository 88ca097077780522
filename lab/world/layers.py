"""Layers around ports: each sees the calls of an invocation before and after the port does."""

from collections.abc import Callable
from typing import Any

from scheduler.model.errors import Unavailable


class Layer:
    """A port over another one. A subclass defines the verbs that differ, or puts the same thing around each verb (`around`)."""

    def __init__(self, port: Any) -> None:
        self._port = port

    def around(self, name: str, effect: Callable[..., Any]) -> Callable[..., Any]:
        """Return what callers get instead of the verb `name`, whose `effect` is that of the port below."""
        return effect

    def __getattr__(self, name: str) -> Any:
        effect = getattr(self._port, name)
        if not callable(effect):
            return effect
        call = self.__dict__[name] = self.around(name, effect)
        return call


class Wrapped(Layer):
    """A port of which some verbs behave otherwise: `Wrapped(port, claim=lambda verb, *args: ...)`; `verb` is the real one."""

    def __init__(self, port: Any, **verbs: Callable[..., Any]) -> None:
        super().__init__(port)
        self._verbs = verbs

    def around(self, name: str, effect: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if name == "due_in" and "due" in self._verbs:  # it reads each slot as `due` does
                return [self.due(slot, **kwargs) for slot in args[0]]
            return self._verbs[name](effect, *args, **kwargs) if name in self._verbs else effect(*args, **kwargs)

        return call


def refuse(verb: Any, *args: Any, **kwargs: Any) -> Any:
    """For `Wrapped`: nothing happens, and the service reports it."""
    raise Unavailable


def times(number: int, then: Callable[..., Any] = refuse) -> Callable[..., Any]:
    """For `Wrapped`: `then` for the first `number` calls, the real thing after."""
    left = [number]

    def call(verb: Any, *args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        return then(verb, *args, **kwargs) if left[0] >= 0 else verb(*args, **kwargs)

    return call


def lost_answer(verb: Any, *args: Any, **kwargs: Any) -> Any:
    """For `Wrapped`: the effect happens, and the answer is lost."""
    verb(*args, **kwargs)
    raise Unavailable
