// Calls every symbol of a table by position, in the named form and by its full name, and compares the results. A function of the table and
// the samples; returns the called symbols and the failures.
(entities, samples) => {
  const called = [], wrong = [];
  const shown = (value) => JSON.stringify(typeof value?.next === "function" ? [...value] : value, (_, inner) =>
    inner instanceof statistics.RunningStatistics ? [inner.count, inner.mean, inner.variance()] : inner);
  const compare = (symbol, parameters, args, hasRest, call) => {
    const named = {};
    parameters.forEach((parameter, i) => { named[parameter] = hasRest && i === parameters.length - 1 ? args.slice(i) : args[i]; });
    const results = [shown(call.full(...args)), shown(call.symbol(...args)), parameters.length ? shown(call.symbol(named)) : undefined];
    if (results[0] !== results[1] || (parameters.length && results[0] !== results[2])) wrong.push([symbol, results]);
    called.push(symbol, ...parameters);
  };
  for (const { symbol, catalog, entity, parameters, methods } of entities) {
    const namespace = globalThis[catalog], full = namespace[entity], args = samples[catalog][entity], short = globalThis[symbol];
    if (short !== full) wrong.push([symbol, "is not the export"]);
    if (typeof full !== "function") {
      called.push(symbol);
      continue;
    }
    const isClass = methods.length > 0;
    const made = () => new full(...args);
    compare(symbol, parameters, args, false, {
      full: (...given) => (isClass ? new full(...given) : full(...given)),
      symbol: (...given) => (isClass ? new short(...given) : short(...given)),
    });
    for (const { symbol: alias, method, is_static: isStatic, parameters } of methods) {
      const given = samples[catalog][`${entity}.${method}`];
      compare(alias, parameters, given, given.length > parameters.length, {
        full: (...args) => (isStatic ? full : made())[method](...args),
        symbol: (...args) => (isStatic ? short : made())[alias](...args),
      });
    }
  }
  return { called, wrong };
}
