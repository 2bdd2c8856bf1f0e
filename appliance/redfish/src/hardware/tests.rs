use serde_json::{Value, json};

use super::{Inventory, disk_bytes, electrical, log_record, newest, sensor, sort_logs, thermal};
use crate::Document;

fn document(json: Value) -> Document {
    Document { path: "/redfish/v1/Systems/1".into(), etag: None, json }
}

#[test]
fn missing_parts_of_an_inventory_stay_empty() {
    assert_eq!(Inventory::read(&document(json!({})), None, &[], &[]), Inventory::default());
    let system = document(json!({
        "UUID": "A0B1", "SerialNumber": " S1 ", "Model": null,
        "ProcessorSummary": { "Model": "Xeon", "Count": 2 },
        "MemorySummary": { "TotalSystemMemoryGiB": 1.5 },
    }));
    let interfaces = [
        document(json!({ "MACAddress": "AA-BB-CC-00-11-22" })),
        document(json!({ "MACAddress": "x", "PermanentMACAddress": "aa:bb:cc:00:11:22" })),
        document(json!({ "MACAddress": null })),
        document(json!({ "MACAddress": "aa:bb:cc:00:11:33", "Id": "ToManager" })),
    ];
    let manager = document(json!({ "FirmwareVersion": "2.1", "Model": "iLO 5" }));
    let read = Inventory::read(&system, Some(&manager), &[], &interfaces);
    assert_eq!((read.uuid.as_str(), read.serial.as_str()), ("a0b1", "S1"));
    assert_eq!((read.processors.len(), read.memory_bytes), (2, 1_610_612_736));
    assert_eq!(read.bmc_firmware, "iLO 5 2.1");
    assert_eq!(read.macs, ["aa:bb:cc:00:11:22"]);
    let processors = [
        document(json!({ "Model": "Core", "ProcessorType": "CPU" })),
        document(json!({ "Model": "Tesla", "ProcessorType": "GPU" })),
        document(json!({ "Model": "none", "Status": { "State": "Absent" } })),
    ];
    assert_eq!(Inventory::read(&system, None, &processors, &[]).processors, ["Core"]);
}

#[test]
fn a_disk_has_a_plausible_capacity() {
    for (drive, expected) in [
        (json!({ "CapacityBytes": 1_920_383_410_176_u64 }), Some(1_920_383_410_176)),
        (json!({ "CapacityBytes": "8000000000" }), Some(8_000_000_000)),
        // Virtual USB device of a BMC.
        (json!({ "CapacityBytes": 1_098_907_648 }), None),
        (json!({ "CapacityBytes": null }), None),
        (json!({ "CapacityBytes": 1e30 }), None),
        (json!({ "CapacityBytes": 8e9, "Status": { "State": "Absent" } }), None),
        (json!({}), None),
    ] {
        assert_eq!(disk_bytes(&drive), expected, "{drive}");
    }
}

#[test]
fn sensors_of_both_forms_are_read() {
    let read = thermal(&document(json!({
        "Temperatures": [
            { "Name": "Inlet", "ReadingCelsius": 21, "Status": { "Health": "OK" } },
            { "Name": "Gone", "ReadingCelsius": 0, "Status": { "State": "Absent" } },
        ],
        "Fans": [{ "FanName": "Fan 1", "Reading": 9, "ReadingUnits": "Percent" }, { "Reading": 1 }],
    })));
    assert_eq!(read.len(), 2);
    assert_eq!((read[0].value, read[0].health.as_deref()), (Some(21.0), Some("OK")));
    assert_eq!((read[1].name.as_str(), read[1].unit.as_str()), ("Fan 1", "%"));
    let read = electrical(&document(json!({
        "PowerControl": [
            { "Name": "System", "PowerConsumedWatts": 99 },
            { "MemberId": "1", "PowerConsumedWatts": 7 },
        ],
        "Voltages": [
            { "Name": "12V", "ReadingVolts": null },
            { "Name": "", "MemberId": "1", "ReadingVolts": 0 },
        ],
    })));
    let read: Vec<_> = read.iter().map(|it| (it.name.as_str(), it.value)).collect();
    assert_eq!(read, [("12V", None), ("System", Some(99.0)), ("Power", Some(7.0))]);
    let one = sensor(&json!({ "Name": "Fan", "Reading": 4000, "ReadingUnits": "{rev}/min" }));
    assert_eq!(one.unwrap().unit, "RPM");
}

#[test]
fn the_newest_entries_of_a_log_are_kept_in_order() {
    let entry = |id: &str, time: &str| json!({ "Id": id, "Created": time, "Message": "m\nn" });
    let entries = [
        entry("3", "2026-01-03T00:00:00+01:00"),
        entry("2", "2026-01-02T00:00:00Z"),
        entry("1", "1970-01-01T00:00:12Z"),
    ];
    let records: Vec<_> = entries.iter().filter_map(log_record).collect();
    assert_eq!((records[2].time, records[2].message.as_str()), (None, "m n"));
    let kept = newest(records, 2);
    assert_eq!(kept.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["2", "3"]);
    assert_eq!(log_record(&json!({})), None);
    let mut logs = ["/a/LogServices/Lclog", "/a/IML", "/a/LogServices/Sel/"].map(str::to_owned);
    sort_logs(&mut logs);
    assert_eq!(logs, ["/a/LogServices/Sel/", "/a/IML", "/a/LogServices/Lclog"]);
}
