//! The contracts of blobs, and of heaps and outputs in them, as suites that run against every implementation; and what S3 and the cache
//! promise beyond that.
//!
//! S3 is a real server of its API (moto, started by `tests/tools/python`), reached through a proxy that injects faults.

mod blob_suite;
mod cache;
mod heap_suite;
mod memory_blobs;
mod output_suite;
mod place;
mod processes;
mod proxy;
mod s3_faults;
mod s3_server;
mod tls;

/// One test per promise.
macro_rules! contract_tests {
    ($suite:ident, $place:expr; $($promise:ident)*) => {
        mod $suite {
            $(#[test] fn $promise() { crate::$suite::$promise(&$place); })*
        }
    };
}

macro_rules! contract {
    ($($backend:ident: $place:expr;)*) => {
        $(mod $backend {
            contract_tests! { blob_suite, $place;
                a_blob_comes_back_with_its_metadata
                another_blob_of_the_same_name_replaces_it
                a_range_ends_where_the_blob_ends
                a_blob_that_fails_verification_is_not_returned
                a_blob_is_described_without_being_read
                a_missing_blob_is_not_found
                a_folder_lists_its_own_blobs
                a_removed_blob_is_gone_with_its_metadata
                names_that_leave_the_store_are_refused
                concurrent_puts_of_one_name_store_exactly_one_of_them
                an_unavailable_store_does_not_report_not_found
                a_callers_deadline_does_not_affect_others
                local_files_become_blobs
                checking_and_tidying_add_no_blobs
            }
            contract_tests! { output_suite, $place;
                an_output_that_became_a_blob_has_the_same_pages
                an_output_that_did_not_become_a_blob_is_read_from_its_spool
            }
            contract_tests! { heap_suite, $place;
                a_heap_comes_back_with_its_engine
                a_long_heap_is_stored_and_opened_piece_by_piece
                stored_bytes_are_exactly_the_file_format
                putting_a_heap_again_changes_nothing
                the_engine_of_the_last_put_is_returned
                a_heap_may_be_stored_without_an_engine
                only_a_signed_heap_is_returned_for_restoring
                a_missing_heap_is_not_found
                a_payload_that_is_too_short_is_refused
                damage_is_reported_by_kind_and_left_for_inspection
                a_heap_under_another_key_is_damage
                an_engine_id_may_be_missing_but_not_invalid
                an_unavailable_store_is_not_reported_as_not_found
                a_heap_is_described_without_its_payload
                listing_stops_when_the_caller_breaks
                thousands_of_heaps_are_listed
                a_removed_heap_is_not_found
                a_check_leaves_nothing_behind
                concurrent_puts_and_gets_succeed
                partial_heaps_are_never_visible
                processes_share_a_store
            }
        })*
    };
}

contract! {
    folder: crate::place::Folder::new();
    s3: crate::place::Bucket::new();
    cached: crate::place::Cached::new();
    memory: crate::memory_blobs::MemoryBlobs::default();
}
