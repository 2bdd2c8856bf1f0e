"""What Debian's cloud-init makes of the box's metadata: found by its own datasources, taken apart,
rendered as Jinja and as a network configuration by its own code, as JSON.

Arguments: the folder the package was unpacked to, the box's URL, an empty folder.
"""

import contextlib
import io
import json
import pathlib
import sys

sys.path.insert(0, sys.argv[1] + "/usr/lib/python3/dist-packages")
url, folder = sys.argv[2], pathlib.Path(sys.argv[3])

from cloudinit import helpers, url_helper, user_data, util  # noqa: E402
from cloudinit.cmd.devel import net_convert, render  # noqa: E402
from cloudinit.config import cc_phone_home  # noqa: E402
from cloudinit.sources import DataSourceEc2, DataSourceNoCloud  # noqa: E402

MAC = "52:54:00:77:00:01"
JINJA = "text/jinja2"


class Distro:
    """As much of an operating system as a datasource touches."""

    name = "debian"

    def get_tmp_exec_path(self):
        return "/tmp"


def paths_of(name):
    """Folders of its own for a datasource."""
    own = folder / name
    for below in ("run", "cloud/seed", "cloud/instance"):
        (own / below).mkdir(parents=True)
    return helpers.Paths({"run_dir": str(own / "run"), "cloud_dir": str(own / "cloud")})


def learned(source):
    """What a datasource knows of the machine, and what its user data is once rendered."""
    found = source.get_data()
    instance_data = source.paths.get_runpath("instance_data_sensitive")
    processor = user_data.UserDataProcessor(source.paths)
    rendered = {}
    for part in processor.process(source.get_userdata_raw()).walk():
        if part.get_content_maintype() == "multipart":
            continue
        text = util.decode_binary(util.fully_decoded_payload(part))
        if part.get_content_type() == JINJA:
            template = folder / "template"
            template.write_text(text)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                assert render.render_template(str(template), instance_data) == 0
            text = out.getvalue()
        rendered[part.get_filename()] = text
    return {
        "found": found,
        "instance_id": source.get_instance_id(),
        "hostname": source.get_hostname().hostname,
        "public_keys": source.get_public_ssh_keys(),
        "user_data": util.decode_binary(source.get_userdata_raw()),
        "rendered": rendered,
    }


def network(path, kind):
    """What a renderer makes of a network configuration: files by name, netplan's taken apart."""
    config = folder / "network-config"
    config.write_bytes(url_helper.readurl(url + path).contents)
    target = folder / (path.replace("/", "-") + kind)
    parser = net_convert.get_parser()
    args = ["-p", str(config), "-k", "yaml", "-d", str(target), "-D", "debian", "-O", kind]
    with contextlib.redirect_stderr(io.StringIO()):
        net_convert.handle_args("net-convert", parser.parse_args(args))
    files = [path for path in target.rglob("*") if path.is_file()]
    if kind == "netplan":
        return util.load_yaml(files[0].read_text())["network"]
    return {path.name: path.read_text() for path in files}


metadata_urls = {"metadata_urls": [url], "strict_id": False, "max_wait": 10, "timeout": 5}
# No disk is looked at: a label of none.
seed = {"seedfrom": url + "/nocloud/", "fs_label": None}
config = {"datasource": {"Ec2": metadata_urls, "NoCloud": seed}}
ec2 = DataSourceEc2.DataSourceEc2(config, Distro(), paths_of("ec2"))
nocloud = DataSourceNoCloud.DataSourceNoCloudNet(config, Distro(), paths_of("nocloud"))
by_ec2, by_nocloud = learned(ec2), learned(nocloud)


class Cloud:
    """The part of a running system that phone_home reads."""

    paths = ec2.paths

    def get_instance_id(self):
        return ec2.get_instance_id()

    def get_hostname(self, fqdn=False):
        return ec2.get_hostname(fqdn=fqdn)


phone = {"url": url + "/phone-home", "post": ["instance_id", "hostname"], "tries": 1}
cc_phone_home.handle("phone_home", {"phone_home": phone}, Cloud(), DataSourceEc2.LOG, [])

versions = {"v2": "/nocloud/network-config", "v1": "/nocloud/v1/network-config"}
kinds = ["netplan", "networkd", "eni"]
print(
    json.dumps(
        {
            "ec2": by_ec2,
            "nocloud": by_nocloud,
            "version": ec2._crawled_metadata["_metadata_api_version"],
            "vendor_data": util.decode_binary(nocloud.get_vendordata_raw()),
            "ec2_network": DataSourceEc2.convert_ec2_metadata_network_config(
                ec2.metadata["network"], {MAC: "enp1s0"}, "enp1s0"
            ),
            "network": {
                version: {kind: network(path, kind) for kind in kinds}
                for version, path in versions.items()
            },
        }
    )
)
