//! Keys of a workflow document and settings of the box's actions; suggestions for misspelled names.

/// Maximum edit distance between a misspelled key and its suggestion, by the length of the key.
const fn slips(length: usize) -> usize {
    match length {
        0..=2 => 0,
        3..=4 => 1,
        5..=7 => 2,
        _ => 3,
    }
}

/// Maximum length in bytes of a key that is compared with known keys.
const COMPARED_MAX: usize = 64;

/// Level of a map in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Document,
    Task,
    Action,
    Namespaces,
}

impl Level {
    const ALL: [Self; 4] = [Self::Document, Self::Task, Self::Action, Self::Namespaces];

    pub fn keys(self) -> &'static [&'static str] {
        match self {
            // Upstream's struct has `id`, which nothing reads.
            Self::Document => &["version", "name", "global_timeout", "tasks", "id"],
            Self::Task => &["name", "worker", "volumes", "environment", "actions"],
            Self::Action => &[
                "name",
                "image",
                "timeout",
                "command",
                "volumes",
                "environment",
                "pid",
                "namespaces",
                "retries",
                "retry-wait",
                "on-failure",
                "on-timeout",
            ],
            Self::Namespaces => &["network", "pid"],
        }
    }

    pub fn unknown(self) -> &'static str {
        match self {
            Self::Document => "not a key of a workflow document",
            Self::Task => "not a key of a task",
            Self::Action => "not a key of an action",
            Self::Namespaces => "not a key of namespaces",
        }
    }
}

/// Names in other schemas (upstream's v1alpha2, Kubernetes, Docker), in the form of [`plain`], each
/// with the key of this schema.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("agent", "worker"),
    ("agentid", "worker"),
    ("args", "command"),
    ("arguments", "command"),
    ("cmd", "command"),
    ("env", "environment"),
    ("envs", "environment"),
    ("globaltimeoutseconds", "global_timeout"),
    ("id", "name"),
    ("mounts", "volumes"),
    ("onerror", "on-failure"),
    ("retry", "retries"),
    ("retrywaitseconds", "retry-wait"),
    ("steps", "actions"),
    ("timeoutseconds", "timeout"),
    ("timeoutsecs", "timeout"),
    ("volume", "volumes"),
    ("workflowtimeout", "global_timeout"),
];

/// Environment variables of the box's actions. A row begins with the image's repository name.
pub const SETTINGS: &[(&str, &[&str])] = &[
    ("image2disk", IMAGE),
    ("qemuimg2disk", IMAGE),
    ("oci2disk", IMAGE),
    ("osie-installer", IMAGE),
    ("growpart", &["DEST_DISK", "PARTITION"]),
    (
        "writefile",
        &["DEST_DISK", "DEST_PATH", "FS_TYPE", "CONTENTS", "UID", "GID", "MODE", "DIRMODE"],
    ),
    (
        "archive2disk",
        &[
            "ARCHIVE_URL",
            "ARCHIVE_TYPE",
            "DEST_DISK",
            "DEST_PATH",
            "FS_TYPE",
            "TARFILE_CHECKSUM",
            "INSECURE_NO_TARFILE_CHECKSUM_VERIFICATION",
            "HTTP_CLIENT_TIMEOUT_MINUTES",
        ],
    ),
    (
        "cexec",
        &[
            "BLOCK_DEVICE",
            "FS_TYPE",
            "CHROOT",
            "CMD_LINE",
            "DEFAULT_INTERPRETER",
            "UPDATE_RESOLV_CONF",
        ],
    ),
    ("disk-wipe", &["BLOCK_DEVICE", "WIPE_METHOD"]),
    ("storage", &["STORAGE"]),
    ("rootio", &["MIRROR_HOST", "METADATA_SERVICE_PORT", "MBR"]),
    ("grub2disk", &["GRUB_INSTALL_PATH", "GRUB_DISK", "GRUB_EFI_PARTITION", "FS_TYPE"]),
    ("syslinux", &["DEST_DISK", "DEST_PARTITION", "SYSLINUX_VERSION"]),
    ("slurp", &["SOURCE_DISK", "DEST_URL", "IMG_NAME", "COMPRESSED"]),
    (
        "kexec",
        &["BLOCK_DEVICE", "FS_TYPE", "KERNEL_PATH", "INITRD_PATH", "CMD_LINE", "GRUBCFG_PATH"],
    ),
    ("waitdaemon", &["IMAGE", "WAIT_SECONDS"]),
];

