//! Symbols over random waves: the order of seeds does not matter, assigned symbols never change, and no symbol is assigned twice.

mod common;

use common::{all, catalogs, folder, shipped};
use heapstead_catalog::{Catalogs, EntitySymbols, Pick, PickError, PromptHash, Symbol, Symbols, TABLE_HEADER, table};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

static SHIPPED: LazyLock<Catalogs> = LazyLock::new(shipped);

/// Every symbol of a space and what it refers to.
fn meanings(entities: &[EntitySymbols]) -> BTreeMap<Symbol, String> {
    let mut meanings = BTreeMap::new();
    let mut note = |symbol: Symbol, meaning: String| assert_eq!(meanings.insert(symbol, meaning), None, "{symbol} was given twice");
    for entity in entities {
        let name = format!("{}.{}", entity.catalog, entity.entity);
        note(entity.symbol, name.clone());
        entity.parameters.iter().enumerate().for_each(|(index, symbol)| note(*symbol, format!("{name}({index})")));
        for method in &entity.methods {
            note(method.symbol, format!("{name}.{} {}", method.method, method.is_static));
            method.parameters.iter().enumerate().for_each(|(index, symbol)| note(*symbol, format!("{name}.{}({index})", method.method)));
        }
    }
    meanings
}

fn waves() -> impl Strategy<Value = Vec<Vec<Pick>>> {
    let pick = proptest::sample::select(all(&SHIPPED));
    proptest::collection::vec(proptest::collection::vec(pick, 0..8), 1..6)
}

proptest! {
    #[test]
    fn symbols_never_change_their_meaning(waves in waves(), seed in any::<u64>()) {
        let mut symbols = Symbols::default();
        for wave in waves {
            let mut shuffled = wave.clone();
            shuffled.extend(wave.iter().take(2).cloned());
            let count = shuffled.len().max(1);
            shuffled.rotate_left(seed as usize % count);
            shuffled.reverse();
            let exposed = symbols.expose(&SHIPPED, &wave).expect("known picks");
            prop_assert_eq!(&exposed, &symbols.expose(&SHIPPED, &shuffled).expect("known picks"));

            let (before, after) = (meanings(symbols.entities()), meanings(exposed.symbols.entities()));
            for (symbol, meaning) in &before {
                prop_assert_eq!(Some(meaning), after.get(symbol));
            }
            prop_assert_eq!(before.len() + meanings(&exposed.new).len(), after.len());
            let given: BTreeSet<Pick> = exposed.new.iter().map(|new| Pick::new(&*new.catalog, &*new.entity)).collect();
            let wanted: BTreeSet<Pick> = wave.iter().filter(|pick| symbols.find(pick).is_none()).cloned().collect();
            prop_assert_eq!(given, wanted);
            prop_assert_eq!(exposed.is_noop(), wave.iter().all(|pick| symbols.find(pick).is_some()));

            // Without gaps, from 1.
            for number in 1..=exposed.symbols.entities().len() as u32 {
                prop_assert!(after.contains_key(&Symbol::entity(number)));
            }
            let again = exposed.symbols.expose(&SHIPPED, &wave).expect("known picks");
            prop_assert!(again.is_noop() && again.new_catalogs.is_empty());
            prop_assert_eq!(&again.symbols, &exposed.symbols);

            // The stored form round-trips.
            let stored = serde_json::to_string(&exposed.symbols).expect("JSON");
            symbols = serde_json::from_str(&stored).expect("the same");
            prop_assert_eq!(&symbols, &exposed.symbols);
        }
    }

    #[test]
    fn the_prompt_hash_depends_only_on_what_is_taught(waves in waves()) {
        let at_once = Symbols::default().expose(&SHIPPED, &waves.concat()).expect("known picks").symbols;
        let mut one_by_one = Symbols::default();
        for wave in waves.iter().rev() {
            one_by_one = one_by_one.expose(&SHIPPED, wave).expect("known picks").symbols;
        }
        prop_assert_eq!(PromptHash::of(&at_once), PromptHash::of(&one_by_one));
        prop_assert_eq!(PromptHash::of(&at_once).as_str().len(), 64);
        let more = at_once.expose(&SHIPPED, &all(&SHIPPED)).expect("known picks");
        prop_assert_eq!(more.is_noop(), PromptHash::of(&more.symbols) == PromptHash::of(&at_once));
    }
}

