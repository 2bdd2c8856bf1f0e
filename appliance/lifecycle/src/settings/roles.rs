//! Writes the use of each NIC into the settings. Only the tables of changed NICs change, and in
//! these tables only the keys for the use.

use config::mistakes::bare;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, Value};

/// Keys of the tables for provisioning networks and for management interfaces.
const RACKS: &str = "network";
const OWNERS: &str = "management";

/// Use of a NIC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NicUse {
    /// Management: people reach the box over this NIC.
    Management,
    /// Provisioning: only machines use the network of this NIC.
    Machines {
        /// Address of the box with prefix length, such as `192.168.1.5/24`.
        address: String,
        /// DHCP mode of the network.
        mode: String,
        /// Address ranges that DHCP may assign.
        pool: Vec<String>,
        /// Last digits of the MAC address, by which the owner confirms the pool; else empty.
        confirm: String,
    },
    /// Management and provisioning over one NIC, on the owner's network.
    Both {
        /// DHCP mode of the network.
        mode: String,
    },
    /// No use of the interface by the box.
    Unused,
}

/// Writes the use of the NICs into `text`.
///
/// # Errors
/// The text cannot be parsed, or has its networks in a form that this function cannot change.
pub fn write(text: &str, nics: &[(String, NicUse)]) -> Result<String, String> {
    let mark = text.len() - bare(text).len();
    let ends = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut document: DocumentMut = bare(text)
        .parse()
        .map_err(|error| format!("cannot parse the current settings: {error}"))?;
    for (interface, wanted) in nics {
        match wanted {
            NicUse::Management => {
                remove(&mut document, RACKS, interface);
                let owners = find(&mut document, OWNERS, interface);
                if owners.is_some_and(|table| table.contains_key("unused")) {
                    remove(&mut document, OWNERS, interface);
                }
            }
            NicUse::Machines { address, mode, pool, confirm } => {
                remove(&mut document, OWNERS, interface);
                let rack = find_or_add(&mut document, RACKS, interface)?;
                put(rack, "address", address);
                put(rack, "mode", mode);
                put(rack, "confirm", confirm);
                put_all(rack, "pool", pool);
            }
            NicUse::Both { mode } => {
                let owners = find(&mut document, OWNERS, interface);
                if owners.is_some_and(|table| table.contains_key("unused")) {
                    remove(&mut document, OWNERS, interface);
                }
                let rack = find_or_add(&mut document, RACKS, interface)?;
                put(rack, "address", "");
                put(rack, "mode", mode);
                put_all(rack, "pool", &[]);
            }
            NicUse::Unused => {
                remove(&mut document, RACKS, interface);
                if find(&mut document, OWNERS, interface)
                    .is_none_or(|table| !table.contains_key("unused"))
                {
                    remove(&mut document, OWNERS, interface);
                    let owners = find_or_add(&mut document, OWNERS, interface)?;
                    owners.insert("unused", Item::Value(true.into()));
                }
            }
        }
    }
    let new = document.to_string();
    let new = if ends == "\n" { new } else { new.replace("\r\n", "\n").replace('\n', ends) };
    Ok(format!("{}{new}", &text[..mark]))
}

/// Returns true if the table is for the whole interface, not for a VLAN on it.
fn is_of(table: &Table, interface: &str) -> bool {
    let named = table.get("interface").and_then(Item::as_str) == Some(interface);
    named && !table.contains_key("vlan")
}

fn find<'a>(document: &'a mut DocumentMut, key: &str, interface: &str) -> Option<&'a mut Table> {
    match document.get_mut(key)? {
        Item::Table(table) => Some(table).filter(|table| is_of(table, interface)),
        Item::ArrayOfTables(all) => all.iter_mut().find(|table| is_of(table, interface)),
        Item::Value(_) | Item::None => None,
    }
}

fn remove(document: &mut DocumentMut, key: &str, interface: &str) {
    match document.get_mut(key) {
        Some(Item::Table(table)) if is_of(table, interface) => {
            document.remove(key);
        }
        Some(Item::ArrayOfTables(all)) => all.retain(|table| !is_of(table, interface)),
        _ => {}
    }
}

