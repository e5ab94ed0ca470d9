//! An invalid catalog is refused with an error that names the file, the line and the problem.

mod common;

use common::{folder, load};
use heapstead_catalog::{Catalog, Catalogs};

#[test]
fn each_flaw_is_named_with_its_file_and_line() {
    let ok = "export const a = 1;";
    for (files, expected) in [
        (&[("index.js", "export const a = ;")][..], "index.js:1: "),
        (&[("index.js", ok), ("other.ts", "\n\nlet x: = 1")], "other.ts:3: "),
        // In a script, and so in a bundle, this would start a comment.
        (&[("index.js", "let a = 1;\nexport const b = 1<!--a;")], "index.js:2: "),
        (&[("index.js", "import fs from 'node:fs';\nexport { fs };")], "index.js:1: imports \"node:fs\": only files of the catalog"),
        (&[("index.ts", "export const a = 1;\nimport type { X } from 'pkg';")], "index.ts:2: imports \"pkg\""),
        (&[("index.js", "import '../x.js';\nexport const a = 1;")], "index.js:1: imports \"../x.js\": only files"),
        (&[("index.js", "import './x.js';\nexport const a = 1;")], "index.js:1: imports \"./x.js\": there is no such file"),
        (&[("index.js", "export const a = 1;\nconst b = await a;")], "index.js:2: `await` outside of a function"),
        (&[("index.js", "export const a = () => import('./b.js');")], "index.js:1: `import(…)` is not available"),
        (&[("index.js", "export const a = import.meta.url;")], "index.js:1: `import.meta` is not available"),
        (&[("index.js", "import a from './a.js' with { type: 'json' };")], "index.js:1: imports \"./a.js\": with attributes"),
        (
            &[("index.js", "export * from './a.js';"), ("a.js", "import './b.js';"), ("b.js", "\nimport './a.js';")],
            "b.js:2: files import each other in a circle: a.js → b.js → a.js",
        ),
        (&[("index.js", "import './index.js'; export const a = 1;")], "index.js:1: files import each other in a circle"),
        (&[("index.js", "\nexport { a } from './a.js';"), ("a.js", "export const b = 1;")], "index.js:2: \"./a.js\" does not export `a`"),
        (
            &[
                ("index.ts", "enum E { A }\n\nimport { T } from './t.ts';\nexport const a: T = E.A; export { T };"),
                ("t.ts", "export type T = number;"),
            ],
            "index.ts:3: \"./t.ts\" does not export `T`",
        ),
        (&[("index.js", "export { a };")], "index.js:1: "),
        (&[("index.js", "\nexport let a = 1;")], "index.js:2: `a` is exported with `let` or `var`"),
        (&[("index.js", "var a = 1;\nexport { a as b };")], "index.js:1: `a` is exported with `let` or `var`"),
        (&[("index.js", "const a = 1; export { a as 'b c' };")], "index.js:1: `b c` can't be the name of an export"),
        (&[("index.js", "const a = 1; export { a as __proto__ };")], "index.js:1: `__proto__` can't be the name of an export"),
        (
            &[("index.js", "export * from './a.js';\nexport * from './b.js';"), ("a.js", ok), ("b.js", ok)],
            "index.js:2: `a` is exported twice",
        ),
        (&[("index.js", "export * from './a.js';"), ("a.js", "\nexport function e1() {}")], "a.js:2: `e1` is named like a symbol"),
        (&[("index.js", "export const a = {\n  m3() {} };")], "index.js:1: `m3` is named like a symbol"),
        (&[("index.ts", "import a = require('./a');\nexport = a;")], "index.ts:1: `import … = ` and `export = ` are not supported"),
        (&[("index.js", "const a = 1;")], "nothing is exported from index.js"),
        (&[("index.ts", "export type A = number;")], "nothing is exported from index.ts"),
        (&[("other.js", ok)], "there is no index.ts or index.js"),
        (&[("index.js", ok), ("index.ts", ok)], "both index.ts and index.js are there"),
        (&[("index.js", ok), ("catalog.json", "{}")], "catalog.json: missing field `name`"),
    ] {
        let error = load(files).err().unwrap_or_else(|| panic!("refused: {files:?}")).to_string();
        assert!(error.contains(expected), "{error:?} lacks {expected:?}");
    }
}

#[test]
fn files_that_are_not_text_or_not_there_are_refused() {
    let place = folder("probe", &[("index.js", "export const a = 1;")]);
    std::fs::write(place.path().join("b.js"), [0xff, 0xfe]).expect("written");
    assert!(Catalog::load(place.path()).expect_err("refused").to_string().ends_with("b.js:1: not UTF-8"));
    std::fs::remove_file(place.path().join("b.js")).expect("removed");
    assert!(Catalog::load(place.path()).is_ok());
    std::fs::remove_file(place.path().join("catalog.json")).expect("removed");
    assert!(Catalog::load(place.path()).expect_err("refused").to_string().contains("catalog.json: is missing"));
}

#[test]
fn catalogs_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Catalogs>();
}

#[test]
fn two_catalogs_of_one_name_are_refused() {
    let (one, other) = (folder("probe", &[("index.js", "export const a = 1;")]), folder("probe", &[("index.js", "export const b = 1;")]));
    let error = Catalogs::load([one.path(), other.path()]).expect_err("refused").to_string();
    assert!(error.starts_with("two catalogs are named `probe`"), "{error}");
    assert!(Catalogs::load([one.path()]).is_ok());
}

#[test]
fn any_change_of_the_folder_changes_the_content_hash() {
    let files: &[(&str, &str)] = &[("index.js", "export const a = 1;")];
    let hash = |files: &[(&str, &str)]| load(files).expect("sound").content_hash;
    assert_eq!(hash(files), hash(files));
    for other in [
        &[("index.js", "export const a = 1; ")][..],
        &[("index.mjs", "export const a = 1;")],
        &[("index.js", "export const a = 1;"), ("README.md", "Text.")],
        &[("index.js", "export const a = 1;"), ("catalog.json", r#"{"name":"probe","version":"2"}"#)],
    ] {
        assert_ne!(hash(files), hash(other), "{other:?}");
    }
}
