//! What hot programs consist of.

/// `$n` is the number of the thing, `$x` and `$y` are small random numbers, `$T` is a type of typed arrays.
pub struct Thing {
    pub declare: &'static str,
    /// Makes it hot.
    pub hot: &'static str,
    /// Statements that show it, some with types that it was not optimised for.
    pub uses: &'static [&'static str],
}

pub const THINGS: &[Thing] = &[
    Thing {
        declare: "var array$n = new $T(512), total$n = 0;\nfunction fill$n(a, k) { let s = 0; for (let i = 0; i < a.length; i++) { a[i] = i * k; s += Number(a[i]) } return s }",
        hot: "for (let r = 0; r < 100; r++) total$n += fill$n(array$n, r % $x);",
        uses: &[
            "console.log(total$n, array$n.subarray(0, 9));",
            "console.log(fill$n(new $T(7), '$x'), fill$n([1, , 3], 2.5), fill$n({ length: 2 }, $y));",
            "array$n = new $T(array$n).map(v => v + $x); console.log(array$n.at(-1), array$n.indexOf($x));",
        ],
    },
    Thing {
        declare: "class Point$n { #x; #y = $x; static made = 0; static #all = []; constructor(x) { this.#x = x; Point$n.made++; if (x % 500 === 0) Point$n.#all.push(this) } get x() { return this.#x } set x(v) { this.#x = v } #sum(o) { return this.#x + o.#y } add(o) { return new Point$n(this.#sum(o)) } static is(o) { return #x in o } static get all() { return Point$n.#all } }\nvar point$n = new Point$n(0), one$n = new Point$n(1);",
        hot: "for (let i = 0; i < 12000; i++) { point$n = point$n.add(one$n); point$n.x += i & 1 }",
        uses: &[
            "console.log(point$n.x, Point$n.made, Point$n.all.length, Point$n.is(point$n), Point$n.is({}));",
            "class Sub$n_$y$x { static of(o) { try { return Point$n.prototype.add.call({}, o) } catch (e) { return e.stack } } } console.log(Sub$n_$y$x.of(one$n));",
            "point$n = point$n.add({ __proto__: one$n }.constructor === Point$n ? one$n : point$n); point$n.x = 0.5; console.log(point$n.add(one$n).x, point$n);",
        ],
    },
    Thing {
        declare: "var closures$n = []; function make$n(k) { let n = k, calls = 0; return { up: by => { calls++; return n += by }, read: () => [n, calls] } }\nvar counter$n = make$n($x);",
        hot: "for (let i = 0; i < 15000; i++) { counter$n.up(i); if (i % 1000 === 999) { closures$n.push(() => i + counter$n.read()[1], make$n(i)) } }",
        uses: &[
            "console.log(counter$n.read(), closures$n.map(c => typeof c === 'function' ? c() : c.up($x)));",
            "console.log(counter$n.up('s'), counter$n.up({}), make$n.toString()); counter$n = make$n($y);",
            "console.log(closures$n.map(c => String(c.up ?? c)));",
        ],
    },
    Thing {
        declare: "function* walk$n(depth, a, b) { let s = a; for (let i = 0; i < depth; i++) { const local = s * 2 + b; try { if (i % 3 === 0) s += (yield local) ?? 1; else s = (s + local) % 1009 } finally { b++ } } return [s, b] }\nvar walks$n = [];",
        hot: "for (let r = 0; r < 600; r++) { let v; const g = walk$n(30, r, $x); for (v of g); if (r % 200 === 0) { const left = walk$n(40, r, 0.5); left.next(); left.next(r); walks$n.push(left) } }",
        uses: &[
            "console.log(walks$n.map(w => w.next($x)));",
            "console.log(walks$n.map(w => w.next('s').value), [...walk$n(9, 1n === 1n ? 1 : 0, $y)]);",
            "try { walks$n[0]?.throw(new Error('thrown')) } catch (e) { console.log(e.stack) } console.log(walks$n.at(-1)?.return($x));",
        ],
    },
    Thing {
        declare: "var gates$n = [], done$n = []; async function waits$n(n, k) { let s = 0, list = [k]; for (let i = 0; i < n; i++) { s += i % (k + 1); if (i === n >> 1) list.push(await new Promise(go => gates$n.push(go))) } return [s, ...list] }",
        hot: "for (let r = 0; r < 300; r++) { const w = waits$n(100, r % 5); gates$n.pop()(r); done$n[r % 10] = await w } for (let r = 0; r < 3; r++) waits$n(1000, r).then(v => done$n.push(v));",
        uses: &[
            "gates$n.shift()?.($x); await null; await null; await null; console.log(done$n, gates$n.length);",
            "for (const go of gates$n.splice(0)) go({ late: $y }); await new Promise(go => setTimeout(go, 1)); console.log(done$n.slice(10));",
            "{ const failing = (async () => { await null; null.x$x })(); try { await failing } catch (e) { console.log(e.message) } }",
        ],
    },
    Thing {
        declare: "async function* drip$n(k) { let i = 0; try { for (;;) { i += k; for (let j = 0; j < 20; j++) i ^= j; yield i % 97 } } finally { console.log('drip', i) } }\nvar drip_$n = drip$n($x), drops$n = [];",
        hot: "for (let r = 0; r < 600; r++) drops$n[r % 20] = (await drip_$n.next()).value;",
        uses: &[
            "console.log(drops$n, await drip_$n.next());",
            "console.log(await Promise.all([drip_$n.next(), drip_$n.next()]));",
            "for await (const d of drip$n($y)) { if (d > 40) { console.log(d); break } }",
        ],
    },
    Thing {
        declare: "var sticky$n = /(?<a>[a-f]+)(?:-(\\d{1,3}))?/y, global$n = /(?<=x)(\\w)(\\w*?)(?=\\d)/gu, hits$n = 0;\nfunction match$n(s) { sticky$n.lastIndex = 0; const m = sticky$n.exec(s); return m ? m.groups.a.length + (m[2] | 0) : -1 }",
        hot: "for (let i = 0; i < 10000; i++) { hits$n += match$n('abc-' + i) + ('xab1xc' + i).replace(global$n, (_, a) => a).length }",
        uses: &[
            "console.log(hits$n, match$n('fff-$y z'), sticky$n.lastIndex, RegExp.$1);",
            "var rest$n = 'xa1 xbb2 xc3'.matchAll(global$n); rest$n.next(); console.log('xq$y'.split(global$n));",
            "console.log([...(globalThis.rest$n ?? [])].map(m => m.index), match$n('😀') , sticky$n.source, '$yab'.search(/(\\p{L})\\1?b/u));",
        ],
    },
    Thing {
        declare: "var map$n = new Map(), set$n = new Set(), weak$n = new WeakMap(), keys$n = Array.from({ length: 16 }, (_, i) => ({ i }));\nfunction put$n(k, v) { const o = keys$n[k & 15]; weak$n.set(o, (weak$n.get(o) ?? 0) + v); set$n.add(v % 31); return map$n.set('k' + (k % 37), v).size }",
        hot: "for (let i = 0; i < 12000; i++) put$n(i, i ^ $x);\nvar entries$n = map$n.entries(); entries$n.next();",
        uses: &[
            "console.log(entries$n.next().value, map$n.get('k$x'), set$n.size, weak$n.get(keys$n[$x]));",
            "put$n($x, 'text'); put$n({}, null); set$n.delete($x); console.log([...set$n].slice(-3), map$n.size, [...map$n.keys()].at(-1));",
            "map$n.forEach((v, k) => { if (v % 7 === 0) map$n.delete(k) }); console.log(map$n.size, Object.groupBy(set$n, v => typeof v));",
        ],
    },
    Thing {
        declare: "var errors$n = [];\nclass Own$n extends RangeError { constructor(m, o) { super(m, o); this.extra = $x } }\nfunction inner$n(i) {\n  if (i % 3 === 0) return new Error('plain ' + i);\n    return i % 3 === 1 ? new Own$n('own ' + i, { cause: i }) : (() => { try { return undefined.x } catch (e) { return e } })() }\nfunction middle$n(i) { return inner$n(i + 1) }\nconst outer$n = { call: i => [i].map(middle$n)[0] };",
        hot: "for (let i = 0; i < 10000; i++) { const e = outer$n.call(i); if (i % 1499 === 0) errors$n.push(e) }",
        uses: &[
            "console.log(errors$n.map(e => e.stack).join('\\n'));",
            "console.log(outer$n.call('$x').stack, errors$n.at(-1).cause, errors$n.length);",
            "console.log(errors$n.at($x % errors$n.length));",
            "errors$n = errors$n.map(e => Error('wrapped', { cause: e })); console.log(errors$n[0]);",
        ],
    },
    Thing {
        declare: "var caught$n = []; function deep$n(n, f) { if (n === 0) return f(); try { return deep$n(n - 1, f) + 1 } finally { if (n === 3) caught$n.length = Math.min(caught$n.length, 12) } }",
        hot: "for (let i = 0; i < 4000; i++) { try { deep$n(6, i % 2 ? () => i : () => { throw new TypeError('deep ' + i) }) } catch (e) { if (i > 3980) caught$n.push(e) } }",
        uses: &[
            "console.log(caught$n.map(e => e.stack).join('\\n'));",
            "try { deep$n(2, () => null.y) } catch (e) { console.log(e.stack) }",
            "{ const trace = {}; deep$n(3, () => { Error.captureStackTrace(trace, deep$n); return 1 }); console.log(trace.stack, deep$n(4, () => 's')) }",
        ],
    },
    Thing {
        declare: "function old$n(a, b) { arguments[0] = a + 1; return Array.prototype.slice.call(arguments, 0, 2).length + a }\nfunction fresh$n(a, { b = $x, ...rest } = {}, ...more) { return a + b + more.length + Object.keys(rest).length }\nvar bound$n = fresh$n.bind(null, 1), sum$n = 0;",
        hot: "for (let i = 0; i < 15000; i++) sum$n += old$n(i, 1) + fresh$n(i, { b: 1, c: 2 }, 3, 4) + bound$n();",
        uses: &[
            "console.log(sum$n, old$n.toString(), fresh$n.toString(), bound$n.name, fresh$n.length);",
            "console.log(old$n('a'), fresh$n('b', { d: 1 }), bound$n({ b: null }, ...'xyz'));",
            "sum$n = Reflect.apply(old$n, null, [$x, $y, 3]); console.log(sum$n, new (function () { this.t = new.target === undefined })().t);",
        ],
    },
    Thing {
        declare: "function area$n(s) { return s.kind === 'r' ? s.w * s.h : s.r ? s.r * s.r * 3 : s.side ?? -1 }\nvar shapes$n = [{ kind: 'r', w: 2, h: $x }, { kind: 'c', r: 3 }, { side: 4, kind: 's' }, { h: 1, w: 2, kind: 'r' }, Object.create({ kind: 's', side: 5 })];",
        hot: "var area_$n = 0; for (let i = 0; i < 20000; i++) area_$n += area$n(shapes$n[i % shapes$n.length]);",
        uses: &[
            "console.log(area_$n, shapes$n.map(area$n));",
            "delete shapes$n[0].w; shapes$n.push({ get kind() { return 'r' }, w: '3', h: 2n === 2n ? 2 : 1 }); console.log(shapes$n.map(area$n));",
            "for (let i = 0; i < 40; i++) shapes$n[1]['p' + i] = i; console.log(Object.keys(shapes$n[1]).length, area$n(new Proxy(shapes$n[1], {})));",
        ],
    },
    Thing {
        declare: "var kinds$n = [1, 2, 3]; function push$n(a, v) { a.push(v); return a[a.length - 1] === v && a.length }",
        hot: "for (let i = 0; i < 10000; i++) { const a = [i]; push$n(a, i); push$n(a, i + 1); kinds$n[i & 63] = a.length + i }",
        uses: &[
            "console.log(push$n(kinds$n, 1.5), kinds$n.slice(-3));",
            "kinds$n[kinds$n.length + 2] = 'hole'; console.log(push$n(kinds$n, {}), kinds$n.slice(-4), kinds$n.includes(undefined));",
            "console.log(kinds$n.toSorted().slice(0, 4), kinds$n.findLast(v => v > $y), push$n(Object.freeze([]).concat(-0), NaN));",
        ],
    },
    Thing {
        declare: "var text$n = '', parts$n = []; function grow$n(s, i) { return i % 500 === 0 ? s.slice(s.length >> 1) + 'ü' : s + String.fromCharCode(97 + i % 26) + `${i & 1}` }",
        hot: "for (let i = 0; i < 12000; i++) { text$n = grow$n(text$n, i); if (i % 1700 === 0) parts$n.push(text$n, text$n.substring(3, 40)) }",
        uses: &[
            "console.log(text$n.length, text$n.slice(-20), parts$n.map(p => p.length + p.at(-1)));",
            "text$n = parts$n.join('😀').normalize('NFD'); console.log(text$n.length, text$n.codePointAt($y), JSON.stringify(text$n.slice(0, 30)));",
            "console.log(parts$n.map(p => p.split('a').length), [...text$n].length, text$n.isWellFormed());",
        ],
    },
    Thing {
        declare: "var big$n = 1n; function mix$n(a, b) { return BigInt.asUintN(64, (a * 6364136223846793005n + BigInt(b)) ^ (a >> 7n)) }",
        hot: "for (let i = 0; i < 12000; i++) big$n = mix$n(big$n, i);",
        uses: &[
            "console.log(big$n, mix$n(big$n, $y));",
            "try { mix$n(1, 2) } catch (e) { console.log(e.stack) }",
            "big$n = big$n ** 3n; console.log(String(big$n).length, BigInt.asIntN(13, big$n), Number(big$n) > 0);",
        ],
    },
    Thing {
        declare: "function number$n(a, b) { const c = (a * b) | 0, d = a % b, e = -a * 0; return [c >>> 1, d, Object.is(e, -0), Math.hypot(a, b) > $x, Math.max(a, b, -0), ~~(a / b), Math.imul(a, b), Math.fround(a / 3)] }\nvar numbers$n;",
        hot: "for (let i = 1; i < 12000; i++) numbers$n = number$n(i, 7);",
        uses: &[
            "console.log(numbers$n, number$n(2 ** 31, -1), number$n(0.1, 0.2));",
            "console.log(number$n(NaN, Infinity), number$n('$x', true), number$n(null, undefined));",
            "console.log(number$n(2 ** 53, 3), number$n(-2147483648, -1), number$n([$x], { valueOf: () => $y }));",
        ],
    },
    Thing {
        declare: "class Range$n { constructor(n) { this.n = n; this.closed = 0 } [Symbol.iterator]() { let i = 0; return { next: () => i < this.n ? { value: i++, done: false } : { value: undefined, done: true }, return: v => { this.closed++; return { value: v, done: true } } } } }\nvar range$n = new Range$n(20); function take$n(r) { const [a, , b = 9, ...rest] = r; for (const v of r) if (v > 5) return a + b + rest.length; return -1 }",
        hot: "var taken$n = 0; for (let i = 0; i < 4000; i++) taken$n += take$n(range$n);",
        uses: &[
            "console.log(taken$n, range$n.closed, take$n(new Range$n(3)));",
            "console.log(take$n('text'), take$n(new Set([7, 8, 9])), take$n(Iterator.from([1, 2, 3]).map(v => v * $x)));",
            "try { take$n($x) } catch (e) { console.log(e.stack) }",
        ],
    },
    Thing {
        declare: "var rows$n = Array.from({ length: 300 }, (_, i) => ({ id: i, key: (i * 7919) % 101, name: 'n' + (i % 13) })); var log$n = [];\nvar proxy$n = new Proxy(rows$n, { get(t, k, r) { if (k === 'length') log$n.push(k); return Reflect.get(t, k, r) } });",
        hot: "for (let r = 0; r < 12; r++) rows$n = rows$n.toSorted((a, b) => r & 1 ? a.key - b.key || a.id - b.id : a.name < b.name ? -1 : a.name > b.name ? 1 : 0); for (let i = 0; i < 3000; i++) proxy$n[i % 300]; proxy$n.length;",
        uses: &[
            "console.log(rows$n.slice(0, 3), log$n.length);",
            "console.log(JSON.parse(JSON.stringify(rows$n.slice(0, 5)), (k, v) => k === 'id' ? v + $x : v));",
            "console.log(Object.entries(Object.groupBy(rows$n, r => r.name)).map(([k, v]) => k + v.length).join(), structuredClone(rows$n[$y]));",
        ],
    },
    Thing {
        declare: "var steps$n = 0; function label$n(n) { let s = 0; outer: for (let i = 0; i < n; i++) { for (let j = 0; j < n; j++) { switch ((i * j) % 5) { case 0: continue; case 1: s++; case 2: s += 2; break; case 3: if (j > i) continue outer; default: s ^= j } if (s > 1e5) break outer } } return s }",
        hot: "for (let i = 0; i < 150; i++) steps$n += label$n(20 + i % 7); { let osr = 0; for (let i = 0; i < 60000; i++) { osr = (osr * 31 + i) | 0; if (i === 59999) console.log('osr', osr) } }",
        uses: &[
            "console.log(steps$n, label$n($y));",
            "console.log(label$n('7'), label$n(3.5), label$n.toString().length);",
            "eval('var evaluated$n = k => label$n(k) + ' + $x); for (let i = 0; i < 300; i++) evaluated$n(5); console.log(evaluated$n($x), new Function('k', 'return label$n(k) * 2')($x));",
        ],
    },
];
