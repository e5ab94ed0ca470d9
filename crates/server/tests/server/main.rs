//! The running server, seen through REST: every sentence of what it promises about executions, heaps, tags and session logs.

mod abuse;
mod concurrency;
mod crash;
mod events;
mod faults;
mod faults_s3;
mod fixture;
mod load;
mod openapi;
mod pages;
mod rest_heaps;
mod rest_problems;
mod rest_runs;
mod rest_shutdown;
mod restart;
mod smoke;
