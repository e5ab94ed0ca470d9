//! The contract suite of context stores, run on every store, bare and wrapped, and tests for each store beyond the suite.
//!
//! Redis is a real server, started by `tests/tools/redis`.

mod encryption;
mod kill;
mod memory;
mod place;
mod processes;
mod recorder;
mod redis_down;
mod redis_server;
mod rotation;
mod sqlite;
mod suite;
mod summariser;

/// One test per promise of the contract.
macro_rules! keeps_its_promises {
    ($place:expr; $($promise:ident)*) => {
        $(#[tokio::test(flavor = "multi_thread")] async fn $promise() { crate::suite::$promise(&$place).await; })*
    };
}

macro_rules! contract {
    ($($name:ident: $place:expr;)*) => {
        $(mod $name {
            keeps_its_promises! { $place;
                nothing_is_there_until_something_is_stored
                stored_bytes_are_returned_unchanged
                a_document_is_replaced_only_if_unchanged_since_the_read
                a_removed_context_is_gone_and_can_be_created_again
                sessions_do_not_see_each_other
                reads_and_writes_refresh_the_ttl_and_idle_contexts_expire
                unreadable_documents_are_quarantined_and_counted
                a_document_changed_meanwhile_is_not_quarantined
                a_record_under_another_id_is_not_given_out
                an_older_schema_is_migrated_and_stored_as_new
                a_newer_schema_is_left_untouched
                no_concurrent_update_is_lost
                a_refused_change_changes_nothing
                a_record_never_gets_another_id
                a_clear_during_updates_brings_nothing_old_back
                it_counts_sessions_and_can_be_probed
                another_sessions_context_does_not_exist
                contexts_count_for_their_owner_and_are_refused_above_its_limit
            }
        })*
    };
}

contract! {
    memory_bare: crate::place::Place::memory();
    sqlite_bare: crate::place::Place::sqlite();
    redis_bare: crate::place::Place::redis();
    memory_wrapped: crate::place::Place::memory().wrapped();
    sqlite_wrapped: crate::place::Place::sqlite().wrapped();
    redis_wrapped: crate::place::Place::redis().wrapped();
    memory_over_a_database: crate::place::Place::memory_over_sqlite();
}
