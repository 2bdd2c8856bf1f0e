#!/usr/bin/env python3
"""Writes what a real kube-apiserver answers into objects.json and definitions.json.

Usage: ETCD=path/to/etcd KUBE_APISERVER=path/to/kube-apiserver record.py [CASE-PREFIX]

(tests/peers/kubernetes/build.sh prints those paths.) Both programs run in a temporary folder and
are ended again. Each case keeps its inputs; its "answers" are replaced. With a prefix, only cases
whose name begins with it are recorded anew.
"""

import concurrent.futures
import json
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).parent
DEADLINE_SECONDS = 120
PARALLEL = 4
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Server:
    """etcd and kube-apiserver in a folder of their own."""

    def __init__(self, folder):
        client, peer, self.port = free_port(), free_port(), free_port()
        self.context = ssl._create_unverified_context()
        key = folder / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        (folder / "tokens.csv").write_text('record,admin,1,"system:masters"\n')
        url = f"http://127.0.0.1:{client}"
        self.log = open(folder / "log", "wb")
        self.programs = [self.start(program) for program in (
            [os.environ["ETCD"], "--data-dir", folder / "etcd", "--unsafe-no-fsync",
             "--listen-client-urls", url, "--advertise-client-urls", url,
             "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--log-level", "error"],
            [os.environ["KUBE_APISERVER"], "--etcd-servers", url, "--cert-dir", folder / "certs",
             "--secure-port", str(self.port), "--bind-address", "127.0.0.1",
             "--service-account-key-file", key, "--service-account-signing-key-file", key,
             "--service-account-issuer", "https://record", "--authorization-mode", "RBAC",
             "--token-auth-file", folder / "tokens.csv",
             "--service-cluster-ip-range", "10.0.0.0/24",
             "--disable-admission-plugins", "ServiceAccount"],
        )]
        self.wait(lambda: self.ask("GET", "/readyz")[0] == 200, "the server to be ready")

    def start(self, program):
        return subprocess.Popen(program, stdout=self.log, stderr=self.log)

    def stop(self):
        for program in reversed(self.programs):
            program.terminate()
            program.wait()

    def wait(self, condition, what):
        end = time.monotonic() + DEADLINE_SECONDS
        while not condition():
            if time.monotonic() > end:
                raise SystemExit(f"waited too long for {what}")
            time.sleep(0.05)

    def ask(self, method, path, body=None):
        """The status code, the decoded body and the warnings."""
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": "Bearer record", "Content-Type": "application/json"})
        try:
            answer = urllib.request.urlopen(request, context=self.context)
        except urllib.error.HTTPError as refused:
            answer = refused
        except OSError:
            return 0, None, []
        text = answer.read()
        warnings = [line.split('"', 1)[1][:-1].replace('\\"', '"').replace("\\\\", "\\")
                    for line in answer.headers.get_all("Warning", [])]
        try:
            return answer.status, json.loads(text), sorted(warnings)
        except ValueError:
            return answer.status, text.decode(), sorted(warnings)


def refusal(code, status):
    causes = (status.get("details") or {}).get("causes")
    if code == 422 and causes:
        told = [[c.get("field", ""), c.get("reason", ""), c["message"]] for c in causes]
        return {"code": code, "causes": sorted(told)}
    return {"code": code, "message": status["message"]}


def answer_of(code, body, warnings):
    if code >= 300:
        answer = refusal(code, body)
    else:
        answer = {"code": code, "object": {
            key: value for key, value in body.items()
            if key not in ("apiVersion", "kind", "metadata")}}
    if warnings:
        answer["warnings"] = warnings
    return answer


def crd_of(name, schema, status):
    version = {"name": "v1", "served": True, "storage": True,
               "schema": {"openAPIV3Schema": schema}}
    if status:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}s.record.test"},
        "spec": {"group": "record.test", "scope": "Cluster", "versions": [version],
                 "names": {"kind": name.capitalize(), "plural": f"{name}s", "singular": name}},
    }


