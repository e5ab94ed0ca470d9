//! The script that binds symbols, in a plain V8 context and on chains of heaps, with hostile session state.

mod common;

use common::{Chain, catalogs, expose_all, in_context};
use heapstead_catalog::{Catalogs, Pick, Symbols, Warning, script, warnings};
use serde_json::{Value, json};

/// e1 Counter (p1; m1 static total; m2 add(p2), m3 all(...p3, p4 rest)), e2 LIMIT, e3 frozen (m4 double(p5)), e4 list (p6, p7, p8), e5 rest(p9, p10).
const PROBE: &[(&str, &str)] = &[
    (
        "index.ts",
        "export { Counter } from './counter.ts';\nexport const LIMIT = 5;\nexport const frozen = Object.freeze({ factor: 2, double(x: number) { return x * this.factor; } });\nexport function list(a: unknown, b: unknown = 'b', c?: unknown) { return [a, b, c]; }\nexport const rest = (first: unknown, ...others: unknown[]) => [first, others];\nlet evaluated = 0;\nevaluated++;\nexport const times = () => evaluated;",
    ),
    (
        "counter.ts",
        "export class Counter {\n  static #made = 0;\n  #n: number;\n  constructor(from = 0) { this.#n = from; Counter.#made++; }\n  static total() { return this.#made; }\n  add(by: number) { this.#n += by; return this; }\n  all(head: number, ...tail: number[]) { return [this.#n, head, tail]; }\n}",
    ),
];

fn probe() -> (Catalogs, String) {
    let catalogs = catalogs(PROBE);
    let (_, script) = expose_all(&catalogs);
    (catalogs, script)
}

const USES: &str = "[
  new e1(3).m2(4).m3(1, 2, 3), new e1({ p1: 3 }).m2({ p2: 4 }).m3({ p3: 1, p4: [2, 3] }), new probe.Counter(3).add(4).all(1),
  e1.m1() > 0, e1.total() > 0, probe.Counter.m1() === e1.total(), new e1() instanceof e1, e1 === probe.Counter, (class extends e1 {}).name,
  e2, e3.m4(4), e3.m4({ p5: 5 }), e3.double(6), probe.frozen.factor,
  e4(1), e4({ p6: 1, p8: 3 }), e4({ p7: 2 }), e4({}), e4({ p6: 1, x: 2 }), e4({ p6: 1 }, 2), e4([1]), probe.list({ p6: 'full' }), e4({ p1: 1 }),
  e5({ p9: 1, p10: [2, 3] }), e5({ p10: [] }), e5(1, 2), e6()
]";

fn used() -> Value {
    json!([
        [7, 1, [2, 3]], [7, 1, [2, 3]], [7, 1, []],
        true, true, true, true, true, "",
        5, 8, 10, 12, 2,
        [1, "b", null], [1, "b", 3], [null, 2, null], [{}, "b", null], [{ "p6": 1, "x": 2 }, "b", null], [{ "p6": 1 }, 2, null], [[1], "b", null], ["full", "b", null], [{ "p1": 1 }, "b", null],
        [1, [2, 3]], [null, []], [1, [2]], 1
    ])
}

#[test]
fn symbols_full_names_and_the_named_form_work() {
    let (_, script) = probe();
    // Results may contain undefined, which JSON turns into null.
    let uses = format!("JSON.stringify({USES})");
    let results = in_context(&[&script, &uses, &script, &uses]);
    assert_eq!(results[0], json!([]));
    assert_eq!(results[2], json!([]));
    for text in [&results[1], &results[3]] {
        assert_eq!(serde_json::from_str::<Value>(text.as_str().unwrap_or_else(|| panic!("{text}"))).expect("JSON"), used());
    }
    let mut chain = Chain::new();
    assert_eq!(chain.run(&script), json!([]));
    let uses = format!("JSON.parse(JSON.stringify({USES}))");
    assert_eq!(chain.run(&uses), used());
    assert_eq!(chain.run(&script), json!([]), "bound again on the same heap");
    assert_eq!(chain.run(&uses), used(), "after two more snapshots");
}

#[test]
fn bindings_are_hidden_fixed_and_configurable() {
    let (_, script) = probe();
    let results = in_context(&[
        &script,
        "[Object.keys(globalThis), ['e1', 'e2', 'probe', 'heapstead:catalogs'].map((name) => Object.getOwnPropertyDescriptor(globalThis, name)).map((d) => [d.writable, d.configurable])]",
        "'use strict'; e2 = 1",
        "Object.keys(new e1()).concat(Object.keys(probe.frozen))",
        "'use strict'; probe.list = 1",
        "let e4 = 'mine'; e4",
    ]);
    assert_eq!(results[1], json!([[], [[false, true], [false, true], [false, true], [false, true]]]));
    assert!(results[2]["thrown"].as_str().is_some_and(|text| text.contains("read only")), "{}", results[2]);
    assert_eq!(results[3], json!(["factor", "double"]));
    assert!(results[4]["thrown"].as_str().is_some_and(|text| text.starts_with("TypeError")), "{}", results[4]);
    assert_eq!(results[5], json!("mine"));
}

