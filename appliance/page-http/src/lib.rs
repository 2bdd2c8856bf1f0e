//! HTTP parts that pages need and that know nothing of the box: compression, server-sent events
//! that many streams share, multipart forms with a file, and CSRF tokens that no two responses
//! repeat.
//!
//! Never: a page, a session, a file on disk.
//!
//! Enter at [`compression::compress`], [`event_frame::Frame`], [`multipart::Form`] and
//! [`form_token`].

pub mod compression;
pub mod event_frame;
pub mod form_token;
pub mod multipart;
