//! What every heap store promises, as one suite that takes any of them; and what is promised of S3 and of the cache beyond it.
//!
//! S3 is a real server of its API (moto, started by `tests/tools/python`), reached through a proxy that can do to a connection what networks do.

mod cache;
mod place;
mod processes;
mod proxy;
mod s3_faults;
mod s3_server;
mod suite;
mod tls;

/// One test for each promise.
macro_rules! keeps_its_promises {
    ($place:expr; $($promise:ident)*) => {
        $(#[test] fn $promise() { crate::suite::$promise(&$place); })*
    };
}

macro_rules! contract {
    ($($backend:ident: $place:expr;)*) => {
        $(mod $backend {
            keeps_its_promises! { $place;
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
    files: crate::place::Files::new();
    s3: crate::place::Bucket::new();
    cached: crate::place::Cached::new();
}