#[test]
fn waves_are_additive_and_evaluate_nothing_twice() {
    let catalogs = catalogs(PROBE);
    let first = Symbols::default().expose(&catalogs, &[Pick::new("probe", "list")]).expect("known");
    let second = first.symbols.expose(&catalogs, &[Pick::new("probe", "Counter"), Pick::new("probe", "list")]).expect("known");
    let (one, two) = (script(&catalogs, &first.new).expect("a script"), script(&catalogs, &second.new).expect("a script"));
    let whole = script(&catalogs, second.symbols.entities()).expect("a script");
    let mut chain = Chain::new();
    chain.run(&one);
    chain.run("const kept = probe, first = new probe.Counter(1);");
    assert_eq!(chain.run("typeof e2"), json!("undefined"));
    chain.run(&two);
    assert_eq!(
        chain.run("[kept === probe, first instanceof e2, first.m2({ p5: 2 }) === first, e1({ p1: 9 })[0], probe.times()]"),
        json!([true, true, true, 9, 1])
    );
    // A heap without the catalogs, as after a move to an older heap.
    let mut other = Chain::new();
    other.run("let before = 1");
    other.run(&whole);
    assert_eq!(other.run("[e1(1)[0], e2.m1(), before]"), json!([1, 0, 1]));
}

#[test]
fn session_variables_are_not_changed_and_are_reported() {
    let (_, script) = probe();
    let warned = |result: &Value| {
        let warnings: Vec<Warning> = warnings(&result.to_string()).expect("warnings");
        assert!(warnings.iter().all(|warning| warning.text.contains(&format!("names.{}`", warning.name))), "{warnings:?}");
        warnings.into_iter().map(|warning| warning.name).collect::<Vec<_>>()
    };
    let mut chain = Chain::new();
    chain.run("let e1 = 'let'; const e2 = 'const'; var e3 = 'var'; globalThis.e4 = 'property'; class e5 {}; function e6() { return 'function' }; const probe = 'mine'; 1");
    let result = chain.run(&script);
    assert_eq!(warned(&result), ["probe", "e1", "e2", "e3", "e4", "e5", "e6"]);
    assert_eq!(
        chain.run("[e1, e2, e3, e4, typeof e5, e6(), probe]"),
        json!(["let", "const", "var", "property", "function", "function", "mine"])
    );
    assert_eq!(
        chain.run("const { names } = globalThis['heapstead:catalogs']; [new names.e1(1).m2(1).m3(1), names.e4({ p6: 1 })[0], names.probe.LIMIT, globalThis.e1.m1()]"),
        json!([[2, 1, []], 1, 5, 1])
    );
    // A variable whose initialiser threw stays uninitialised, and reading it throws.
    let results = in_context(&["let e4 = (() => { throw new Error('no') })()", &script, "globalThis.e4({ p6: 1 })[0]"]);
    assert_eq!(warned(&results[1]), ["e4"]);
    assert_eq!(results[2], json!(1));
    let mut chain = Chain::new();
    chain.run("let e2; 1");
    let result = chain.run(&script);
    assert_eq!(warned(&result), ["e2"]);
    // A variable declared after the symbols were bound shadows its symbol too, and is reported when they are bound again.
    chain.run("let e5 = 5; 1");
    let result = chain.run(&script);
    assert_eq!(warned(&result), ["e2", "e5"]);
}

