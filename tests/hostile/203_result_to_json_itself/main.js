class Odd { toJSON() { return this; } }
class Throws { toJSON() { throw new Error("no"); } }
[new Odd(), new Throws()];
