setTimeout(() => { throw new Error("never comes"); }, 10);
const again = () => { Promise.resolve().then(again); };
again();
