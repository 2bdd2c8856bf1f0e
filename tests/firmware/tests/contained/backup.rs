//! A box is lost with its disk, and a fresh box is restored from its backup.

use firmware::steps::backup;

use super::Lab;

#[test]
fn a_fresh_box_becomes_the_one_that_is_gone() {
    let lab = Lab::new("backup");
    let boxes = (&lab.place("gone", 1), &lab.place("spare", 2));
    backup::a_fresh_box_becomes_the_lost_one(boxes, &lab.image, &lab.owner, lab.folder());
    lab.succeed();
}
