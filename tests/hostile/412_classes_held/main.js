globalThis.Base = class { #secret = 41; get secret() { return this.#secret; } static #count = 0; static make() { Base.#count++; return new this(); } static get count() { return Base.#count; } };
globalThis.Derived = class extends Base { static { this.mark = "static"; } get secret() { return super.secret + 1; } #method() { return 5; } call() { return this.#method(); } };
globalThis.made = Derived.make();
"kept";
