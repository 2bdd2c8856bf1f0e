"""http_boot.py, and the options of sushy-emulator: its fake machines boot from a URL.

The fake driver of sushy-tools stores no URL, so the emulator refuses UefiHttp. For libvirt, the
emulator boots the downloaded image as a CD; a machine here reports that it boots from the URL.
"""

import sys

from sushy_tools.emulator import main
from sushy_tools.emulator.resources.systems import fakedriver


class HttpBoot(fakedriver.FakeDriver):
    """Driver of machines that store the URL of their HTTP boot."""

    url = None

    def get_http_boot_uri(self, identity):
        return self.url

    def set_http_boot_uri(self, uri):
        HttpBoot.url = uri

    def get_boot_device(self, identity):
        device = super().get_boot_device(identity)
        return "UefiHttp" if self.url and device == "Cd" else device


fakedriver.FakeDriver = HttpBoot
sys.exit(main.main())
