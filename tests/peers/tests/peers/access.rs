//! Permissions of the box and of a real kube-apiserver, queried by the same kubectl: both outputs
//! must be equal to the letter.

use std::path::Path;

use peers::kubeconfig::{self, Identity};
use peers::{Cluster, ClusterConfig, Kubectl, Printed, Tinboxd, built};
use stdx::testing::PATIENCE;

/// A server, with the parts that differ between servers.
struct Place {
    kubectl: Kubectl,
    url: String,
    authority: std::path::PathBuf,
    folder: std::path::PathBuf,
}

const VIEWER: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: reader }
rules:
- { apiGroups: [""], resources: [configmaps], verbs: [get, list] }
- { apiGroups: [""], resources: [secrets], resourceNames: [one], verbs: [get] }
- { apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings], verbs: [create, get] }
- { nonResourceURLs: [/metrics], verbs: [get] }
"#;

const GREEDY: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: greedy, namespace: default }
rules:
- { apiGroups: [""], resources: [secrets, configmaps], verbs: [get, delete] }
"#;

const BROKEN: [&str; 4] = [
    r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: broken }
rules: [ { verbs: [get] } ]
"#,
    r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: broken, namespace: default }
rules: [ { verbs: [get], nonResourceURLs: [/x] } ]
"#,
    r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: broken }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: x }
subjects: [ { kind: ServiceAccount, name: robot } ]
"#,
    r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: reader, namespace: default }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: other }
subjects: [ { kind: User, name: jane, apiGroup: rbac.authorization.k8s.io } ]
"#,
];

/// Commands of the administrator, with their standard input.
const BY_ADMIN: [(&str, &str); 30] = [
    ("auth whoami", ""),
    ("auth can-i * *", ""),
    ("create serviceaccount robot", ""),
    ("create -f -", VIEWER),
    ("create clusterrolebinding reader --clusterrole=reader --serviceaccount=default:robot", ""),
    ("create rolebinding reader --clusterrole=reader --user=jane", ""),
    ("create role maker --verb=create --resource=configmaps", ""),
    ("create role maker --verb=create --resource=configmaps", ""),
    ("create -f -", BROKEN[0]),
    ("create -f -", BROKEN[1]),
    ("create -f -", BROKEN[2]),
    ("replace -f -", BROKEN[3]),
    ("auth can-i list configmaps --as=system:serviceaccount:default:robot", ""),
    ("auth can-i list secrets --as=system:serviceaccount:default:robot", ""),
    ("auth can-i get secrets/one --as=system:serviceaccount:default:robot", ""),
    ("auth can-i get secrets/two --as=system:serviceaccount:default:robot", ""),
    ("auth can-i get /metrics --as=system:serviceaccount:default:robot", ""),
    ("auth can-i create configmaps --as=jane -n default", ""),
    ("auth can-i list configmaps --as=jane -A", ""),
    ("auth whoami --as=jane --as-group=dev --as-uid=7", ""),
    ("auth whoami --as=system:serviceaccount:default:robot", ""),
    ("get configmaps --as=nobody", ""),
    ("get configmaps -A --as=nobody", ""),
    ("get configmap one --as=nobody", ""),
    ("get --raw /metrics --as=nobody", ""),
    ("delete secret one --as=jane", ""),
    ("create token none", ""),
    ("create token robot --duration=1m", ""),
    ("create token robot --bound-object-kind=Secret --bound-object-name=none", ""),
    ("describe clusterrole reader", ""),
];

/// Commands of the ServiceAccount with its token.
const BY_ROBOT: [(&str, &str); 11] = [
    ("auth whoami -o jsonpath={.status.userInfo.username}", ""),
    ("auth whoami -o jsonpath={.status.userInfo.groups}", ""),
    ("get secrets", ""),
    ("get secret two", ""),
    ("create configmap mine --from-literal=a=b", ""),
    ("create -f -", GREEDY),
    ("create rolebinding mine --role=none --user=me", ""),
    ("create rolebinding mine --clusterrole=cluster-admin --user=me", ""),
    ("get configmaps --as=jane", ""),
    ("auth can-i create token", ""),
    ("auth can-i delete configmaps", ""),
];

impl Place {
    fn run(&self, kubectl: &Kubectl, line: &str, input: &str) -> Printed {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut printed = kubectl.run(&words, input).unwrap();
        // The URL differs between any two servers.
        for text in [&mut printed.out, &mut printed.err] {
            *text = text.replace(&self.url, "URL");
        }
        printed
    }

    /// A kubectl with another token.
    fn with(&self, name: &str, token: &str) -> Kubectl {
        let file = self.folder.join(format!("{name}.kubeconfig"));
        let identity = Identity::Token(token.trim());
        kubeconfig::write(&file, &self.url, &self.authority, &identity).unwrap();
        let program = built("kubectl", &["1.35"]).unwrap().remove(0);
        Kubectl::new(program, file, self.folder.join(name)).unwrap()
    }
}

fn compare(lines: &[(&str, &str)], real: (&Place, &Kubectl), ours: (&Place, &Kubectl)) {
    let mut differences = Vec::new();
    for (line, input) in lines {
        let there = real.0.run(real.1, line, input);
        let here = ours.0.run(ours.1, line, input);
        if here != there {
            differences.push(format!("kubectl {line}\n  real {there:?}\n  ours {here:?}"));
        }
    }
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn access_reads_the_same_as_on_a_real_server() {
    let config = ClusterConfig { controllers: true, ..ClusterConfig::default() };
    let cluster = Cluster::start(&config).unwrap();
    let tinboxd = Tinboxd::start().unwrap();
    let place = |kubectl, url: String, authority: &Path, folder: &Path| Place {
        kubectl,
        url,
        authority: authority.to_owned(),
        folder: folder.to_owned(),
    };
    let authority = cluster.folder().join("ca.crt");
    let url = cluster.url().to_owned();
    let real = place(cluster.kubectl().unwrap(), url, &authority, cluster.folder());
    let authority = tinboxd.folder().join("state/pki/ca.crt");
    let ours = place(tinboxd.kubectl().unwrap(), tinboxd.url(), &authority, tinboxd.folder());
    compare(&BY_ADMIN, (&real, &real.kubectl), (&ours, &ours.kubectl));
    let robots = [&real, &ours].map(|place| {
        let made = place.kubectl.run(&["create", "token", "robot"], "").unwrap();
        assert!(made.success, "{made:?}");
        place.with("robot", &made.out)
    });
    compare(&BY_ROBOT, (&real, &robots[0]), (&ours, &robots[1]));
    for place in [&real, &ours] {
        let gone = place.kubectl.run(&["delete", "serviceaccount", "robot"], "").unwrap();
        assert!(gone.success, "{gone:?}");
    }
    // A real server caches authenticated tokens for a few seconds.
    let unknown = |place: &Place, robot: &Kubectl| {
        peers::poll("the token to end", PATIENCE, || !place.run(robot, "auth whoami", "").success)
    };
    unknown(&real, &robots[0]).unwrap();
    unknown(&ours, &robots[1]).unwrap();
    compare(&[("get configmaps", "")], (&real, &robots[0]), (&ours, &robots[1]));
}
