//! Formats of requests and responses: paths, queries, bodies, content negotiation, documents with
//! an ETag. This module uses no handler, filter or review.

pub mod accept;
pub mod body;
pub mod counted;
mod decode;
pub mod documents;
pub mod negotiate;
pub mod path;
pub mod query;
pub mod response;

pub use decode::Decoded;
