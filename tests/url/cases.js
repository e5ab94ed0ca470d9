// URL and URLSearchParams, case by case. Prints the same bytes under Node 26 and under Heapstead: run it in both and compare.
const PARTS = ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"];
const show = (value) => JSON.stringify(value) ?? String(value);
const parts = (url) => show(PARTS.map((part) => url[part]));
const attempt = (run) => {
  try {
    return run();
  } catch (error) {
    return `${error.name}: ${error.message} ${show([error.code, error.input, error.base])}`;
  }
};
let count = 0;
const section = (title, text) => {
  count++;
  console.log(`--- ${title}`);
  console.log(text);
};

// ---- parsing; a pair is an input and its base
const inputs = {
  "special schemes": [
    "http://example.com", "HTTP://EXAMPLE.COM", "https://example.com/", "ftp://example.com/file", "ws://example.com/chat", "wss://example.com/chat",
    "http:example.com", "http:/example.com", "http:///example.com", "http:////example.com", "http:\\\\example.com\\path", "https:\\/example.com", "ftp:/x/y",
    "http:", "http:/", "http://", "http:///", "https:?q", "https:#f", "ws:", "wss://", "ftp://", "http://?q", "http://#f", "http:@/x", "http://@/x", "http://:@/x",
    "  http://example.com/trim  ", "\u0000http://example.com/\u001f", "ht\ntp://exa\tmple.com/a\rb", "http://example.com\t:80\n/",
    "http\u00a0://example.com", "1http://example.com", "ht_tp://example.com", "a+b-c.9:path", "+a:b", ":", "://", "//", "example.com", "",
  ],
  "non-special schemes": [
    "foo://host/path?q#f", "foo://HOST/path", "foo:///path", "foo:////path", "foo:/path", "foo:path", "foo:", "foo:?q", "foo:#f", "foo://", "foo://?q", "foo://#f",
    "foo:/..//bar", "foo:/.//bar", "foo:/a/..//b", "foo://h/../..//x", "foo://user:pw@host:99/p", "foo://host:0/", "foo://host:65535", "foo://host:65536", "foo://:80/",
    "foo://@/", "foo://user@/", "foo://ho st/", "foo://ho\\st/", "foo://ho%20st/", "foo://ho|st/", "foo://h^o/", "foo://ö/", "foo://%C3%B6/", "foo://a<b/", "foo://a]b/",
    "foo:\\path", "foo:/a\\b", "foo://h/a\\b", "foo://[::1]/x", "foo://[::1", "foo://192.168.1/", "foo://0x7f000001/", "foo://h/é?é#é", "FOO-bar.baz+1://Host/",
    "stun:example.org", "git+ssh://git@example.org:team/repo", "urn:uuid:1-2-3", "tel:+1-201-555-0123", "magnet:?xt=urn:btih:abc",
  ],
  "opaque paths": [
    "mailto:user@example.com", "mailto:a b", "mailto:a b  ", "data:text/plain,hello world", "data:text/plain,hello world  ?q", "data:a  #f", "data:x   ", "data:é\u0001",
    "javascript:alert('x y')//", "javascript:a\tb\nc", "about:blank", "about:blank?q#f", "about:../x", "blob:", "x:a/../b", "x:./a", "x:%2e%2e/a", "x:a\\b", "x:a'b\"c<d>e`f{g}", "x: a", "x:a ?b ", "x:a #b ",
  ],
  relative: [
    ["a", "http://h/b/c"], ["./a", "http://h/b/c"], ["../a", "http://h/b/c"], ["../../a", "http://h/b/c"], ["../../../a", "http://h/b/c"], ["/a", "http://h/b/c"], ["//g", "http://h/b/c"],
    ["///test", "http://example.org/"], ["////test", "http://example.org/"], ["///\\//\\//test", "http://example.org/"], ["\\a", "http://h/b/c"], ["\\\\g\\a", "http://h/b"], ["/\\g", "http://h/"],
    ["", "http://h/b?q#f"], ["#", "http://h/b?q#f"], ["?", "http://h/b?q#f"], ["#x", "http://h/b?q#f"], ["?x", "http://h/b?q#f"], [".", "http://h/a/b"], ["..", "http://h/a/b"], ["./", "http://h/a/b"], ["../", "http://h/a/b"],
    ["a/./b/../c", "http://h/"], ["%2e%2E/a", "http://h/b/c"], ["%2e/a", "http://h/b/c"], [".%2e", "http://h/b/c/d"], ["a/%2e%2e/", "http://h/b/"], ["a/..%2f", "http://h/"], ["a/...", "http://h/"],
    ["http:a", "http://h/b/c"], ["http:/a", "http://h/b/c"], ["http://a", "http://h/b/c"], ["https:a", "http://h/b/c"], ["https:/a", "http://h/b/c"], ["http:?x", "http://h/b?q"], ["http:#x", "http://h/b?q"], ["ws:a", "http://h/"],
    ["a", "foo://h/b/c"], ["/a", "foo://h/b/c"], ["//a", "foo://h/b/c"], ["///a", "foo://h/b/c"], ["foo:a", "foo://h/b/c"], ["foo:/a", "foo://h/b/c"], ["foo://a", "foo://h/b"], ["..", "foo:/a"], ["../..//x", "foo:/a/b"], ["//", "foo://h/b"], ["\\a", "foo://h/b"],
    ["a", "mailto:x"], ["#f", "mailto:x"], ["#f", "mailto:x y  "], ["?q", "mailto:x"], ["", "mailto:x"], ["x:y", "mailto:z"], ["/a", "data:b"], ["//a/b", "about:blank"], ["#", "data:b#c"],
    ["a", "nonsense"], ["http://ok/", "nonsense"], ["a", ""], ["a", "http://"], ["a:b", "http://h/"], ["1:b", "http://h/"], [":a", "http://h/b"], [":", "http://h/b"], ["a b", "http://h/"], [" \t a \n", "http://h/"],
    ["http://g:0/", "http://h:1/"], ["//:80", "http://h/"], ["//@", "http://h/"], ["//user@", "http://h/"], ["a?b#c?d#e", "http://h/"], ["?a#b", "foo:c"], ["x/y", "http://u:p@h:81/z?q#f"],
  ],
  "file URLs": [
    "file:", "file:/", "file://", "file:///", "file:////foo", "file://///foo", "file:a", "file:/a", "file://a", "file://a/b", "file:///a/b", "file://localhost/a", "file://LOCALHOST", "file://localhost:80/", "file://user@h/", "file://h:1/",
    "file:C:", "file:C:/", "file:/C:/x", "file:///C:/x", "file:///C|/x", "file://C:/x", "file://C|/x", "file:c:\\x\\y", "file:///c:/../..", "file:///C:/a/../..", "file:///C:x", "file:///%43:/..", "file:///1:/..", "file://host/C:/", "file://host/C|/..", "file:////C:/..", "file:\\\\h\\s",
    "file:?q", "file:#f", "file:///a?q#f", "file:///a//b", "file:///.", "file:///..", "file:///./a/../b", "file://[::1]/x", "file://1.2.3.4/x", "file://%41/", "file://a%2fb/", "file://é/",
    ["a", "file:///b/c"], ["/a", "file:///b/c"], ["//h/a", "file:///b"], ["///a", "file://h/b"], ["C:/x", "file:///b"], ["C|", "file://h/b"], ["/C:", "file://h/b"], ["//C:/x", "file://h/D:/y"], ["/..", "file:///C:/a"], ["../..", "file:///C:/a/b"], ["..", "file:///C:/"], ["C|/a/../..", "file:///"], ["?q", "file:///C:/a"], ["#f", "file:///C:/a?b"], ["", "file:///a?b#c"], ["file:", "file:///a"], ["file:x", "file:///a/b"], ["file:C|/x", "file://h/"], ["\\\\h\\x", "file:///C:/"], ["/c|/x", "file:///"], ["C|\n/", "file://h/D:/"], ["C", "file:///D:/E/"], ["C||/x", "file:///"],
  ],
  "hosts, ports, credentials": [
    "http://user@h/", "http://user:@h/", "http://:pw@h/", "http://:@h/", "http://u:p:q@h/", "http://u@v@h/", "http://u%40v:p%3A@h/", "http://a b:c d@h/", "http://é:ü@h/", "http://u;=:p;=@h/", "http://u:p@/", "http://u:p@:80/", "http://h@/", "http://a:b@c\\d@e/",
    "http://h:80/", "https://h:443/", "https://h:80/", "ftp://h:21/", "ws://h:80", "wss://h:443", "http://h:/", "http://h:0/", "http://h:00080/", "http://h:65535/", "http://h:65536/", "http://h:-1/", "http://h:8a/", "http://h: 80/", "http://h:80:80/", "http://h:٣/", "http://h:8\t0/",
    "http://a b/", "http://a%20b/", "http://a<b/", "http://a>b/", "http://a^b/", "http://a|b/", "http://a%b/", "http://a%zz/", "http://a%41/", "http://a%2fb/", "http://a%00b/", "http://a\u0000b/", "http://a#b", "http://a?b", "http://a\\b", "http://a[b/", "http://a]b/", "http://a\"b/", "http://a'b/", "http://a*b/", "http://a_b/", "http://a~b!$&()+,;=/", "http://-a-/", "http://a..b/", "http://.a/", "http://a./", "http://./", "http://../", "http://a%7Fb/", "http://a\u007fb/",
  ],
  "IPv4 addresses": [
    "http://127.0.0.1/", "http://127.1/", "http://127.0.1/", "http://2130706433/", "http://0x7f.1/", "http://0X7F000001/", "http://0177.0.0.1/", "http://0/", "http://0x/", "http://0x./", "http://1.2.3.4./", "http://1.2.3.4../", "http://1.2.3.4.5/", "http://256.1.1.1/", "http://1.256.1.1/", "http://1.1.1.256/", "http://1.1.65536/", "http://1.1.65535/",
    "http://4294967295/", "http://4294967296/", "http://0xffffffff/", "http://0x100000000/", "http://08/", "http://09.1/", "http://1.08/", "http://0xg/", "http://1.0xg/", "http://a.1/", "http://a.0x1/", "http://a.09/", "http://1.a/", "http://1..2/", "http://.1/", "http://%31%32%37.0.0.1/", "http://１２７．０．０．１/", "http://127。0。0。1/", "http://0.0.0.0/", "http://1e2/", "http://-1/", "http://1.-1/", "http://99999999999999999999/", "http://0x00000000000000000000000000000001/", "http://foo.2.3/", "http://1.2.3.08/",
  ],
  "IPv6 addresses": [
    "http://[::]/", "http://[::1]/", "http://[1::]/", "http://[1:2:3:4:5:6:7:8]/", "http://[1:0:0:4:0:0:0:8]/", "http://[1:0:0:2:0:0:3:4]/", "http://[0:0:1::]/", "http://[2001:DB8::00Ff]/", "http://[1:2:3:4:5:6:7::]/", "http://[::2:3:4:5:6:7:8]/", "http://[::ffff:1.2.3.4]/", "http://[::1.2.3.4]/", "http://[1:2:3:4:5:6:1.2.3.4]/", "http://[::1]:8080/", "http://[::1]:443",
    "http://[1:2:3:4:5:6:7]/", "http://[1:2:3:4:5:6:7:8:9]/", "http://[1::2::3]/", "http://[:1]/", "http://[1:]/", "http://[12345::]/", "http://[g::]/", "http://[::1.2.3]/", "http://[::1.2.3.256]/", "http://[::1.2.3.04]/", "http://[::.1.2.3]/", "http://[::1%25eth0]/", "http://[]/", "http://[::1]x/", "http://x[::1]/", "http://[::1/", "http://::1/", "http://[%3A%3A1]/", "http://[::1 ]/", "http://[::ffff:0x1.2.3.4]/", "http://[v1.a]/", "http://[1:2:3:4:5:6:7:1.2.3.4]/",
  ],
  IDNA: [
    "http://bücher.example/", "http://BÜCHER.example/", "http://b%C3%BCcher.example/", "http://faß.de/", "http://FASS.de/", "http://ΒΌΛΟΣ.com/", "http://日本語.jp/", "http://日本語。ＪＰ/", "http://مثال.إختبار/", "http://א.com/", "http://0א.com/", "http://a\u00adb.com/", "http://\u00ad/", "http://a\u200db/", "http://क्\u200dष/", "http://ex\u200bample/", "http://☃.net/", "http://💩.la/", "http://ｅｘａｍｐｌｅ.com/", "http://ﬁx.com/", "http://㋿.jp/", "http://\u0301a/", "http://a\u0301.com/", "http://İ.com/", "http://K.com/", "http://ａ%EF%BC%8E/",
    "http://xn--bcher-kva.example/", "http://XN--BCHER-KVA.example/", "http://xn--/", "http://xn--a/", "http://xn--zzzzzzzz/", "http://xn--ls8h.la/", "http://xn--0/", "http://xn---/", "http://xn--a-/", "http://xn--fa-hia.de/", "http://a.xn--b.c/", "http://xn--é/", "http://xn--xn---epa/", "http://xn--iñvalid.com/", "http://xn--tiq49xqyj/", "http://xn--4dbcagdahymbxekheh6e0a7fei0b/", "http://xn--0ca24w/", "http://xn--mgba3gch31f060k/", "http://ab--c.com/", "http://-é.com/", "http://é-.com/", "http://a\uff0ecom/", "http://\ufffd.com/", "http://\ud800.com/", "http://%ff.com/", "http://a%ef%bb%bfb/", "http://\u2260/", "http://%E2%89%AE/", "foo://xn--a/", "foo://xn--bcher-kva/", `http://${"a".repeat(64)}.com/`, `http://${"é".repeat(63)}.com/`, `http://${"abcdefgh.".repeat(40)}com/`,
  ],
  "percent-encoding": [
    "http://h/ !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "http://h/?! \"#", "http://h/?$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "http://h/#! \"$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "foo://h/ !\"$%&'()*+,-./:;<=>@[\\]^_`{|}~?'\"", "foo:/?'\"<>`{}", "foo:/#'\"<>`{}",
    "http://!\"$&'()*+,-.;=_`{}~:!\"$&'()*+,-.;=_`{}~@h/", "http://h/%", "http://h/%4", "http://h/%zz", "http://h/%41%2f%2F", "http://h/é€😀", "http://h/?é€😀", "http://h/#é€😀", "http://h/\u0000\u0001\u007f\u0080", "http://h/?\u0000\u007f", "http://h/#\u0000\u007f", "http://h/\ud800x\udc00", "http://h/?\ud800", "http://h/#\udc00", "http://h/a\tb\nc?d\re#f\tg", "http://h/\ufeff\ufffe\uffff", "http://h/^|`", "http://h/a%00b", "http://h/?a=b&c=d%20e+f", "http://h//a//b", "http://h/;a;b=c", "http://h/a:b@c",
  ],
  origins: [
    "http://h/", "https://h:444/", "ws://h/", "ftp://h", "file:///x", "file://h/x", "foo://h/", "data:x", "blob:http://h/x", "blob:https://h:8443/uuid", "blob:HTTPS://H:443/", "blob:ftp://h/", "blob:file:///x", "blob:ws://h/", "blob:blob:https://h/", "blob:null/x", "blob:d3958f5c", "blob:https://", "blob:https://a b/", "blob: https://h/", "blob:foo://h/", "filesystem:http://h/x", "about:srcdoc", "javascript:1", "http://u:p@h:81/",
  ],
};
for (const [group, list] of Object.entries(inputs)) {
  for (const item of list) {
    const given = Array.isArray(item) ? item : [item];
    section(`${group}: ${given.map(show).join(" on ")}`, [
      attempt(() => parts(new URL(...given))), URL.canParse(...given), attempt(() => URL.parse(...given)?.href ?? "null"),
    ].join("\n"));
  }
}

