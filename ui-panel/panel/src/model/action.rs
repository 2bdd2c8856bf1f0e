//! Actions on the box that the panel offers, and permissions for actions on machines.

/// Action on the box, or permission for a group of actions on machines: a name in the setting
/// `panel.actions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Blinks the LED of the box.
    Identify,
    /// Shows pin and claim code for a minute, on the panel only.
    ShowPin,
    /// Searches for other DHCP servers.
    Rescan,
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
    /// Switches a machine on or off, or power cycles it.
    MachinePower,
    /// Starts over, cancels, pauses or resumes a machine's workflow, or dismisses its failure.
    MachineWork,
    /// Blinks the LED of a machine.
    MachineIdentify,
}

/// All actions; the menu's actions come first, in the order of the menu.
pub const ACTIONS: [Action; 11] = [
    Action::Identify,
    Action::ShowPin,
    Action::Rescan,
    Action::SafeMode,
    Action::Restart,
    Action::PowerOff,
    Action::FactoryReset,
    Action::Retry,
    Action::MachinePower,
    Action::MachineWork,
    Action::MachineIdentify,
];

impl Action {
    /// Returns the name of the action in the setting `panel.actions`.
    pub fn setting(self) -> &'static str {
        match self {
            Action::Identify => "identify",
            Action::ShowPin => "show-pin",
            Action::Rescan => "rescan",
            Action::SafeMode => "safe-mode",
            Action::Restart => "restart",
            Action::PowerOff => "power-off",
            Action::FactoryReset => "factory-reset",
            Action::Retry => "retry",
            Action::MachinePower => "machine-power",
            Action::MachineWork => "machine-work",
            Action::MachineIdentify => "machine-identify",
        }
    }

    /// Returns the action with this name in the setting `panel.actions`.
    pub fn named(setting: &str) -> Option<Action> {
        ACTIONS.into_iter().find(|action| action.setting() == setting)
    }

    /// Returns the label of the menu entry; empty for a permission.
    pub fn label(self) -> &'static str {
        match self {
            Action::Identify => "Identify",
            Action::ShowPin => "Show code/pin",
            Action::Rescan => "Rescan DHCP",
            Action::SafeMode => "Safe mode",
            Action::Restart => "Restart",
            Action::PowerOff => "Power off",
            Action::FactoryReset => "Factory reset",
            Action::Retry
            | Action::MachinePower
            | Action::MachineWork
            | Action::MachineIdentify => "",
        }
    }

    /// Returns the effect of the action, for the confirmation prompt.
    pub fn effect(self) -> &'static str {
        match self {
            Action::SafeMode => "starts without settings; machines are not served",
            Action::Restart => "machines wait about 20 s; installs go on after it",
            Action::PowerOff => "machines are not served until a person presses the button",
            _ => "",
        }
    }

    /// Returns true if the action is an entry of the menu, and not a permission.
    pub fn in_menu(self) -> bool {
        !self.label().is_empty()
    }

    /// Returns true if the action needs a second, long press as confirmation.
    pub fn wants_hold(self) -> bool {
        matches!(self, Action::SafeMode | Action::Restart | Action::PowerOff)
    }
}
