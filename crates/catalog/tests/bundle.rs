//! Evaluates bundles: modules run once and in order, nothing leaks, and exports behave like those of ES modules.

mod common;

use common::{in_context, load};
use serde_json::{Value, json};

/// Checks the value of an expression in which `probe` is the namespace, after evaluating the bundle in an empty V8 context.
fn check(files: &[(&str, &str)], expression: &str, expected: Value) {
    let catalog = load(files).unwrap_or_else(|error| panic!("{error}: {files:?}"));
    let script = format!("globalThis.log = []; globalThis.probe = ({})(Object.freeze); {expression}", catalog.bundle());
    assert_eq!(in_context(&[&script]), [expected], "{}", catalog.bundle());
}

#[test]
fn every_form_of_import_and_export_works() {
    check(
        &[
            (
                "index.ts",
                "import base, { one as uno, type T } from './a.ts';\nimport * as all from './a.ts';\nexport * from './a.ts';\nexport * as inner from './a.ts';\nexport { two as zwei } from './a.ts';\nexport const seen: T[] = [base(), uno, all.two()];\nexport { all };",
            ),
            (
                "a.ts",
                "export type T = unknown;\nexport const one: number = 1;\nexport function two(): number { return 2 }\nexport default () => 'base'",
            ),
        ],
        "[Object.keys(probe), probe.seen, probe.zwei(), probe.inner.one, probe.all.default(), probe.all.default.name]",
        json!([["all", "inner", "one", "seen", "two", "zwei"], ["base", 1, 2], 2, 1, "base", "default"]),
    );
    for (source, expression, expected) in [
        ("export default class {}", "[probe.default.name, typeof probe.default]", json!(["default", "function"])),
        ("export default class Named {}\nexport const made = new Named();", "probe.made instanceof probe.default", json!(true)),
        ("export const early = later();\nexport default function later() { return 1 }", "[probe.early, probe.default()]", json!([1, 1])),
        ("export default { a: 1 };", "probe.default", json!({ "a": 1 })),
        ("const a = 1\nexport default a\n;[1].map(() => {})", "probe.default", json!(1)),
        ("const a = 1\nexport { a }\n(function () { log.push('called') })()", "[probe.a, log]", json!([1, ["called"]])),
        ("export const a = 1, b = a + 1; // no line after this", "[probe.a, probe.b]", json!([1, 2])),
        ("export const { a, b: [c], ...rest } = { a: 1, b: [2], d: 3 };", "[probe.a, probe.c, probe.rest]", json!([1, 2, { "d": 3 }])),
        (
            "export const a = ['ä−😀\\u{1F600}', `ö${1}−\\n`, String.raw`ü−\\n😀`, /^[ä-ü−]+$/u.test('ö−'), /😀/.source, '\\0' + '1', \"it's\", '\\ud800'.length, 'a\\u2028b'.length];",
            "probe.a",
            json!(["ä−😀😀", "ö1−\n", "ü−\\n😀", true, "😀", "\u{0}1", "it's", 1, 3]),
        ),
        (
            "const o = { async *[Symbol.iterator]() {}, get x() { return 1 }, 'y-z': 2, async: 3, await: 4 };\nexport const a = [o.x, o['y-z'], o.async, o?.b?.[0] ?? 5, 1..toFixed(1), -(-1), - -1, +(+1), (1, 2), 2 ** -1, (-2) ** 2, typeof (() => {}), 'a' in { a: 1 }, !('b' in o)];\nlabel: for (const x of [1]) { if (x) continue label; else break label }",
            "probe.a",
            json!([1, 2, 3, 5, "1.0", 1, 1, 1, 2, 0.5, 4, "function", true, true]),
        ),
        ("#!/usr/bin/env node\nexport const a = 1;", "probe.a", json!(1)),
        ("export const a = 1;\r\nexport const b = 2;\r\n", "[probe.a, probe.b]", json!([1, 2])),
        ("\u{feff}export const a = 1;", "probe.a", json!(1)),
        ("const \\u0061 = 1; export { \\u0061 as b };", "probe.b", json!(1)),
        ("export const ä = 'ü'; /* ← */ export const b = 'ß';", "[probe.ä, probe.b]", json!(["ü", "ß"])),
    ] {
        check(&[("index.js", source)], expression, expected);
    }
}

#[test]
fn types_that_are_code_become_code() {
    check(
        &[(
            "index.ts",
            "export enum Colour { Red = 1, Green }\nexport class Point { constructor(readonly x: number, public y = 2) {} }\nexport const at = <T,>(list: T[]): T => list[0]!;",
        )],
        "[probe.Colour.Green, probe.Colour[1], new probe.Point(1), probe.at([7])]",
        json!([2, "Red", { "x": 1, "y": 2 }, 7]),
    );
}

#[test]
fn type_only_code_is_removed() {
    check(
        &[(
            "index.ts",
            "export const enum Size { Small = 1 }\nexport namespace tools { export const two = 2; }\nexport abstract class Base { abstract go(): void; declare x: number; stay(): number { return Size.Small } }\n\
             export declare const nowhere: number;\nexport interface I { a: number }\nexport class Own extends Base implements I { a = 1; go(): void {} }\nexport function f(a: string): void;\n\
             export function f(a: unknown): unknown { return a satisfies unknown as number }",
        )],
        "[Object.keys(probe), new probe.Own().stay(), probe.tools.two, probe.f(3)]",
        json!([["Base", "Own", "Size", "f", "tools"], 1, 2, 3]),
    );
}

#[test]
fn modules_are_evaluated_once_after_their_imports() {
    check(
        &[
            ("index.js", "import './c.js';\nimport { b } from './b.js';\nlog.push('index');\nexport { b };"),
            ("b.js", "log.push('b');\nimport './sub/a.js';\nexport const b = 1;"),
            ("c.js", "import { a } from './sub/a.js';\nlog.push('c');"),
            ("sub/a.js", "import '../d.mjs';\nlog.push('a');\nexport const a = 1;"),
            ("d.mjs", "log.push('d');"),
            ("unused.js", "log.push('unused');"),
        ],
        "log",
        json!(["d", "a", "c", "b", "index"]),
    );
}

#[test]
fn nothing_leaks_and_nothing_can_be_changed() {
    let source =
        "const hidden = 1; function inner() {} var old = 2; export const own = [typeof this, (function () { return typeof this })()];";
    check(
        &[("index.js", source)],
        "[typeof hidden, typeof inner, typeof old, probe.own, Object.isFrozen(probe), Object.getPrototypeOf(probe)]",
        json!(["undefined", "undefined", "undefined", ["undefined", "undefined"], true, null]),
    );
    // Generated names avoid the author's.
    check(
        &[
            ("index.js", "import { module$0 } from './a.js'; export const module$1 = module$0;"),
            ("a.js", "export const module$0 = 'mine';"),
        ],
        "probe.module$1",
        json!("mine"),
    );
}