// ---- setters: every value on every URL
const subjects = ["http://user:pw@host:81/path?query#hash", "https://host/", "foo://host:81/path", "foo:///path", "foo:/path", "mailto:x y ?q#f", "data:a  #f", "file:///C:/x", "file://host/p", "ws://[::1]:99/?a#b", "foo:/.//p"];
const values = {
  href: ["http://new/", "nonsense", "", "foo:bar", " https://trim/ ", "\ud800"],
  protocol: ["https", "https:", "HTTP:", "ftp://x", "foo", "mailto:", "file", "ws", "wss:rest", "", "1a", "h\u00e9", ":", "a b", "ht\ntp", "foo+bar-baz.1:"],
  username: ["me", "", "a:b@c/d", "é", "%41%zz", "a b", "\u0000", "\ud800"],
  password: ["secret", "", "a:b@c/d?#", "é ", "%41", "'\""],
  host: ["new", "new:82", "new:", "new:x", ":82", "", "new/path", "new?q", "new#f", "new\\x", "u@new", "a b", "[::1]:9", "[::1", "1.2", "0x7f.1", "xn--a", "BÜ.de", "new:65536", "new:8\t2", "C:", "localhost", "%41", "a%b", "x:80", "x:443", "//new"],
  hostname: ["new", "new:82", ":", "", "new/path", "a b", "[1::]", "[1", "256", "256.1.1.1.1", "ß", "xn--", "localhost", "new?", "n\new", "%00", "*.a", "-"],
  port: ["82", "", "80", "443", "0", "65535", "65536", "082", "8 2", "82x", "x82", "-1", "8.2", "\t8\n2", " 82", "21", "٣", "8080/x", 90, null],
  pathname: ["new", "/new", "", "//new", "/a/../b", "a?b#c", "a b", "\\a\\b", "%2e%2e/x", "é", "/C|/x", "..", "/..//p", "\u0000", "/a%zz", "a\tb\n", ".//p"],
  search: ["q=1", "?q=1", "??q", "?", "", "a b'\"", "é", "#x", "%zz&+", "a\tb", "\ud800"],
  hash: ["f", "#f", "##f", "#", "", "a b`\"<>", "é", "?x", "a\tb", "\udc00"],
};
for (const [part, list] of Object.entries(values)) {
  for (const subject of subjects) {
    const lines = list.map((value) => {
      const url = new URL(subject);
      const before = url.searchParams.toString();
      const thrown = attempt(() => { url[part] = value; return ""; });
      const after = url.searchParams.toString();
      return `${show(value)} ${thrown} ${parts(url)} ${before === after ? "" : after}`;
    });
    section(`set ${part} of ${subject}`, lines.join("\n"));
  }
}
section("setters in turn", (() => {
  const url = new URL("http://h/"), log = [];
  for (const [part, value] of [["port", "99"], ["protocol", "https"], ["host", "g:443"], ["username", "u"], ["hash", "x"], ["search", "a=1"], ["pathname", "p/q"], ["password", "w"], ["hash", ""], ["search", ""], ["username", ""], ["password", ""], ["protocol", "file"], ["href", "file:///x"], ["host", "y"], ["protocol", "http"], ["port", "1"]]) {
    url[part] = value;
    log.push(url.href);
  }
  return log.join("\n");
})());
section("spaces at the end of an opaque path", (() => {
  const log = [];
  for (const href of ["data:x  ?q#f", "data:x  ?q", "data:x  #f", "data:x  y?q#f"]) {
    const url = new URL(href);
    log.push(url.href, url.pathname);
    url.search = "";
    log.push(url.href);
    url.hash = "";
    log.push(url.href, url.pathname);
    const other = new URL(href);
    other.searchParams.delete("q");
    log.push(other.href, other.search);
    other.hash = null;
    log.push(other.href);
  }
  return show(log);
})());

