//! The contract of the record traits, as one suite per trait that runs against every implementation.

mod common;
mod damaged_heaps;
mod executions;
mod health;
mod heap_reservations;
mod heaps;
mod journal;
mod logical_sessions;
mod owners;
mod server_keys;
mod session_log;
mod sessions;
mod sqlite;
mod tags;
mod turn_states;
mod turns;
mod usage;

/// One test per promise and implementation.
macro_rules! contract {
    ($($backend:ident: $place:expr;)*) => {
        $(mod $backend {
            contract_tests! { $place;
                damaged_heaps: damaged_heaps_are_listed_until_they_are_removed
                damaged_heaps: a_heap_that_several_servers_find_damaged_is_listed_once
                executions: a_turn_that_has_ended_is_recorded_at_once
                executions: an_end_is_set_once
                executions: executions_are_listed_newest_first_in_pages
                executions: executions_past_their_retention_are_deleted
                executions: a_quota_bounds_the_running_executions_of_an_owner
                executions: the_error_code_is_stored_with_the_error
                executions: running_executions_name_their_server
                executions: an_execution_is_stored_with_every_field
                executions: an_execution_that_several_servers_end_ends_once
                executions: executions_of_another_owner_do_not_exist
                executions: executions_are_listed_by_session
                executions: an_execution_in_a_session_of_another_owner_is_refused
                executions: a_quota_holds_when_servers_accept_at_once
                executions: running_executions_are_found_by_session
                executions: an_end_by_another_server_releases_the_turn
                executions: servers_that_delete_at_once_delete_each_execution_once
                executions: a_long_result_is_read_in_parts
                executions: an_execution_is_deleted_once_it_has_ended
                health: a_check_succeeds_and_leaves_no_records
                health: reads_and_writes_are_counted_since_the_store_was_opened
                heap_reservations: a_reservation_counts_until_a_record_takes_its_place
                heap_reservations: the_end_of_a_run_records_its_reserved_heap_or_nothing
                heap_reservations: a_quota_holds_when_servers_reserve_at_once
                heap_reservations: a_reservation_grows_and_gets_its_heap
                heap_reservations: the_last_name_of_a_heap_removes_its_file
                heap_reservations: a_heap_is_stored_or_removed_and_never_both
                heap_reservations: an_interrupted_removal_is_taken_over_once
                heap_reservations: reservations_name_their_server
                heaps: a_heap_is_in_use_while_something_refers_to_it
                heaps: the_last_owner_of_a_heap_removes_it
                heaps: each_owner_has_its_own_metadata_of_a_heap
                heaps: heaps_are_listed_in_pages_by_owner
                heaps: references_of_another_owner_do_not_count
                heaps: a_heap_may_have_several_owners
                heaps: a_heap_that_several_servers_add_counts_once
                heaps: the_heap_of_a_run_belongs_to_its_owner
                heaps: an_owner_deletes_a_heap_unless_something_of_its_own_refers_to_it
                heaps: the_file_of_a_deleted_heap_goes_unless_another_database_may_have_it
                journal: an_entry_is_written_with_the_end_of_its_run
                journal: an_entry_goes_with_its_execution
                journal: an_entry_of_a_session_stays_as_long_as_the_session
                journal: the_first_producer_of_a_heap_leads_back_to_its_beginning
                journal: a_rebuilt_heap_becomes_the_head_of_its_session
                journal: an_import_is_recorded_with_its_binding_and_goes_with_its_session
                journal: an_import_into_an_earlier_state_undoes_the_turns_after_it
                logical_sessions: an_intent_has_one_logical_session_per_owner_and_scope
                logical_sessions: servers_that_open_an_intent_at_once_get_one_session
                logical_sessions: a_logical_session_of_another_owner_does_not_exist
                logical_sessions: a_logical_session_counts_towards_the_quota_while_it_is_bound
                logical_sessions: a_binding_grows_or_replaces_or_sets_aside
                logical_sessions: a_new_execute_session_does_not_continue_from_the_previous_heap
                logical_sessions: an_execute_session_that_is_lost_during_a_run_stays_lost
                logical_sessions: an_execute_session_is_reused_by_key_until_it_expires
                logical_sessions: an_execute_session_that_several_servers_lose_is_lost_once
                logical_sessions: an_execute_session_expires_unless_it_is_used
                logical_sessions: servers_that_sweep_at_once_expire_each_execute_session_once
                logical_sessions: an_unfinished_turn_extends_execute_sessions_of_its_server
                logical_sessions: a_notice_is_pending_until_it_is_cleared
                logical_sessions: the_end_of_a_run_changes_its_logical_session
                logical_sessions: an_execution_names_its_logical_session
                logical_sessions: short_names_are_numbered_per_owner
                logical_sessions: servers_that_number_sessions_at_once_agree
                logical_sessions: a_forgotten_logical_session_frees_its_intent_and_never_its_ref
                logical_sessions: lost_execute_sessions_are_deleted_unless_their_session_is_bound_to_them
                owners: every_owner_of_a_record_is_listed_once_and_in_order
                owners: totals_are_sums_over_all_owners
                owners: totals_hold_when_servers_write_at_once
                owners: an_owner_over_its_quota_stores_no_more_until_it_deletes
                owners: what_another_store_has_counts_too
                owners: owners_without_anything_are_forgotten
                session_log: concurrent_servers_number_entries_without_gaps
                session_log: a_log_is_read_in_pages
                session_log: logs_of_another_owner_do_not_exist
                session_log: sessions_with_entries_are_listed_by_name
                session_log: a_log_has_the_heaps_that_its_runs_used_and_produced
                session_log: the_turn_of_an_execution_is_its_number_in_its_session
                session_log: undone_turns_stay_in_the_log
                session_log: a_run_that_outlives_its_session_adds_no_entry
                session_log: long_code_is_read_in_parts
                sessions: a_session_is_found_by_its_owner_until_it_ends
                sessions: a_session_expires_unless_it_is_used
                sessions: opened_sessions_are_listed_in_pages_by_connection
                sessions: heads_move_with_completed_runs
                sessions: a_named_session_is_created_only_on_request
                sessions: servers_that_create_a_named_session_at_once_get_one
                sessions: a_session_of_another_owner_does_not_exist
                sessions: a_quota_holds_when_servers_open_sessions_at_once
                sessions: a_session_that_several_servers_end_ends_once
                sessions: sessions_that_ended_long_ago_are_deleted_with_their_logs
                sessions: opened_sessions_are_there_after_reopening
                sessions: a_named_session_is_deleted_with_its_log_and_its_name_is_free
                sessions: unused_named_sessions_are_found
                server_keys: server_keys_are_listed_newest_last_and_never_lost
                server_keys: keys_of_different_purposes_are_separate
                server_keys: servers_that_start_at_once_have_the_same_first_key
                tags: tags_are_replaced_removed_and_found_by_all_their_pairs
                tags: tags_of_another_owner_do_not_exist
                tags: tags_that_are_replaced_at_once_are_never_mixed
                tags: tags_on_heaps_that_their_owner_does_not_have_are_found_and_deleted
                turn_states: a_turn_leaves_a_state_that_is_the_head
                turn_states: a_checkpoint_stores_the_heap_of_a_state_and_skips_earlier_ones
                turn_states: a_turn_that_stores_its_heap_skips_those_before_it
                turn_states: the_newest_checkpoint_of_a_session_is_in_use
                turn_states: the_reason_of_a_failed_checkpoint_stays_until_it_is_stored
                turn_states: the_tail_of_a_head_goes_back_to_the_newest_stored_heap
                turn_states: a_run_outside_of_an_opened_session_leaves_no_state
                turns: runs_of_a_session_take_turns_in_order_of_acceptance
                turns: a_preparation_takes_a_turn_without_an_execution
                turns: an_ended_session_refuses_turns
                turns: concurrent_turns_have_one_order
                turns: turns_are_there_after_reopening
                turns: a_turn_for_a_session_that_does_not_exist_is_refused
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

/// Every trait of `src/records` has a suite of the same name, which calls each of its methods, and every promise is in `contract!`.
#[test]
fn every_method_of_the_traits_is_called_and_every_promise_is_tested() {
    let crate_folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(crate_folder.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let names = |text: &str, start: &str| -> Vec<String> {
        text.split(start).skip(1).filter_map(|rest| rest.split_once('(')).map(|(name, _)| name.to_owned()).collect()
    };
    let contract = read("tests/records/main.rs");
    let mut missing = Vec::new();
    for file in std::fs::read_dir(crate_folder.join("src/records")).expect("traits").flatten() {
        let file = file.file_name().into_string().expect("a name");
        let suite = if file == "mod.rs" { "health" } else { file.trim_end_matches(".rs") };
        let (source, tests) = (read(&format!("src/records/{file}")), read(&format!("tests/records/{suite}.rs")));
        let methods = source.split_once("#[async_trait]").map_or("", |(_, methods)| methods);
        let uncalled = names(methods, "    async fn ").into_iter().filter(|name| !tests.contains(&format!(".{name}(")));
        missing.extend(uncalled.map(|name| format!("{suite}: no test calls `{name}`")));
        let promises = names(&tests, "\npub async fn ").into_iter().map(|name| format!("{suite}: {name}\n"));
        missing.extend(promises.filter(|promise| !contract.contains(promise.as_str())).map(|promise| format!("not tested: {promise}")));
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
