"""status.py URL SYSTEM COUNT: read the power state with OpenStack's sushy; print seconds."""

import sys
import time

import sushy
from sushy import auth

url, path, count = sys.argv[1:]
login = auth.BasicAuth("u", "p")
system = sushy.Sushy(url, auth=login, verify=False).get_system(path)
for _ in range(int(count)):
    begin = time.monotonic()
    system.refresh(force=True)
    if system.power_state is None:
        sys.exit("the service reports no power state")
    print(time.monotonic() - begin)
