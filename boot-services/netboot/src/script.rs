//! Renders iPXE scripts. Pure: a plan goes in, text comes out; the expected outputs are in
//! `tests/golden/`.
//!
//! The kernel command line has the same names in the same order as Smee's scripts
//! (`smee/internal/ipxe/script`). So HookOS and CaptainOS boot unchanged.
//!
//! Only commands of an iPXE of 2019 are used (the version in Debian). Every script prints its
//! actions on the screen. A script that could not boot ends with status 1, so that the firmware
//! continues with its next device instead of stopping at a menu.

use std::net::IpAddr;

use stdx::MacAddr;

use crate::{AgentBoot, Boot, Plan};

pub mod pxelinux;

/// Number of retries of a download or boot that failed.
const RETRIES: u32 = 4;
/// Delay between retries, in seconds.
const RETRY_DELAY: u32 = 2;

/// Kernel arguments that HookOS expects besides the fields of [`AgentBoot`]. Add them to
/// [`AgentBoot::args`] when the kernel is HookOS's; the box's own agent needs none of them. Their
/// position is the one in Smee's scripts, before the initramfs' name.
pub const HOOK_ARGS: [&str; 3] =
    ["modules=loop,squashfs,sd-mod,usb-storage", "intel_iommu=on", "iommu=pt"];

/// Consoles of an unknown machine, from Smee's static script.
const UNKNOWN_CONSOLES: [&str; 6] =
    ["tty1", "tty2", "ttyAMA0,115200", "ttyAMA1,115200", "ttyS0,115200", "ttyS1,115200"];

/// Paths of loaders on a disk, for firmware that does not continue with the disk by itself. The
/// first is the path for removable media, which most installers also write. The others are for
/// systems that do not write it.
const DISK_LOADERS: [&str; 5] = [
    r"\EFI\BOOT\BOOTX64.EFI",
    r"\EFI\systemd\systemd-bootx64.efi",
    r"\EFI\debian\shimx64.efi",
    r"\EFI\ubuntu\shimx64.efi",
    r"\EFI\Microsoft\Boot\bootmgfw.efi",
];

/// Returns the iPXE script for a plan.
pub fn render(plan: &Plan) -> String {
    let name = format!("{} ({})", word(&plan.hardware), plan.mac);
    match &plan.boot {
        Boot::Agent(boot) => agent(&name, plan.mac, boot),
        Boot::Chain { url } => format!(
            "#!ipxe\n\necho Tinbox: {name} goes on to {url}\nchain --autofree {url} || exit 1\n",
            url = word(url)
        ),
        Boot::Script { contents } if contents.starts_with("#!ipxe") => contents.clone(),
        Boot::Script { contents } => format!("#!ipxe\n{contents}"),
        Boot::LocalDisk | Boot::NotAllowed => local_disk(&name),
        Boot::DiskLoader => disk_loader(&name),
    }
}

/// Returns the common script for unknown machines. iPXE fills in the hardware address and, where
/// file names of `boot` contain `${arch}`, the architecture. As in Smee's static script, the
/// command line has no facility, no VLAN and no unverified TLS.
pub fn unknown_machine(boot: &AgentBoot) -> String {
    let mut line = Vec::new();
    if let Some(host) = &boot.syslog_host {
        line.push(format!("syslog_host={}", word(host)));
    }
    line.push(format!("grpc_authority={}", word(&boot.grpc_authority)));
    line.push(format!("tinkerbell_tls={}", boot.tls));
    line.push("worker_id=${mac}".to_owned());
    line.push("hw_addr=${mac}".to_owned());
    line.extend(UNKNOWN_CONSOLES.map(|console| format!("console={console}")));
    line.extend(arguments(&boot.args));
    line.push(format!("initrd={}", word(&boot.initrd)));
    // iPXE may be a 32-bit build on a 64-bit machine; only 64-bit kernels are served.
    let arch = "set arch ${buildarch}\n\
                iseq ${arch} i386 && set arch x86_64 ||\n\
                iseq ${arch} arm32 && set arch aarch64 ||\n\
                iseq ${arch} arm64 && set arch aarch64 ||\n";
    start_agent("an unknown machine (${mac})", arch, boot, &line.join(" "))
}

/// Returns `autoexec.ipxe`, which gets an address and then chains to the machine's script. iPXE
/// runs this file before its own boot sequence if the file lies beside iPXE's binary. `mac` is the
/// machine if its IP address identifies it; otherwise iPXE inserts the interface that got an
/// address.
pub fn autoexec(script_base: &str, mac: Option<MacAddr>) -> String {
    let mac = mac.map_or("${netX/mac}".to_owned(), |mac| mac.to_string());
    format!(
        "#!ipxe\n\n\
         echo Tinbox: asking what to boot\n\
         isset ${{netX/ip}} || dhcp || exit 1\n\
         chain --autofree {base}/ipxe/script/{mac}/auto.ipxe || exit 1\n",
        base = word(script_base)
    )
}

