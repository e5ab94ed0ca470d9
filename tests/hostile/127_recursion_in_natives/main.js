const ways = [
  function sort() { [2, 1].sort(sort); },
  function replace() { "x".replace(/x/, replace); },
  function toJSON() { JSON.stringify({ toJSON }); },
  function getter() { ({ get a() { return getter(); } }).a; },
  function trap() { new Proxy({}, { get: trap }).a; },
  function toString() { `${{ toString }}`; },
  function construct() { Reflect.construct(construct, []); },
];
ways.map((way) => { try { way(); return "no end"; } catch (error) { return error.name; } });
