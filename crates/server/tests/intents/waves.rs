//! Waves of catalog entities: symbols never change their meaning, and every symbol can be called.

use crate::fixture::Server;
use crate::owner::{Owner, Site, table};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Picks for every entity.
async fn everything(ann: &Owner, server: &Server) -> Vec<(String, String)> {
    let (_, found) = ann.get(server, "/api/catalogs/search?limit=1000").await;
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    found["entities"].as_array().expect("entities").iter().map(|hit| (text(&hit["catalog"]), text(&hit["entity"]))).collect()
}

#[tokio::test]
async fn symbols_never_change_their_meaning_over_random_waves() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let server = site.start(&[]);
    let all = everything(&ann, &server).await;
    assert!(all.len() > 30, "{all:?}");
    let mut seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut random = |below: usize| {
        // xorshift*: any generator works, as long as a failure can be replayed.
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    let mut known: BTreeMap<String, (String, String)> = BTreeMap::new();
    let (mut revision, mut session): (Option<u64>, _) = (None, Value::Null);
    for wave in 0..12 {
        let picks: Vec<_> = (0..=random(4)).map(|_| all[random(all.len())].clone()).collect();
        let seeds: Vec<_> = picks.iter().map(|(catalog, entity)| (catalog.as_str(), entity.as_str())).collect();
        let answer = ann.context(&server, "waves", &seeds).await;
        session = answer["logical_session_ref"].clone();
        let wave_answer = &answer["wave"];
        let mode = wave_answer["mode"].as_str().expect("a mode");
        assert_eq!(answer["continuity"]["new_symbol_space"], json!(wave == 0), "{answer}");
        if mode == "noop" {
            assert!(!wave_answer["domain"].as_str().expect("a notice").contains('\t'), "the table is not repeated: {answer}");
            continue;
        }
        assert!(revision.is_none() || wave_answer["revision"].as_u64() > revision, "{answer}");
        revision = wave_answer["revision"].as_u64();
        for (symbol, kind, name) in table(wave_answer) {
            assert!(known.insert(symbol.clone(), (kind, name)).is_none(), "{symbol} was given twice");
        }
    }
    // An entity's symbol has the value of its full name; a method's symbol is the method.
    for (symbol, (kind, name)) in known.iter().filter(|(symbol, _)| symbol.starts_with('e')) {
        let same = ann.run(&server, &session, &format!("Object.is({symbol}, {name})")).await;
        assert_eq!(same["result"], "true", "{symbol} ({kind}) is {name}: {same}");
    }
}

#[tokio::test]
async fn the_mode_describes_the_wave() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let server = site.start(&[]);
    let mode = async |seeds: &[(&str, &str)]| ann.context(&server, "modes", seeds).await["wave"]["mode"].clone();
    assert_eq!(mode(&[]).await, "open");
    assert_eq!(mode(&[]).await, "noop");
    assert_eq!(mode(&[("statistics", "mean")]).await, "expand", "the first table");
    assert_eq!(mode(&[("statistics", "median")]).await, "expand");
    assert_eq!(mode(&[("dates", "addDays")]).await, "federate");
    assert_eq!(mode(&[("statistics", "mean"), ("dates", "addDays")]).await, "noop");
}

#[tokio::test]
async fn variables_survive_a_wave_and_symbols_survive_a_move_to_an_older_heap() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let server = site.start(&[]);
    let session = ann.context(&server, "jump", &[]).await["logical_session_ref"].clone();
    let before = ann.run(&server, &session, "let mine = 40").await;
    ann.context(&server, "jump", &[("statistics", "mean")]).await;
    assert_eq!(ann.run(&server, &session, "mine + e1([2])").await["result"], "42");
    // A heap from before the wave lacks the catalog; in the session it is bound again.
    let back = json!({ "code": "mine + statistics.mean([1]) + e1([1])", "session": session, "heap": before["heap"], "wait_secs": 60 });
    let (_, record) = ann.post(&server, "/api/exec", back).await;
    assert_eq!(record["result"], "42", "{record}");
}

#[tokio::test]
async fn concurrent_runs_and_waves_are_all_applied() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let (one, two) = (site.start(&[]), site.start(&[]));
    let session = ann.context(&one, "all at once", &[]).await["logical_session_ref"].clone();
    let entities = ["mean", "median", "mode", "variance", "quantile"];
    let waves = entities.iter().enumerate().map(|(number, entity)| {
        let (ann, server) = (ann.clone(), if number % 2 == 0 { &one } else { &two });
        async move { drop(ann.context(server, "all at once", &[("statistics", entity)]).await) }
    });
    let runs = (0..20).map(|number| {
        let (ann, session, server) = (ann.clone(), session.clone(), if number % 2 == 0 { &two } else { &one });
        async move {
            let record = ann.run(server, &session, "globalThis.n = (globalThis.n ?? 0) + 1").await;
            assert_eq!(record["status"], "completed", "{record}");
        }
    });
    tokio::join!(futures_util::future::join_all(waves), futures_util::future::join_all(runs));
    let all = entities.map(|entity| format!("typeof statistics.{entity}")).join(" + ");
    let seen = ann.run(&one, &session, &format!("[n, {all}, typeof e5]")).await;
    let functions = "function".repeat(5);
    assert_eq!(seen["result"], json!(format!("[20,\"{functions}\",\"function\"]")), "{seen}");
}
