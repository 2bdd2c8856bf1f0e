//! Actions that the panel offers.

/// Action that the panel can request from the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Blinks the LED of the box.
    Identify,
    /// Shows pin and claim code for a minute, on the panel only.
    ShowPin,
    /// Searches for other DHCP servers.
    Rescan,
    /// Writes a support bundle to the USB stick.
    Support,
    /// Restarts once without settings; the box serves no machine and keeps all data.
    SafeMode,
    /// Restarts the box and its services.
    Restart,
    /// Switches the box off.
    PowerOff,
    /// Erases settings, keys, cached images and machine records; the systems in both slots stay.
    FactoryReset,
    /// Retries a machine's failed workflow.
    Retry,
    /// Switches a machine on or off.
    MachinePower,
}

/// All actions; the menu's actions come first, in the order of the menu.
pub const ACTIONS: [Action; 10] = [
    Action::Identify,
    Action::ShowPin,
    Action::Rescan,
    Action::Support,
    Action::SafeMode,
    Action::Restart,
    Action::PowerOff,
    Action::FactoryReset,
    Action::Retry,
    Action::MachinePower,
];

impl Action {
    /// Returns the name of the action in the setting `panel.actions`.
    pub fn setting(self) -> &'static str {
        match self {
            Action::Identify => "identify",
            Action::ShowPin => "show-pin",
            Action::Rescan => "rescan",
            Action::Support => "support",
            Action::SafeMode => "safe-mode",
            Action::Restart => "restart",
            Action::PowerOff => "power-off",
            Action::FactoryReset => "factory-reset",
            Action::Retry => "retry",
            Action::MachinePower => "machine-power",
        }
    }

    /// Returns the action with this name in the setting `panel.actions`.
    pub fn named(setting: &str) -> Option<Action> {
        ACTIONS.into_iter().find(|action| action.setting() == setting)
    }

    /// Returns the label of the menu entry.
    pub fn label(self) -> &'static str {
        match self {
            Action::Identify => "Identify",
            Action::ShowPin => "Show code/pin",
            Action::Rescan => "Rescan DHCP",
            Action::Support => "Support to USB",
            Action::SafeMode => "Safe mode",
            Action::Restart => "Restart",
            Action::PowerOff => "Power off",
            Action::FactoryReset => "Factory reset",
            Action::Retry => "Retry",
            Action::MachinePower => "Power",
        }
    }

    /// Returns the effect of the action, for the confirmation prompt.
    pub fn effect(self) -> &'static str {
        match self {
            Action::SafeMode => "starts without settings; machines are not served",
            Action::Restart => "machines wait about 20 s; installs go on after it",
            Action::PowerOff => "machines are not served until a person presses the button",
            Action::MachinePower => "switches the machine on or off at once",
            _ => "",
        }
    }

    /// Returns true if the action is an entry of the menu.
    pub fn in_menu(self) -> bool {
        !matches!(self, Action::Retry | Action::MachinePower)
    }

    /// Returns true if the action needs a second, long press as confirmation.
    pub fn wants_hold(self) -> bool {
        use Action::{MachinePower, PowerOff, Restart, SafeMode};
        matches!(self, SafeMode | Restart | PowerOff | MachinePower)
    }
}
