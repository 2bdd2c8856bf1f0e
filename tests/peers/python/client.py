"""What a program in Python does with the API: typed and dynamic clients, the same calls on any
server. Ends with a status other than 0 where an answer is not what a real server gives.

Usage: client.py KUBECONFIG NAMESPACE
"""

import base64
import sys
import threading

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError, UnprocessibleEntityError

API, KIND = "peers.example.org/v1", "Widget"


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got!r} instead of {wanted!r}")


def refused(what, kind, call):
    try:
        call()
    except kind as error:
        return error
    sys.exit(f"{what}: not refused")


def widget(name, **spec):
    return {"apiVersion": API, "kind": KIND, "metadata": {"name": name}, "spec": spec}


def typed(api_client, namespace):
    """The generated client: built-in kinds, custom objects, watches."""
    core = client.CoreV1Api(api_client)
    made = client.V1Namespace(metadata=client.V1ObjectMeta(name=namespace))
    core.create_namespace(made)
    secret = client.V1Secret(
        metadata=client.V1ObjectMeta(name="s"), string_data={"user": "admin"}
    )
    secret = core.create_namespaced_secret(namespace, secret)
    expect("secret", base64.b64decode(secret.data["user"]), b"admin")
    expect("type", secret.type, "Opaque")
    for name in ("a", "b", "c"):
        body = client.V1ConfigMap(
            metadata=client.V1ObjectMeta(name=name, labels={"n": name}), data={"k": name}
        )
        core.create_namespaced_config_map(namespace, body)
    page = core.list_namespaced_config_map(namespace, label_selector="n", limit=2)
    expect("page", [item.metadata.name for item in page.items], ["a", "b"])
    rest = core.list_namespaced_config_map(
        namespace, label_selector="n", limit=2, _continue=page.metadata._continue
    )
    expect("rest", [item.metadata.name for item in rest.items], ["c"])
    seen = []
    looking = watch.Watch()
    stream = looking.stream(
        core.list_namespaced_config_map, namespace, label_selector="n", timeout_seconds=120
    )
    for event in stream:
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 3:
            looking.stop()
    expect("watch", seen, [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")])
    error = refused("twice", ApiException, lambda: core.create_namespace(made))
    expect("twice", error.status, 409)
    patched = core.patch_namespaced_config_map("a", namespace, {"data": {"k": None, "l": "m"}})
    expect("patched", patched.data, {"l": "m"})
    custom = client.CustomObjectsApi(api_client)
    where = ("peers.example.org", "v1", namespace, "widgets")
    custom.create_namespaced_custom_object(*where, widget("typed", color="red"))
    status = {"status": {"replicas": 4}}
    custom.patch_namespaced_custom_object_status(*where, "typed", status)
    scale = custom.get_namespaced_custom_object_scale(*where, "typed")
    expect("scale", (scale["spec"], scale["status"]), ({"replicas": 1}, {"replicas": 4}))
    custom.delete_namespaced_custom_object(*where, "typed")
    expect("version", client.VersionApi(api_client).get_code().major, "1")
    token = client.AuthenticationV1TokenRequest(
        spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=600)
    )
    account = client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="robot"))
    core.create_namespaced_service_account(namespace, account)
    token = core.create_namespaced_service_account_token("robot", namespace, token)
    expect("token", len(token.status.token.split(".")), 3)


def discovered(api_client, namespace):
    """The dynamic client: everything it knows it was told by the server."""
    dyn = dynamic.DynamicClient(api_client)
    widgets = dyn.resources.get(api_version=API, kind=KIND)
    expect("plural", (widgets.name, widgets.namespaced), ("widgets", True))
    made = widgets.create(body=widget("one", color="red"), namespace=namespace)
    expect("default", (made.spec.replicas, made.metadata.generation), (1, 1))
    events = []

    def look():
        revision = made.metadata.resourceVersion
        for event in widgets.watch(
            namespace=namespace, name="one", resource_version=revision, timeout=120
        ):
            events.append(event["type"])
            if event["type"] == "DELETED":
                return

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    body = made.to_dict()
    body["spec"]["color"] = "blue"
    changed = widgets.replace(body=body, namespace=namespace)
    expect("generation", changed.metadata.generation, 2)
    refused("stale", ConflictError, lambda: widgets.replace(body=body, namespace=namespace))
    merge = "application/merge-patch+json"
    patch = {"metadata": {"name": "one"}, "spec": {"paused": True}}
    patched = widgets.patch(body=patch, namespace=namespace, content_type=merge)
    expect("patched", patched.spec.paused, True)
    bad = widget("bad", color="pink")
    error = refused(
        "color", UnprocessibleEntityError, lambda: widgets.create(body=bad, namespace=namespace)
    )
    expect("color", "spec.color" in str(error.body), True)
    apply = widget("applied", color="green", options={"a": "b"})
    applied = widgets.server_side_apply(body=apply, namespace=namespace, field_manager="one")
    expect("manager", applied.metadata.managedFields[0].operation, "Apply")
    apply["spec"]["color"] = "red"
    other = {"namespace": namespace, "field_manager": "other"}
    error = refused(
        "conflict", ConflictError, lambda: widgets.server_side_apply(body=apply, **other)
    )
    expect("conflict", 'conflict with \\"one\\"' in str(error.body), True)
    applied = widgets.server_side_apply(body=apply, force_conflicts=True, **other)
    expect("forced", applied.spec.color, "red")
    names = [item.metadata.name for item in widgets.get(namespace=namespace).items]
    expect("names", names, ["applied", "one"])
    widgets.delete(name="one", namespace=namespace)
    watcher.join(timeout=120)
    expect("events", events, ["MODIFIED", "MODIFIED", "DELETED"])
    refused("gone", NotFoundError, lambda: widgets.get(name="one", namespace=namespace))
    widgets.delete(namespace=namespace, label_selector="!nothing")
    expect("left", widgets.get(namespace=namespace).items, [])


def main(kubeconfig, namespace):
    api_client = config.new_client_from_config(kubeconfig)
    typed(api_client, namespace)
    discovered(api_client, namespace)
    print("every answer was as expected")


main(*sys.argv[1:])