def record_objects(server, index, case):
    kind = f"case{index}"
    url = f"/apis/record.test/v1/{kind}s"
    has_status = case.get("status", False)
    state = {"generation": 0}

    def whole(fields):
        return {"apiVersion": "record.test/v1", "kind": kind.capitalize(),
                "metadata": {"name": "probe"}, **fields}

    def install(schema):
        """Waits until the server uses the schema: its description tells one from the next."""
        state["generation"] += 1
        schema = dict(schema, description=f"generation {state['generation']}")
        crd = crd_of(kind, schema, has_status)
        path = f"{CRDS}/{crd['metadata']['name']}"
        code, old, _ = server.ask("GET", path)
        if code == 200:
            crd["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
            code, body, _ = server.ask("PUT", path, crd)
        else:
            code, body, _ = server.ask("POST", CRDS, crd)
        if code >= 300:
            return refusal(code, body)

        def used():
            _, document, _ = server.ask("GET", "/openapi/v3/apis/record.test/v1")
            text = document if isinstance(document, str) else json.dumps(document)
            here = f"/apis/record.test/v1/{kind}s" in text
            return here and served(f"generation {state['generation']}", document)

        def served(word, document):
            schemas = document["components"]["schemas"].values()
            kinds = [s for s in schemas if any(
                g["kind"] == kind.capitalize()
                for g in s.get("x-kubernetes-group-version-kind", []))]
            return any(s.get("description") == word for s in kinds)

        server.wait(used, f"the schema of {case['name']}")
        return None

    answers = {"creates": [], "updates": []}
    refused = install(case["schema"])
    if refused:
        case["answers"] = {"schema": refused}
        return
    for fields in case.get("creates", []):
        answer = answer_of(*server.ask("POST", url, whole(fields)))
        server.ask("DELETE", f"{url}/probe")
        answers["creates"].append(answer)
    for old, new in case.get("updates", []):
        if "before" in case:
            install(case["before"])
        code, body, _ = server.ask("POST", url, whole(old))
        if code != 201:
            raise SystemExit(f"{case['name']}: the old object: {body['message']}")
        if "before" in case:
            install(case["schema"])
        new = whole(new)
        new["metadata"]["resourceVersion"] = body["metadata"]["resourceVersion"]
        sub = "/status" if has_status else ""
        answers["updates"].append(answer_of(*server.ask("PUT", f"{url}/probe{sub}", new)))
        server.ask("DELETE", f"{url}/probe")
    server.ask("DELETE", f"{CRDS}/{kind}s.record.test")
    case["answers"] = {key: value for key, value in answers.items() if value}


def record_definition(server, _index, case):
    crd = case["crd"]
    path = f"{CRDS}/{crd.get('metadata', {}).get('name', '')}"
    answer = answer_of(*server.ask("POST", CRDS, crd))
    if "update" in case and answer["code"] == 201:
        def established():
            _, live, _ = server.ask("GET", path)
            conditions = live.get("status", {}).get("conditions") or []
            return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
        server.wait(established, f"{case['name']} to be established")
        _, live, _ = server.ask("GET", path)
        update = json.loads(json.dumps(case["update"]))
        update["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        answer = answer_of(*server.ask("PUT", path, update))
    if answer["code"] < 300:
        answer["object"].get("status", {}).pop("conditions", None)
        answer["object"].get("status", {}).pop("observedGeneration", None)
    server.ask("DELETE", path)
    case["answer"] = answer


def record(server, name, each, prefix):
    path = HERE / name
    cases = json.loads(path.read_text())
    wanted = [(i, c) for i, c in enumerate(cases) if c["name"].startswith(prefix)]
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        for _ in pool.map(lambda pair: each(server, *pair), wanted):
            pass
    # One line a case, so that a difference shows as the case it is in.
    lines = [json.dumps(case, ensure_ascii=False, sort_keys=True) for case in cases]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def main():
    prefix = sys.argv[1] if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(pathlib.Path(folder))
        try:
            record(server, "definitions.json", record_definition, prefix)
            record(server, "objects.json", record_objects, prefix)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
