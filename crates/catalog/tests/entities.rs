//! Entities as read from exports: kind, signature, description, parameters and methods.

mod common;

use common::load;
use heapstead_catalog::{Entity, EntityKind};

fn entity(file: &str, source: &str, name: &str) -> Entity {
    load(&[(file, source)]).unwrap_or_else(|error| panic!("{error}: {source}")).entity(name).expect("there").clone()
}

#[test]
fn functions_and_constants_in_every_form_have_their_signature() {
    use EntityKind::{Class, Constant, Function, Object};
    for (source, kind, signature) in [
        ("export function a(x: number, y?: string): boolean { return true }", Function, "a(x: number, y?: string): boolean"),
        ("export function a(this: void, x: number) {}", Function, "a(x: number)"),
        ("export async function a() {}", Function, "async a()"),
        ("export function* a(n = 3): Generator<number> {}", Function, "*a(n: number = 3): Generator<number>"),
        ("export async function* a(...xs: string[]) {}", Function, "async *a(...xs: string[])"),
        ("export const a = (x: number): number => x;", Function, "a(x: number): number"),
        ("export const a = async function (x: number) {};", Function, "async a(x: number)"),
        ("export const a: (x: number) => string = (x) => '';", Function, "a: (x: number) => string"),
        ("export function a<T extends object>(x: T): T { return x }", Function, "a<T extends object>(x: T): T"),
        (
            "export function a(x: string): string;\nexport function a(x: number): number;\nexport function a(x: any): any { return x }",
            Function,
            "a(x: string): string; a(x: number): number",
        ),
        (
            "export function a({ b, c }: { b: number; c: string }, [d]: number[] = []) {}",
            Function,
            "a(options: { b: number; c: string }, items: number[] = [])",
        ),
        ("function b() {}\nexport { b as a };", Function, "a()"),
        ("function b(x: number) {}\nexport const a = b;", Function, "a(x: number)"),
        ("export const a = 1;", Constant, "a: number"),
        ("export const a = -1n;", Constant, "a: bigint"),
        ("export const a: readonly string[] = ['x'];", Constant, "a: readonly string[]"),
        ("export const a = ['x', 'y'] as const;", Constant, "a: string[]"),
        ("export const a = /x/;", Constant, "a: RegExp"),
        ("export const a = new Map([[1, 2]]);", Constant, "a: Map"),
        ("export const a = compute();\nfunction compute() { return 1 }", Constant, "a: unknown"),
        ("export const [a, b] = [1, 2];", Constant, "a: unknown"),
        (
            "export const a = { b: 1, c(x: number): void {}, d: (y: string) => y, get e(): string { return '' } };",
            Object,
            "a: { b: number; c(x: number): void; d(y: string); readonly e: string }",
        ),
        ("export const a = Object.freeze({ b: 'x' } as const);", Object, "a: { b: string }"),
        ("export enum a { B, C = 'x' }", Object, "enum a { B, C }"),
        (
            "export class a<T> { constructor(public readonly n: number, private s = 'x', readonly t?: T) {} }",
            Class,
            "class a<T>(n: number, s: string = 'x', t?: T) { readonly n: number; readonly t: T }",
        ),
        (
            "export const a = class { x = 1; static y: string; #z = 2; private w = 3; f = (q: number) => q };",
            Class,
            "class a() { x: number; static y: string; f(q: number) }",
        ),
    ] {
        let entity = entity("index.ts", source, "a");
        assert_eq!((entity.kind, entity.signature.as_str()), (kind, signature), "{source}");
    }
}

#[test]
fn javascript_has_its_types_from_doc_comments() {
    let entity = entity(
        "index.js",
        "/**\n * Joins words.\n *\n * More.\n * @param {string[]} words what to join\n * @param {{ by: string }} options - how\n * @param {string} options.by with what\n \
         * @param {number} [times=2] how often\n * @returns {string} the text\n */\nexport const join = (words, { by }, times) => '';",
        "join",
    );
    assert_eq!(entity.signature, "join(words: string[], options: { by: string }, times?: number): string");
    assert_eq!(entity.description, "Joins words.");
    assert_eq!(
        entity.parameters.iter().map(|parameter| parameter.description.as_str()).collect::<Vec<_>>(),
        ["what to join", "how", "how often"]
    );
    let constant = self::entity("index.js", "/**\n * A number.\n * @type {number}\n */\nexport const a = Math.sqrt(2);", "a");
    assert_eq!((constant.signature.as_str(), constant.description.as_str()), ("a: number", "A number."));
}

#[test]
fn classes_have_their_public_methods_and_inherited_ones() {
    let catalog = load(&[
        ("index.ts", "import { Base } from './base.ts';\n/** Derived. */\nexport class Derived extends Base {\n  /** Own. */\n  own(): void {}\n  shared(x: string): void {}\n  private hidden() {}\n  protected kept() {}\n  #secret() {}\n  /** @internal */ inner() {}\n  ['computed']() {}\n  static make(n: number): Derived { return new Derived(n) }\n  get size(): number { return 1 }\n}"),
        ("base.ts", "export class Base {\n  /** @param n how many */\n  constructor(n: number) {}\n  shared(): void {}\n  /** Base's. */\n  async *below(...xs: number[]) {}\n}"),
    ])
    .expect("sound");
    let derived = catalog.entity("Derived").expect("there");
    assert_eq!(derived.signature, "class Derived(n: number) { readonly size: number }");
    assert_eq!(derived.parameters[0].description, "how many");
    let methods: Vec<_> =
        derived.methods.iter().map(|method| (method.signature.as_str(), method.is_static, method.description.as_str())).collect();
    assert_eq!(
        methods,
        [
            ("own(): void", false, "Own."),
            ("shared(x: string): void", false, ""),
            ("make(n: number): Derived", true, ""),
            ("async *below(...xs: number[])", false, "Base's."),
        ]
    );
}

#[test]
fn exports_are_followed_through_files() {
    let catalog = load(&[
        ("index.ts", "export * from './a';\nexport { default as d, type T } from './d.js';\nexport * as tools from './a';\nimport * as all from './a';\nimport { two } from './a';\nexport { all, two as deux };\nexport const one = 'mine';"),
        ("a.ts", "/** One. */\nexport const one = 1;\n/** Two. */\nexport function two(x: number): void {}\nexport type T = number;\nexport default 5;"),
        ("d.ts", "/** Def. */\nexport default function (y: string) {}\nexport type T = number;"),
    ])
    .expect("sound");
    let shown: Vec<_> =
        catalog.entities().iter().map(|entity| (entity.name.as_str(), entity.signature.as_str(), entity.description.as_str())).collect();
    assert_eq!(
        shown,
        [
            ("all", "all: { default: number; one: number; two(x: number): void }", ""),
            ("d", "d(y: string)", "Def."),
            ("deux", "deux(x: number): void", "Two."),
            ("one", "one: string", ""),
            ("tools", "tools: { default: number; one: number; two(x: number): void }", ""),
            ("two", "two(x: number): void", "Two."),
        ]
    );
    assert_eq!(catalog.entity("tools").expect("there").methods.len(), 1);
}

#[test]
fn long_signatures_are_cut() {
    let members: String = (0..200).map(|number| format!("member{number}: 'a long text', ")).collect();
    let entity = entity("index.ts", &format!("export const a = {{ {members} }};"), "a");
    assert_eq!(entity.signature.chars().count(), 600);
    assert!(entity.signature.ends_with('…'));
}
