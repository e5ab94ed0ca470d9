//! The shipped catalogs compute correct results, and every symbol of their tables can be called.

mod common;

use common::{Chain, expose_all, in_context, shipped};
use heapstead_catalog::{EntityKind, table};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Each check is `[what, got, expected]`.
fn check(checks: &Value, least: usize) {
    let checks = checks.as_array().unwrap_or_else(|| panic!("{checks}"));
    assert!(checks.len() >= least);
    for check in checks {
        assert_eq!(check[1], check[2], "{}", check[0]);
    }
}

#[test]
fn they_compute_what_they_should() {
    let (_, script) = expose_all(&shipped());
    let within =
        |text: &str| format!("JSON.stringify((() => {{ {} }})(), (_, value) => value === Infinity ? 'Infinity' : value)", returning(text));
    for (text, least) in [(include_str!("js/statistics.js"), 50), (include_str!("js/dates.js"), 35)] {
        let results = in_context(&[&script, &within(text)]);
        let text = results[1].as_str().unwrap_or_else(|| panic!("{}", results[1]));
        check(&serde_json::from_str(text).expect("JSON"), least);
    }
}

/// Turns the list at the end of a file of checks into a returned value.
fn returning(text: &str) -> String {
    text.replacen("\n[\n", "\nreturn [\n", 1)
}

#[test]
fn every_symbol_of_the_table_can_be_called() {
    let catalogs = shipped();
    let (exposed, script) = expose_all(&catalogs);
    let call = format!(
        "({})({}, {})",
        include_str!("js/every_symbol.js"),
        serde_json::to_string(&exposed.new).expect("JSON"),
        include_str!("js/samples.js").trim().trim_end_matches(';')
    );
    let table = table(&catalogs, &exposed.new).expect("a table");
    let taught: BTreeSet<&str> = table.lines().skip(1).filter_map(|line| line.split('\t').next()).collect();
    let mut chain = Chain::new();
    chain.run(&script);
    for result in [&in_context(&[&script, &call])[1], &chain.run(&call)] {
        assert_eq!(result["wrong"], json!([]), "{result}");
        let called: BTreeSet<&str> = result["called"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        assert_eq!(called, taught);
    }
}

#[test]
fn everything_in_them_is_described() {
    for catalog in shipped().iter() {
        assert!(!catalog.description.is_empty());
        for entity in catalog.entities() {
            let name = format!("{}.{}", catalog.name, entity.name);
            assert!(!entity.description.is_empty(), "{name}");
            assert!(entity.kind != EntityKind::Function || entity.signature.contains("): "), "{name} does not say what it returns");
            let own = entity.parameters.iter().chain(entity.methods.iter().flat_map(|method| &method.parameters));
            for parameter in own {
                assert!(!parameter.description.is_empty() && !parameter.kind.is_empty(), "{name}({})", parameter.name);
                assert!(parameter.kind != "unknown" || parameter.name == "text", "{name}({})", parameter.name);
            }
            assert!(entity.methods.iter().all(|method| !method.description.is_empty()), "{name}");
        }
    }
}
