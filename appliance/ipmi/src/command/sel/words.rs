//! Words of the standard for sensor types and their states (IPMI 2.0 tables 42-2 and 42-3).

/// States by their number, from 0.
type States = &'static [&'static str];

/// Event/reading type code of a threshold (table 42-1).
const THRESHOLD: u8 = 0x01;
/// Event/reading type code of states that the sensor type defines (table 42-1).
const SENSOR_SPECIFIC: u8 = 0x6F;

/// Returns the name of a sensor type (table 42-3).
pub(super) fn sensor_type(number: u8) -> Option<&'static str> {
    const NAMES: [&str; 0x2D] = [
        "Reserved",
        "Temperature",
        "Voltage",
        "Current",
        "Fan",
        "Physical Security",
        "Platform Security",
        "Processor",
        "Power Supply",
        "Power Unit",
        "Cooling Device",
        "Other",
        "Memory",
        "Drive Slot / Bay",
        "POST Memory Resize",
        "System Firmwares",
        "Event Logging Disabled",
        "Watchdog1",
        "System Event",
        "Critical Interrupt",
        "Button",
        "Module / Board",
        "Microcontroller",
        "Add-in Card",
        "Chassis",
        "Chip Set",
        "Other FRU",
        "Cable / Interconnect",
        "Terminator",
        "System Boot Initiated",
        "Boot Error",
        "OS Boot",
        "OS Critical Stop",
        "Slot / Connector",
        "System ACPI Power State",
        "Watchdog2",
        "Platform Alert",
        "Entity Presence",
        "Monitor ASIC",
        "LAN",
        "Management Subsys Health",
        "Battery",
        "Session Audit",
        "Version Change",
        "FRU State",
    ];
    NAMES.get(usize::from(number)).copied()
}

/// Returns the words of a state.
pub(super) fn state(event_type: u8, sensor_type: u8, offset: u8) -> Option<&'static str> {
    let states = match event_type {
        THRESHOLD..=0x0C => generic(event_type),
        SENSOR_SPECIFIC => specific(sensor_type),
        _ => return None,
    };
    states.get(usize::from(offset)).copied()
}

/// Returns the states of a generic event type (table 42-2).
fn generic(event_type: u8) -> States {
    match event_type {
        THRESHOLD => &[
            "Lower Non-critical going low",
            "Lower Non-critical going high",
            "Lower Critical going low",
            "Lower Critical going high",
            "Lower Non-recoverable going low",
            "Lower Non-recoverable going high",
            "Upper Non-critical going low",
            "Upper Non-critical going high",
            "Upper Critical going low",
            "Upper Critical going high",
            "Upper Non-recoverable going low",
            "Upper Non-recoverable going high",
        ],
        0x02 => &["Transition to Idle", "Transition to Active", "Transition to Busy"],
        0x03 => &["State Deasserted", "State Asserted"],
        0x04 => &["Predictive Failure Deasserted", "Predictive Failure Asserted"],
        0x05 => &["Limit Not Exceeded", "Limit Exceeded"],
        0x06 => &["Performance Met", "Performance Lags"],
        0x07 => &[
            "Transition to OK",
            "Transition to Non-critical from OK",
            "Transition to Critical from less severe",
            "Transition to Non-recoverable from less severe",
            "Transition to Non-critical from more severe",
            "Transition to Critical from Non-recoverable",
            "Transition to Non-recoverable",
            "Monitor",
            "Informational",
        ],
        0x08 => &["Device Absent", "Device Present"],
        0x09 => &["Device Disabled", "Device Enabled"],
        0x0A => &[
            "Transition to Running",
            "Transition to In Test",
            "Transition to Power Off",
            "Transition to On Line",
            "Transition to Off Line",
            "Transition to Off Duty",
            "Transition to Degraded",
            "Transition to Power Save",
            "Install Error",
        ],
        0x0B => &[
            "Fully Redundant",
            "Redundancy Lost",
            "Redundancy Degraded",
            "Non-Redundant: Sufficient from Redundant",
            "Non-Redundant: Sufficient from Insufficient",
            "Non-Redundant: Insufficient Resources",
            "Redundancy Degraded from Fully Redundant",
            "Redundancy Degraded from Non-Redundant",
        ],
        _ => &["D0 Power State", "D1 Power State", "D2 Power State", "D3 Power State"],
    }
}

