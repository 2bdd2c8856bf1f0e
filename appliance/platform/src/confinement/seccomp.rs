//! System calls that the box never makes. The kernel denies them with `EPERM`.
//!
//! The filter is a deny list. An allow list would break an updated box, because another release of
//! the allocator or the C library makes other calls.

use std::io;

use seccompiler::SeccompCmpArgLen::Dword;
use seccompiler::SeccompCmpOp::{Eq, Ge, Gt, Le, MaskedEq, Ne};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

use crate::Error;

/// System calls that execute a program.
const PROGRAMS: [libc::c_long; 2] = [libc::SYS_execve, libc::SYS_execveat];
/// System calls that access other processes, kernel code, mounts, namespaces and keys, or large
/// interfaces that no part of the box uses.
const DENIED: [libc::c_long; 51] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_personality,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_remap_file_pages,
];
/// Further denied system calls, which exist on x86-64 only.
#[cfg(target_arch = "x86_64")]
const OWN: [libc::c_long; 5] =
    [libc::SYS_modify_ldt, libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_uselib, libc::SYS__sysctl];
#[cfg(not(target_arch = "x86_64"))]
const OWN: [libc::c_long; 0] = [];

/// `BPF_LD | BPF_W | BPF_ABS`, `BPF_JMP | BPF_JGE | BPF_K`, `BPF_RET | BPF_K` (linux/bpf_common.h).
const LOAD: u16 = 0x20;
const JUMP_IF_GREATER_OR_EQUAL: u16 = 0x35;
const RETURN: u16 = 0x06;
/// Bit of every x32 system call (asm/unistd.h). The filter sees x32 calls with the architecture of
/// x86-64.
const X32: u32 = 0x4000_0000;

/// Installs the filters permanently for this thread and all other threads of the process.
pub(super) fn enter(may_start_programs: bool) -> Result<(), Error> {
    let filters = filters(may_start_programs).and_then(|filters| {
        filters.iter().try_for_each(|filter| {
            seccompiler::apply_filter_all_threads(filter).map_err(io::Error::other)
        })
    });
    filters.map_err(Error::io("filter system calls"))
}

/// Returns the filters in the order of installation. A call is denied if any filter denies it.
fn filters(may_start_programs: bool) -> io::Result<[BpfProgram; 2]> {
    let programs = if may_start_programs { &[] } else { PROGRAMS.as_slice() };
    let denied = DENIED.iter().chain(&OWN).chain(programs);
    let mut rules: Rules = denied.map(|call| (*call, Vec::new())).collect();
    rules.push((libc::SYS_socket, sockets()?));
    let new_user = number(libc::CLONE_NEWUSER);
    rules.push((libc::SYS_clone, vec![all(&[(0, MaskedEq(new_user), new_user)])?]));
    rules.push((libc::SYS_ioctl, vec![all(&[(1, Eq, libc::TIOCSTI)])?]));
    let mut denied = program(rules, libc::EPERM)?;
    // Calls of the x32 ABI have other numbers than those in the deny list.
    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned()).into();
    let own = [
        sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_GREATER_OR_EQUAL, jt: 0, jf: 1, k: X32 },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: refuse },
    ];
    if cfg!(target_arch = "x86_64") {
        denied.splice(..0, own);
    }
    // The flags of clone3 are in memory, which a filter cannot read. With ENOSYS, the C library
    // uses clone(2).
    let absent = program(vec![(libc::SYS_clone3, Vec::new())], libc::ENOSYS)?;
    Ok([absent, denied])
}

type Rules = Vec<(libc::c_long, Vec<SeccompRule>)>;

/// Denies sockets except UNIX, IPv4, IPv6, packet sockets, and netlink sockets for routing.
fn sockets() -> io::Result<Vec<SeccompRule>> {
    let family = |family: libc::c_int| number(family);
    Ok(vec![
        all(&[(0, Gt, family(libc::AF_INET)), (0, SeccompCmpOp::Lt, family(libc::AF_INET6))])?,
        all(&[(0, Gt, family(libc::AF_INET6)), (0, SeccompCmpOp::Lt, family(libc::AF_NETLINK))])?,
        all(&[
            (0, Ge, family(libc::AF_NETLINK)),
            (0, Le, family(libc::AF_NETLINK)),
            (2, Ne, number(libc::NETLINK_ROUTE)),
        ])?,
        all(&[(0, Gt, family(libc::AF_PACKET))])?,
    ])
}

fn number(value: libc::c_int) -> u64 {
    u64::from(value.cast_unsigned())
}

/// Returns a rule that matches if all comparisons are true. A comparison starts with the index of
/// the system call's argument.
fn all(comparisons: &[(u8, SeccompCmpOp, u64)]) -> io::Result<SeccompRule> {
    let condition = |(index, operator, value): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*index, Dword, operator.clone(), *value)
    };
    let conditions: Result<Vec<_>, _> = comparisons.iter().map(condition).collect();
    conditions.and_then(SeccompRule::new).map_err(io::Error::other)
}

fn program(rules: Rules, errno: libc::c_int) -> io::Result<BpfProgram> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let refuse = SeccompAction::Errno(errno.cast_unsigned());
    let rules = rules.into_iter().collect();
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)
        .and_then(BpfProgram::try_from)
        .map_err(io::Error::other)
}