/// Returns the kernel command line of the agent, in the order of Smee's script.
pub fn command_line(mac: MacAddr, boot: &AgentBoot) -> Vec<String> {
    let mut line = Vec::new();
    if let Some(vlan) = &boot.vlan_id {
        line.push(format!("vlan_id={}", word(vlan)));
    }
    // `facility` is the only field that may contain further arguments: `onprem
    // console=ttyS1,115200`.
    line.push(format!("facility={}", argument(&boot.facility)));
    let mut add = |name: &str, value: &str| line.push(format!("{name}={}", word(value)));
    if let Some(host) = &boot.syslog_host {
        add("syslog_host", host);
    }
    add("grpc_authority", &boot.grpc_authority);
    add("tinkerbell_tls", &boot.tls.to_string());
    add("tinkerbell_insecure_tls", &boot.insecure_tls.to_string());
    add("worker_id", &boot.worker_id);
    add("hw_addr", &mac.to_string());
    let is_hooks = |arg: &String| HOOK_ARGS.contains(&arg.as_str());
    line.extend(boot.args.iter().filter(|arg| is_hooks(arg)).cloned());
    // An EFI kernel requests its initramfs from iPXE under this name.
    line.push(format!("initrd={}", word(&boot.initrd)));
    line.extend(boot.consoles.iter().map(|console| format!("console={}", word(console))));
    line.extend(arguments(boot.args.iter().filter(|arg| !is_hooks(arg))));
    line
}

fn agent(name: &str, mac: MacAddr, boot: &AgentBoot) -> String {
    start_agent(name, "", boot, &command_line(mac, boot).join(" "))
}

/// Returns a script that fetches and boots the agent. `first` has commands that run before the
/// download.
fn start_agent(name: &str, first: &str, boot: &AgentBoot, line: &str) -> String {
    let url = word(&boot.base_url);
    let (kernel, initrd) = (word(&boot.kernel), word(&boot.initrd));
    let syslog = syslog(boot.syslog_host.as_deref());
    // iPXE's only loop is `a && goto b || iseq i n && goto e || inc i`: each command depends on the
    // status of the previous one.
    let retry = |label: &str, what: &str| {
        format!(
            "iseq ${{idx}} ${{retries}} && goto {label}_error ||\n\
             inc idx\n\
             echo Tinbox: {what} failed, once more in ${{retry_delay}} s\n\
             sleep ${{retry_delay}}\n\
             goto retry_{label}\n"
        )
    };
    format!(
        "#!ipxe\n\n\
         {syslog}\
         echo Tinbox: {name} starts the agent from {url}\n\
         {first}\
         set retries:int32 {RETRIES}\n\
         set retry_delay:int32 {RETRY_DELAY}\n\n\
         set idx:int32 0\n\
         :retry_kernel\n\
         kernel {url}/{kernel} {line} && goto initrd ||\n\
         {kernel_retry}\n\
         :initrd\n\
         set idx:int32 0\n\
         :retry_initrd\n\
         initrd {url}/{initrd} && goto boot ||\n\
         {initrd_retry}\n\
         :boot\n\
         set idx:int32 0\n\
         :retry_boot\n\
         boot ||\n\
         {boot_retry}\n\
         :kernel_error\n\
         echo Tinbox: the kernel {kernel} could not be fetched\n\
         goto give_up\n\
         :initrd_error\n\
         echo Tinbox: the initramfs {initrd} could not be fetched\n\
         goto give_up\n\
         :boot_error\n\
         echo Tinbox: the kernel could not be started\n\
         :give_up\n\
         imgfree ||\n\
         exit 1\n",
        kernel_retry = retry("kernel", "fetching the kernel"),
        initrd_retry = retry("initrd", "fetching the initramfs"),
        boot_retry = retry("boot", "starting the kernel"),
    )
}

/// Returns the commands that set the syslog server. iPXE accepts only an IP address
/// (ipxe.org/cfg/syslog), and a build without syslog continues.
fn syslog(host: Option<&str>) -> String {
    match host.map(word) {
        None => String::new(),
        Some(host) if host.parse::<IpAddr>().is_ok() => format!("set syslog {host} ||\n"),
        Some(host) => format!("nslookup syslogserver {host} && set syslog ${{syslogserver}} ||\n"),
    }
}

/// Returns the script that boots the disk. On a BIOS the only way to the disk is to boot its first
/// drive. UEFI firmware tries its next boot option when a loader ends with an error.
fn local_disk(name: &str) -> String {
    format!(
        "#!ipxe\n\n\
         echo Tinbox: nothing to install on {name}, going on to its disk\n\
         iseq ${{platform}} efi && exit 1 ||\n\
         sanboot --no-describe --drive 0x80 || exit 1\n"
    )
}

/// Returns the script for UEFI firmware that stops at a loader's error, in a menu or with a new
/// network request. iPXE of 2020 and later searches every drive for the disk's own loader. An older
/// iPXE cannot, and ends with the error.
fn disk_loader(name: &str) -> String {
    let tries =
        DISK_LOADERS.map(|path| format!("sanboot --no-describe --drive 0 --filename {path} ||\n"));
    format!(
        "#!ipxe\n\n\
         echo Tinbox: nothing to install on {name}, starting the loader on its disk\n\
         iseq ${{platform}} efi || goto bios\n\
         {tries}\
         exit 1\n\
         :bios\n\
         sanboot --no-describe --drive 0x80 || exit 1\n",
        tries = tries.concat()
    )
}

/// Returns text for one word of a script's line, without the characters that would end the word or
/// the line. Expansions such as `${net0/mac}` stay, because operators use them.
fn word(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && !c.is_whitespace()).collect()
}

fn arguments<'a>(args: impl IntoIterator<Item = &'a String>) -> impl Iterator<Item = String> {
    args.into_iter().map(|arg| argument(arg)).filter(|arg| !arg.is_empty())
}

/// Returns `text` as a kernel argument: with spaces, but without line ends, and without words that
/// iPXE reads as the end of a command.
fn argument(text: &str) -> String {
    let words = text.split(|c: char| c.is_control() || c.is_whitespace());
    let kept: Vec<&str> =
        words.filter(|w| !w.is_empty() && !matches!(*w, "&&" | "||" | ";")).collect();
    kept.join(" ")
}

#[cfg(test)]
mod tests;
