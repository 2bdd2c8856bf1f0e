//! A machine's Events in order, with their offsets, and the times between the milestones of a boot.
