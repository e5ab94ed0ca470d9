// WeakRef: what deref returns depends on when garbage is collected, which is not recorded, so a run that calls it can't be repeated.
const { uncurryThis } = base;
const { prototype } = globalThis.WeakRef;
const NativeDeref = uncurryThis(prototype.deref);
const WEAK_REF = 1;

base.define(prototype, "deref", {
  deref() {
    host.leaveGap(WEAK_REF);
    return NativeDeref(this);
  },
}.deref);
