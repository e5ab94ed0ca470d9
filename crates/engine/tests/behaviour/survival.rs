//! Values that V8 itself can't snapshot: made to survive, or one failed run with a message, never more.

use super::support::Chain;

#[tokio::test]
async fn intl_objects_held_in_variables_survive() {
    let mut chain = Chain::start().await;
    chain
        .result(
            "var held = Object.fromEntries(['NumberFormat', 'DateTimeFormat', 'Collator', 'PluralRules', 'ListFormat', 'RelativeTimeFormat', 'Segmenter'].map(n => [n, new Intl[n]('de')])); \
             held.DisplayNames = new Intl.DisplayNames('de', {type: 'region'}); held.Locale = new Intl.Locale('de-AT'); held.half = new Intl.Segmenter('de').segment('abc')[Symbol.iterator](); held.half.next().value.segment",
        )
        .await;
    for (code, expected) in [
        ("held.NumberFormat.format(1234.5)", "\"1.234,5\""),
        ("held.ListFormat.format(['a', 'b'])", "\"a und b\""),
        ("held.PluralRules.select(1)", "\"one\""),
        ("held.RelativeTimeFormat.format(-1, 'day')", "\"vor 1 Tag\""),
        ("held.DisplayNames.of('AT')", "\"Österreich\""),
        ("held.Locale.region", "\"AT\""),
        ("held.half.next().value.segment", "\"b\""),
        ("held.NumberFormat instanceof Intl.NumberFormat", "true"),
    ] {
        assert_eq!(chain.result(code).await, expected, "{code}");
    }
}

#[tokio::test]
async fn what_cannot_be_kept_costs_that_one_run() {
    let mut chain = Chain::start().await;
    chain.result("let before = 1").await;
    let error = chain.failure("{ using x = { [Symbol.dispose]() {} } }").await.to_string();
    assert!(error.contains("SyntaxError"), "{error}");
    assert_eq!(chain.result("function asm() { 'use asm'; function f(x) { x = x | 0; return (x + 1) | 0 } return { f: f } } var module = asm(); module.f(1)").await, "2");
    assert_eq!(chain.result("module.f(41) + before").await, "43");
    assert_eq!(
        chain.result("var r = new FinalizationRegistry(() => {}); for (let i = 0; i < 1000; i++) r.register({}, i, {}); 0").await,
        "0"
    );
    assert_eq!(chain.result("var w = new WeakRef({}); typeof Intl.v8BreakIterator").await, "\"undefined\"");
    assert_eq!(chain.result("w.deref()").await, "undefined");
}