#[test]
fn poisoned_prototypes_before_and_after_do_no_harm() {
    let (_, script) = probe();
    let poison = "
      for (const name of ['value', 'writable', 'get', 'set', 'enumerable', 'configurable', 'apply', 'construct', 'positions', 'target', 'call'])
        Object.defineProperty(Object.prototype, name, { __proto__: null, get() { throw new Error('poison ' + name) }, set() { throw new Error('poison ' + name) }, configurable: true });
      Object.defineProperty(Array.prototype, 0, { __proto__: null, set() { throw new Error('poison 0') }, configurable: true });
      Array.prototype[Symbol.iterator] = null; Array.prototype.push = null; Function.prototype.call = null; Function.prototype.apply = null;
      Function.prototype.bind = null; Object.prototype.hasOwnProperty = null; globalThis.globalThis = null; Map.prototype.get = null; 1";
    let removed = "Reflect = null; Proxy = null; Object.freeze = null; Object.is = null; Object = null; Array.isArray = null; 1";
    // Calls that do not use the poisoned functions themselves.
    let uses = "[new e1({ p1: 3 }).m2({ p2: 4 }) instanceof e1, e1.m1() > 0, e3.m4({ p5: 5 }), e4({ p6: 1, p8: 3 })[2], probe.list(2)[0], e5({ p9: 1, p10: [2, 3] })[1].length]";
    let used = json!([true, true, 10, 3, 2, 2]);
    for steps in [&[poison, &script][..], &[&script, poison], &[&script, poison, removed], &[&script, poison, removed, &script]] {
        let mut chain = Chain::new();
        for step in steps {
            let result = chain.run(step);
            assert!(result == json!(1) || result == json!([]), "{result}");
        }
        assert_eq!(chain.run(uses), used, "{} steps", steps.len());
    }
}

#[test]
fn a_heap_without_required_builtins_is_reported() {
    let (_, script) = probe();
    for (before, text) in [
        ("Reflect.defineProperty = () => true; 1", "Reflect.defineProperty or global object was changed"),
        ("Reflect = null; 1", "TypeError"),
    ] {
        let mut chain = Chain::new();
        chain.run(before);
        let record = chain.try_run(&script);
        assert_eq!(record["status"], "failed");
        assert!(record["error"].as_str().is_some_and(|error| error.contains(text)), "{record}");
    }
}

#[test]
fn a_frozen_prototype_is_reported() {
    let catalogs = catalogs(&[(
        "index.js",
        "export class A { go() { return 1 } static make() { return new A() } }\nObject.freeze(A); Object.freeze(A.prototype);",
    )]);
    let (_, script) = expose_all(&catalogs);
    let results = in_context(&[&script, "[e1.m2().go(), e1.make().go(), new e1().go()]"]);
    let warnings = warnings(&results[0].to_string()).expect("warnings");
    assert_eq!(warnings.iter().map(|warning| warning.name.as_str()).collect::<Vec<_>>(), ["m1"]);
    assert!(warnings[0].text.contains("`.go(…)`"), "{warnings:?}");
    assert_eq!(results[1], json!([1, 1, 1]));
}

#[test]
fn a_changed_catalog_replaces_the_old_one() {
    let of = |text: &str| expose_all(&catalogs(&[("index.js", text)])).1;
    let (old, new) = (of("export const f = () => 'old', g = 1;"), of("export const f = () => 'new';"));
    let results = in_context(&[&old, "[e1(), probe.f(), probe.g]", &new, "[e1(), probe.f(), probe.g === undefined]"]);
    assert_eq!(results, [json!([]), json!(["old", "old", 1]), json!([]), json!(["new", "new", true])]);
}

#[test]
fn subclasses_use_their_own_methods() {
    let catalogs =
        catalogs(&[("index.js", "export class A { name(p) { return 'A' + p } }\nexport class B extends A { name(p) { return 'B' + p } }")]);
    let (_, script) = expose_all(&catalogs);
    // e1 A: m1; e2 B: m2. An instance of B has both methods, as B.
    let results = in_context(&[&script, "[new e1().m1(1), new e2().m1({ p1: 2 }), new e2().m2({ p2: 3 }), new e1().m2]"]);
    assert_eq!(results[1], json!(["A1", "B2", "B3", null]));
}

#[test]
fn methods_can_be_taken_from_their_owner_and_inherited() {
    let catalogs = catalogs(&[(
        "index.js",
        "export class A { static #n = 1; static own() { return this === A ? A.#n : 'other' } static plain(x) { return x * 2 } }\nexport const tools = { twice(x) { return x * 2 } };",
    )]);
    let (_, script) = expose_all(&catalogs);
    // e1 A: m1 own, m2 plain(p1); e2 tools: m3 twice(p2).
    let results = in_context(&[
        &script,
        "class B extends e1 {}; const { plain } = probe.A, { m3 } = e2; [B.own(), B.m1(), B.plain(2), B.m2({ p1: 3 }), e1.own(), e1.m1(), plain(4), m3({ p2: 5 }), [1, 2].map(e2.twice), [1, 2].map((x) => e2.m3(x)), e1.own.name, e1.own.call({ own() { return 'wrong' } })]",
    ]);
    assert_eq!(results[1], json!(["other", "other", 4, 6, 1, 1, 8, 10, [2, 4], [2, 4], "own", "other"]));
}
