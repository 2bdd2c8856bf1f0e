//! The product's path on a virtual rack: real firmware, real BMC, real network, real operating
//! systems. Needs root and what `make setup` installs; says so otherwise.

mod faults;
mod path;
mod restarts;
mod strangers;
mod watch;
