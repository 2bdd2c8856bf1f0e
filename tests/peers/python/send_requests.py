"""Sends the requests of a table to the server of KUBECONFIG and prints each answer, without what
differs from run to run.

Usage: send_requests.py TABLE

A line of the table is a request: method, path, body. MERGE, STRATEGIC, JSON and APPLY are methods
of PATCH. `{rv}`, `{uid}` and `{continue}` in a path or a body stand for the last ones answered.
"""

import json
import os
import re
import sys

from kubernetes import config

TYPES = {
    "MERGE": "application/merge-patch+json",
    "STRATEGIC": "application/strategic-merge-patch+json",
    "JSON": "application/json-patch+json",
    "APPLY": "application/apply-patch+yaml",
}
# Values that differ from run to run, by their key.
VOLATILE = {
    "continue", "creationTimestamp", "deletionTimestamp", "resourceVersion", "time", "uid",
}
# What differs from run to run in the words of a refusal.
WORDS = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
    (r"in record \(\d+\)", "in record (REVISION)"),
    (r"(resource version|current): \d+", r"\1: REVISION"),
    (r'Invalid value: "\{.*\}": ', "Invalid value: OBJECT: "),
)


def words(text):
    """The text without what differs from run to run; a list of causes in order."""
    for rule, by in WORDS:
        text = re.sub(rule, by, text)
    start, bracket, causes = text.partition(" is invalid: [")
    if not bracket:
        return text
    return start + bracket + ", ".join(sorted(causes.rstrip("]").split(", "))) + "]"


def stable(value):
    """The value without what differs from run to run, and without what is empty."""
    if isinstance(value, dict):
        kept = {}
        for key, inner in value.items():
            if key == "managedFields":
                kept[key] = sorted(f"{one['manager']} {one['operation']}" for one in inner)
            elif key == "causes":
                kept[key] = sorted(map(stable, inner), key=json.dumps)
            elif key == "message":
                kept[key] = words(inner)
            elif inner in ("", {}):
                continue
            elif key in VOLATILE:
                kept[key] = key.upper()
            else:
                kept[key] = stable(inner)
        return kept
    if isinstance(value, list):
        return [stable(one) for one in value]
    return value


def answer(text, known):
    """The documents of an answer; what later requests refer to is noted in `known`."""
    documents = []
    for line in text.strip().split("\n") if "\n{" in text else [text]:
        try:
            value = json.loads(line)
        except ValueError:
            documents.append(re.sub(r"\s+", " ", line)[:200])
            continue
        meta = value.get("metadata") or {} if isinstance(value, dict) else {}
        for name, key in (("rv", "resourceVersion"), ("uid", "uid"), ("continue", "continue")):
            if meta.get(key):
                known[name] = meta[key]
        documents.append(json.dumps(stable(value), sort_keys=True))
    return " ".join(documents)


def main(table):
    client = config.new_client_from_config(os.environ["KUBECONFIG"])
    pool, host = client.rest_client.pool_manager, client.configuration.host
    headers = {
        one["key"]: one["value"] for one in client.configuration.auth_settings().values()
    }
    known = {"rv": "0", "uid": "", "continue": ""}
    with open(table, encoding="utf-8") as lines:
        requests = [line.rstrip("\n") for line in lines if re.match("[A-Z]+ /", line)]
    for request in requests:
        for name, value in known.items():
            request = request.replace("{" + name + "}", value)
        method, path, body = (request.split(" ", 2) + [""])[:3]
        kind = {"Content-Type": TYPES.get(method, "application/json")}
        reply = pool.request(
            "PATCH" if method in TYPES else method,
            host + path,
            body=body.encode() or None,
            headers={**headers, **kind, "Accept": "application/json"},
            retries=False,
            timeout=60,
        )
        print(reply.status, answer(reply.data.decode(), known))


main(*sys.argv[1:])
