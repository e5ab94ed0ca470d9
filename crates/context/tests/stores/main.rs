//! What every context store promises, as one suite that takes any of them, bare or wrapped; and what is promised of each beyond it.
//!
//! Redis is a real one, started by `tests/tools/redis`.

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

/// One test for each promise.
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
                what_is_stored_comes_back_to_the_byte
                it_is_replaced_only_where_it_is_what_was_read
                what_is_removed_is_gone_and_may_begin_anew
                sessions_do_not_see_each_other
                reads_and_writes_keep_it_and_idleness_ends_it
                what_cannot_be_read_is_moved_aside_and_counted
                what_changed_meanwhile_is_not_moved_aside
                a_record_under_another_id_is_not_given_out
                an_older_schema_is_migrated_and_stored_as_new
                a_newer_schema_is_left_untouched
                concurrent_updates_all_arrive
                a_refused_change_changes_nothing
                a_record_never_gets_another_id
                clearing_races_with_updates_and_nothing_old_returns
                it_counts_sessions_and_can_be_probed
                another_sessions_context_does_not_exist
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
