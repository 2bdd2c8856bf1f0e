//! How far something is: a label, a share and what is left.
