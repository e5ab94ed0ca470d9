//! The contract of every store of blobs, and of heaps and outputs on top of it, as suites that take any implementation; and what S3 and the
//! cache promise beyond that.
//!
//! S3 is a real server of its API (moto, started by `tests/tools/python`), reached through a proxy that can do to a connection what networks do.

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

/// One test for each promise.
macro_rules! keeps_its_promises {
    ($suite:ident, $place:expr; $($promise:ident)*) => {
        mod $suite {
            $(#[test] fn $promise() { crate::$suite::$promise(&$place); })*
        }
    };
}

macro_rules! contract {
    ($($backend:ident: $place:expr;)*) => {
        $(mod $backend {
            keeps_its_promises! { blob_suite, $place;
                a_blob_comes_back_with_its_metadata
                another_blob_of_the_same_name_replaces_it
                ranges_are_read_as_far_as_the_blob_goes
                a_blob_that_fails_verification_is_not_returned
                a_blob_is_described_without_being_read
                a_missing_blob_is_not_found
                a_folder_lists_its_own_blobs
                a_removed_blob_is_gone_with_its_metadata
                names_that_reach_elsewhere_are_refused
                concurrent_puts_of_one_name_leave_one_of_them_whole
                a_store_that_is_down_does_not_say_what_exists
                a_deadline_is_the_callers_own
                local_files_become_blobs
                checking_and_tidying_leave_no_blobs
            }
            keeps_its_promises! { output_suite, $place;
                an_output_has_the_same_pages_once_it_has_become_a_blob
                an_output_that_did_not_become_a_blob_is_read_from_its_spool
            }
            keeps_its_promises! { heap_suite, $place;
                a_heap_comes_back_with_its_engine
                what_is_kept_is_the_format_to_the_byte
                putting_it_again_changes_nothing
                the_engine_that_put_it_last_is_told
                a_heap_is_kept_without_an_engine_where_none_is_known
                what_is_not_there_is_not_found
                what_can_not_be_a_heap_is_not_kept
                damage_is_told_by_name_and_left_as_it_is
                a_heap_under_another_key_is_damage
                an_engine_may_be_unknown_but_not_garbage
                a_store_that_is_down_is_no_answer_about_its_heaps
                a_heap_is_described_without_its_payload
                heaps_are_listed_until_it_is_enough
                thousands_are_listed
                what_is_removed_is_gone
                it_can_be_checked_without_a_trace
                many_may_put_and_get_at_once
                nothing_partial_is_ever_seen
                processes_may_share_it
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
