"""Program of snmpd's pass_persist: copies its lines to a Unix socket, and the answers back."""

import socket
import sys
import threading

connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
connection.connect(sys.argv[1])


def answers():
    with connection.makefile("rb") as lines:
        for line in lines:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()


threading.Thread(target=answers, daemon=True).start()
for line in sys.stdin.buffer:
    connection.sendall(line)
