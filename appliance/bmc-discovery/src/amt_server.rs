//! Header `Server` by which Intel AMT names its version, also without a login.

/// Product name at the start of the header (Intel AMT SDK).
const NAME: &str = "Intel(R) Active Management Technology";

/// Reads the header `Server` of Intel AMT from the head of an HTTP answer.
pub fn read(head: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    let header = text.lines().take_while(|line| !line.is_empty()).find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("server").then(|| value.trim().to_owned())
    })?;
    let is_plain = header.chars().all(|it| it.is_ascii_graphic() || it == ' ');
    (header.starts_with(NAME) && is_plain).then_some(header)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn the_version_of_amt_is_read() {
        let head = b"HTTP/1.1 303 See Other\r\nLocation: /logon.htm\r\nServer: Intel(R) Active \
            Management Technology 12.0.67\r\n\r\n";
        assert_eq!(read(head).unwrap(), "Intel(R) Active Management Technology 12.0.67");
        assert_eq!(read(b"HTTP/1.1 200 OK\r\nServer: nginx\r\n\r\n"), None);
        assert_eq!(read(b"HTTP/1.1 200 OK\r\n\r\nServer: Intel(R) Active"), None);
        assert_eq!(read(b"\xff\xfe"), None);
    }
}
