"""Keys that owners choose for their jobs and tasks. A key is a part of paths, so it has no character with a meaning there."""

LONGEST = 255  # characters
FORBIDDEN = '/?#%\\"`'
RULE = 'must be 1 to 255 printable characters, none of them / ? # % \\ " `; it must not begin or end with a space, nor be . or ..'


def is_key(text: str) -> bool:
    """Whether an owner may choose this text as a key.

    >>> [is_key(text) for text in ("order:17 late", "a/b", "tab\\t", "", "..")]
    [True, False, False, False, False]
    """
    allowed = 1 <= len(text) <= LONGEST and text.isprintable() and not set(text) & set(FORBIDDEN)
    return allowed and text == text.strip() and text not in (".", "..")
