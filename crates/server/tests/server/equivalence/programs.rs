//! Random programs for sessions: turns that declare things, and use those of earlier turns.

/// Something that lives in a session. `$n` is its number, `$x` and `$y` are small random numbers.
///
/// Everything that is printed is the same whenever it runs: code waits for its timers before it prints, because the order of two timers that were
/// created at different times depends on how busy the machine is. Except for lines that begin with `~`: their lists have values of the clock or of
/// randomness, and only grow.
struct Thing {
    declare: &'static str,
    /// Statements for later turns.
    uses: &'static [&'static str],
}

const THINGS: &[Thing] = &[
    Thing {
        declare: "var value$n = { number: $x / 7, big: 10n ** $yn, text: 'ü😀'.repeat($x), list: [, 1, -0, NaN], nested: { map: new Map([[$x, new Set([$y])]]) } };",
        uses: &[
            "value$n.list.push($x); console.log(value$n);",
            "value$n.nested.map.set('k$x', value$n.list.length); console.log(value$n.nested, Object.is(value$n.list[2], -0));",
            "value$n.self = value$n; value$n = structuredClone(value$n); console.log(value$n.self === value$n, value$n.big);",
            "delete value$n.number; value$n['p$x'] = $y; console.log(Object.keys(value$n));",
        ],
    },
    Thing {
        declare: "let lexical$n = $x; const fixed$n = Object.freeze({ at: $y });",
        uses: &["lexical$n += fixed$n.at; console.log(lexical$n);", "try { fixed$n = 1 } catch (e) { console.log(e.stack) }"],
    },
    Thing {
        declare: "var closure$n = (() => { let hidden = $x; return { add: by => (hidden += by), get value() { return hidden } } })();",
        uses: &[
            "console.log(closure$n.add($x), closure$n.value);",
            "for (let i = 0; i < 3000; i++) closure$n.add(i & $x); console.log(closure$n.value, closure$n.add.toString());",
        ],
    },
    Thing {
        declare: "class Class$n { #secret = $x; static made = 0; static #log = []; constructor() { Class$n.made++; Class$n.#log.push(this.#secret) } bump(by) { this.#secret += by; return this } get secret() { return this.#secret } static get log() { return Class$n.#log } }\nvar object$n = new Class$n();",
        uses: &[
            "console.log(object$n.bump($x).secret, object$n, Class$n.made);",
            "var Sub$n = class extends Class$n { get secret() { return super.secret * 2 } }; object$n = new Sub$n(); console.log(object$n.secret, Class$n.log);",
            "console.log(object$n instanceof Class$n, object$n.constructor.name, Class$n.toString().length);",
        ],
    },
    Thing {
        declare: "function* generator$n(a) { let total = a; try { while (total < 1e6) { const got = yield total; total += got ?? $x } } finally { console.log('closed', total) } }\nvar running$n = generator$n($y); running$n.next();",
        uses: &[
            "console.log(running$n.next($x));",
            "for (let i = 0; i < 50; i++) running$n.next(i); console.log(running$n.next());",
            "console.log(running$n.return($x));",
            "try { running$n.throw(new RangeError('in')) } catch (e) { console.log(e.message) }",
        ],
    },
    Thing {
        declare: "var release$n, reject$n; var pending$n = new Promise((done, fail) => { release$n = done; reject$n = fail }); var settled$n = [];\npending$n.then(v => settled$n.push(['then', v]), e => settled$n.push(['catch', e.message]));\nasync function waits$n() { let s = $x; for (let i = 0; i < 10; i++) s += i; try { return s + await pending$n } catch (e) { return e.message } }\nvar waiting$n = waits$n();",
        uses: &[
            "release$n($x); console.log(await waiting$n, settled$n);",
            "reject$n(new Error('no $x')); console.log(await waiting$n, settled$n);",
            "pending$n.finally(() => settled$n.push('finally')); console.log(settled$n, pending$n);",
            "console.log(await Promise.race([waiting$n, Promise.resolve('first')]));",
        ],
    },
    Thing {
        declare: "async function* stream$n() { for (let i = 0; ; i++) yield i * await Promise.resolve($x) }\nvar streaming$n = stream$n();",
        uses: &[
            "console.log(await streaming$n.next());",
            "const both$k = [streaming$n.next(), streaming$n.next()]; console.log(await Promise.all(both$k));",
        ],
    },
    Thing {
        declare: "var order$n = []; setTimeout(() => order$n.push('a'), 1); setTimeout(() => order$n.push('b'), 2); queueMicrotask(() => order$n.push('m'));",
        uses: &[
            "console.log(order$n, await new Promise(done => console.log(setTimeout(done, 3, 'late'))));",
            "await new Promise(done => setTimeout(done, $x)); order$n.push('slept'); console.log(order$n);",
            "await new Promise(done => { let n = 0; const id = setInterval(() => { if (++n === 3) { clearInterval(id); done() } }, 1) }); console.log(order$n.length, await new Promise(done => setImmediate(done, 'immediate')));",
            "clearTimeout(setTimeout(() => console.log('never'), 1)); console.log(typeof order$n);",
        ],
    },
    Thing {
        declare: "var signal$n = AbortSignal.timeout(60000), controller$n = new AbortController(); controller$n.signal.addEventListener('abort', event => console.log('aborted', event.type));",
        uses: &["console.log(signal$n.aborted);", "controller$n.abort('$x'); console.log(controller$n.signal.reason);"],
    },
    Thing {
        declare: "var error$n; function thrower$n(depth) {\n  if (depth === 0) throw new TypeError('kept $x', { cause: { at: $y } });\n  return thrower$n(depth - 1) + 1 }\ntry { thrower$n(3) } catch (e) { error$n = e }",
        uses: &[
            "console.log(error$n.stack, error$n.cause);",
            "try { null.missing$x } catch (e) { error$n = new AggregateError([e, error$n], 'both') } console.log(error$n.errors.map(e => e.stack));",
            "console.log(error$n);",
            "try { thrower$n(1) } catch (e) { console.log(e.stack) }",
        ],
    },
    Thing {
        declare: "enum Colour$n { Red = $x, Green, Text = 'text' }\ninterface Shape$n { area(): number }\nclass Square$n<T extends number> implements Shape$n { constructor(private readonly side: T, protected label?: string) {} area(): number { return this.side ** 2 } }\nvar square$n: Shape$n = new Square$n<number>($y, 'l');",
        uses: &[
            "console.log(square$n.area(), Colour$n.Green, Colour$n[$x], square$n);",
            "const cast$k = square$n as any as { side: number }; console.log(cast$k.side satisfies number);",
            "namespace Space$k { export const x: number = $x } console.log(Space$k.x);",
        ],
    },
    Thing {
        declare: "var noise$n = [Math.random(), crypto.randomUUID()]; console.log('~noise$n ' + JSON.stringify(noise$n));",
        uses: &[
            "console.log('~noise$n ' + JSON.stringify(noise$n));",
            "noise$n.push(Math.random(), [...crypto.getRandomValues(new Uint8Array($x))]); console.log('~noise$n ' + JSON.stringify(noise$n));",
            "noise$n.push(...Array.from({ length: $x }, Math.random)); console.log(noise$n.length, '\\n~noise$n ' + JSON.stringify(noise$n));",
        ],
    },
    Thing {
        declare: "var dates$n = [Date.now(), new Date().toISOString(), performance.now()]; console.log('~dates$n ' + JSON.stringify(dates$n));",
        uses: &[
            "dates$n.push(new Date(), performance.timeOrigin); console.log('~dates$n ' + JSON.stringify(dates$n));",
            "dates$n.push(Temporal.Now.instant().toString(), new Date().toLocaleString('de')); console.log('~dates$n ' + JSON.stringify(dates$n));",
            "{ const begun = performance.now(), seen = []; while (performance.now() < begun + 2) seen.push(Date.now()); dates$n.push(seen.length, seen.at(-1)) } console.log('~dates$n ' + JSON.stringify(dates$n));",
            "console.log(dates$n.every(d => typeof d !== 'number' || d <= Date.now() + 1), new Event('x').timeStamp <= performance.now());",
        ],
    },
    Thing {
        declare: "var fixedDate$n = new Date(Date.UTC(2020, $x % 12, $y + 1, 3, 4, 5)), format$n = new Intl.DateTimeFormat('de', { dateStyle: 'full', timeZone: 'UTC' });",
        uses: &[
            "console.log(format$n.format(fixedDate$n), fixedDate$n.toISOString());",
            "fixedDate$n.setUTCDate(fixedDate$n.getUTCDate() + $x); console.log(fixedDate$n, new Intl.NumberFormat('fr').format(fixedDate$n.getTime()));",
        ],
    },
    Thing {
        declare: "var bytes$n = new Uint8Array($x + 8), view$n = new DataView(bytes$n.buffer), floats$n = Float64Array.from({ length: 100 }, (_, i) => i / 3);",
        uses: &[
            "view$n.setFloat32(2, $x / 3); bytes$n.fill($y, 6); console.log(bytes$n, view$n.getUint16(0));",
            "for (let r = 0; r < 50; r++) for (let i = 0; i < 100; i++) floats$n[i] += i * $x; console.log(floats$n.reduce((a, b) => a + b));",
            "bytes$n = new Uint8Array(bytes$n.buffer.transfer(16)); view$n = new DataView(bytes$n.buffer); console.log(bytes$n.length);",
        ],
    },
    Thing {
        declare: "var map$n = new Map(), set$n = new Set(), weak$n = new WeakMap(), key$n = { id: $x }, symbol$n = Symbol('s$x'); weak$n.set(key$n, 'w'); map$n.set(key$n, symbol$n).set(symbol$n, NaN); var iterator$n = map$n.entries();",
        uses: &[
            "map$n.set($x, $y).delete($y); set$n.add(key$n).add($x); console.log(map$n, set$n, weak$n.get(key$n));",
            "console.log(iterator$n.next().value, [...map$n.keys()].length);",
            "console.log(Symbol.for('shared').description, symbol$n.toString(), map$n.get(map$n.get(key$n)));",
        ],
    },
    Thing {
        declare: "var regexp$n = /(?<word>[a-z]+)(\\d*)/giy; regexp$n.lastIndex = 0;",
        uses: &[
            "console.log(regexp$n.exec('ab1cd22e'), regexp$n.lastIndex);",
            "console.log('x$xy$y'.replace(regexp$n, (_, w, d) => `<${w}${d}>`), RegExp.$1);",
        ],
    },
    Thing {
        declare: "function hot$n(a, b) { return a > $y ? a * b - $x : [a, b].length + b }\nvar sum$n = 0; for (let i = 0; i < 20000; i++) sum$n += hot$n(i, 2);",
        uses: &[
            "for (let i = 0; i < 20000; i++) sum$n += hot$n(i / 2, $x); console.log(sum$n);",
            "console.log(hot$n('$x', '1'), hot$n(null, {}));",
            "console.log(hot$n.toString(), sum$n);",
        ],
    },
    Thing {
        declare: "var traps$n = [], proxy$n = new Proxy({ a: 1 }, { get(t, k, r) { traps$n.push(String(k)); return Reflect.get(t, k, r) }, has: (t, k) => k === 'b$x' }); var accessor$n = { get double() { return this.base * 2 }, base: $x };",
        uses: &[
            "proxy$n.a; proxy$n.zz; console.log(traps$n, 'b$x' in proxy$n, 'a' in proxy$n);",
            "accessor$n.base += $y; console.log(accessor$n.double, Object.getOwnPropertyDescriptor(accessor$n, 'double').set);",
        ],
    },
    Thing {
        declare: "var url$n = new URL('https://example.org/a/b?q=$x#h'), decoder$n = new TextDecoder(), partial$n = decoder$n.decode(new Uint8Array([0xe2, 0x82]), { stream: true });",
        uses: &[
            "url$n.searchParams.append('p', '$y'); console.log(url$n.href);",
            "console.log(partial$n + decoder$n.decode(new Uint8Array([0xac]), { stream: true }));",
        ],
    },
    Thing {
        declare: "console.group('g$x'); console.count('c$n'); console.log('inside');",
        uses: &[
            "console.count('c$n'); console.log('outside');",
            "console.table([{ a: $x, b: 'y' }]); console.error('e$x'); console.assert(false, 'asserted');",
        ],
    },
    Thing {
        declare: "globalThis.evaluated$n = eval('(function inner$n(x) { return x + $x })'); var made$n = new Function('a', 'return a * $y');",
        uses: &["console.log(evaluated$n($x), made$n($x), made$n.toString());", "console.log(eval('evaluated$n.name + made$n.length'));"],
    },
];

