"""Private networks: the hosts and ranges that `fetch-private` may call for the jobs of a private target.

An entry of a list is a range (`10.0.0.0/16`, or one address) or a host, in which `*` stands for any text (`*.internal.example.com`).
Two lists apply to each call: that of the stage (the option `network`), and that of the target.
"""

import ipaddress
import re
from collections.abc import Sequence
from functools import cache

ENTRY = r"[A-Za-z0-9*_.:/-]{1,253}"
_HOST = r"([A-Za-z0-9*_-]{1,63}\.)+[A-Za-z][A-Za-z0-9-]{0,62}"
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _networks(*texts: str) -> tuple[_Network, ...]:
    return tuple(map(ipaddress.ip_network, texts))


LOOPBACK = _networks("127.0.0.0/8", "::1/128")
# No list reaches these: this host, link-local addresses (the services of instances and functions), multicast, reserved and broadcast.
# fd00:ec2::/32 has the same services: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
NEVER = _networks("0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4", "fd00:ec2::/32", "2001::/32", "2002::/16")
UNICAST_V6 = _networks(
    "2000::/3", "fc00::/7"
)  # no other IPv6 address: such as link-local, multicast, and forms that contain an IPv4 address
PRIVATE = _networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")  # RFC 1918 and RFC 4193: what a host alone may resolve to


def check_entry(text: str) -> str:
    """Return the entry of a list. Raises ValueError for a text that is neither a range nor a host, or for a range that is never reached."""
    network = _range(text)
    if network is None and "/" in text:
        raise ValueError(f"{text!r} is no range: after the address of a network comes its number of bits, such as 10.0.0.0/16")
    if network is None and re.fullmatch(_HOST, text) is None:
        raise ValueError(f"{text!r} is neither a host nor a range; such as *.internal.example.com or 10.0.0.0/16")
    if network is not None and not any(network.overlaps(each) for each in LOOPBACK if each.version == network.version):
        if _is_never(network.network_address) and _is_never(network.broadcast_address):
            raise ValueError(f"{text!r} has link-local, multicast or reserved addresses, which no job may call")
    return text


def is_within(entry: str, bound: Sequence[str]) -> bool:
    """Whether all that an entry reaches is in the list `bound`: a range lies within one of its ranges, a host matches one of its hosts."""
    network = _range(entry)
    if network is None:
        return any(is_host(entry, each) for each in bound)
    ranges = (each for each in map(_range, bound) if each is not None and each.version == network.version)
    return any(network.subnet_of(each) for each in ranges)  # type: ignore[arg-type]


def may_name(host: str, allow: Sequence[str]) -> bool:
    """Whether a URL with this host may be called as far as its text shows: the addresses of a name are known only when it is called."""
    address = _address(host)
    if address is not None:
        return any(address in network for network in map(_range, allow) if network is not None)
    return any(_range(each) is not None or is_host(host, each) for each in allow)


def is_reachable(host: str, text: str, allow: Sequence[str], *, loopback: bool = False) -> bool:
    """Whether a list reaches an address to which a host was resolved: one of its ranges has it, or one of its hosts if it is private.

    `loopback`: the list may have loopback addresses, as on the local stage.
    """
    address = _address(text)
    if address is None or _is_never(address, loopback=loopback):
        return False
    if any(address in network for network in map(_range, allow) if network is not None):
        return True
    return any(address in network for network in PRIVATE) and any(is_host(host, each) for each in allow if _range(each) is None)


def _is_never(address: _Address, *, loopback: bool = False) -> bool:
    if any(address in network for network in LOOPBACK):
        return not loopback
    if isinstance(address, ipaddress.IPv6Address) and not any(address in network for network in UNICAST_V6):
        return True
    return any(address in network for network in NEVER)


def _address(text: str) -> _Address | None:
    """The address of a text; an IPv4 address that is mapped into IPv6 is that IPv4 address, to which the system connects."""
    try:
        address = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, ipaddress.IPv6Address) else address


@cache
def _range(text: str) -> _Network | None:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None


def is_host(host: str, pattern: str) -> bool:
    """Whether a pattern has this host; `*` in it stands for any text."""
    return re.fullmatch(re.escape(pattern.lower()).replace(r"\*", ".*"), host.lower().rstrip(".")) is not None
