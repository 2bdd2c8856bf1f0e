//! Tests of manufacturers and plans, with values of real SMBIOS data.

use api::infrastructure::HardwareSelector;
use serde_json::json;

use super::{MachineModel, short_name};

#[test]
fn names_in_smbios_data_are_the_usual_names() {
    let rows = [
        ("Intel", "Intel(R) Client Systems"),
        ("intel", "Intel(R) Corporation"),
        ("Intel", "Intel Corporation"),
        ("Intel", "Intel corporation"),
        ("Intel", "Intel Corp."),
        ("INTEL", "Intel"),
        ("ASUS", "ASUSTeK COMPUTER INC."),
        ("asus", "ASUSTek Computer INC."),
        ("Gigabyte", "Gigabyte Technology Co., Ltd."),
        ("gigabyte", "GIGABYTE"),
        ("HP", "Hewlett-Packard"),
        ("HP", "Hewlett-Packard Company"),
        ("HPE", "Hewlett Packard Enterprise"),
        ("MSI", "Micro-Star International Co., Ltd."),
        ("msi", "MICRO-STAR INTERNATIONAL CO.,LTD"),
        ("Supermicro", "Super Micro Computer, Inc."),
        ("Dell", "Dell Inc."),
        ("Lenovo", "LENOVO"),
        ("Fujitsu", "FUJITSU CLIENT COMPUTING LIMITED"),
        ("ASRock Rack", "ASRockRack"),
        ("Beelink", "AZW"),
        ("Minisforum", "Micro Computer (HK) Tech Limited"),
    ];
    for (usual, smbios) in rows {
        assert_eq!(short_name(usual), short_name(smbios), "{smbios}");
    }
    for (one, other) in [("HP", "HPE"), ("Intel", "Acme"), ("ASRock", "ASRock Rack")] {
        assert_ne!(short_name(one), short_name(other));
    }
}

fn plan(plan: &str, labels: serde_json::Value, report: serde_json::Value) -> bool {
    let host = serde_json::from_value(json!({
        "metadata": { "labels": labels, "annotations": {
            super::AGENT_ATTRIBUTES: report.to_string(),
        } },
        "spec": { "metadata": { "facility": { "plan_slug": "c3.small" } } },
    }));
    let selector = HardwareSelector { plan: plan.into(), ..HardwareSelector::default() };
    MachineModel::of(&host.unwrap(), &selector).check(&selector).is_ok()
}

#[test]
fn a_plan_is_a_label_a_slug_or_the_start_of_the_product_name() {
    let nuc = json!({ "product": { "name": "NUC8i5BEH", "vendor": "Intel(R) Client Systems" } });
    let hp = json!({ "product": { "name": "HP EliteDesk 800 G4", "vendor": "HP" } });
    let kit = json!({
        "product": { "name": "System Product Name", "vendor": "" },
        "baseboard": { "product": "NUC5i5RYB", "vendor": "Intel corporation" },
    });
    let rows = [
        ("NUC", json!({}), &nuc, true),
        ("nuc8", json!({}), &nuc, true),
        ("NUC9", json!({}), &nuc, false),
        ("8i5BEH", json!({}), &nuc, false),
        ("C3.small", json!({}), &nuc, true),
        ("NUC", json!({ "plan": "nuc" }), &nuc, true),
        ("NUC8", json!({ "plan": "nuc" }), &nuc, false),
        ("EliteDesk", json!({}), &hp, true),
        ("HP EliteDesk", json!({}), &hp, true),
        ("800 G4", json!({}), &hp, false),
        ("NUC5", json!({}), &kit, true),
        ("System", json!({}), &kit, false),
        ("NUC", json!({}), &json!(7), false),
    ];
    for (wanted, labels, report, expected) in rows {
        assert_eq!(plan(wanted, labels, report.clone()), expected, "{wanted} {report}");
    }
}
