//! The contract of the record traits, as one suite that runs against every implementation.

mod common;
mod executions;
mod heaps;
mod sessions;
mod sqlite;
mod tags;
mod turns;

/// One test per promise and implementation.
macro_rules! contract {
    ($($backend:ident: $place:expr;)*) => {
        $(mod $backend {
            contract_tests! { $place;
                executions: an_end_is_set_once
                executions: logs_have_no_gaps_however_many_end_at_once_in_however_many_processes
                executions: executions_are_listed_newest_first_and_page_by_page
                executions: executions_past_their_time_are_forgotten
                executions: a_quota_bounds_the_running_executions_of_an_owner
                executions: the_error_code_is_stored_with_the_error
                executions: running_executions_name_their_server
                heaps: heaps_are_in_use_for_a_reason
                heaps: owners_have_heaps_of_their_own_and_share_bytes
                heaps: damaged_heaps_are_remembered_until_they_are_removed
                sessions: a_session_is_found_by_its_owner_until_it_ends
                sessions: a_session_expires_unless_it_is_used
                sessions: opened_sessions_are_listed_in_pages_by_connection
                sessions: heads_move_with_completed_runs
                sessions: a_named_session_is_created_on_request_only
                sessions: state_keys_are_shared_and_never_lost
                tags: tags_are_replaced_removed_and_found_by_all_their_pairs
                turns: runs_of_a_session_have_turns_in_order_of_acceptance
                turns: a_preparation_has_a_turn_without_an_execution
                turns: an_ended_session_has_no_turns
            }
        })*
    };
}

macro_rules! contract_tests {
    ($place:expr; $($noun:ident: $promise:ident)*) => {
        $(#[tokio::test] async fn $promise() { crate::$noun::$promise(&$place).await; })*
    };
}

contract! {
    in_sqlite: crate::sqlite::Folder::new();
}