// ---- searchParams
const live = (href, act) => {
  const url = new URL(href), log = [];
  act(url, url.searchParams, (...values) => log.push(...values));
  return show([...log, url.href, url.search, url.searchParams.toString(), url.searchParams.size]);
};
const linked = {
  append: (url, p) => p.append("b", "c d"), set: (url, p) => p.set("a", "é&="), "delete all": (url, p) => [...p.keys()].forEach((k) => p.delete(k)), "delete none": (url, p) => p.delete("nope"), "delete by value": (url, p) => p.delete("a", "1"), sort: (url, p) => p.sort(),
  "search then append": (url, p, log) => { url.search = "?x=y"; log([...p]); p.append("z", ""); }, "append then hash": (url, p) => { p.append("k", "v"); url.hash = "#new"; }, "append then search": (url, p, log) => { p.append("k", "v"); url.search = "s"; log(p.get("k")); }, "append then href": (url, p, log) => { p.append("k", "v"); url.href = "http://other/?o=1"; log([...p]); },
  "append then pathname": (url, p) => { p.append("k", "v"); url.pathname = "/zz"; }, "bad href keeps": (url, p, log) => { p.append("k", "v"); log(attempt(() => { url.href = "bad"; return "set"; })); }, "same object": (url, p, log) => { url.search = "n"; log(url.searchParams === p); }, "read only": (url, p, log) => log(attempt(() => { "use strict"; url.searchParams = new URLSearchParams("w"); return "set"; }), url.searchParams === p),
  "empty name and value": (url, p) => { url.search = ""; p.append("", ""); }, "clear by search": (url, p, log) => { url.search = ""; log(p.size); }, "mark alone": (url, p, log) => { url.search = "?"; log(p.size, url.href); }, "while iterating": (url, p, log) => { for (const [k] of p) { log(k); if (p.size < 6) p.append(`${k}+`, "i"); } }, "search while iterating": (url, p, log) => { for (const pair of p) { log(pair); url.search = "x=1&y=2&z=3"; } }, "search in forEach": (url, p, log) => p.forEach((v, k) => { log(k); url.search = "x=1&y=2&z=3"; }),
};
for (const [name, act] of Object.entries(linked)) {
  for (const href of ["http://h/p?a=1&b=2&a=3#f", "http://h/", "foo:opaque  ?a=1&c=%20+%2B"]) section(`searchParams ${name}: ${href}`, attempt(() => live(href, act)));
}
const queries = ["", "?", "??", "a", "a=", "=a", "=", "&", "&&a&&", "a=b=c", "a&a=1&a=2", "?a=1", "a+b=c+d", "a%20b=%2B", "%", "%4", "%zz=%4g", "%C3%A9=%e2%82%ac", "%ff%fe", "é=€&😀", "\ud800=\udfff", "%EF%BB%BFa=1", "\ufeffa", "a;b=c", "a[]=1&a[]=2", "a\0b=\0", "a=b#c", "%26=%3D", "a\nb=c\td", "~!*()'-._=~!*()'-._", "A=1&a=2", "%00=%7f"];
for (const query of queries) {
  section(`query ${show(query)}`, (() => {
    const params = new URLSearchParams(query);
    const url = new URL("http://h/");
    url.search = query;
    return show([[...params], params.toString(), params.size, url.search, [...url.searchParams]]);
  })());
}
class Trace { constructor(log, text) { this.log = log; this.text = text; } toString() { this.log.push(this.text); return this.text; } }
const uses = {
  "conversions": () => { const p = new URLSearchParams(); for (const v of [undefined, null, 1, -0, true, 5n, [1, 2], {}, "\ud800", { toString: () => "o" }]) p.append(v, v); return [...p]; },
  "conversion order": () => { const log = [], p = new URLSearchParams(); p.append(new Trace(log, "n"), new Trace(log, "v")); p.set(new Trace(log, "n"), new Trace(log, "w")); p.has(new Trace(log, "n"), new Trace(log, "w")); p.delete(new Trace(log, "n"), new Trace(log, "w")); p.get(new Trace(log, "g")); p.getAll(new Trace(log, "h")); return log; },
  "has and delete with a value": () => { const p = new URLSearchParams("a=1&a=2&b=1&a=null&a=undefined"); const seen = [p.has("a", "1"), p.has("a", "3"), p.has("a", undefined), p.has("a", null), p.has("b", 1)]; p.delete("a", "2"); p.delete("a", undefined, "x"); return [seen, p.toString()]; },
  "set keeps the first place": () => { const p = new URLSearchParams("x=0&a=1&y=0&a=2&z=0"); p.set("a", "9"); p.set("n", ""); return p.toString(); },
  "sort is stable and by code unit": () => { const p = new URLSearchParams("z=1&\ufffd=2&😀=3&a=4&z=0&=5&A=6&aa=7&a=1&é=8"); p.sort(); return [...p]; },
  "sort of many": () => { const p = new URLSearchParams(); for (let i = 0; i < 300; i++) p.append(`k${i * 7 % 11}`, `${i}`); p.sort(); return p.toString(); },
  "records": () => [{ a: 1, b: [2, 3], [Symbol.for("s")]: 4 }].map((v) => attempt(() => new URLSearchParams(v).toString())),
  "records in order": () => new URLSearchParams({ 2: "b", 1: "a", z: "c", get y() { return "d"; } }).toString(),
  "records through proxies": () => { const log = []; new URLSearchParams(new Proxy({ a: 1, b: 2 }, { ownKeys(t) { log.push("ownKeys"); return Reflect.ownKeys(t); }, getOwnPropertyDescriptor(t, k) { log.push(`gopd ${k}`); return Reflect.getOwnPropertyDescriptor(t, k); }, get(t, k) { log.push(`get ${String(k)}`); return t[k]; } })); return log; },
  "sequences": () => [[["a", "b"]], [], [["a", "b"], new Set(["c", "d"])], new Map([[1, 2]]), [{ *[Symbol.iterator]() { yield "x"; yield "y"; } }], (function* () { yield ["g", "h"]; })()].map((v) => new URLSearchParams(v).toString()),
  "bad sequences": () => [[[]], [["a"]], [["a", "b", "c"]], ["ab"], [1], [null], [undefined], [{}], { [Symbol.iterator]: 1 }, Symbol("s"), [[Symbol("s"), ""]]].map((v) => attempt(() => new URLSearchParams(v).toString())),
  "copies": () => { const a = new URLSearchParams("a=1"), b = new URLSearchParams(a); b.append("b", "2"); const c = new URLSearchParams(new URL("http://h/?c=3").searchParams); c.append("d", "4"); return [`${a}`, `${b}`, `${c}`]; },
  "iterators": () => { const p = new URLSearchParams("a=1&b=2"), i = p.entries(); const first = i.next(); return [first, Object.keys(first), i[Symbol.iterator]() === i, [...i], i.next(), Object.prototype.toString.call(i), Reflect.ownKeys(Object.getPrototypeOf(i)).map(String), typeof i.return, [...p.keys()], [...p.values()], p[Symbol.iterator].name]; },
  "iterators see changes": () => { const p = new URLSearchParams("a=1&b=2&c=3"), i = p.keys(), log = []; log.push(i.next().value); p.delete("a"); log.push(i.next().value); p.append("d", "4"); log.push(...i); p.append("e", "5"); log.push(i.next().done); return log; },
  "forEach": () => { const log = [], p = new URLSearchParams("a=1&b=2"); p.forEach(function (value, name, all) { log.push(value, name, all === p, this === undefined || this === globalThis); if (name === "a") p.append("c", "3"); }); return log; },
  "forEach errors": () => [undefined, null, {}, "f"].map((v) => attempt(() => new URLSearchParams("a").forEach(v))),
  "missing arguments": () => { const p = new URLSearchParams(); return ["append", "delete", "get", "getAll", "has", "set"].flatMap((m) => [attempt(() => p[m]()), attempt(() => show(p[m]("a")))]); },
  "missing arguments of URL": () => [() => new URL(), () => URL.parse(), () => URL.canParse(), () => new URL(undefined), () => URL.canParse(undefined), () => new URL("x", null), () => new URL("http://h", undefined).href, () => URL.parse("x", undefined)].map((f) => attempt(() => show(f()))),
  "wrong receivers": () => [...PARTS, "searchParams"].map((part) => { try { return Reflect.get(URL.prototype, part, {}); } catch (error) { return error.name; } }).concat(["append", "delete", "get", "getAll", "has", "set", "sort", "entries", "forEach", "keys", "values", "toString"].map((m) => { try { return URLSearchParams.prototype[m].call({}, "a", "b"); } catch (error) { return error.name; } })),
  "surface of URL": () => [Object.keys(URL.prototype), Object.getOwnPropertyNames(URL).filter((k) => !k.endsWith("ObjectURL")), URL.length, URL.name, URL.canParse.length, URL.parse.length, ...PARTS.map((p) => { const d = Object.getOwnPropertyDescriptor(URL.prototype, p); return [d.get.name, d.get.length, d.set?.name, d.set?.length, d.enumerable, d.configurable]; })],
  "surface of URLSearchParams": () => [Object.keys(URLSearchParams.prototype).sort(), URLSearchParams.length, ...["append", "delete", "get", "getAll", "has", "set", "sort", "entries", "forEach", "keys", "values", "toString"].map((m) => [m, URLSearchParams.prototype[m].length, URLSearchParams.prototype[m].name]), typeof Object.getOwnPropertyDescriptor(URLSearchParams.prototype, "size").get],
  "tags": () => [new URL("http://h"), new URLSearchParams(), new URLSearchParams().keys()].map((v) => Object.prototype.toString.call(v)),
  "without new": () => [() => URL("http://h"), () => URLSearchParams("a")].map((f) => attempt(f)),
  "subclasses": () => { class U extends URL { get twice() { return this.host + this.host; } } class P extends URLSearchParams { n() { return this.size; } } const u = new U("x", "http://h/"); return [u.twice, u instanceof URL, U.parse("http://z") instanceof U, new P("a=1&b").n(), Object.prototype.toString.call(new P())]; },
  "strings": () => { const u = new URL("http://h/é"); return [`${u}`, u + "", u.toString(), u.toJSON(), JSON.stringify([u]), String(u.searchParams), JSON.stringify(u.searchParams)]; },
  "inputs are converted": () => { const log = []; new URL(new Trace(log, "x"), new Trace(log, "http://h/")); URL.canParse(new Trace(log, "y"), new Trace(log, "http://h/")); return [log, new URL(new URL("http://h/x")).href, new URL("y", new URL("http://h/x")).href, attempt(() => new URL(Symbol("s"))), attempt(() => new URL("x", Symbol("s"))), attempt(() => new URL({ toString() { throw new RangeError("mine"); } }))]; },
  "setters convert": () => { const u = new URL("http://h/"); u.hash = { toString: () => "o" }; u.search = null; u.pathname = undefined; u.port = 8080; u.username = 5n; return [u.href, attempt(() => { u.hash = Symbol("s"); })]; },
  "errors": () => ["x", "http://a b/"].flatMap((v) => [undefined, "y", "http://h:x/"].map((b) => { try { return new URL(v, b).href; } catch (e) { return [e instanceof TypeError, e.name, e.code, e.message, e.input, e.base, Object.keys(e), String(e)]; } })),
  "errors of the href setter": () => { try { new URL("http://h").href = "no"; } catch (e) { return [e instanceof TypeError, e.code, e.message, e.input, Object.keys(e)]; } },
  "not cloneable": () => [new URL("http://h/"), new URLSearchParams("a"), { deep: [new URL("http://h/")] }, new Map([[1, new URLSearchParams()]]), new (class U extends URL {})("http://h")].map((v) => { try { return structuredClone(v); } catch (e) { return [e.name, e.code, e.message, e instanceof DOMException]; } }),
  "cloneable all the same": () => [structuredClone({ href: "x", size: 1 }), structuredClone(new (class A { b = 1; })()), structuredClone(Object.create({ c: 2 }, { d: { value: 3, enumerable: true } }))],
  "long": () => { const u = new URL(`http://h/${"a".repeat(1e5)}?${"b=c&".repeat(1e4)}#${"é".repeat(1e4)}`); return [u.href.length, u.pathname.length, u.search.length, u.hash.length, u.searchParams.size]; },
  "many parameters": () => { const u = new URL("http://h/"); for (let i = 0; i < 3000; i++) u.searchParams.append("k", i); return [u.href.length, u.searchParams.getAll("k").length]; },
};
for (const [name, run] of Object.entries(uses)) section(name, attempt(() => show(run())));

