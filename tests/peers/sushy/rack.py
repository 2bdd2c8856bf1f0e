"""rack.py SOCKET NUMBER, and the options of sushy-emulator: its fake machines are a NUC of a rack.

Each request for power or a boot device goes to the rack over its socket, as `rack-chassis` sends
the requests of ipmi_sim.
"""

import socket
import sys

from sushy_tools import error
from sushy_tools.emulator import main
from sushy_tools.emulator.resources.systems import fakedriver

RACK, NUMBER = sys.argv.pop(1), sys.argv.pop(1)
RESPONSE_MAX = 4096
POWER = {
    "On": ("power", "1"),
    "ForceOn": ("power", "1"),
    "ForceOff": ("power", "0"),
    "GracefulShutdown": ("shutdown", "1"),
    "ForceRestart": ("reset", "1"),
    "GracefulRestart": ("reset", "1"),
}
BOOT = {"Pxe": "pxe", "Hdd": "default", "None": "none"}


def chassis(*words):
    """Sends a request to the rack, and returns the lines of the response."""
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(RACK)
        stream.sendall(("\t".join((NUMBER, *words)) + "\n").encode())
        with stream.makefile(errors="replace") as lines:
            outcome, _, rest = lines.read(RESPONSE_MAX).partition("\n")
    if outcome != "ok":
        raise error.FishyError(rest.strip() or "no response of the rack")
    return rest


class Rack(fakedriver.FakeDriver):
    """Driver of one NUC."""

    def get_power_state(self, identity):
        super().get_power_state(identity)
        return "On" if chassis("get", "power") == "power:1\n" else "Off"

    def set_power_state(self, identity, state):
        super().get_power_state(identity)
        if state not in POWER:
            raise error.NotSupportedError(f"{state} is not supported")
        chassis("set", *POWER[state])

    def get_boot_device(self, identity):
        super().get_boot_device(identity)
        device = chassis("get", "boot").strip().removeprefix("boot:")
        return next(name for name, word in BOOT.items() if word == device)

    def set_boot_device(self, identity, boot_source):
        if boot_source not in BOOT:
            raise error.NotSupportedError(f"{boot_source} is not supported")
        super().set_boot_device(identity, boot_source)
        chassis("set", "boot", BOOT[boot_source])


fakedriver.FakeDriver = Rack
sys.exit(main.main())
