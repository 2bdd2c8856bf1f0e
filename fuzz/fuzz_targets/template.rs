//! A Template: rendered, and the result parsed as a workflow document.

#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use api::document::{data, parse};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use template::limits::OUTPUT_BYTES_MAX;
use template::render;

static DOT: LazyLock<Value> = LazyLock::new(|| {
    let hardware = json!({
        "metadata": { "name": "nuc1" },
        "spec": {
            "disks": [{ "device": "/dev/nvme0n1" }, { "device": "/dev/sda" }],
            "interfaces": [{ "dhcp": {
                "mac": "52:54:00:77:00:01", "hostname": "nuc1",
                "ip": { "address": "10.77.0.57", "netmask": "255.255.255.0" },
                "name_servers": ["10.77.0.1", "1.1.1.1"],
            } }],
            "userData": "#cloud-config\n",
        },
    });
    let map = BTreeMap::from([("device_1".to_owned(), "52:54:00:77:00:01".to_owned())]);
    data(&map, &hardware)
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let document = match render(text, &DOT) {
        Ok(rendered) => {
            assert!(rendered.len() <= OUTPUT_BYTES_MAX);
            parse(&rendered)
        }
        Err(error) => {
            assert!(error.line <= text.matches('\n').count() + 1, "{error}");
            assert!(error.to_string().len() <= OUTPUT_BYTES_MAX, "a message of that length");
            parse(text)
        }
    };
    if let Ok(document) = document {
        let actions: usize = document.tasks.iter().map(|task| task.actions.len()).sum();
        let tasks = document.tasks.len();
        let mut ids = 0;
        document.into_tasks(|| {
            ids += 1;
            ids.to_string()
        });
        assert_eq!(ids, actions + tasks, "each has its own identifier");
    }
});
