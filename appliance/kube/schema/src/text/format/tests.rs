use super::*;

fn check(format: &str, good: &[&str], bad: &[&str]) {
    let checked = Format::named(format).expect("a checked format");
    for text in good {
        assert!(checked.accepts(text), "{format} must accept {text:?}");
    }
    for text in bad {
        assert!(!checked.accepts(text), "{format} must refuse {text:?}");
    }
}

#[test]
fn unknown_formats_are_remarks() {
    for name in ["", "int32", "int64", "double", "float", "my-format", "date_time"] {
        assert_eq!(Format::named(name), None, "{name}");
    }
    assert_eq!(Format::named("date-time"), Some(Format::DateTime));
}

#[test]
fn addresses() {
    check(
        "ipv4",
        &["1.2.3.4", "001.002.003.004", "::ffff:1.2.3.4"],
        &["", "1.2.3", "1.2.3.256", "::1", "1.2.3.4.5", "a.b.c.d", "1.2.3.4 ", "fe80::1%e.0"],
    );
    check(
        "ipv6",
        &["::1", "2001:db8::1", "::ffff:1.2.3.4"],
        &["", "1.2.3.4", "::1%eth0", "1::2::3", "12345::"],
    );
    check(
        "cidr",
        &["10.0.0.0/8", "010.0.0.1/08", "2001:db8::/32", "::/0", "1.2.3.4/32"],
        &["10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0/8", "/8", "1.2.3.4/", "1.2.3.4/+8"],
    );
    check(
        "mac",
        &["00:00:5e:00:53:01", "00-00-5E-00-53-01", "0000.5e00.5301", "02:00:5e:10:00:00:00:01"],
        &["", "00:00:5e:00:53", "00:00:5e:00:53:0g", "0:0:5e:0:53:1", "00:00-5e:00:53:01"],
    );
}

#[test]
fn names() {
    check(
        "hostname",
        &["a", "example.com", "a-b.example.com", "1a", "a-b", "a-", "ü.example"],
        &["", "-a", ".a", "a..bc", "example.c", "a_b.com", "abc-def", "example.c0m"],
    );
    check("k8s-short-name", &["a", "a-1"], &["", "A", "-a", "a-", "a.b", &"a".repeat(64)]);
    check("k8s-long-name", &["a", "a.b-c.d"], &["", "a..b", "a.-b", &"a.".repeat(127)]);
    check(
        "uri",
        &["http://a/b", "/a", "*", "mailto:a@b", "http://[::1]:80/", "http://u:p@h:1/?q#f"],
        &["", "a", "a/b", "http://[::1/", "http://h:port/", "http://h/%zz", "http://a b/", ":a"],
    );
    check(
        "email",
        &["a@b", "A B <a@b.c>", "<a@b>", "\"a b\"@c", "a@[127.0.0.1]", "a@b (note)"],
        &["", "a", "a@", "@b", "a@b@c", "a b@c", "a..b@c", "a@b,c@d", "A <a@b", "(a@b"],
    );
}

#[test]
fn numbers_with_check_digits() {
    check("isbn10", &["0321751043", "0-321-75104-3", "080442957X"], &["", "0321751044"]);
    check("isbn13", &["978-0321751041"], &["9780321751042", "0321751043"]);
    check("isbn", &["0321751043", "978-0321751041"], &["1"]);
    check("creditcard", &["4111 1111 1111 1111", "378282246310005"], &["", "4111111111111112"]);
    check("ssn", &["111-11-1111", "111 11 1111"], &["111111111", "111-11-11111"]);
}

#[test]
fn identifiers_colours_and_bytes() {
    let uuid3 = "bcd02e22-68f0-3046-a512-327cca9def8f";
    let uuid4 = "025b0d74-00a2-4048-bf57-227c5111bb34";
    let uuid5 = "886313e1-3b8a-5372-9b90-0c9aee199e5d";
    check("uuid", &[uuid3, uuid4, uuid5, &uuid4.replace('-', "")], &["", "025b0d74"]);
    check("uuid3", &[uuid3], &[uuid4]);
    check("uuid4", &[uuid4, &uuid4.to_uppercase()], &[uuid5]);
    check("uuid5", &[uuid5], &[uuid4]);
    check("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f1f77bcf86cd79943901", ""]);
    check("hexcolor", &["#fff", "FFFFFF"], &["", "#ff", "#ggg", "##fff"]);
    check("rgbcolor", &["rgb(0,1, 255)"], &["rgb(0,1)", "rgb(0,1,256)", "rgb(00,1,2)"]);
    check("byte", &["YQ==", "YWI=", "YWJj"], &["", "YQ", "Y===", "Y-=="]);
    check("password", &["", "x"], &[]);
}

#[test]
fn times() {
    check("date", &["2024-02-29", "0000-01-01"], &["2023-02-29", "2024-2-9", "2024-13-01", ""]);
    check(
        "date-time",
        &["2014-12-15T19:30:20Z", "2014-12-15t19:30:20.000+01:00", "2014-12-15T00:00:00,5z"],
        &["2014-12-15", "2014-12-15T24:00:00Z", "2014-12-15T19:30:20", "2014-12-15 19:30:20Z"],
    );
    check(
        "duration",
        &["1h", "1.5h", "-2m3s", "0", "22 ns", "3 days", "1week", "5 µs", "1.s"],
        &["", "h", "5", "3 apples", "99999999999999999999h"],
    );
}
