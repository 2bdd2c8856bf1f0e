//! Instances of the engine's classes. The values are those of an Intel NUC9V7QNX with AMT 12.0.67.

use super::HttpsBoot;
use super::firmware::{Firmware, ON};
use super::login::REALM;
use super::soap::escaped;

/// Instance of a class: its keys, and its fields in the order of the schema.
#[derive(Debug)]
pub struct Instance {
    pub keys: Vec<(&'static str, String)>,
    fields: Vec<(String, String)>,
}

/// Resource URI of a class.
pub fn class_uri(class: &str) -> String {
    let schema = match class.split('_').next().unwrap_or_default() {
        "AMT" => "http://intel.com/wbem/wscim/1/amt-schema/1",
        "IPS" => "http://intel.com/wbem/wscim/1/ips-schema/1",
        _ => "http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2",
    };
    format!("{schema}/{class}")
}

impl Instance {
    fn new(key: &'static str, fields: &[(&str, &str)]) -> Self {
        let value = fields.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
        let keys = value.map(|value| (key, value.to_owned())).into_iter().collect();
        let fields = fields.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Self { keys, fields }
    }

    pub fn has_key(&self, name: &str, value: &str) -> bool {
        self.keys.iter().any(|(key, found)| *key == name && found == value)
    }

    /// True if all selectors name this instance. Unknown keys are ignored, as AMT does for classes
    /// with one instance.
    pub fn matches(&self, selectors: &[(String, String)]) -> bool {
        selectors.iter().all(|(name, value)| {
            self.keys.iter().all(|(key, _)| key != name) || self.has_key(name, value)
        })
    }

    pub fn xml(&self, class: &str, prefix: &str) -> String {
        let fields: String = self
            .fields
            .iter()
            .map(|(name, value)| {
                let value = escaped(value);
                format!("<{prefix}:{name}>{value}</{prefix}:{name}>")
            })
            .collect();
        format!("<{prefix}:{class}>{fields}</{prefix}:{class}>")
    }

