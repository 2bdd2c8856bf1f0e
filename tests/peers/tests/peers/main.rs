//! One binary for all tests that need stock programs.

#![allow(clippy::unwrap_used, reason = "a test crate: its helpers fail the test they help")]

mod access;
mod acting;
mod agents;
mod amt;
mod backup;
mod backup_target;
mod bmc;
mod claim;
mod clients;
mod cluster_class;
mod cluster_moves;
mod cluster_nodes;
mod cluster_page;
mod cluster_takeover;
mod clusterctl;
mod comparison;
mod consoles;
mod containers;
mod controllers;
mod definitions;
mod founding_guide;
mod merge;
mod openapi;
mod pairing;
mod pattern;
mod poe;
mod protobuf;
mod reconnecting;
mod registry;
mod remote_objects;
mod repository_proxy;
mod requests;
mod servers;
mod setup;
mod several_boxes;
mod talos;
mod template;
mod tootles;
mod watching;