/// Ends of turns that have no effect.
const FAILURES: &[&str] = &[
    "throw new Error('turn $x')",
    "undefined$x.y",
    "const broken = ;",
    "await new Promise(() => {})",
    "Promise.reject(new RangeError('unhandled $x'))",
];

pub struct Turn {
    pub code: String,
    pub timeout_secs: u32,
}

pub struct Programs {
    random: super::Random,
    /// Pieces so far: their numbers are parts of names that must not be declared twice.
    pieces: usize,
}

impl Programs {
    pub fn new(seed: u64) -> Self {
        Self { random: super::Random::seeded(seed), pieces: 0 }
    }

    pub fn next(&mut self, turns: usize) -> Vec<Turn> {
        let mut things: Vec<(usize, &Thing)> = Vec::new();
        (0..turns).map(|_| self.turn(&mut things)).collect()
    }

    fn turn(&mut self, things: &mut Vec<(usize, &'static Thing)>) -> Turn {
        let (known, mut code, mut timeout_secs) = (things.len(), String::new(), 20);
        for _ in 0..1 + self.below(4) {
            self.pieces += 1;
            // What was declared in this turn may have timers that are due.
            let piece = if known < 2 || self.below(3) == 0 {
                let thing = &THINGS[self.below(THINGS.len())];
                things.push((self.pieces, thing));
                self.filled(thing.declare, self.pieces)
            } else {
                let (number, thing) = things[self.below(known)];
                let used = thing.uses[self.below(thing.uses.len())];
                self.filled(used, number)
            };
            code += &piece;
            code.push('\n');
        }
        match self.below(40) {
            0 => {
                (code, timeout_secs) = (code + "while (true);", 1);
                things.truncate(known);
            }
            1..6 => {
                code += &self.filled(FAILURES[self.below(FAILURES.len())], known);
                things.truncate(known);
            }
            6..12 => code += "setTimeout(() => console.log('trailing'), 1); 'trailed'",
            _ => code += &format!("Reflect.ownKeys(globalThis).length + {}", self.below(100)),
        }
        Turn { code, timeout_secs }
    }

    fn filled(&self, text: &str, number: usize) -> String {
        let text = text.replace("$n", &number.to_string()).replace("$k", &format!("K{}", self.pieces));
        text.replace("$x", &(1 + self.below(9)).to_string()).replace("$y", &(1 + self.below(9)).to_string())
    }

    fn below(&self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }
}
