//! Stateful code runs with V8's optimising compilers, and what it leaves on the heap survives snapshots as if it had been interpreted.

use super::support::{Chain, engine, engine_with, run, torture};
use heapstead_engine::{Engine, Kind, Outcome, StatefulJit, ZygoteSettings};

async fn interpreting_engine() -> Engine {
    engine_with(|config| config.settings = ZygoteSettings { stateful_jit: false, ..ZygoteSettings::default() }).await
}

#[tokio::test]
async fn the_engine_says_whether_stateful_code_is_optimised() {
    assert_eq!(*engine().await.stateful_jit(), StatefulJit::On);
    assert_eq!(*interpreting_engine().await.stateful_jit(), StatefulJit::Off);
    let jitless = engine_with(|config| config.settings = ZygoteSettings { jitless: true, ..ZygoteSettings::default() }).await;
    assert_eq!(*jitless.stateful_jit(), StatefulJit::Off);
}

/// The milliseconds that a loop takes. Interpreted, it takes about ten times as long as optimised.
const LOOP: &str = "(() => { let least = Infinity; for (let round = 0; round < 5; round++) { const begun = performance.now(); let s = 0; \
    for (let i = 0; i < 3e6; i++) s = (s + i * 3) | 0; least = Math.min(least, performance.now() - begun) } return least })()";

#[tokio::test]
async fn stateful_code_is_as_fast_as_stateless_code() {
    let engines = [engine().await, interpreting_engine().await];
    let mut ratios = Vec::new();
    for engine in &engines {
        let (mut stateful, mut stateless) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..3 {
            stateful = stateful.min(Chain::on(engine, None).result(LOOP).await.parse().expect("a number"));
            let (_, Outcome::Completed { result, .. }) = run(engine, LOOP, Kind::Stateless).await else { panic!("the loop completes") };
            stateless = stateless.min(result.parse().expect("a number"));
        }
        ratios.push(stateful / stateless);
    }
    assert!(ratios[0] < 2.0, "stateful code takes {:.1} times as long", ratios[0]);
    // The test can fail: without the compilers the ratio is another one.
    assert!(ratios[1] > 3.0, "{ratios:?}");
}

/// First run, which optimises; later code on its heap; the result of that.
const SURVIVORS: &[(&str, &str, &str)] = &[
    (
        "var errors = []; function thrower(i) {\n  return new Error('e' + i) }\nfunction outer(i) { return thrower(i) }\nfor (let i = 0; i < 20000; i++) { const e = outer(i); if (i % 20 === 0) errors.push(e) }; errors.length",
        "errors.map(e => e.stack.split('\\n').slice(0, 3).join('|')).filter((s, i) => s !== `Error: e${i * 20}|    at thrower (main.js:2:10)|    at outer (main.js:3:28)`).length",
        "0",
    ),
    (
        "var caught = []; function deep(n) { if (n === 0) throw new TypeError('deep'); return deep(n - 1) + 1 } for (let i = 0; i < 3000; i++) { try { deep(5) } catch (e) { if (i > 2990) caught.push(e) } } caught.length",
        "caught.every(e => e.stack.split('\\n').length === 8 && e.stack.includes('at deep (main.js:1:'))",
        "true",
    ),
    (
        "function hot(a, b) { /* kept */ return a * b + 1 } let sum = 0; for (let i = 0; i < 100000; i++) sum += hot(i, 2); sum",
        "hot.toString() + ' ' + hot(3, 4) + ' ' + hot('3', '4') + ' ' + hot.name + hot.length",
        "\"function hot(a, b) { /* kept */ return a * b + 1 } 13 13 hot2\"",
    ),
    (
        "var re = /(\\d+)-(?<word>[a-z]+)/gi; let n = 0; for (let i = 0; i < 20000; i++) { re.lastIndex = 0; n += re.exec('12-Ab ' + i).index } n",
        "re.lastIndex = 0; const m = re.exec('x 77-zz'); `${m[1]} ${m.groups.word} ${re.lastIndex} ${'1-a,2-b'.replace(re, '$2')}`",
        "\"77 zz 7 a,b\"",
    ),
    (
        "var f64 = new Float64Array(1000), u8 = new Uint8ClampedArray(64); for (let r = 0; r < 200; r++) for (let i = 0; i < 1000; i++) { f64[i] += i / 3; u8[i & 63] = i } f64[999]",
        "f64[3] = 1.5; u8[1] = 300; let t = 0; for (const x of f64) t += x; `${Math.round(t)} ${u8[1]} ${u8.length}`",
        "\"33299802 255 64\"",
    ),
    (
        "class Point { #x = 0; static made = 0; constructor(x) { this.#x = x; Point.made++ } get x() { return this.#x } add(o) { return new Point(this.#x + o.#x) } } \
         let p = new Point(0); const one = new Point(1); for (let i = 0; i < 50000; i++) p = p.add(one); p.x",
        "p = p.add(one); class Sub extends Point { get x() { return super.x * 2 } } `${p.x} ${Point.made} ${new Sub(4).x} ${p instanceof Point}`",
        "\"50001 50003 8 true\"",
    ),
    (
        "function* count(n) { let total = 0; for (let i = 0; i < n; i++) { total += i; if (i % 1000 === 999) yield total } return 'end' } \
         for (let r = 0; r < 20; r++) for (const x of count(5000)); var half = count(3000); half.next().value",
        "`${half.next().value} ${half.next().value} ${JSON.stringify(half.next())}`",
        "\"1999000 4498500 {\\\"value\\\":\\\"end\\\",\\\"done\\\":true}\"",
    ),
    (
        "var release; async function waits(n) { let s = 0; for (let i = 0; i < n; i++) s += i % 7; const more = await new Promise(done => { release = done }); for (let i = 0; i < n; i++) s += more; return s } \
         for (let r = 0; r < 50; r++) { const w = waits(2000); release(1); await w } var suspended = waits(100000); typeof release",
        "release(2); await suspended",
        "499995",
    ),
    (
        "var counter = (() => { let n = 0; return { up: by => (n += by), read: () => n } })(); for (let i = 0; i < 100000; i++) counter.up(1); counter.read()",
        "counter.up(0.5); counter.up('x')",
        "\"100000.5x\"",
    ),
    (
        "var big = 0n, set = new Set(), map = new Map(); for (let i = 0; i < 30000; i++) { big += BigInt(i); set.add(i & 255); map.set('k' + (i & 127), i) } set.size",
        "`${big} ${set.has(255)} ${map.get('k127')} ${map.size}`",
        "\"449985000 true 29951 128\"",
    ),
];

