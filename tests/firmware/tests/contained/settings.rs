//! An owner's settings survive a power cut, and can be reverted.

use firmware::steps::settings;

use super::Lab;

#[test]
fn what_is_set_survives_a_power_cut_and_can_be_taken_back() {
    let lab = Lab::new("settings");
    let disk = lab.disk("disk");
    settings::survive_a_power_cut(&lab.place("box", 0x77), &disk, &lab.owner, lab.folder());
    lab.succeed();
}
