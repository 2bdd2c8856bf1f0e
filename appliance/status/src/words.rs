//! States as words, each with a tone.
