//! Tests of REST on the running server: every promise about executions, heaps, tags and session logs.

mod abuse;
mod collecting;
mod concurrency;
mod crash;
mod default_folders;
mod error_codes;
mod events;
mod faults;
mod faults_s3;
mod fixture;
mod foreign_heaps;
mod hostile;
mod load;
mod openapi;
mod opened_sessions;
mod pages;
mod processes;
mod rest_heaps;
mod rest_problems;
mod rest_runs;
mod rest_shutdown;
mod restart;
mod smoke;
mod started_at;
mod tag_queries;
mod what_code_sees;
