const size = 2 ** 18;
for (const host of ["ü".repeat(size), "xn--".repeat(size), "a.".repeat(size), "9".repeat(size), `[${":".repeat(size)}]`, "\u00ad".repeat(size), "%41".repeat(size), "a\u0301".repeat(size)]) {
  URL.canParse(`http://${host}/`);
  URL.parse(host, "foo://h/");
  const url = new URL("http://h/");
  url.host = host;
  url.hostname = host;
}
"parsed";
