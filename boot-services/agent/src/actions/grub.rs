//! Minimal parser of grub.cfg. Returns the kernel of the first menu entry: its first `linux` line,
//! and the `initrd` line after it.

use super::kexec::Kernel;

pub(super) fn first_entry(text: &str) -> Option<Kernel> {
    let mut lines = text
        .lines()
        .map(str::trim)
        .skip_while(|line| command(line, "menuentry").is_none())
        .skip(1)
        .take_while(|line| command(line, "menuentry").is_none());
    let linux = lines.by_ref().find_map(|line| command(line, "linux"))?;
    let (kernel, command_line) = linux.split_once(char::is_whitespace).unwrap_or((linux, ""));
    let initrd = lines
        .find_map(|line| command(line, "initrd"))
        .and_then(|paths| paths.split_whitespace().next());
    Some(Kernel {
        kernel: kernel.to_owned(),
        initrd: initrd.map(str::to_owned),
        command_line: command_line.trim().to_owned(),
    })
}

/// Returns the arguments if the line's command is `name`, `name16` or `nameefi` (`linuxefi`).
fn command<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (word, rest) = line.split_once(char::is_whitespace)?;
    let suffix = word.strip_prefix(name)?;
    matches!(suffix, "" | "16" | "efi").then(|| rest.trim())
}

#[cfg(test)]
mod tests {
    use super::first_entry;

    #[test]
    fn finds_the_first_entry() {
        let text = "set default=0\nlinux /not/this\n  menuentry_id_option=--id\n\
                    menuentry 'A' {\n\techo 'Loading'\n\
                    \tlinux\t/boot/vmlinuz-6 root=/dev/vda3 ro  quiet\n\
                    \tinitrd\t/boot/initrd-6 /boot/extra\n}\n\
                    menuentry 'B' {\n linux /other\n}\n";
        let kernel = first_entry(text).unwrap();
        assert_eq!(kernel.kernel, "/boot/vmlinuz-6");
        assert_eq!(kernel.command_line, "root=/dev/vda3 ro  quiet");
        assert_eq!(kernel.initrd.as_deref(), Some("/boot/initrd-6"));
        assert_eq!(first_entry("menuentry 'A' {\n}\n"), None);
        assert_eq!(first_entry(""), None);
        let efi = first_entry("menuentry x {\nlinuxefi /k\n}").unwrap();
        assert_eq!((efi.kernel.as_str(), efi.initrd), ("/k", None));
    }
}
