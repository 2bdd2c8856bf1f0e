//! Resource figures of the example.

use super::before;
use crate::backup::StoredBackup;
use crate::view::{BackupTarget, Slot, System};

pub(super) fn system() -> System {
    let slot = |name: &str, running| Slot {
        name: name.into(),
        version: if running { "1.4.0".into() } else { "1.3.2".into() },
        good: true,
        running,
    };
    System {
        cpu_percent: Some(4),
        ram_used: 212 << 20,
        ram_total: 4 << 30,
        disk_used: 210 << 20,
        disk_total: 512 << 20,
        temperature: Some(52),
        flash_life_percent: Some(3),
        backup_at: Some(before(2 * 86_400)),
        backup_target: Some(BackupTarget {
            host: "nas.example".into(),
            at: Some(before(11 * 3600)),
            bytes: 212_000,
            ..BackupTarget::default()
        }),
        kept_backups: vec![StoredBackup {
            name: "2026-11-24T02-30-00Z.boxbak".into(),
            made: before(6 * 3600),
            bytes: 212_000,
            objects: 212,
            hardware: 12,
        }],
        internet: Some(true),
        slots: vec![slot("A", true), slot("B", false)],
        certificate_sha256: "7c1489f0a2c45e8b1c209f3388bd41d777ae02c6f1e94b0d52a86a13fe9076b5"
            .into(),
        confinement: "capabilities NET_BIND_SERVICE, NET_ADMIN, NET_RAW, SYS_TIME; no new \
                      privileges; seccomp; Landlock; no core dumps"
            .into(),
        accounts: 2,
        keys: 3,
    }
}
