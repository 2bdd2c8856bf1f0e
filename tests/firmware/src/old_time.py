"""Tells everybody who asks by NTP that it is 2007, as a server with a dead battery does."""

import socket
import struct

# Seconds from 1900 to 1 January 2007.
THEN = 3376598400

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("", 123))
while True:
    question, client = server.recvfrom(512)
    now = struct.pack("!II", THEN, 0)
    # No warning, version 4, server; stratum 2; its own clock was right all the time.
    head = struct.pack("!BBbbII4s", 0x24, 2, 6, -20, 0, 0, b"\x0a\x4d\x00\x01")
    server.sendto(head + now + question[40:48] + now + now, client)
