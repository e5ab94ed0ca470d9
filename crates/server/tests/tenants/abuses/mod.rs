//! What an abusive tenant does, one file per resource that it wants for itself.

pub mod calls;
pub mod connections;
pub mod cursors;
pub mod exports;
pub mod growth;
pub mod health;
pub mod imports;
pub mod initialize;
pub mod output_pages;
pub mod runs;
pub mod session_log;
pub mod slow_requests;
pub mod sources;
pub mod streams;
pub mod uploads;
