"""Who sends a request: the address of the connection, or what proxies say who are trusted by name."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TypeAlias

from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.web.asgi import Scope, headers

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
_LONGEST = 50  # hops that are looked at
LOCAL = "local"  # a connection without an address, such as a Unix socket
_HOUSE = 64  # bits: what one household or server has of IPv6


class Addresses:
    """`proxies` are networks, such as `["10.0.0.0/8"]`: from nobody else is `X-Forwarded-For` believed."""

    def __init__(self, proxies: Sequence[str] = ()) -> None:
        if isinstance(proxies, str):
            raise UsageError(f"proxies is a list of networks: proxies=[{proxies!r}].")
        self._proxies = [_network(each) for each in proxies]

    def client(self, scope: Scope) -> Address | None:
        """The nearest address that is no trusted proxy. None: the connection has none."""
        peer = _address((scope.get("client") or ("",))[0])
        if peer is None or not self._is_trusted(peer):
            return peer
        told = [hop for line in headers(scope, b"x-forwarded-for") for hop in line.split(",")]
        for hop in reversed(told[-_LONGEST:]):
            if (found := _address(hop.strip())) is None:
                return peer  # what stands before it was written by anybody
            peer = found
            if not self._is_trusted(peer):
                break
        return peer

    def key(self, scope: Scope) -> str:
        """The client as a name to count by: an IPv6 address by its network of 64 bits, for one client has all of that."""
        found = self.client(scope)
        if found is None:
            return LOCAL
        return (
            str(found) if isinstance(found, IPv4Address) else str(IPv6Network((found, _HOUSE), strict=False))
        )

    def _is_trusted(self, address: Address) -> bool:
        return any(address.version == network.version and address in network for network in self._proxies)


def _address(text: str) -> Address | None:
    """As proxies write it: perhaps with a port, or in brackets. An IPv4 address in IPv6's clothes is one."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return found if mapped is None else mapped


def _network(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise UsageError(
            f"A proxy is an address or a network, such as '10.0.0.0/8'; not {show(text)} ({error})."
        ) from error