const IMAGE: &[&str] = &[
    "IMG_URL",
    "DEST_DISK",
    "COMPRESSED",
    "IMG_CHECKSUM",
    "IMG_CHECKSUM_URL",
    "IMG_SHA512",
    "IMG_SHA256",
    "IMG_MD5",
    "VERIFY_READ_BACK",
    "RETRY_ENABLED",
    "RETRY_DURATION_MINUTES",
    "PROGRESS_INTERVAL_SECONDS",
    "TEXT_LOGGING",
    "EXTRA_ARGS",
    "GROW_LAST_PARTITION",
    "REGISTRY_USERNAME",
    "REGISTRY_PASSWORD",
];

/// Returns a suggestion for the unknown `key` of a map at `level`; `None` if no key is similar.
pub(super) fn meant(level: Level, key: &str) -> Option<String> {
    let plain = plain(key)?;
    let of_level = |level: Level| {
        let same = |known: &&&str| self::plain(known).as_deref() == Some(&plain);
        level.keys().iter().find(same).copied()
    };
    if let Some(known) = of_level(level) {
        return Some(format!("did you mean {known}?"));
    }
    let other = OTHER_NAMES.iter().find(|(name, _)| *name == plain).map(|(_, known)| *known);
    if let Some(known) = other.filter(|known| level.keys().contains(known)) {
        return Some(format!("did you mean {known}?"));
    }
    if let Some(known) = nearest(level.keys().iter().copied(), &plain) {
        return Some(format!("did you mean {known}?"));
    }
    let elsewhere = Level::ALL.into_iter().filter(|other| *other != level);
    let place =
        elsewhere.filter(|other| of_level(*other).is_some()).find_map(|other| match other {
            Level::Document => Some("the top level"),
            Level::Task => Some("a task"),
            Level::Action => Some("an action"),
            Level::Namespaces => None,
        });
    place.map(|place| format!("it is a key of {place}"))
}

/// Returns the setting of these images that `key` misspells; `None` for a known setting.
///
/// An action may read any other variable, so only names similar to a setting are reported.
pub(super) fn meant_setting(images: &[&str], key: &str) -> Option<&'static str> {
    let known = || {
        let rows = images
            .iter()
            .filter_map(|image| SETTINGS.iter().find(|(name, _)| *name == repository(image)));
        rows.flat_map(|(_, settings)| settings.iter().copied())
    };
    if known().any(|setting| setting == key) {
        return None;
    }
    let plain = plain(key)?;
    let same = known().find(|setting| self::plain(setting).as_deref() == Some(&plain));
    same.or_else(|| nearest(known(), &plain))
}

/// Returns the last path component of an image reference, without tag and digest.
pub fn repository(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default();
    name.split(':').next().unwrap_or_default()
}

/// Returns the key in lower case without separators; `None` for a key longer than [`COMPARED_MAX`].
fn plain(key: &str) -> Option<String> {
    let marks = ['-', '_', ' ', '.'];
    (key.len() <= COMPARED_MAX)
        .then(|| key.chars().filter(|c| !marks.contains(c)).collect::<String>().to_lowercase())
}

fn nearest<'a>(known: impl Iterator<Item = &'a str>, plain: &str) -> Option<&'a str> {
    let distances = known.filter_map(|known| Some((distance(&self::plain(known)?, plain), known)));
    let allowed = slips(plain.chars().count());
    distances.filter(|(distance, _)| *distance <= allowed).min_by_key(|it| it.0).map(|it| it.1)
}

/// Returns the number of insertions, deletions, replacements and swaps of adjacent characters that
/// turn `a` into `b` (optimal string alignment distance).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before_last[j - 2] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
