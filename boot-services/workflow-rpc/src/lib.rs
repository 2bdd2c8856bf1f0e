//! workflow-rpc