fn find_or_add<'a>(
    document: &'a mut DocumentMut,
    key: &str,
    interface: &str,
) -> Result<&'a mut Table, String> {
    if find(document, key, interface).is_none() {
        let mut new = Table::new();
        new.insert("interface", Item::Value(interface.into()));
        let mut all = match document.remove(key) {
            None => ArrayOfTables::new(),
            Some(Item::ArrayOfTables(all)) => all,
            // A single table becomes the first of an array of tables.
            Some(Item::Table(one)) => {
                let mut all = ArrayOfTables::new();
                all.push(one);
                all
            }
            Some(_) => {
                return Err(format!(
                    "`{key}` in the settings was written by hand in another form: change it with \
                     `tinbox box settings edit`"
                ));
            }
        };
        all.push(new);
        document.insert(key, Item::ArrayOfTables(all));
    }
    find(document, key, interface).ok_or_else(|| format!("cannot write [[{key}]]"))
}

/// Sets a string. An empty string removes the key.
fn put(table: &mut Table, key: &str, text: &str) {
    if text.is_empty() {
        table.remove(key);
    } else if table.get(key).and_then(Item::as_str) != Some(text) {
        table.insert(key, Item::Value(text.into()));
    }
}

/// Sets a list of strings. An empty list removes the key.
fn put_all(table: &mut Table, key: &str, texts: &[String]) {
    let there: Vec<&str> = match table.get(key) {
        Some(Item::Value(Value::Array(list))) => list.iter().filter_map(Value::as_str).collect(),
        Some(Item::Value(one)) => one.as_str().into_iter().collect(),
        _ => Vec::new(),
    };
    if there == texts {
        return;
    }
    table.remove(key);
    if !texts.is_empty() {
        let list: Array = texts.iter().map(String::as_str).collect();
        table.insert(key, Item::Value(Value::Array(list)));
    }
}

#[cfg(test)]
mod tests {
    use super::{NicUse, write};

    fn machines(mode: &str, pool: &[&str]) -> NicUse {
        NicUse::Machines {
            address: "10.99.0.1/24".to_owned(),
            mode: mode.to_owned(),
            pool: pool.iter().map(|text| (*text).to_owned()).collect(),
            confirm: String::new(),
        }
    }

    fn written(text: &str, nics: &[(&str, NicUse)]) -> String {
        let nics: Vec<_> = nics.iter().map(|(name, it)| ((*name).to_owned(), it.clone())).collect();
        write(text, &nics).unwrap()
    }

    #[test]
    fn two_cards_are_written_and_read_again_unchanged() {
        let nics = [
            ("eth0", NicUse::Management),
            ("eth1", machines("reserved", &[])),
            ("eth2", NicUse::Unused),
        ];
        let text = written("name = \"a\"\n", &nics);
        let want = "name = \"a\"\n\n[[network]]\ninterface = \"eth1\"\naddress = \"10.99.0.1/24\"\n\
            mode = \"reserved\"\n\n[[management]]\ninterface = \"eth2\"\nunused = true\n";
        assert_eq!(text, want);
        assert_eq!(written(&text, &nics), text, "what is so already is left alone");
        let both =
            [("eth0", NicUse::Both { mode: "proxy".to_owned() }), ("eth1", NicUse::Management)];
        let text = written(&text, &both);
        assert!(text.contains("[[network]]\ninterface = \"eth0\"\nmode = \"proxy\"\n"), "{text}");
        assert!(!text.contains("eth1"), "{text}");
        assert!(!written(&text, &[("eth2", NicUse::Management)]).contains("eth2"));
    }

    #[test]
    fn what_the_owner_wrote_beside_stays() {
        let text = "[network] # the rack\ninterface = 'eth1'\naddress = '10.99.0.1/24'\n\
            mode = 'pool'\npool = '10.99.0.5'\nloaders = { 7 = 'a.efi' }\n\
            [[management]]\ninterface = 'eth0'\naddress = '10.0.0.1/24'\n\
            [[management]]\ninterface = 'eth1'\nvlan = 7\n";
        let same = [("eth0", NicUse::Management), ("eth1", machines("pool", &["10.99.0.5"]))];
        assert_eq!(written(text, &same), text);
        let off = written(text, &[("eth1", machines("off", &[]))]);
        assert!(off.contains("loaders") && off.contains("# the rack") && off.contains("vlan = 7"));
        assert!(off.contains("mode = \"off\"") && !off.contains("pool"), "{off}");
        let added = written(text, &[("eth2", machines("reserved", &[]))]);
        assert_eq!(added.matches("[[network]]").count(), 2, "{added}");
        assert!(write("network = []\n", &[("eth1".to_owned(), machines("off", &[]))]).is_err());
    }
}
