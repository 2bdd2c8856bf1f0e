//! Lists of SHA-256 checksums, as sha256sum(1) writes and reads them.

/// Name of the file with the checksums of a release.
pub const SUMS: &str = "SHA256SUMS";

/// Formats the line of a list for the file `name` with the SHA-256 `sum`.
pub fn sums_line(sum: &[u8; 32], name: &str) -> String {
    format!("{}  {name}\n", stdx::hex(sum))
}

/// Returns the SHA-256 of the file `name` in a list, in lower-case hexadecimal, if listed.
pub fn sum_of(sums: &str, name: &str) -> Option<String> {
    let mut lines = sums.lines().filter_map(|line| line.split_once([' ', '\t']));
    let (sum, _) = lines.find(|(_, named)| named.trim_start_matches([' ', '*']) == name)?;
    Some(sum.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::{sum_of, sums_line};

    #[test]
    fn a_list_names_files_in_two_ways() {
        let sums = "AA  box.img.xz\nbb *box.img\n\ncc  other\n";
        let of = |name| sum_of(sums, name);
        let found = (of("box.img.xz"), of("box.img"));
        assert_eq!((found.0.as_deref(), found.1.as_deref()), (Some("aa"), Some("bb")));
        assert_eq!(of("img"), None);
    }

    #[test]
    fn what_is_written_is_read() {
        let list = sums_line(&[0xab; 32], "box.img") + &sums_line(&[1; 32], "box.update");
        assert_eq!(sum_of(&list, "box.img").unwrap(), "ab".repeat(32));
        assert_eq!(sum_of(&list, "box.update").unwrap(), "01".repeat(32));
    }
}
