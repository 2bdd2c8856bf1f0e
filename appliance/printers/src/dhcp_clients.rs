//! Table of the DHCP clients that a box has seen.

use status::dhcp_client::DhcpClient;
use status::plain;

use crate::table::Table;

/// Makes the table of the clients, in the given order.
pub fn table(list: &[DhcpClient]) -> Table {
    let mut table = Table::new(&["MAC", "HARDWARE", "TIME", "ANSWER"]);
    for client in list {
        table.row([
            client.mac.to_string().into(),
            client.hardware.as_str().into(),
            client.asked.strftime("%H:%M:%S").to_string().into(),
            plain(&client.decision).into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{DhcpClient, table};

    #[test]
    fn the_clients() {
        let client = |mac: &str, hardware: &str, decision: &str| DhcpClient {
            mac: mac.parse().unwrap(),
            hardware: hardware.to_owned(),
            asked: "2026-01-01T00:05:00Z".parse().unwrap(),
            decision: decision.to_owned(),
        };
        let list = [
            client("52:54:00:77:00:09", "", "not answered: no Hardware has this MAC address"),
            client("52:54:00:77:00:01", "default/nuc-1", "has 10.77.0.11"),
        ];
        golden::check("network-clients.txt", &table(&list).render(false));
    }
}
