//! The console beyond Node's behaviour: state that ends with the run.

use super::support::Chain;

#[tokio::test]
async fn groups_and_counts_are_reset_in_each_run() {
    let mut chain = Chain::start().await;
    assert_eq!(chain.output("console.group('g'); console.log('in'); console.count()").await, "g\n  in\n  default: 1\n");
    assert_eq!(chain.output("console.log('out'); console.count()").await, "out\ndefault: 1\n");
}

#[tokio::test]
async fn the_console_works_the_same_in_a_poisoned_heap() {
    let mut chain = Chain::start().await;
    chain
        .result(
            "Object.prototype.toJSON = () => 'lie'; JSON.stringify = () => 'lie'; Array.prototype[Symbol.iterator] = () => { throw 1 }; \
             Promise.prototype.then = () => { throw 2 }; Object.defineProperty(Object.prototype, 'value', { get() { throw 3 } }); \
             Array.prototype.push = String.prototype.slice = Map.prototype.get = () => { throw 4 }; const { log } = console; delete globalThis.console; 0",
        )
        .await;
    assert_eq!(chain.output("log({ a: [1, { b: new Set() }] }, 'text %s', 1n)").await, "{ a: [ 1, { b: Set(0) {} } ] } text %s 1n\n");
    assert_eq!(chain.result("[{ a: 1 }]").await, "[{\"a\":1}]");
    let error = chain.failure("throw new TypeError('still shown')").await.to_string();
    assert!(error.starts_with("TypeError: still shown\n    at main.js:1:7"), "{error}");
    chain.result("Object.freeze(globalThis); 0").await;
    assert_eq!(chain.result("1 + 1").await, "2");
}
