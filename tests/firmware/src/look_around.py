"""What a person's machine finds on the link: the box by multicast DNS, and which ports it has.

look_around.py NAME SECONDS: waits so long until NAME.local has a link-local IPv4 address, its
services are there and its pages answer, then tries every TCP port and some UDP ports. Prints one
line of JSON.
"""

import errno
import json
import selectors
import socket
import sys
import time

from zeroconf import ServiceBrowser, ServiceListener, Zeroconf

SERVICES = ["_https._tcp.local.", "_tinkerbell._tcp.local."]
PATIENCE = int(sys.argv[2])
# Servers that the design has, and must not be there before somebody configured the box.
UDP = [67, 69, 123, 514, 4011]
AT_ONCE = 256
# Datagrams to a UDP port, one a second. A box that gets no processor refuses late.
TRIES = 60


class Heard(ServiceListener):
    """Services by name."""

    def __init__(self):
        self.found = {}

    def add_service(self, zc, type_, name):
        info = zc.get_service_info(type_, name, 3000)
        if info:
            self.found[type_] = info

    def update_service(self, zc, type_, name):
        self.add_service(zc, type_, name)

    def remove_service(self, zc, type_, name):
        self.found.pop(type_, None)


def find(name):
    """The box's link-local address and its services' ports."""
    zeroconf, heard = Zeroconf(), Heard()
    ServiceBrowser(zeroconf, SERVICES, heard)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = dict(heard.found)
        for info in found.values():
            own = [a for a in info.parsed_addresses() if a.startswith("169.254.")]
            if info.server == f"{name}.local." and own and len(found) == len(SERVICES):
                return own[0], {type_: info.port for type_, info in found.items()}
        time.sleep(0.1)
    sys.exit(f"{name}.local was not found in {PATIENCE} s: {heard.found}")


def await_pages(address, port):
    """Returns once the box takes a connection there: its name is known earlier."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            socket.create_connection((address, port), timeout=3).close()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{address} has no pages after {PATIENCE} s")


def open_tcp(address):
    """Every port that takes a connection."""
    waiting, ports, answered = selectors.DefaultSelector(), iter(range(1, 65536)), []
    count = 0
    while True:
        while count < AT_ONCE and (port := next(ports, None)):
            tried = socket.socket()
            tried.setblocking(False)
            code = tried.connect_ex((address, port))
            if code not in (0, errno.EINPROGRESS):
                sys.exit(f"port {port}: {errno.errorcode[code]}")
            waiting.register(tried, selectors.EVENT_WRITE, port)
            count += 1
        if count == 0:
            return sorted(answered)
        for key, _ in waiting.select():
            if key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                answered.append(key.data)
            waiting.unregister(key.fileobj)
            key.fileobj.close()
            count -= 1


def open_udp(address):
    """Those of UDP that are not refused."""
    return [port for port in UDP if not is_refused(address, port)]


def is_refused(address, port):
    """Whether the box says that nothing listens there; a port that says nothing is open."""
    tried = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    tried.settimeout(1)
    tried.connect((address, port))
    for _ in range(TRIES):
        try:
            tried.send(b"?")
            tried.recv(1)
            return False
        except ConnectionRefusedError:
            return True
        except TimeoutError:
            pass
    return False


address, services = find(sys.argv[1])
await_pages(address, services["_https._tcp.local."])
tcp, udp = open_tcp(address), open_udp(address)
print(json.dumps({"address": address, "services": services, "tcp": tcp, "udp": udp}))
