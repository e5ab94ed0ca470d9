//! TypeScript: types are stripped, and positions refer to the author's source.

use super::support::{Chain, check_results};

#[tokio::test]
async fn all_kinds_of_types_are_stripped() {
    check_results(&[
        ("const n: number = 2; n", "2"),
        ("interface A { x: number } type B = A | null; const a: B = { x: 1 }; a!.x", "1"),
        ("function id<T extends object>(x: T): T { return x } id<number[]>([1])", "[1]"),
        ("enum Color { Red = 1, Green } [Color.Green, Color[1]]", "[2,\"Red\"]"),
        ("const enum E { A = 'a' } E.A", "\"a\""),
        ("class P { constructor(private readonly x: number, public y = 2) {} sum() { return this.x + this.y } } new P(1).sum()", "3"),
        ("abstract class S { abstract area(): number } class Q extends S { override area(): number { return 4 } } new Q().area()", "4"),
        ("({ a: 1 } satisfies Record<string, number>).a as number", "1"),
        ("namespace N { export const v = 5 } N.v", "5"),
        ("let u = <any>7; u", "7"),
        ("function f(this: Date, a?: string, ...r: number[]): asserts a is string {} f.length", "1"),
        ("declare const later: string; typeof later", "\"undefined\""),
        ("await Promise.resolve<number>(3)", "3"),
        ("const g = async <T,>(x: T): Promise<T> => x; await g(1)", "1"),
    ])
    .await;
}

#[tokio::test]
async fn javascript_is_not_changed() {
    check_results(&[
        ("let a = 1, b = 2, c = 0; a < b && b > (c)", "true"),
        ("[1, 2, 3].map(x => x * 2).filter(x => x > 2)", "[4,6]"),
        ("var yield_ = 1; with ({ z: 3 }) z", "3"),
        ("010", "8"),
        ("/<a>(b)/.test('<a>b')", "true"),
    ])
    .await;
}

#[tokio::test]
async fn positions_are_those_of_the_source_even_in_generated_code() {
    let mut chain = Chain::start().await;
    chain.result("enum Kind { A, B }\nclass P { constructor(private x: number) {}\n    boom(): never { throw new Error('boom ' + this.x) } }\nconst p = new P(7); Kind.B").await;
    let text = chain.failure("\n   p.boom()").await.to_string();
    assert!(text.contains("Error: boom 7") && text.contains("at P.boom (main.ts:3:27)") && text.contains("at main.js:2:6"), "{text}");
    let text = chain.failure("interface I { a: string }\nlet value: I = { a: missing }").await.to_string();
    assert!(text.contains("ReferenceError: missing is not defined\n    at main.ts:2:21"), "{text}");
    let text = chain.failure("  {a: missing}").await.to_string();
    assert!(text.contains("at main.js:1:7"), "{text}");
}
