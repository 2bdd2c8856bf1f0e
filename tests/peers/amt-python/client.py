"""client.py CLIENT ADDRESS SCHEME USER PASSWORD COMMAND..., for clients of Intel AMT in Python.

`amtctrl` is the package `amt` with the requests of Ironic's former driver; it always verifies the
certificate, so the one of the machine becomes its authority. `napalm` is napalm-amt. Prints one
line of JSON for each command: {"value": ...} or {"error": ...}.
"""

import json
import os
import ssl
import sys
import tempfile

from amt import client as amtctrl
from napalm_amt import AmtDriver


def for_amtctrl(address, scheme, user, password, folder):
    if scheme == "https":
        authority = os.path.join(folder, "authority.pem")
        with open(authority, "w") as file:
            file.write(ssl.get_server_certificate((address, 16993)))
        os.environ["REQUESTS_CA_BUNDLE"] = authority
    machine = amtctrl.Client(address, password, username=user, protocol=scheme)
    commands = {
        "state": machine.power_status,
        "on": machine.power_on,
        "off": machine.power_off,
        "cycle": machine.power_cycle,
    }
    return lambda name, value: machine.set_next_boot(value) if name == "boot" else commands[name]()


def for_napalm(address, scheme, user, password, _):
    options = {"port": 16993 if scheme == "https" else 16992, "verify_ssl": False, "retries": 0}
    machine = AmtDriver(address, user, password, timeout=60, optional_args=options)
    machine.open()
    commands = {
        "state": machine.get_power_state,
        "facts": machine.get_facts,
        "interfaces": machine.get_interfaces,
        "addresses": machine.get_interfaces_ip,
        "hardware": machine.get_hardware_inventory,
        "firmware": machine.get_firmware_inventory,
        "protocols": machine.get_management_protocols,
        "events": machine.get_event_log,
    }
    return lambda name, value: (
        machine.set_power_state(value) if name == "power" else commands[name]()
    )


def main(folder):
    kind, address, scheme, user, password, *commands = sys.argv[1:]
    # An authority in the environment takes precedence over the option not to verify.
    os.environ.pop("REQUESTS_CA_BUNDLE", None)
    os.environ.pop("CURL_CA_BUNDLE", None)
    clients = {"amtctrl": for_amtctrl, "napalm": for_napalm}
    run = clients[kind](address, scheme, user, password, folder)
    for command in commands:
        name, _, value = command.partition("=")
        try:
            answer = {"value": run(name, value)}
        except Exception as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


with tempfile.TemporaryDirectory() as folder:
    main(folder)