    /// All instances of a class; `None` if the engine does not have the class. Readings of the
    /// power show the state `power`.
    pub fn of_class(firmware: &Firmware, class: &str, power: u32) -> Option<Vec<Self>> {
        Some(match class {
            "CIM_AssociatedPowerManagementService" => vec![power_state(firmware, power)],
            "IPS_PowerManagementService" => {
                let standby = firmware.standby.to_string();
                let mut fields = vec![("Name", "Intel(r) AMT Power Management Service")];
                // A machine that is off has no such state (AMT 15 and 18).
                if firmware.power == ON {
                    fields.push(("OSPowerSavingState", &standby));
                }
                vec![Self::new("Name", &fields)]
            }
            "AMT_RedirectionService" => {
                let state = firmware.redirection.to_string();
                vec![Self::new(
                    "Name",
                    &[
                        ("CreationClassName", class),
                        ("EnabledState", &state),
                        ("ListenerEnabled", if firmware.listens { "true" } else { "false" }),
                        ("Name", "Intel(r) AMT Redirection Service"),
                    ],
                )]
            }
            "IPS_OptInService" => {
                let (required, state) = firmware.behavior.consent;
                let (required, state) = (required.to_string(), state.to_string());
                let name = ("Name", "Intel(r) AMT OptIn Service");
                let fields = [name, ("OptInRequired", &required), ("OptInState", &state)];
                vec![Self::new("Name", &fields)]
            }
            "AMT_BootSettingData" => {
                let keys = vec![("InstanceID", firmware.boot_setting("InstanceID").to_owned())];
                vec![Self { keys, fields: firmware.boot_settings() }]
            }
            "AMT_BootCapabilities" => vec![capabilities(firmware)],
            "AMT_MessageLog" => {
                let count = firmware.records.len().to_string();
                let name = ("Name", "Intel(r) AMT:MessageLog 1");
                let most = [("MaxNumberOfRecords", "390"), ("MaxRecordSize", "21")];
                let fields = [("CurrentNumberOfRecords", count.as_str()), most[0], most[1], name];
                vec![Self::new("Name", &fields)]
            }
            "CIM_BootConfigSetting" => vec![Self::new(
                "InstanceID",
                &[
                    ("ElementName", "Intel(r) AMT: Boot Configuration"),
                    ("InstanceID", "Intel(r) AMT: Boot Configuration 0"),
                ],
            )],
            "AMT_PublicKeyManagementService" => {
                let name = ("Name", "Intel(r) AMT Certificate Store Service");
                vec![Self::new("Name", &[name])]
            }
            "AMT_PublicKeyCertificate" => {
                let stored = firmware.roots.iter().enumerate().map(|(number, blob)| {
                    let id = format!("Intel(r) AMT Certificate: Handle: {number}");
                    let name = ("ElementName", "Intel(r) AMT Certificate");
                    let root = ("TrustedRootCertficate", "true");
                    let fields = [name, ("InstanceID", &id), root, ("X509Certificate", blob)];
                    Self::new("InstanceID", &fields)
                });
                stored.collect()
            }
            "CIM_BootSourceSetting" => sources(firmware),
            "CIM_ComputerSystem" => ["Intel(r) AMT", "ManagedSystem"].map(system).into(),
            other => return hardware(other),
        })
    }
}

fn power_state(firmware: &Firmware, power: u32) -> Instance {
    let mut instance = Instance::new("PowerState", &[("PowerState", &power.to_string())]);
    instance.keys.clear();
    let available = firmware.available().into_iter();
    let available =
        available.map(|state| ("AvailableRequestedPowerStates".to_owned(), state.to_string()));
    instance.fields.splice(0..0, available);
    instance
}

fn system(name: &'static str) -> Instance {
    let class = "CIM_ComputerSystem";
    let mut system = Instance::new("Name", &[("CreationClassName", class), ("Name", name)]);
    system.keys.insert(0, ("CreationClassName", class.to_owned()));
    system
}

fn capabilities(firmware: &Firmware) -> Instance {
    let mut flags = vec![
        ("BIOSSetup", "true"),
        ("ForceCDorDVDBoot", "true"),
        ("ForceHardDriveBoot", "true"),
        ("ForceHardDriveSafeModeBoot", "false"),
        ("ForcePXEBoot", "true"),
        ("IDER", "true"),
        ("InstanceID", "Intel(r) AMT:BootCapabilities 0"),
        ("SOL", "true"),
    ];
    if firmware.behavior.https_boot != HttpsBoot::Absent {
        flags.insert(4, ("ForceUEFIHTTPSBoot", "true"));
    }
    Instance::new("InstanceID", &flags)
}

fn sources(firmware: &Firmware) -> Vec<Instance> {
    let source = |(name, string): (&str, &str)| {
        let id = format!("Intel(r) AMT: Force {name} Boot");
        let fields = [
            ("ElementName", "Intel(r) AMT: Boot Source"),
            ("FailThroughSupported", "2"),
            ("InstanceID", id.as_str()),
            ("StructuredBootString", string),
        ];
        Instance::new("InstanceID", &fields)
    };
    let mut sources = vec![
        ("Hard-drive", "CIM:Hard-Disk:1"),
        ("PXE", "CIM:Network:1"),
        ("CD/DVD", "CIM:CD/DVD:1"),
    ];
    if firmware.behavior.https_boot == HttpsBoot::Enabled {
        sources.push(("OCR UEFI HTTPS", "CIM:Network:1"));
    }
    sources.into_iter().map(source).collect()
}

/// Classes that do not change.
fn hardware(class: &str) -> Option<Vec<Instance>> {
    let one = |key, fields: &[(&str, &str)]| vec![Instance::new(key, fields)];
    Some(match class {
        "CIM_ComputerSystemPackage" => {
            one("", &[("PlatformGUID", "00112233445566778899AABBCCDDEEFF")])
        }
        "CIM_Chassis" => {
            let maker = ("Manufacturer", "Intel(R) Client Systems");
            let (model, serial) = (("Model", "NUC9V7QNX"), ("SerialNumber", "SERIAL000001"));
            one("Tag", &[maker, model, serial, ("Tag", class)])
        }
        "CIM_SoftwareIdentity" => {
            let versions = [("Flash", "12.0.67"), ("AMT", "12.0.67"), ("Sku", "16392")];
            versions.map(software).into()
        }
        "CIM_BIOSElement" => {
            one("Name", &[("Name", "Primary BIOS"), ("Version", "QNCFLX70.0054.2020.0810.2227")])
        }
        "AMT_SetupAndConfigurationService" => {
            let name = ("Name", "Intel(r) AMT Setup and Configuration Service");
            one("Name", &[name, ("ProvisioningMode", "1"), ("ProvisioningState", "2")])
        }
        "AMT_GeneralSettings" => {
            let id = ("InstanceID", "Intel(r) AMT: General Settings");
            one("InstanceID", &[("DigestRealm", REALM), ("HostName", "nuc-1"), id])
        }
        "AMT_EthernetPortSettings" => {
            let id = ("InstanceID", "Intel(r) AMT Ethernet Port Settings 0");
            let (mains, off) = (("LinkPolicy", "1"), ("LinkPolicy", "14"));
            let (dhcp, link) = (("DHCPEnabled", "true"), ("LinkIsUp", "true"));
            let mac = [("MACAddress", "02-00-00-00-00-01"), ("SharedMAC", "true")];
            one("InstanceID", &[dhcp, id, link, mains, off, mac[0], mac[1]])
        }
        "CIM_PhysicalMemory" => [("BANK 0", "00000001"), ("BANK 2", "00000002")].map(module).into(),
        "CIM_Chip" => {
            let name = ("ElementName", "Managed System Processor Chip");
            let version = ("Version", "Intel(R) Core(TM) i7-9850H CPU @ 2.60GHz");
            one("Tag", &[name, ("Tag", "CPU 0"), version])
        }
        "CIM_MediaAccessDevice" => {
            one("DeviceID", &[("DeviceID", "MEDIA DEV 0"), ("MaxMediaSize", "960197124")])
        }
        "CIM_BootService" | "CIM_PowerManagementService" => one("Name", &[("Name", class)]),
        _ => return None,
    })
}

fn software((name, version): (&str, &str)) -> Instance {
    Instance::new("InstanceID", &[("InstanceID", name), ("VersionString", version)])
}

fn module((bank, serial): (&str, &str)) -> Instance {
    let part = ("PartNumber", "CT16G4SFD824A.M16FE ");
    let (capacity, number) = (("Capacity", "17179869184"), ("SerialNumber", serial));
    Instance::new("Tag", &[("BankLabel", bank), capacity, part, number, ("Tag", serial)])
}