// ---- as the console shows them
const shown = [
  () => new URL("https://user:pw@example.com:8443/path/to?x=1&y=%20#frag"), () => new URL("data:x"), () => [new URL("http://h/")], () => ({ a: { b: { c: new URL("http://h/") } } }), () => new URLSearchParams(), () => new URLSearchParams("a=1&b=two"), () => new URLSearchParams("a=it's&b=%0A"),
  () => new URLSearchParams(Array.from({ length: 12 }, (_, i) => [`name${i}`, `value ${i}`])), () => [new URLSearchParams("a=1")], () => ({ a: { b: { c: new URLSearchParams("a=1") } } }), () => new URLSearchParams("a=1&b=2").entries(), () => new URLSearchParams("a=1&b=2").keys(), () => new URLSearchParams("a=1&b=2").values(), () => new URLSearchParams().keys(), () => new (class Mine extends URL {})("http://h/"), () => new (class Mine extends URLSearchParams {})("a"), () => URLSearchParams, () => Object.assign(new URL("http://h/"), { extra: 1 }),
  () => { const i = new URLSearchParams("a=1&b=2&c=3").entries(); i.next(); return i; }, () => new URLSearchParams([["a", "x".repeat(100)]]), () => new URL(`http://h/?q=${"z".repeat(90)}`), () => new Map([[new URL("http://h/"), new URLSearchParams("k=v")]]),
];
for (const make of shown) {
  console.log(`--- inspect ${make}`);
  count++;
  console.log(make());
}
console.log("--- inspect by directives");
console.log("%s %O %j", new URL("http://h/"), new URL("http://h/x"), new URL("http://h/y"));
console.dir(new URLSearchParams("a=1"));
console.log(`--- ${count} cases`);
