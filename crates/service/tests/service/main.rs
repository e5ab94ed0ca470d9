//! The service in process, with a real engine: rules that need no protocol, and the number of database round trips per operation.

mod entered_sessions;
mod fixture;
mod round_trips;
mod shared_heaps;
mod start_points;
mod turns;