#[test]
fn an_invalid_pick_assigns_nothing_and_suggests_similar_names() {
    let expose =
        |catalog: &str, entity: &str| Symbols::default().expose(&SHIPPED, &[Pick::new("dates", "addDays"), Pick::new(catalog, entity)]);
    let near = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        expose("statistic", "mean"),
        Err(PickError::UnknownCatalog { catalog: "statistic".to_owned(), near: near(&["statistics"]) })
    );
    let unknown = expose("statistics", "medain").expect_err("refused");
    assert_eq!(
        unknown,
        PickError::UnknownEntity { catalog: "statistics".to_owned(), entity: "medain".to_owned(), near: near(&["median", "mean"]) }
    );
    assert_eq!(unknown.to_string(), "catalog `statistics` has no entity `medain`; near names: `median`, `mean`");
    assert!(expose("", "").expect_err("refused").to_string().contains("`catalog_search` finds"));
}

#[test]
fn a_changed_catalog_is_refused_in_the_same_symbol_space() {
    let before = catalogs(&[("index.js", "export const a = 1;")]);
    let after = catalogs(&[("index.js", "export const a = 2;")]);
    let symbols = Symbols::default().expose(&before, &[Pick::new("probe", "a")]).expect("known").symbols;
    assert_eq!(symbols.check(&before), Ok(()));
    assert_eq!(symbols.expose(&after, &[]), Err(PickError::Changed { catalog: "probe".to_owned() }));
    let other = Symbols::default().expose(&after, &[Pick::new("probe", "a")]).expect("known").symbols;
    assert_ne!(PromptHash::of(&symbols), PromptHash::of(&other));
}

#[test]
fn the_table_has_a_line_for_each_symbol_of_the_wave_and_no_other() {
    let tabs = "/** One\\two. */\nexport const a = 'x', b = (t = '\\t\t') => t;";
    let place = folder("odd", &[("index.js", tabs)]);
    let odd = Catalogs::load([place.path()]).expect("sound");
    let first = Symbols::default().expose(&odd, &[Pick::new("odd", "a")]).expect("known");
    assert_eq!(table(&odd, &first.new).expect("a table"), format!("{TABLE_HEADER}e1\tconstant\todd.a\ta: string\tOne\\\\two.\n"));
    let second = first.symbols.expose(&odd, &[Pick::new("odd", "a"), Pick::new("odd", "b")]).expect("known");
    assert_eq!(second.new_catalogs, Vec::<String>::new());
    let lines = table(&odd, &second.new).expect("a table");
    assert_eq!(
        lines.lines().skip(1).collect::<Vec<_>>(),
        ["e2\tfunction\todd.b\tb(t: string = '\\\\t ')\tOne\\\\two.", "p1\toptional parameter of e2\tt\tstring = '\\\\t '\t"]
    );

    let exposed = Symbols::default().expose(&SHIPPED, &all(&SHIPPED)).expect("known");
    let text = table(&SHIPPED, &exposed.new).expect("a table");
    assert!(text.lines().all(|line| line.split('\t').count() == 5));
    let shown: BTreeSet<String> = text.lines().skip(1).map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(shown, meanings(&exposed.new).keys().map(Symbol::to_string).collect());
    assert_eq!(text.lines().count() - 1, shown.len());
}

#[test]
fn search_matches_words_and_ranks_deterministically() {
    let found = |words: &str| SHIPPED.search(words, 3).iter().map(|hit| format!("{}.{}", hit.catalog, hit.entity)).collect::<Vec<_>>();
    for (words, first) in [
        ("mean", "statistics.mean"),
        ("the mean of numbers", "statistics.mean"),
        ("standard deviation", "statistics.standardDeviation"),
        ("Deviation, STANDARD", "statistics.standardDeviation"),
        ("least squares line", "statistics.linearRegression"),
        ("iso week", "dates.weekNumber"),
        ("leap", "dates.isLeapYear"),
        ("holidays business", "dates.addBusinessDays"),
        ("welford", "statistics.RunningStatistics"),
    ] {
        assert_eq!(found(words).first().map(String::as_str), Some(first), "{words}: {:?}", found(words));
        assert_eq!(found(words), found(words));
    }
    assert!(found("").is_empty() && found("zebra").is_empty() && SHIPPED.search("mean", 0).is_empty());
    assert_eq!(SHIPPED.search("statistics", 100).len(), SHIPPED.catalog("statistics").expect("there").entities().len());
}

/// All words of a query were collected before most of them were ignored: a long query took up to thirty times its length in memory.
#[test]
fn a_long_query_is_read_up_to_its_sixteenth_word() {
    let is_found_after = |words: usize| !SHIPPED.search(&format!("{} median", "zebra ".repeat(words)), 3).is_empty();
    assert!(is_found_after(15) && !is_found_after(16) && !is_found_after(1_000_000));
}