#[tokio::test]
async fn what_optimised_code_left_survives_snapshots() {
    let engine = engine().await;
    for (first, then, expected) in SURVIVORS {
        let mut chain = Chain::on(&engine, None);
        chain.result(first).await;
        // Twice: the second snapshot is made of a heap that was restored and optimised again.
        chain.result("for (let i = 0, s = 0; i < 200000; i++) s += i; 0").await;
        assert_eq!(chain.result(then).await, *expected, "{first}");
    }
}

#[tokio::test]
async fn optimised_runs_produce_the_same_key_every_time() {
    let engine = engine().await;
    for (first, then, _) in SURVIVORS {
        let mut keys = Vec::new();
        for _ in 0..3 {
            let mut chain = Chain::on(&engine, None);
            chain.result(first).await;
            chain.result(then).await;
            keys.push(chain.heap.expect("a heap").key());
        }
        assert!(keys.iter().all(|key| *key == keys[0]), "{first}");
    }
}

/// Optimised, interpreted and stateless: random programs give the same results. Between optimised and interpreted runs, the positions in stacks
/// are the same too. A failure prints the seed: `HEAPSTEAD_SEED=n` repeats it.
#[tokio::test]
async fn random_hot_programs_behave_as_if_interpreted() {
    let (optimising, interpreting) = (engine().await, interpreting_engine().await);
    let seed = std::env::var("HEAPSTEAD_SEED").ok().and_then(|seed| seed.parse().ok());
    let first = seed.unwrap_or_else(|| std::process::id().into());
    let count = if seed.is_some() {
        1
    } else if torture() {
        1000
    } else {
        25
    };
    for seed in first..first + count {
        let turns = Random::new(seed).program();
        let (mut optimised, mut interpreted) = (Chain::on(&optimising, None), Chain::on(&interpreting, None));
        let mut last = String::new();
        for turn in &turns {
            last = optimised.result(turn).await;
            assert_eq!(last, interpreted.result(turn).await, "seed {seed}, turn\n{turn}");
        }
        let values = Chain::on(&optimising, optimised.heap).result("JSON.stringify(log)").await;
        let whole = format!("{}\nJSON.stringify(log)", turns.join("\n;"));
        let (_, Outcome::Completed { result, .. }) = run(&optimising, &whole, Kind::Stateless).await else {
            panic!("seed {seed}\n{whole}")
        };
        assert_eq!(values, result, "seed {seed}, last {last}\n{whole}");
    }
}

struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % bound
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// Declarations, a hot turn, a turn with other types that undoes assumptions of the compiler, and one that shows everything.
    fn program(&mut self) -> Vec<String> {
        let functions = 2 + self.below(4);
        let mut declared = "var log = [], errors = [], kept = [];\nfunction f0(a, b) { return a }\n".to_owned();
        for number in 1..=functions {
            declared += &self.function(number);
        }
        let hot = self.calls(functions, &["i", "i & 7", "i % 13", "-i"], 4000);
        let other =
            self.calls(functions, &["i / 3", "'s' + (i & 3)", "null", "undefined", "[i]", "{ a: i }", "BigInt(i)", "true", "NaN"], 300);
        let shown = "[log.length, errors.map(e => e && e.stack), kept.map(k => typeof k === 'function' ? k.toString() : String(k && k.next ? k.next(1).value : k))]";
        vec![declared, hot, other, shown.to_owned()]
    }

    fn function(&mut self, number: usize) -> String {
        let (one, two) = (self.expression(number, 3), self.expression(number, 2));
        match self.below(7) {
            0 => format!("function f{number}(a, b) {{ let s = 0; for (let i = 0; i < 5; i++) s += Number({one}) || i; return s }}\n"),
            1 => format!(
                "var f{number} = (() => {{ let n = 0; return (a, b) => {{ n = (n + 1) % 97; return n > 50 ? {one} : {two} }} }})()\n"
            ),
            2 => format!(
                "class C{number} {{ #p = 0; constructor(a) {{ this.#p = a }} get(b) {{ const a = this.#p; return {one} }} }}\nfunction f{number}(a, b) {{ return new C{number}(a).get(b) }}\n"
            ),
            3 => format!(
                "function* g{number}(a, b) {{ const more = yield {one}; yield [more, {two}].length; for (;;) yield a }}\nfunction f{number}(a, b) {{ const g = g{number}(a, b); const v = g.next().value; if (a === 7) kept.push(g); return v }}\n"
            ),
            4 => format!(
                "function f{number}(a, b) {{\n  if (a === 3) throw new RangeError('three ' + typeof b);\n  try {{ return {one} }} finally {{ kept.length = Math.min(kept.length, 20) }} }}\n"
            ),
            5 => format!(
                "function f{number}(a, b) {{ const o = {{ a, b, get c() {{ return {one} }} }}; const {{ c, ...rest }} = o; return Object.keys(rest).length === 2 ? c : {two} }}\n"
            ),
            _ => format!(
                "function f{number}(...both) {{ const [a, b] = both; return switched(); function switched() {{ switch (typeof a) {{ case 'number': return {one}; default: return {two} }} }} }}\n"
            ),
        }
    }

    fn expression(&mut self, below: usize, depth: usize) -> String {
        if depth == 0 {
            return self.pick(&["a", "b", "1", "2.5", "'t'", "a?.length"]).to_owned();
        }
        let (one, two) = (self.expression(below, depth - 1), self.expression(below, depth - 1));
        match self.below(9) {
            0 => format!("(({one}) + ({two}))"),
            1 => format!("(({one}) === ({two}) ? ({one}) : 1)"),
            2 => format!("(Number(String({one}).length) * 3 | 0)"),
            3 => format!("Math.imul(Number(String({one}).length), 31)"),
            4 => format!("[{one}, {two}].map(x => typeof x).join()"),
            5 => format!("String({one}).replace(/[0-9]+/g, d => d.length)"),
            6 => format!("new Float32Array([Number(String({one}).length), 2])[0]"),
            7 => format!("f{}({one}, {two})", self.below(below)),
            _ => format!("({{ k: {one} }}).k"),
        }
    }

    fn calls(&mut self, functions: usize, arguments: &[&str], rounds: usize) -> String {
        let mut code = format!("for (let i = 0; i < {rounds}; i++) {{\n  let v;\n");
        for _ in 0..2 + self.below(3) {
            let (function, a, b) = (1 + self.below(functions), self.pick(arguments), self.pick(arguments));
            code +=
                &format!("  try {{ v = f{function}({a}, {b}) }} catch (e) {{ v = e.message; if (errors.length < 40) errors.push(e) }}\n");
            code += "  if (i % 257 === 0) log.push(typeof v === 'bigint' ? String(v) : typeof v === 'object' ? typeof v : v);\n";
        }
        code += &format!("  if (i === 5) kept.push(f{});\n}}\nlog.length", 1 + self.below(functions));
        code
    }
}
