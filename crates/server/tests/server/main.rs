//! The running server, seen through REST: every sentence of what it promises about executions, heaps, tags and session logs.

mod fixture;
mod smoke;
