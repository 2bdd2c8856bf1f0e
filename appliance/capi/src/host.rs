//! Host names of the repository.

use std::net::IpAddr;

/// Beginning of the host names that `clusterctl` accepts for a GitLab registry.
const GITLAB: &str = "gitlab.";

/// Returns the host name by which `clusterctl` reaches the box that has this name.
pub fn gitlab_name(name: &str) -> String {
    let prefix = if name.starts_with(GITLAB) { "" } else { GITLAB };
    format!("{prefix}{name}")
}

/// Returns the names of the box's certificate with a `gitlab.` name for each of its host names.
pub fn with_gitlab_names(mut names: Vec<String>) -> Vec<String> {
    let is_host = |name: &&String| {
        name.parse::<IpAddr>().is_err() && *name != "localhost" && !name.starts_with(GITLAB)
    };
    let added: Vec<String> = names.iter().filter(is_host).map(|name| gitlab_name(name)).collect();
    names.extend(added);
    names
}

/// Returns the names of the box by which `clusterctl` reaches its repository.
pub fn gitlab_names(names: &[String]) -> Vec<String> {
    let mut found = with_gitlab_names(names.to_vec());
    found.retain(|name| name.starts_with(GITLAB));
    found
}

#[cfg(test)]
mod tests {
    use super::{gitlab_names, with_gitlab_names};

    #[test]
    fn a_host_name_has_a_name_for_clusterctl() {
        let given = ["127.0.0.1", "localhost", "tinbox.local", "fd00::1", "gitlab.box.example"];
        let names = with_gitlab_names(given.map(str::to_owned).to_vec());
        assert_eq!(names, [&given[..], &["gitlab.tinbox.local"]].concat());
        let own = gitlab_names(&given.map(str::to_owned));
        assert_eq!(own, ["gitlab.box.example", "gitlab.tinbox.local"]);
    }
}
