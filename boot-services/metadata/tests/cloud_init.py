"""What Debian's cloud-init makes of the box's metadata: crawled by its own datasources, as JSON.

Arguments: the folder the package was unpacked to, the box's URL.
"""

import json
import sys

sys.path.insert(0, sys.argv[1] + "/usr/lib/python3/dist-packages")
url = sys.argv[2]

from cloudinit import helpers, util  # noqa: E402
from cloudinit.config import cc_phone_home  # noqa: E402
from cloudinit.sources import DataSourceEc2  # noqa: E402

MAC = "52:54:00:77:00:01"


class Distro:
    """As much of an operating system as the datasource touches."""

    def get_tmp_exec_path(self):
        return "/tmp"


config = {
    "datasource": {
        "Ec2": {"metadata_urls": [url], "strict_id": False, "max_wait": 10, "timeout": 5}
    }
}
source = DataSourceEc2.DataSourceEc2(config, Distro(), helpers.Paths({}))
found = source._get_data()
network = DataSourceEc2.convert_ec2_metadata_network_config(
    source.metadata["network"], {MAC: "enp1s0"}, "enp1s0"
)
seed_meta, seed_user, seed_vendor = util.read_seeded(url + "/nocloud/", retries=0)


class Cloud:
    """The part of a running system that phone_home reads."""

    paths = helpers.Paths({})

    def get_instance_id(self):
        return source.get_instance_id()

    def get_hostname(self, fqdn=False):
        return source.get_hostname(fqdn=fqdn)


post = ["instance_id", "hostname"]
phone = {"phone_home": {"url": url + "/phone-home", "post": post, "tries": 1}}
log = DataSourceEc2.LOG
cc_phone_home.handle("phone_home", phone, Cloud(), log, [])

print(
    json.dumps(
        {
            "found": found,
            "version": source._crawled_metadata["_metadata_api_version"],
            "instance_id": source.get_instance_id(),
            "hostname": source.get_hostname().hostname,
            "public_keys": source.get_public_ssh_keys(),
            "user_data": source.get_userdata_raw().decode(),
            "network": network,
            "seed": {
                "meta": seed_meta,
                "user": seed_user.decode(),
                "vendor": seed_vendor.decode(),
            },
        }
    )
)
