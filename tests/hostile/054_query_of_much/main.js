try {
  new URLSearchParams("a&".repeat(2 ** 27)).size;
} catch {}
new URLSearchParams([["a", "€".repeat(2 ** 26)]]).toString().length;
