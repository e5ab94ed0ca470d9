//! Tests of REST on the running server: executions, heaps, tags, session logs, faults and load.

mod abuse;
mod concurrency;
mod crash;
mod default_folders;
mod error_codes;
mod events;
mod faults;
mod faults_s3;
mod fixture;
mod foreign_heaps;
mod garbage_collection;
mod hostile;
mod javascript_environment;
mod load;
mod openapi;
mod opened_sessions;
mod output_pages;
mod processes;
mod rest_heaps;
mod rest_problems;
mod rest_runs;
mod rest_shutdown;
mod restart;
mod smoke;
mod started_at;
mod tag_queries;