/// States that a sensor type defines (table 42-3), of the types that small machines have.
const SPECIFIC: &[(u8, States)] = &[
    (
        0x05,
        &[
            "General Chassis intrusion",
            "Drive Bay intrusion",
            "I/O Card area intrusion",
            "Processor area intrusion",
            "System unplugged from LAN",
            "Unauthorized dock",
            "FAN area intrusion",
        ],
    ),
    (
        0x06,
        &[
            "Front Panel Lockout violation attempted",
            "Pre-boot password violation - user password",
            "Pre-boot password violation - setup password",
            "Pre-boot password violation - network boot password",
            "Other pre-boot password violation",
            "Out-of-band access password violation",
        ],
    ),
    (
        0x07,
        &[
            "IERR",
            "Thermal Trip",
            "FRB1/BIST failure",
            "FRB2/Hang in POST failure",
            "FRB3/Processor startup/init failure",
            "Configuration Error",
            "SM BIOS Uncorrectable CPU-complex Error",
            "Presence detected",
            "Disabled",
            "Terminator presence detected",
            "Throttled",
            "Uncorrectable machine check exception",
            "Correctable machine check error",
        ],
    ),
    (
        0x08,
        &[
            "Presence detected",
            "Failure detected",
            "Predictive failure",
            "Power Supply AC lost",
            "AC lost or out-of-range",
            "AC out-of-range, but present",
            "Config Error",
            "Power Supply Inactive",
        ],
    ),
    (
        0x09,
        &[
            "Power off/down",
            "Power cycle",
            "240VA power down",
            "Interlock power down",
            "AC lost",
            "Soft-power control failure",
            "Failure detected",
            "Predictive failure",
        ],
    ),
    (
        0x0C,
        &[
            "Correctable ECC",
            "Uncorrectable ECC",
            "Parity",
            "Memory Scrub Failed",
            "Memory Device Disabled",
            "Correctable ECC logging limit reached",
            "Presence Detected",
            "Configuration Error",
            "Spare",
            "Throttled",
            "Critical Overtemperature",
        ],
    ),
    (0x0D, &["Drive Present", "Drive Fault", "Predictive Failure"]),
    (0x0F, &["Error", "Hang", "Progress"]),
    (
        0x10,
        &[
            "Correctable memory error logging disabled",
            "Event logging disabled",
            "Log area reset/cleared",
            "All event logging disabled",
            "Log full",
            "Log almost full",
        ],
    ),
    (
        0x12,
        &[
            "System Reconfigured",
            "OEM System boot event",
            "Undetermined system hardware failure",
            "Entry added to auxiliary log",
            "PEF Action",
            "Timestamp Clock Sync",
        ],
    ),
    (
        0x13,
        &[
            "NMI/Diag Interrupt",
            "Bus Timeout",
            "I/O Channel check NMI",
            "Software NMI",
            "PCI PERR",
            "PCI SERR",
            "EISA failsafe timeout",
            "Bus Correctable error",
            "Bus Uncorrectable error",
            "Fatal NMI",
            "Bus Fatal Error",
        ],
    ),
    (0x14, &["Power Button pressed", "Sleep Button pressed", "Reset Button pressed"]),
    (
        0x1D,
        &[
            "Initiated by power up",
            "Initiated by hard reset",
            "Initiated by warm reset",
            "User requested PXE boot",
            "Automatic boot to diagnostic",
        ],
    ),
    (
        0x1E,
        &[
            "No bootable media",
            "Non-bootable disk in drive",
            "PXE server not found",
            "Invalid boot sector",
            "Timeout waiting for selection",
        ],
    ),
    (
        0x1F,
        &[
            "A: boot completed",
            "C: boot completed",
            "PXE boot completed",
            "Diagnostic boot completed",
            "CD-ROM boot completed",
            "ROM boot completed",
            "boot completed - device not specified",
        ],
    ),
    (0x20, &["Stop during OS load/init", "Run-time critical stop", "OS graceful stop"]),
    (
        0x22,
        &[
            "S0/G0: working",
            "S1: sleeping with system hw & processor context maintained",
            "S2: sleeping, processor context lost",
            "S3: sleeping, processor & hw context lost, memory retained",
            "S4: non-volatile sleep/suspend-to-disk",
            "S5/G2: soft-off",
            "S4/S5: soft-off",
            "G3: mechanical off",
        ],
    ),
    (0x23, &["Timer expired", "Hard reset", "Power down", "Power cycle"]),
    (0x25, &["Present", "Absent", "Disabled"]),
    (0x29, &["Low", "Failed", "Presence Detected"]),
];

/// Returns the states that a sensor type defines; empty for a type without words here.
fn specific(sensor_type: u8) -> States {
    let row = SPECIFIC.iter().find(|(number, _)| *number == sensor_type);
    row.map(|(_, states)| *states).unwrap_or_default()
}
