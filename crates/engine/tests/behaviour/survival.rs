//! Values that V8 cannot snapshot: they are made to survive, or fail one run with a message.

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
async fn values_that_can_not_be_saved_fail_only_their_run() {
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

/// The state of a URL or a decoder is on the JavaScript side; native objects only assist.
#[tokio::test]
async fn urls_and_decoders_keep_their_state() {
    let mut chain = Chain::start().await;
    chain
        .result(
            "var url = new URL('../x?a=1#h', 'https://user:pw@bücher.example:8443/b/c'), params = url.searchParams; params.append('b', 'two words'); \
             var opaque = new URL('data:x  #f'), pairs = new URLSearchParams('k=1&l=2&m=3'), half = pairs.entries(); half.next(); \
             var japanese = new TextDecoder('iso-2022-jp', { fatal: true }), piece = japanese.decode(new Uint8Array([0x1b, 0x24, 0x42, 0x50]), { stream: true }); \
             var first = new TextDecoder(), start = first.decode(new Uint8Array([0xef, 0xbb]), { stream: true }); 0",
        )
        .await;
    for (code, expected) in [
        ("url.href", r#""https://user:pw@xn--bcher-kva.example:8443/x?a=1&b=two+words#h""#),
        ("url.searchParams === params && params.size", "2"),
        ("params.delete('a'); url.host = 'other'; url.protocol = 'http'; 0", "0"),
        (
            "[url.href, url.origin, url.port, url.username]",
            r#"["http://user:pw@other:8443/x?b=two+words#h","http://other:8443","8443","user"]"#,
        ),
        ("url.search = '?n=1'; params.get('n')", r#""1""#),
        ("opaque.hash = ''; [opaque.href, opaque.pathname]", r#"["data:x %20","x %20"]"#),
        ("[...half]", r#"[["l","2"],["m","3"]]"#),
        ("piece + japanese.decode(new Uint8Array([0x4b]), { stream: true })", r#""佶""#),
        ("japanese.decode(new Uint8Array([0x30, 0x21]))", r#""亜""#),
        ("start + first.decode(new Uint8Array([0xbf, 0x61]))", r#""a""#),
    ] {
        assert_eq!(chain.result(code).await, expected, "{code}");
    }
}
