const again = () => setImmediate(again);
again();
