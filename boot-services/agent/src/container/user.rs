//! User of a container's program: numbers, or names from the image's own `/etc/passwd` and
//! `/etc/group`, interpreted as Docker does.

/// Maximum bytes read of `/etc/passwd` and of `/etc/group`.
pub const FILE_BYTES: u64 = 1 << 20;
/// Maximum number of supplementary groups; further groups are ignored.
const GROUPS: usize = 256;

/// User, groups and home directory of a container's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Numeric user id; 0 is root.
    pub uid: u32,
    /// Numeric id of the primary group.
    pub gid: u32,
    /// Numeric ids of the supplementary groups, at most 256.
    pub groups: Vec<u32>,
    /// Home directory, the value of `HOME`.
    pub home: String,
}

/// Line of `/etc/passwd`, split into fields.
struct Entry<'a> {
    name: &'a str,
    uid: u32,
    gid: u32,
    home: &'a str,
}

impl Account {
    /// Resolves `USER[:GROUP]`, each a name or a number, with the image's files. Empty is root.
    ///
    /// # Errors
    /// The image has no user or group of this name.
    pub fn find(user: &str, passwd: &str, group: &str) -> Result<Self, String> {
        let (user, own_group) = match user.split_once(':') {
            Some((user, group)) => (user, Some(group).filter(|group| !group.is_empty())),
            None => (user, None),
        };
        let user = if user.is_empty() { "0" } else { user };
        let number = user.parse().ok();
        let entry = passwd.lines().filter_map(entry).find(|entry| match number {
            Some(uid) => entry.uid == uid,
            None => entry.name == user,
        });
        let uid = number.or(entry.as_ref().map(|entry| entry.uid));
        let uid = uid.ok_or_else(|| format!("its /etc/passwd has no user {user:?}"))?;
        let gid = match own_group {
            None => entry.as_ref().map_or(0, |entry| entry.gid),
            Some(name) => match name.parse() {
                Ok(gid) => gid,
                Err(_) => groups(group)
                    .find_map(|(known, gid, _)| (known == name).then_some(gid))
                    .ok_or_else(|| format!("its /etc/group has no group {name:?}"))?,
            },
        };
        let mut others = Vec::new();
        if let (Some(entry), None) = (&entry, own_group) {
            let is_in = |members: &str| members.split(',').any(|it| it.trim() == entry.name);
            let of = groups(group).filter(|(_, other, members)| *other != gid && is_in(members));
            others.extend(of.map(|(_, gid, _)| gid).take(GROUPS));
        }
        let home = entry.map(|entry| entry.home).filter(|home| home.starts_with('/'));
        Ok(Self { uid, gid, groups: others, home: home.unwrap_or("/").to_owned() })
    }
}

fn entry(line: &str) -> Option<Entry<'_>> {
    let mut fields = line.split(':');
    let (name, _password) = (fields.next()?, fields.next()?);
    let (uid, gid) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Entry { name, uid, gid, home: fields.nth(1).unwrap_or_default() })
}

/// Parses `/etc/group`: name, id and comma-separated members of each group.
fn groups(text: &str) -> impl Iterator<Item = (&str, u32, &str)> {
    text.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, _password) = (fields.next()?, fields.next()?);
        let gid = fields.next()?.parse().ok()?;
        Some((name, gid, fields.next().unwrap_or_default()))
    })
}

#[cfg(test)]
mod tests {
    use super::Account;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\n# nonsense\n\nbad:x:no:1::/:\n\
        web:x:33:34:a,b:/srv/web:/bin/false\n77:x:5:5::/named-77:\n";
    const GROUP: &str =
        "root:x:0:\nwheel:x:10:root,web\nweb:x:34:web\ndisk:x:6:web,other\nbroken\n";

    #[test]
    fn names_and_numbers_are_found_as_docker_finds_them() {
        for (user, uid, gid, groups, home) in [
            ("", 0, 0, &[10][..], "/root"),
            ("root", 0, 0, &[10], "/root"),
            ("0", 0, 0, &[10], "/root"),
            ("web", 33, 34, &[10, 6], "/srv/web"),
            ("33", 33, 34, &[10, 6], "/srv/web"),
            ("web:disk", 33, 6, &[], "/srv/web"),
            ("web:99", 33, 99, &[], "/srv/web"),
            ("web:", 33, 34, &[10, 6], "/srv/web"),
            (":disk", 0, 6, &[], "/root"),
            ("1000", 1000, 0, &[], "/"),
            ("1000:1000", 1000, 1000, &[], "/"),
            ("77", 77, 0, &[], "/"),
        ] {
            let home = home.to_owned();
            let wanted = Account { uid, gid, groups: groups.to_vec(), home };
            assert_eq!(Account::find(user, PASSWD, GROUP), Ok(wanted), "{user:?}");
        }
    }

    #[test]
    fn a_name_that_is_not_there_is_said() {
        let error = Account::find("nobody", PASSWD, GROUP).unwrap_err();
        assert_eq!(error, "its /etc/passwd has no user \"nobody\"");
        let error = Account::find("web:nogroup", PASSWD, GROUP).unwrap_err();
        assert_eq!(error, "its /etc/group has no group \"nogroup\"");
        assert!(Account::find("-1", "", "").is_err());
        assert!(Account::find("4294967296", "", "").is_err());
        assert_eq!(Account::find("", "", "").unwrap().home, "/");
    }
}
